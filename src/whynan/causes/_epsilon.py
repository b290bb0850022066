"""Constants that rounded away on the way to an exact zero."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from whynan.causes._floats import limits, lost_epsilon
from whynan.causes._flow import CARRIES_ZERO, REACH, RENAMES, producer
from whynan.causes._operands import constants
from whynan.core.records import Operand, Operation
from whynan.core.session import Session

ADDITIONS = frozenset({"add", "sub", "rsub"})
BOUNDS = frozenset({"clamp", "clamp_min", "clamp_max"})


@dataclass(frozen=True, slots=True)
class Lost:
    """A constant as it was written and the epsilon in it; `sure` where the format cannot hold it at all."""

    operation: Operation
    value: float
    epsilon: float
    sure: bool


def lost_behind(session: Session, operand: Operand) -> Lost | None:
    """The constant nearest to the operand that was to keep it away from 0 and rounded away."""
    found = (_lost(operation, subtracted) for operation, subtracted in _behind(session, operand))
    return next((lost for lost in found if lost is not None), None)


def _behind(session: Session, operand: Operand) -> Iterator[tuple[Operation, bool]]:
    """The operations that the 0 comes from, and whether it is a difference of what they gave."""
    waiting, seen = [(producer(session, operand), False)], set[int]()
    while waiting and len(seen) < REACH:
        found, subtracted = waiting.pop(0)
        if found is None or found.index in seen:
            continue
        seen.add(found.index)
        yield found, subtracted
        vanishes = any(out.zero is None or out.zero or out.min == 0 for out in found.outputs)
        passed = RENAMES | BOUNDS if subtracted else CARRIES_ZERO | ADDITIONS | BOUNDS
        if found.op in passed and (vanishes or subtracted or found.op in BOUNDS):
            waiting.extend((producer(session, one), subtracted or found.op in ADDITIONS) for one in found.inputs)


def _lost(found: Operation, subtracted: bool) -> Lost | None:
    """The constant of an operation that rounded away, where the result is exactly 0 (of a bound: 0 or 1)."""
    result = next(iter(found.outputs), None)
    if result is None or found.op not in ADDITIONS | BOUNDS or not (result.zero or result.min == 0 or found.absorbed):
        return None
    written = constants(found)
    for value in written:
        epsilon = lost_epsilon(value, result.dtype)
        if epsilon is not None and (found.op in ADDITIONS or found.absorbed or result.zero):
            return Lost(found, value, epsilon, sure=True)
    held = limits(result.dtype)
    small = next((value for value in written if held is not None and 0 < abs(value) <= held.eps), None)
    beside_one = subtracted and found.absorbed and found.op in ADDITIONS and not result.zero and result.max == 1
    return Lost(found, small, small, sure=False) if small is not None and beside_one else None
