"""Several processes: while one runs a step again nobody else does, so nothing may wait for the other ranks."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator
from typing import Any

import torch

COLLECTIVES = ("all_reduce", "broadcast", "all_gather", "all_gather_into_tensor", "reduce_scatter", "reduce_scatter_tensor", "reduce",
               "gather", "scatter", "all_to_all", "all_to_all_single", "barrier", "all_gather_object", "broadcast_object_list")  # fmt: skip


class Collective(Exception):
    """The replayed body talks to other ranks, which do not run it again."""


def several_ranks() -> bool:
    distributed = torch.distributed
    return distributed.is_available() and distributed.is_initialized() and distributed.get_world_size() > 1


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """DistributedDataParallel computes without synchronising; the user's own collectives raise `Collective`."""
    wrapped = [o for o in gc.get_objects() if issubclass(type(o), torch.nn.parallel.DistributedDataParallel)]
    flags = [(w, w.require_backward_grad_sync, w.require_forward_param_sync, w.broadcast_buffers) for w in wrapped]
    saved = {name: getattr(torch.distributed, name) for name in COLLECTIVES if hasattr(torch.distributed, name)}
    for module in wrapped:
        module.require_backward_grad_sync, module.require_forward_param_sync, module.broadcast_buffers = False, False, False
    for name in saved:
        setattr(torch.distributed, name, _refuse)
    try:
        yield
    finally:
        for name, function in saved.items():
            setattr(torch.distributed, name, function)
        for module, gradients, parameters, buffers in flags:
            module.require_backward_grad_sync, module.require_forward_param_sync, module.broadcast_buffers = gradients, parameters, buffers


def _refuse(*_: Any, **__: Any) -> None:
    raise Collective("the step talks to other ranks through a collective operation")
