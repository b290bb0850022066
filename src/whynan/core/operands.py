"""Numbers of Python among an operation's operands, seen as operands: a probe that looks for a divisor of 0 need not ask how it came in."""

from __future__ import annotations

import math
from collections.abc import Iterator

from whynan.core.records import Operand, Operation, TensorStats

DIVISIONS = frozenset({"div", "floor_divide", "remainder", "fmod"})
POWERS = frozenset({"pow", "float_power"})
NAMES = ("self", "other", "exponent", "scalar")
IN_DIVISIONS = {"self": "dividend", "other": "divisor", "scalar": "divisor"}
IN_POWERS = {"self": "base", "other": "exponent"}
ELSEWHERE = {"self": "input", "scalar": "other"}
NUMBERS = ("int", "float", "bool")  # the formats of operands that are Python's own


def operands(operation: Operation) -> tuple[Operand, ...]:
    """Its tensors and behind them its numbers."""
    return operation.inputs + numbers(operation)


def numbers(operation: Operation) -> tuple[Operand, ...]:
    return tuple(_numbers(operation))


def is_number(operand: Operand) -> bool:
    return operand.stats.dtype in NUMBERS and not operand.stats.shape and operand.constant is not None


def _numbers(operation: Operation) -> Iterator[Operand]:
    roles = IN_DIVISIONS if operation.op in DIVISIONS else IN_POWERS if operation.op in POWERS else ELSEWHERE
    for name in NAMES:
        value = operation.scalars.get(name)
        if isinstance(value, (int, float)):
            yield Operand(
                role=roles.get(name, name),
                stats=_stats(value),
                source="constant",
                at_birth=(_float(value),),
                constant=_float(value),
            )


def _stats(value: float) -> TensorStats:
    number = _float(value)
    finite = number if math.isfinite(number) else None
    return TensorStats(
        shape=(),
        dtype=type(value).__name__ if type(value).__name__ in NUMBERS else "float",  # of numpy's numbers some are Python's by birth
        min=finite,
        max=finite,
        absmax=None if finite is None else abs(finite),
        absmin=abs(finite) if finite else None,
        nan=int(math.isnan(number)),
        posinf=int(number == math.inf),
        neginf=int(number == -math.inf),
        zero=int(number == 0),
    )


def _float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:  # a whole number beyond the range of floating point
        return math.inf if value > 0 else -math.inf
