"""Copies of what a step is about to overwrite: parameters with their optimizer's state, and buffers."""

from __future__ import annotations

import copy
from typing import Any

import torch


def clone_nested(value: Any) -> Any:
    """Tensors cloned, containers rebuilt, numbers as they are."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    if isinstance(value, dict):
        return {key: clone_nested(v) for key, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [clone_nested(v) for v in value]
    return value


def clone_some(value: Any, chosen: set[int]) -> Any:
    """`value` with clones in place of those of its tensors whose ids are in `chosen`."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone() if id(value) in chosen else value
    if isinstance(value, (list, tuple)):
        return type(value)(clone_some(v, chosen) for v in value)
    return value


class OptimizerCopy:
    """The parameters and the state of one optimizer before its step."""

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self.optimizer = optimizer
        self.parameters = [(p, p.detach().clone()) for group in optimizer.param_groups for p in group["params"]]
        self.state = {p: clone_nested(state) for p, state in optimizer.state.items()}
        self.numbers = [{k: copy.copy(v) for k, v in group.items() if k != "params"} for group in optimizer.param_groups]

    def restore(self) -> None:
        with torch.no_grad():
            for parameter, value in self.parameters:
                parameter.data.copy_(value)
        self.optimizer.state.clear()
        for parameter, state in self.state.items():
            self.optimizer.state[parameter] = clone_nested(state)
        for group, numbers in zip(self.optimizer.param_groups, self.numbers, strict=False):
            group.update(numbers)

    @property
    def bytes(self) -> int:
        return sum(value.nbytes for _, value in self.parameters)


class TensorCopy:
    """A plain copy of some tensors (buffers, hand-updated parameters), refilled in place at every step."""

    def __init__(self) -> None:
        self.tensors: list[torch.Tensor] = []
        self.values: list[torch.Tensor] = []

    def take(self, tensors: list[torch.Tensor]) -> None:
        same = len(tensors) == len(self.tensors) and all(a is b for a, b in zip(tensors, self.tensors, strict=True))
        if not same or any(t.shape != v.shape for t, v in zip(tensors, self.values, strict=True)):
            self.tensors, self.values = list(tensors), [t.detach().clone() for t in tensors]
        elif tensors:
            with torch.no_grad():
                torch._foreach_copy_(self.values, [t.detach() for t in tensors])

    def restore(self) -> None:
        with torch.no_grad():
            for tensor, value in zip(self.tensors, self.values, strict=True):
                tensor.data.copy_(value)
