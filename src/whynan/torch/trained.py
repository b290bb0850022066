"""Which of the leaves that ask for a gradient are trained: a script also differentiates by its inputs."""

from __future__ import annotations

import torch
from torch import nn

from whynan.torch.registry import Registry
from whynan.torch.trace import Trace


def is_trained(leaf: torch.Tensor, registry: Registry, trace: Trace | None) -> bool:
    """An optimizer holds it, it is a parameter, or something has written it since it was made. Where no optimizer is known the script
    makes its updates itself, and they need not write in place."""
    if registry.owns(leaf) or isinstance(leaf, nn.Parameter):
        return True
    if trace is not None and not _was_there(leaf, trace):
        return False
    return leaf._version > 0 or not registry.optimizers


def _was_there(leaf: torch.Tensor, trace: Trace) -> bool:
    """Whether the step read it, not as a part of the batch, and did not make it itself: run again it would be another tensor."""
    storage = trace.table.find(leaf)
    if storage is None or storage.from_batch:
        return False
    return any(o.identity == storage.number and o.producer is None for op in trace.operations for o in op.inputs)
