"""Copies of what a step is about to overwrite: parameters with their optimizer's state, and buffers."""

from __future__ import annotations

import copy
import weakref
from collections.abc import Iterable, Iterator, Sequence
from operator import is_
from typing import Any

import torch

from whynan.torch.flat import Flat, is_flat


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
    """The parameters and the state of one optimizer before its step. It keeps neither the optimizer nor its parameters alive."""

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self.optimizer = weakref.ref(optimizer)
        parameters = _parameters_of(optimizer)
        self._values = [p.detach().clone() for p in parameters]
        self._states = [clone_nested(optimizer.state[p]) if p in optimizer.state else None for p in parameters]
        self._numbers = [{k: copy.copy(v) for k, v in group.items() if k != "params"} for group in optimizer.param_groups]

    def restore(self) -> None:
        optimizer = self.optimizer()
        if optimizer is None:
            return
        optimizer.state.clear()
        with torch.no_grad():
            for parameter, value, state in zip(_parameters_of(optimizer), self._values, self._states, strict=False):
                parameter.data.copy_(value)
                if state is not None:
                    optimizer.state[parameter] = clone_nested(state)
        for group, numbers in zip(optimizer.param_groups, self._numbers, strict=False):
            group.update(numbers)

    @property
    def nbytes(self) -> int:
        return nbytes([self._values, self._states], depth=3)


def _parameters_of(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    return [p for group in optimizer.param_groups for p in group["params"]]


def nbytes(values: Iterable[Any], depth: int = 2) -> int:
    """Of the arrays in some values and, `depth` levels deep, in containers."""
    total = 0
    for value in values:
        if isinstance(value, torch.Tensor) or type(value).__module__ == "numpy":
            total += value.nbytes
        elif depth and type(value) in (list, tuple):
            total += nbytes(value, depth - 1)
        elif depth and type(value) is dict:
            total += nbytes(list(value.values()), depth - 1)
    return total


class TensorCopy:
    """A plain copy of some tensors (buffers, hand-updated parameters), refilled in place at every step."""

    def __init__(self) -> None:
        self._given: Sequence[torch.Tensor] = ()
        self._flat = Flat(())
        self._wholes: list[torch.Tensor] = []
        self._single: list[tuple[torch.Tensor, torch.Tensor]] = []

    def take(self, tensors: Sequence[torch.Tensor]) -> None:
        same = len(tensors) == len(self._given) and all(map(is_, tensors, self._given))
        if not same or not self._flat.stands() or any(t.shape != v.shape for t, v in self._single):
            self._begin(tensors)
            return
        for parts, whole in zip(self._flat.parts, self._wholes, strict=True):
            torch.cat(parts, out=whole)
        for tensor, value in self._single:
            value.copy_(tensor.detach())

    def _begin(self, tensors: Sequence[torch.Tensor]) -> None:
        with torch.inference_mode(False):  # or the copies could not be written outside of it
            self._given, self._flat = list(tensors), Flat([t for t in tensors if is_flat(t)])
            self._wholes = self._flat.joined()
            self._single = [(t, t.detach().clone()) for t in tensors if not (is_flat(t) or _is_expanded(t))]

    def pairs(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """(tensor, its value then)"""
        yield from self._flat.pairs(self._wholes)
        yield from self._single

    def restore(self) -> None:
        """What is as it was is not written: it may lie in memory that can't be."""
        with torch.no_grad():
            for tensor, value in self._flat.pairs(self._wholes):
                if tensor.shape != value.shape or not torch.equal(tensor, value):
                    tensor.data.copy_(value)
            for tensor, value in self._single:
                (tensor.data if tensor.layout is torch.strided else tensor).copy_(value)  # a sparse one's data is another tensor


def _is_expanded(tensor: torch.Tensor) -> bool:
    """Several of its elements are one in memory: nobody writes them."""
    if tensor.layout is not torch.strided:
        return False
    return any(not stride and size > 1 for stride, size in zip(tensor.stride(), tensor.shape, strict=True))
