"""Reading single operands of an operation: which one it is, and what it held where the result went bad."""

from __future__ import annotations

import math
from collections.abc import Callable

from whynan.core.operands import operands
from whynan.core.records import Operand, Operation
from whynan.core.session import Birth

Test = Callable[[float], bool]
BY_THE_OTHER = ("floor_divide", "remainder", "fmod")  # whose tensors go by other names than dividend and divisor


def first(operation: Operation | None, *roles: str) -> Operand | None:
    """The operand of the first of these roles that there is, or simply the first operand."""
    if operation is None:
        return None
    given = operands(operation)
    named = (next((operand for operand in given if operand.role == role), None) for role in roles)
    return next((operand for operand in named if operand is not None), given[0] if given and not roles else None)


def plain_role(operand: Operand) -> str:
    """`divisor` of `divisor[3]`, one of the many divisors of an optimizer that updates all parameters together."""
    return operand.role.partition("[")[0]


def argument(operation: Operation | None) -> Operand | None:
    """What a function of one variable was given."""
    return first(operation, "input", "base", "logits", "divisor") or first(operation)


def divisors(operation: Operation | None) -> tuple[Operand, ...]:
    """All divisors, Python's numbers included: a fused optimizer step has one for every parameter."""
    if operation is None:
        return ()
    role = "other" if operation.op in BY_THE_OTHER and operation.operand("other") is not None else "divisor"
    return tuple(operand for operand in operands(operation) if plain_role(operand) == role)


def dividend(operation: Operation | None) -> Operand | None:
    return first(operation, "dividend", "input")


def number(operation: Operation | None, *names: str) -> float | None:
    """A plain number that the operation was called with, by the first of these names that there is."""
    for name in names if operation else ():
        value = operation.scalars.get(name) if operation else None
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return float(value)
    return None


def constants(operation: Operation) -> tuple[float, ...]:
    """The numbers the user wrote as operands of an addition, product or bound, plainly or as a tensor of one element."""
    plain = (number(operation, name) for name in ("other", "min", "max", "value", "scalar"))
    wrapped = (single(operand) for operand in operation.inputs if operand.role in ("other", "min", "max") or operand.constant is not None)
    return tuple(value for value in (*plain, *wrapped) if value is not None)


def single(operand: Operand | None) -> float | None:
    """The value of an operand that is one number."""
    if operand is None or operand.stats.numel != 1:
        return None
    return operand.constant if operand.constant is not None else operand.stats.max


def exponent(power: Operation) -> float | None:
    """The exponent of a power where it is one number."""
    plain = number(power, "exponent", "other")
    return plain if plain is not None else single(power.operand("exponent"))


def meets(operand: Operand | None, test: Test) -> bool:
    """Whether some element at the birth passes the test; where none was kept, whether an extreme of the whole operand does."""
    if operand is None:
        return False
    if operand.at_birth:
        return any(test(value) for value in operand.at_birth)
    stats = operand.stats
    return any(value is not None and test(value) for value in (stats.min, stats.max)) or bool(stats.zero and test(0.0))


def all_meet(operand: Operand | None, test: Test) -> bool:
    """Whether every element kept at the birth passes the test."""
    return operand is not None and bool(operand.at_birth) and all(test(value) for value in operand.at_birth)


def is_zero(value: float) -> bool:
    return value == 0


def is_nonzero(value: float) -> bool:
    return value != 0


def is_negative(value: float) -> bool:
    return value < 0


def extreme(operand: Operand, pick: Callable[..., float]) -> float | None:
    """The smallest (`min`) or largest (`max`) finite value seen of an operand."""
    stats = operand.stats
    values = [value for value in (*operand.at_birth, stats.min, stats.max) if value is not None and math.isfinite(value)]
    return pick(values) if values else None


def carried(birth: Birth) -> Operand | None:
    """The operand that brought a non-finite value in from outside the record."""
    outside = [operand for operand in birth.operation.inputs if operand.producer is None and not operand.stats.finite]
    named = [operand for operand in outside if birth.origin_name is not None and operand.name == birth.origin_name]
    return next(iter(named or outside), None)


def sick(operation: Operation) -> tuple[int, int, int]:
    """How many NaN, inf and -inf the results hold."""
    outputs = operation.outputs
    return sum(out.nan for out in outputs), sum(out.posinf for out in outputs), sum(out.neginf for out in outputs)


def output_type(operation: Operation) -> str:
    """The format of the first result that is not finite."""
    bad = next((out for out in operation.outputs if not out.finite), None)
    shown = bad or next(iter(operation.outputs), None)
    return shown.dtype if shown else ""
