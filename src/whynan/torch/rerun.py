"""An optimizer's step that made non-finite parameters, run again under the recorder right where it was called."""

from __future__ import annotations

import contextlib
from typing import Any

import torch

from whynan.core.session import Seed
from whynan.torch.copies import OptimizerCopy
from whynan.torch.gate import finite
from whynan.torch.incidents import Found, seeds
from whynan.torch.registry import Registry
from whynan.torch.replay import Replay


def run_step_again(registry: Registry, optimizer: Any, copy: OptimizerCopy | None, found: Found) -> tuple[Replay, tuple[Seed, ...]]:
    """The gradients are still there; parameters and state come from the copy or, where none was taken, what became non-finite is set
    to 0 (which operation makes it again does not depend on the old value). No seeds: it stayed finite this time."""
    if copy is not None:
        copy.restore()
    else:
        _clear_non_finite(optimizer)
    replay = Replay(registry)
    replay.open(())
    replay.trace.where.optimizer_depth += 1
    try:
        with contextlib.suppress(Exception):
            _plain_step(optimizer)
    finally:
        replay.close()
    bad = {id(p) for group in optimizer.param_groups for p in group["params"] if not finite(p)}
    same = bad == {id(p) for p in found.tensors}
    result = seeds(found, replay.trace, found.tensors) if same else ()
    if copy is not None:
        copy.restore()
    return replay, result


def _plain_step(optimizer: Any) -> None:
    """The step without the hooks around it (theirs, ours and the schedulers' counters)."""
    step = type(optimizer).step
    getattr(step, "__wrapped__", step)(optimizer)


def _clear_non_finite(optimizer: Any) -> None:
    with torch.no_grad():
        tensors = [p for group in optimizer.param_groups for p in group["params"]]
        tensors += [v for state in optimizer.state.values() for v in state.values() if isinstance(v, torch.Tensor)]
        for tensor in tensors:
            if tensor.is_floating_point() and not finite(tensor):
                torch.nan_to_num_(tensor.data, nan=0.0, posinf=0.0, neginf=0.0)
