"""Where the values of an operation come from, and whether they go on into the model."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator

from whynan.core.records import Operand, Operation, Source

Sources = frozenset[Source]
TRAINED = frozenset({"parameter", "gradient", "state"})  # what training moves
FIXED: frozenset[Source] = frozenset({"constant", "buffer"})


class Flow:
    """The traced step as a graph: for every operation the kinds of tensors from outside that lead to it."""

    def __init__(self, operations: list[Operation]) -> None:
        self.operations = operations
        self._kinds: dict[int, Sources] = {}
        for operation in operations:
            made: Source = "input" if operation.from_batch else "constant"
            own = frozenset[Source]() if operation.inputs else frozenset({made})
            self._kinds[operation.index] = own.union(*map(self.kinds, operation.inputs))

    def kinds(self, operand: Operand) -> Sources:
        """`parameter`, `input`, `constant` ...: where the operand's values come from in the end."""
        if operand.producer is None:
            return frozenset({"parameter" if _is_nameless_leaf(operand) else operand.source})
        return self._kinds.get(operand.producer, frozenset({"unknown"}))

    def is_trained(self, operation: Operation) -> bool:
        """Whether a parameter leads to it."""
        return bool(self._kinds.get(operation.index, frozenset()) & TRAINED)

    def is_weight(self, operand: Operand) -> bool:
        """A parameter, or what was made of parameters alone."""
        kinds = self.kinds(operand)
        return "parameter" in kinds and kinds <= FIXED | {"parameter"}

    def prepares_input(self, operation: Operation) -> bool:
        """Whether no parameter leads to the operation, and its result enters the model: data on their way in, not a loss."""
        return not self.is_trained(operation) and any(self._reads_as_model(reader) for reader in self.meetings(operation))

    def has_met_the_model(self) -> bool:
        """Whether any parameter was read."""
        return any(map(self.is_trained, self.operations))

    def meetings(self, operation: Operation) -> Iterator[Operation]:
        """The operations of the forward pass in which the operation's values first meet those of parameters."""
        reached = {operation.index}
        for later in self.operations[operation.index + 1 :]:
            if later.direction != "forward" or not any(one.producer in reached for one in later.inputs):
                continue
            if self.is_trained(later):
                yield later
            else:
                reached.add(later.index)

    def _reads_as_model(self, operation: Operation) -> bool:
        """It reads a weight itself, or runs in a module in which weights are read (a module that is a loss has none)."""
        if any(map(self.is_weight, operation.inputs)):
            return True
        return operation.module is not None and any(_holds(operation.module, name) for name in self._modules)

    @functools.cached_property
    def _modules(self) -> Iterable[str]:
        return {op.module for op in self.operations if op.module is not None and any(map(self.is_weight, op.inputs))}


def _is_nameless_leaf(operand: Operand) -> bool:
    """A tensor from outside that is neither named nor a part of the batch: it asks for a gradient."""
    return operand.source == "input" and not operand.from_batch and bool(operand.stats.shape)


def _holds(module: str, other: str) -> bool:
    """Whether a module is the other or one around it; the root module has no name."""
    return not module or other == module or other.startswith(module + ".")
