"""Running a step again: put the framework's state back, record every operation, put the world back."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from time import perf_counter
from typing import Any

import torch

from whynan.core.attributes import attributes_of
from whynan.core.records import Operation
from whynan.torch import _compat
from whynan.torch.distributed import alone, several_ranks
from whynan.torch.incidents import scopes
from whynan.torch.names import Names, collect
from whynan.torch.noted import Noted, put_back_random
from whynan.torch.registry import Registry
from whynan.torch.scaling import put_back
from whynan.torch.trace import Trace


class Replay:
    """One traced run. `trace` holds its record; `again` the values that went bad again. `live`: of a step as it runs. `names`: those of
    everything in memory, which take a while to collect; of another run of the same step they may be used again."""

    def __init__(self, registry: Registry, *, live: bool = False, names: Names | None = None) -> None:
        self.registry, self.live, self.names = registry, live, names
        self.trace = Trace()
        self.again: list[torch.Tensor] = []
        self.started = perf_counter()
        self.marks: list[tuple[int, int]] = []
        self._stack = contextlib.ExitStack()

    def open(self, batch: Iterable[Any], carried: Iterable[Any] = ()) -> None:
        """`batch`: what the loop was given; `carried`: what the body bound in its run before; both any nesting of containers."""
        self._introduce(batch, carried)
        self._stack.enter_context(_compat.eager())
        self._stack.enter_context(quiet_distributed())
        self._stack.enter_context(_compat.saving_nowhere())
        self._stack.enter_context(self.trace.where)
        self._stack.enter_context(self.trace)

    def close(self) -> None:
        self._stack.close()

    def step_of(self, operation: Operation, default: int) -> int:
        """The step of an operation in a trace over several steps. `marks` are (operations so far, steps counted) at every backward: its
        backward and update belong to the step counted last, anything else to the one that is counted next."""
        before = [done for count, done in self.marks if count <= operation.index]
        after = [done for count, done in self.marks if count > operation.index]
        if operation.direction != "forward" and before:
            return before[-1] - 1
        return after[0] - 1 if after else default

    @property
    def seconds(self) -> float:
        return perf_counter() - self.started

    def _introduce(self, batch: Iterable[Any], carried: Iterable[Any]) -> None:
        names = self.names = self.names or collect(scopes(), None)
        shapes = {p.shape for _, p in names.parameters if p.dim()}
        for _, constant in names.constants:
            self.trace.know(constant, "buffer")
        for tensor in tensors_in(carried):
            if tensor.is_floating_point() and (tensor.shape in shapes or tensor.requires_grad):  # weights that an update hands on
                self.trace.know(tensor, "state")
        for _, buffer in names.buffers:
            self.trace.know(buffer, "buffer")
        for _, parameter in names.parameters:
            self.trace.know(parameter, "parameter")
        for leaf in self.registry.leaves():
            self.trace.know(leaf, "parameter")
            if leaf.grad is not None:
                self.trace.know(leaf.grad, "gradient")
        for optimizer in self.registry.optimizers:
            for state in optimizer.state.values():
                for value in state.values() if isinstance(state, dict) else ():
                    if isinstance(value, torch.Tensor):
                        self.trace.know(value, "state")
        for tensor in tensors_in(batch):
            self.trace.know(tensor, "input", from_batch=not isinstance(tensor, torch.nn.Parameter))


def put_back_state(noted: Noted, registry: Registry, *, scale_one: bool) -> None:
    """Everything of the framework's as it was when the attempt began."""
    put_back_random(noted)
    if noted.buffers is not None:
        noted.buffers.restore()
    for written in reversed(noted.written):
        written.restore()
    if noted.leaves is not None:
        noted.leaves.restore()
    for leaf in registry.leaves():
        leaf.grad = None
    put_back(noted.scales, one=scale_one)
    torch.clear_autocast_cache()


def tensors_in(value: Any, depth: int = 0) -> Iterable[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif depth < 4 and isinstance(value, (list, tuple)):
        for part in value[:256]:
            yield from tensors_in(part, depth + 1)
    elif depth < 4 and isinstance(value, dict):
        for part in list(value.values())[:256]:
            yield from tensors_in(part, depth + 1)
    elif depth < 4 and type(value).__module__ != "builtins":
        yield from tensors_in(dict(attributes_of(value)), depth + 1)


@contextlib.contextmanager
def quiet_distributed() -> Any:
    """No rank waits for another while one of them runs a step again."""
    with alone() if several_ranks() else contextlib.nullcontext():
        yield
