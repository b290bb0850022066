"""The components of the loss as an earlier step of the run had them, and what became of the run without one."""

from __future__ import annotations

import math

from whynan.causes._course import exploded
from whynan.causes._words import num
from whynan.core.components import Component
from whynan.core.session import Birth, Session
from whynan.core.trials import WITHOUT_LARGEST, Failed, Survived

NOT_COURSES = frozenset({"input", "param", "buffer"})


def measured(birth: Birth, session: Session) -> list[Component]:
    """Those whose gradient is known, the largest first; none where the run has not come apart."""
    if session.earlier is None or birth.op in NOT_COURSES or birth.direction == "optimizer" or not came_apart(birth, session):
        return []
    known = [one for one in session.earlier.components if one.norm is not None and math.isfinite(one.norm) and one.norm > 0]
    return sorted(known, key=lambda one: -(one.norm or 0.0)) if len(known) > 1 else []


def came_apart(birth: Birth, session: Session) -> bool:
    """Whether the run grew until something overflowed."""
    overflowed = any(out.inf for out in birth.operation.outputs) or birth.from_infinity
    return exploded(session) or overflowed and session.step > 0 and isinstance(session.trials.get(WITHOUT_LARGEST.name), Survived)


def without_it(session: Session) -> tuple[float, tuple[str, ...]]:
    """What switching the largest component off adds to the confidence, and the sentence that says so."""
    outcome = session.trials.get(WITHOUT_LARGEST.name)
    if isinstance(outcome, Survived):
        return 0.08, (f"without its gradient the same {outcome.steps} steps stayed finite",)
    if isinstance(outcome, Failed):
        return -0.3, (f"without its gradient step {outcome.step} failed all the same",)
    return 0.0, ()


def gradients(components: list[Component]) -> str:
    shown = ", ".join(f"{one.name[:40]}: {num(one.norm)}" for one in components[:4])
    return f"gradient norm of each component, with its weight: {shown}"
