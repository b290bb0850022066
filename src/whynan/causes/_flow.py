"""Following the data through the record: from an operand back to what made it, and from an operation on to what read it."""

from __future__ import annotations

from collections.abc import Iterator

from whynan.core.records import Operand, Operation
from whynan.core.session import Session

REACH = 48  # operations looked at on the way back; causes lie close to the birth

# operations that hand a value on: what is 0 before is 0 behind them
CARRIES_ZERO = frozenset(
    "sqrt mul abs pow square sum mean cumsum prod cumprod clamp clamp_min maximum max amax min amin minimum "
    "_to_copy to clone copy cat stack index index_select gather select_scatter slice_scatter embedding relu expand "
    "neg div contiguous where masked_fill linalg_vector_norm norm nansum squeeze repeat flip roll mm mv bmm addmm "
    "dot view reshape".split()
)
# operations that change a value one by one and keep its meaning
RENAMES = frozenset(
    "_to_copy to clone copy contiguous detach cat stack index index_select gather select repeat flip expand view "
    "reshape clamp clamp_min clamp_max".split()
)


def operation(session: Session, index: int | None) -> Operation | None:
    operations = session.operations
    if index is None or index < 0:
        return None
    if index < len(operations) and operations[index].index == index:
        return operations[index]
    return next((op for op in operations if op.index == index), None)


def producer(session: Session, operand: Operand | None) -> Operation | None:
    return operation(session, operand.producer) if operand is not None else None


def upstream(session: Session, operand: Operand | None, through: frozenset[str], reach: int = REACH) -> Iterator[Operation]:
    """The operations that made the operand, nearest first. Those in `through` are passed, at the others the way ends."""
    waiting, seen = [producer(session, operand)], set[int]()
    while waiting and len(seen) < reach:
        found = waiting.pop(0)
        if found is None or found.index in seen:
            continue
        seen.add(found.index)
        yield found
        if found.op in through:
            waiting.extend(producer(session, one) for one in found.inputs)


def origins(session: Session, operands: tuple[Operand, ...], reach: int = 400) -> set[str]:
    """Where the values come from in the end: `parameter`, `input`, `buffer`, `constant` ..."""
    waiting, seen, found = list(operands), set[int](), set[str]()
    while waiting and len(seen) < reach:
        operand = waiting.pop()
        if operand.producer is None:
            found.add(operand.source)
            continue
        made = operation(session, operand.producer)
        if made is None or made.index in seen:
            continue
        seen.add(made.index)
        waiting.extend(made.inputs)
    return found | ({"unknown"} if waiting else set())


def sources(session: Session, operands: tuple[Operand, ...], reach: int = 400) -> Iterator[Operand]:
    """The operands that came from outside the record and lead to these."""
    waiting, seen = list(operands), set[int]()
    while waiting and len(seen) < reach:
        operand = waiting.pop(0)
        if operand.producer is None:
            yield operand
            continue
        made = operation(session, operand.producer)
        if made is not None and made.index not in seen:
            seen.add(made.index)
            waiting.extend(made.inputs)


def downstream(session: Session, start: int) -> Iterator[Operation]:
    """The forward operations that read the result of `start`, directly or through others, in order."""
    reached = {start}
    for found in session.operations:
        if found.index > start and found.direction == "forward" and any(one.producer in reached for one in found.inputs):
            reached.add(found.index)
            yield found
