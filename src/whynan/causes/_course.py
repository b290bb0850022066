"""The course of the run before the incident: how much a quantity grew, and whether the rate kept rising."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from whynan.causes._words import num
from whynan.core.records import Site
from whynan.core.session import Session
from whynan.core.trials import CLIPPED, LOWER_RATE, Failed, Survived

EXPLODED = 100.0  # growth of the loss or the gradient beyond which a run has come apart
HIGH = 0.5  # a rate that moves parameters of ordinary size by their own size
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
    if len(ratios) < 2:  # of one update alone only a change of the parameters' own size tells, which a rate near 1 makes by itself
        own = [ratio for ratio in finite(session.trend.update_ratio) if ratio >= 1]
        return max(own, default=0.0) if max(rates(session), default=0.0) >= HIGH else 0.0
    return sorted(ratios)[len(ratios) // 2]


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


def straight(steps: Sequence[int], values: Sequence[float | None]) -> bool:
    """Whether a quantity fell through all of the recorded steps, in the last third at least half as fast as on the whole."""
    known = [(step, value) for step, value in zip(steps, values, strict=False) if value is not None and math.isfinite(value)]
    third = len(known) // 3
    if third < 4:
        return False
    (_, first), (middle_step, middle), (last_step, last) = (_centre(known[at : at + third]) for at in (0, third, len(known) - third))
    whole, late = first - last, middle - last
    span = last_step - _centre(known[:third])[0]
    return whole > 0 and span > 0 and last_step > middle_step and late / (last_step - middle_step) >= 0.5 * whole / span


def _centre(points: Sequence[tuple[int, float]]) -> tuple[float, float]:
    return sum(step for step, _ in points) / len(points), sum(value / len(points) for _, value in points)


def by_turn(steps: Sequence[int], values: Sequence[float | None]) -> list[tuple[list[int], list[float | None]]]:
    """A course for each of the updates that a step makes in turn, as a generator and its critic do, with its steps."""
    found: list[tuple[list[int], list[float | None]]] = []
    turn = -1
    for at, (step, value) in enumerate(zip(steps, values, strict=False)):
        turn = turn + 1 if at and step == steps[at - 1] else 0
        if turn == len(found):
            found.append(([], []))
        found[turn][0].append(step)
        found[turn][1].append(value)
    return found


def steps_above(values: Sequence[float | None], limit: float) -> int:
    """How many recorded steps before the incident a quantity has stayed above the limit."""
    return sum(1 for _ in itertools.takewhile(lambda value: abs(value) > limit, reversed(finite(values))))


def jumped(session: Session, factor: float) -> tuple[float | None, float, float] | None:
    """The usual gradient norm and the first one `factor` times as large, with that step's loss where it was still moderate. Without
    steps before it, a norm beside which the loss itself is as nothing."""
    losses, norms = session.trend.loss, session.trend.grad_norm
    start = max(map(abs, finite(losses)[:3]), default=0.0)
    for at, (loss, norm) in enumerate(zip(losses, norms, strict=False)):
        known = sorted(finite(norms[:at]))
        usual = known[len(known) // 2] if known else None
        if norm is not None and norm > factor * (usual if usual is not None else factor * max(start, 1.0)):
            return (usual, norm, loss) if loss is not None and abs(loss) <= 10 * start else None
    return None


def typical_ratio_before(session: Session, factor: float) -> float:
    """The median update ratio before the gradient was `factor` times its first values, without the very first step."""
    norms, ratios = session.trend.grad_norm, session.trend.update_ratio
    start = max(finite(norms)[:3], default=0.0)
    apart = next((at for at, norm in enumerate(norms) if norm is not None and not norm <= factor * start), len(norms))
    known = sorted(finite(ratios[1:apart]))
    return known[len(known) // 2] if known else 0.0


def at_a_tenth(session: Session) -> tuple[float, tuple[str, ...]]:
    """What the same steps at a tenth of the rate add to the confidence that the rate is too high, and the sentence that says so. That
    they fail all the same speaks against it; that they do not, for it only where the loss fell: a tenth of the rate also delays."""
    outcome = session.trials.get(LOWER_RATE.name)
    if isinstance(outcome, Failed):
        return -0.4, (f"made again at a tenth of the rate, step {outcome.step} failed all the same",)
    if not isinstance(outcome, Survived):
        return 0.0, ()
    first, last = outcome.loss_first, outcome.loss_last
    course = f", the loss went from {num(first)} to {num(last)}" if first is not None and last is not None else ""
    fact = f"made again at a tenth of the rate, the same {outcome.steps} steps stayed finite{course}"
    return (0.0 if grows_at_a_tenth(session) else 0.12), (fact,)


def when_clipped(session: Session) -> tuple[str, ...]:
    """What became of the same steps with clipped gradients, where that was tried."""
    outcome = session.trials.get(CLIPPED.name)
    if isinstance(outcome, Survived):
        return (f"made again with the gradient's norm clipped to {num(CLIPPED.norm)}, the same {outcome.steps} steps stayed finite",)
    return (f"made again with clipped gradients, step {outcome.step} failed all the same",) if isinstance(outcome, Failed) else ()


def grows_at_a_tenth(session: Session) -> bool:
    """Whether the loss did not fall in the same steps at a tenth of the rate either: something else drives it."""
    outcome = session.trials.get(LOWER_RATE.name)
    if not isinstance(outcome, Survived) or outcome.loss_first is None or outcome.loss_last is None:
        return False
    return outcome.steps > LAST and outcome.loss_last >= outcome.loss_first


def optimizer_site(session: Session) -> Site | None:
    """Where the user made the optimizer, which is where its rate stands."""
    return next((one.site for one in session.optimizers if one.site), None)
