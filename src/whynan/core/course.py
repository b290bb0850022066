"""Whether an incident is a course over many steps rather than a mistake that shows at once."""

from __future__ import annotations

from dataclasses import replace

from whynan.core.catalogue import Catalogue
from whynan.core.incident import Diagnosis
from whynan.core.records import Operation
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
    """Whether everything that the operation depends on comes from parameters and constants."""
    pending, seen, found = [operation.index], set[int](), False
    shape = operation.outputs[0].shape if operation.outputs else ()
    while pending:
        index = pending.pop()
        if index in seen:
            continue
        seen.add(index)
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
