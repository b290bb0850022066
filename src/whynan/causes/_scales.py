"""A trained scale that vanished without becoming 0: told from what made it and from what is divided by it."""

from __future__ import annotations

from collections.abc import Iterator

from whynan.causes._floats import limits
from whynan.causes._flow import RENAMES, upstream
from whynan.causes._functions import POLES, subject
from whynan.causes._operands import argument, dividend, divisors
from whynan.causes._words import at_rows, called, extent, made_by, num
from whynan.core.catalogue import Verdict
from whynan.core.records import Operand, Operation
from whynan.core.session import Birth, Session

POSITIVE = frozenset({"softplus", "exp"})
LEARNED = POSITIVE | {"sigmoid"}
THROUGH = RENAMES | {"sqrt", "pow", "square", "mul", "add"}


def collapsed(birth: Birth, session: Session) -> Verdict | None:
    """A trained scale that is not quite 0, or whose derivative is what overflowed."""
    function = subject(birth, session)
    if function is None or not session.step:  # nothing has run down before the first update
        return None
    found = (_vanishing(birth, function, scale, made) for scale, made in _scales(function, session))
    return next((verdict for verdict in found if verdict is not None), None)


def _scales(function: Operation, session: Session) -> Iterator[tuple[Operand, Operation]]:
    """The operands that a trained positive function made, and that function."""
    logged = argument(function) if function.op in POLES else None
    through = THROUGH if logged is None else THROUGH - {"add"}
    for operand in divisors(function) if logged is None else (logged,):
        for made in upstream(session, operand, through):
            if made.op in LEARNED and session.flow.is_trained(made) and (logged is None or _divides(made, session)):
                yield operand, made


def _vanishing(birth: Birth, function: Operation, scale: Operand, made: Operation) -> Verdict | None:
    """Beside what is divided by it the scale is as nothing: it is below the square of the format's precision."""
    held, least = limits(scale.stats.dtype), scale.stats.min
    divided = dividend(function) if function.op not in POLES else None
    size = 1.0 if divided is None else divided.stats.absmax or 0.0
    if held is None or least is None or least < 0 or least >= size * held.eps**2:
        return None
    within = "the derivative of " if birth.direction == "backward" else ""
    facts = (extent(scale), f"it comes out of {made_by(made, birth)}, which training moves")
    return Verdict(0.72, f"{within}{called(birth, function)} met a scale out of {made.op} that ran to {num(least)}{at_rows(birth)}", facts)


def _divides(made: Operation, session: Session) -> bool:
    """Whether something is divided by it elsewhere: a logarithm alone may be that of a probability."""
    quotients = (op for op in session.operations if op.direction == "forward")
    return any(made in upstream(session, one, THROUGH) for op in quotients for one in divisors(op))
