"""Whether an incident is a course over many steps rather than a mistake that shows at once."""

from __future__ import annotations

from dataclasses import replace

from whynan.core.catalogue import Catalogue
from whynan.core.incident import Diagnosis
from whynan.core.operands import numbers
from whynan.core.records import Operation, TensorStats
from whynan.core.session import Birth, Session

FIRST_STEPS = 2  # too few for a course


def with_course(birth: Birth, diagnoses: tuple[Diagnosis, ...], session: Session, catalogue: Catalogue) -> Birth:
    """The birth with the phase `dynamics` where the first diagnosis is a course, or where what went bad was made of parameters
    alone: they were fine when training began, and only training has moved them."""
    if birth.direction == "optimizer" or birth.phase == "input" or birth.op in ("param", "buffer"):
        return birth
    courses = {entry.cause.name for entry in catalogue if entry.cause.course}
    if diagnoses and diagnoses[0].cause in courses or session.step > FIRST_STEPS and _of_parameters(birth.operation, session.operations):
        return replace(birth, phase="dynamics")
    return birth


def _of_parameters(operation: Operation, operations: list[Operation]) -> bool:
    """Whether everything that the operation depends on comes from parameters and constants, and depends on the parameters' values."""
    pending, seen, found = [operation.index], set[int](), False
    shape = operation.outputs[0].shape if operation.outputs else ()
    while pending:
        index = pending.pop()
        if index in seen:
            continue
        seen.add(index)
        if index < len(operations) and _whatever_the_values(operations[index]):
            return False
        for operand in operations[index].inputs if index < len(operations) else ():
            if operand.from_batch:
                return False
            if operand.producer is not None:
                pending.append(operand.producer)
            elif operand.source == "parameter":
                found |= not shape or operand.stats.shape == shape
            elif operand.source not in ("constant", "buffer"):
                return False
    return found


def _whatever_the_values(operation: Operation) -> bool:
    """Whether the program has made the result, and no training: a division by the number 0, a product with 0, x - x, a comparison."""
    if any(number.role == "divisor" and number.constant == 0 for number in numbers(operation)):
        return True
    result = next(iter(operation.outputs), None)
    if result is None or result.dtype == "bool" or operation.op.endswith("_like"):
        return True
    return operation.op in ("mul", "sub") and _is_zero(result) and not all(_is_zero(one.stats) for one in operation.inputs)


def _is_zero(stats: TensorStats) -> bool:
    """Nothing but zeros."""
    return stats.finite and stats.min == 0 and stats.max == 0
