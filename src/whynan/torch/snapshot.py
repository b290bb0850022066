"""The state of a run as one step began, in host memory: from here the steps that followed can be made again."""

from __future__ import annotations

import weakref
from typing import Any

import torch

from whynan.torch.copies import OptimizerCopy, nbytes
from whynan.torch.noted import Noted
from whynan.torch.registry import Registry
from whynan.torch.scaling import put_back, scales

SMALL = 1 << 20  # bytes; what is larger is data, which steps do not write, and would take too long to copy


class Tensors:
    """Copies of leaves without an optimizer and of buffers, which it does not keep alive."""

    def __init__(self, tensors: list[torch.Tensor]) -> None:
        self._pairs = [(weakref.ref(tensor), tensor.detach().clone()) for tensor in tensors]

    @property
    def nbytes(self) -> int:
        return sum(value.nbytes for _, value in self._pairs)

    def restore(self) -> None:
        for reference, value in self._pairs:
            if (tensor := reference()) is not None and tensor.shape == value.shape:
                (tensor.data if tensor.layout is torch.strided else tensor).copy_(value)


class Snapshot:
    """Of parameters with their optimizers' state, leaves without an optimizer, buffers, loss scales and random states, as `step` began.
    `memory`: what the attempt had captured then (`script.memory.Memory`). `at`: the time, by `time.perf_counter`. `like`: one before the
    same step, which has the same copies."""

    optimizers: list[OptimizerCopy]
    tensors: Tensors

    def __init__(self, step: int, attempt: Any, noted: Noted, registry: Registry, at: float, like: Snapshot | None = None) -> None:
        self.step, self.at = step, at
        self.site_id = attempt.site_id
        self.memory = attempt.remember(lambda value: frozen(value, attempt.OTHER))
        self.random, self.devices = noted.random, noted.devices
        optimizers = registry.optimizers
        if like is None or [state.optimizer() for state in like.optimizers] != optimizers:
            self.optimizers = [OptimizerCopy(optimizer) for optimizer in optimizers]
            self.tensors = Tensors([*registry.orphan_leaves(), *registry.buffers.all])
        else:
            self.optimizers, self.tensors = like.optimizers, like.tensors
        self.scales = [(weakref.ref(scaler), scale.clone()) for scaler, scale in scales(registry.scalers)]

    @property
    def nbytes(self) -> int:
        return sum((copy.nbytes for copy in self.optimizers), self.tensors.nbytes + nbytes(self.memory.names.values(), depth=3))

    def restore(self, registry: Registry) -> None:
        """Everything of the framework's. Gradients are taken for what the step makes itself."""
        torch.set_rng_state(self.random)
        for generator, state in self.devices:
            generator.set_state(state)
        with torch.no_grad():
            for optimizer in self.optimizers:
                optimizer.restore()
            self.tensors.restore()
        for leaf in registry.leaves():
            leaf.grad = None
        put_back([(scaler, scale) for reference, scale in self.scales if (scaler := reference()) is not None], one=False)
        torch.clear_autocast_cache()


def frozen(value: Any, other: Any) -> Any:
    """A copy of a tensor without a history, of a large one its memory; `other` for anything else."""
    if not (isinstance(value, torch.Tensor) and value.is_leaf and not value.requires_grad and value.layout is torch.strided):
        return other
    return value.clone() if value.nbytes <= SMALL else value.detach()
