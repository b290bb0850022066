"""When a remedy applies: conditions that several causes share, told from the record."""

from __future__ import annotations

from collections.abc import Callable

from whynan.causes._flow import upstream
from whynan.causes._functions import below_bar, subject
from whynan.causes._operands import argument, is_zero, meets, output_type
from whynan.core.catalogue import Condition
from whynan.core.operands import POWERS
from whynan.core.records import HALVES, Operand
from whynan.core.session import Birth, Session


def unless(condition: Condition) -> Condition:
    return lambda birth, session: not condition(birth, session)


def all_of(*conditions: Condition) -> Condition:
    return lambda birth, session: all(condition(birth, session) for condition in conditions)


def is_learned(birth: Birth, session: Session) -> bool:
    """Whether a parameter leads to the operation: otherwise it works on data, which no layer can make positive."""
    operation = subject(birth, session)
    return operation is not None and session.flow.is_trained(operation)


def is_of_data(birth: Birth, session: Session) -> bool:
    """Whether data and constants alone lead to what was born in the forward pass: no course of the training has made it."""
    if birth.direction != "forward":
        return False
    kinds = frozenset().union(*map(session.flow.kinds, birth.operation.inputs))
    return bool(kinds) and kinds <= {"input", "constant", "buffer"}


def in_half(birth: Birth, session: Session) -> bool:
    return any(out.dtype in HALVES for out in birth.operation.outputs)


def narrower_than_double(birth: Birth, session: Session) -> bool:
    return output_type(birth.operation) != "float64"


def is_power(birth: Birth, session: Session) -> bool:
    operation = subject(birth, session)
    return operation is not None and operation.op in POWERS


def is_never_negative(operand: Operand | None) -> bool:
    """A floor changes nothing but what lies below it, and for negative numbers that is all of them."""
    return operand is not None and (operand.stats.min is None or operand.stats.min >= 0)


def divides_by_no_negative(birth: Birth, session: Session) -> bool:
    return is_never_negative(zero_below(birth, session))


def leaves_other_rows(birth: Birth, session: Session) -> bool:
    """Whether some rows of the batch went bad and others did not."""
    result = next(iter(birth.operation.outputs), None)
    return bool(birth.samples) and result is not None and len(birth.samples or ()) < (result.shape or (1,))[0]


def zero_below(birth: Birth, session: Session) -> Operand | None:
    """The operand that is 0 where it stands below a fraction bar."""
    return next((operand for operand in below_bar(subject(birth, session)) if meets(operand, is_zero)), None)


def argument_comes_from(makers: frozenset[str], through: frozenset[str]) -> Callable[[Birth, Session], bool]:
    """Whether one of these functions made the argument, at most changed by the operations in `through`."""

    def comes(birth: Birth, session: Session) -> bool:
        return any(op.op in makers for op in upstream(session, argument(subject(birth, session)), through))

    return comes
