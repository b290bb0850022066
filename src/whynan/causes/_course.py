"""The course of the run before the incident: how much a quantity grew, and whether the rate kept rising."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from whynan.core.records import Site
from whynan.core.session import Session

EXPLODED = 100.0  # growth of the loss or the gradient beyond which a run has come apart
LAST = 5  # steps before the incident in which the growth has to show


def finite(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None and math.isfinite(value)]


def growth(values: Sequence[float | None]) -> float:
    """The largest of the last few values against the typical one of the first third, in magnitude; 0 where too few are known."""
    known = [abs(value) for value in finite(values)]
    if len(known) < 2:
        return 0.0
    early = sorted(known[: max(1, len(known) // 3)])
    start = early[(len(early) - 1) // 2]
    return max(known[-LAST:]) / start if start else 0.0


def exploded(session: Session) -> bool:
    """Whether the loss or the gradient grew without bound in the steps before the incident."""
    return growth(session.trend.loss) > EXPLODED or growth(session.trend.grad_norm) > EXPLODED**2


def typical_ratio(session: Session) -> float:
    """The median update ratio of the last steps, without the very first step, whose parameters may be 0."""
    ratios = finite(session.trend.update_ratio[1:])[-10:]
    return sorted(ratios)[len(ratios) // 2] if len(ratios) >= 2 else 0.0


def rates(session: Session) -> list[float]:
    """The rates of all parameter groups at the incident; numbers that are no rates are left out."""
    found = [group.get("lr") for optimizer in session.optimizers for group in optimizer.groups]
    return [float(rate) for rate in found if isinstance(rate, (int, float)) and not isinstance(rate, bool)]


def rising(values: Sequence[float | None], least: int = 10) -> bool:
    """Whether the rate rose in every one of at least `least` steps up to the incident, and by half or more."""
    known = finite(values)[-max(least, 2 * least) :]
    if len(known) < least or known[0] < 0:
        return False
    return all(later >= earlier for earlier, later in itertools.pairwise(known)) and known[-1] > 1.05 * known[0]


def optimizer_site(session: Session) -> Site | None:
    """Where the user made the optimizer, which is where its rate stands."""
    return next((one.site for one in session.optimizers if one.site), None)
