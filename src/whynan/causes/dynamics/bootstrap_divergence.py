"""A target made of the network's own predictions that runs ahead of them.

What happens
    The regression target is a prediction of the same network, or of a recent copy, times a factor plus something: the value of
    the next state, a pseudo-label, a teacher that follows quickly. Raising the prediction raises its own target.

Why it gives NaN or Inf
    If the target answers a change of the prediction by a larger one, the error never closes: both grow by a factor a step, whatever
    the data say, until the squared error overflows. A lower rate only takes longer.

How to recognise it
    One operand of the error carries a gradient and the other, which comes out of the network as well, does not. Both are far
    larger than anything in the batch, the target about as large as the prediction, and the loss has grown over many steps.

How to fix it
    Take the target from a copy that is updated seldom or slowly, discount it (below 1), clip it to the range of possible
    values, and use the smaller of two estimates.

When this diagnosis is wrong
    If the loss came apart within a few steps, the rate is too high: see lr-too-high.

References
    Tsitsiklis, Van Roy: An Analysis of Temporal-Difference Learning with Function Approximation (1997)
    van Hasselt et al.: Deep Reinforcement Learning and the Deadly Triad (2018)
"""

from __future__ import annotations

from dataclasses import dataclass

from whynan.causes._course import EXPLODED, finite, grows_at_a_tenth, steps_above, typical_ratio_before
from whynan.causes._flow import producer, sources
from whynan.causes._words import extent, num
from whynan.core.catalogue import Advice, Cause, Verdict
from whynan.core.records import Operand, Operation
from whynan.core.session import Birth, Session
from whynan.core.trials import LOWER_RATE

CAUSE = Cause(
    name="bootstrap-divergence",
    title="a target made of the network's own predictions that runs ahead of them",
    level="run",
    course=True,
    trials=(LOWER_RATE,),
    why="Raising the prediction raises its own target by more, so the error never closes and both grow by a factor a step.",
    doubt="Wrong if the loss came apart within a few steps: then the rate is too high.",
    remedies=(
        Advice("slow-target-network", "Take the target from a copy of the network that is updated seldom or slowly."),
        Advice("clip-target", "Clip the target to the range of possible values, and discount it by a factor below 1."),
    ),
)
ERRORS = frozenset({"sub", "rsub", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"})
AHEAD = 0.5  # of the prediction's size; a copy that lags behind a rate too high is far smaller
BEYOND = 10.0  # times everything in the batch: the size comes from the feedback
MANY = 10  # steps; a rate too high needs fewer
LARGE_UPDATE = 0.1  # of the parameters' size, before anything had grown: then it is the rate


@dataclass(frozen=True, slots=True)
class Error:
    operation: Operation
    prediction: Operand
    target: Operand


def probe(birth: Birth, session: Session) -> Verdict | None:
    losses = finite(session.trend.loss)
    if birth.op in ("input", "buffer") or len(losses) < MANY:
        return None
    start = max(abs(loss) for loss in losses[:3])
    grown = steps_above(session.trend.loss, 10 * start)
    if not start or max(map(abs, losses[-5:])) < EXPLODED * start:
        return None
    found = next((error for op in session.operations for error in _errors(session, op)), None)
    if found is None:
        return None
    target, prediction = found.target.stats.absmax or 0.0, found.prediction.stats.absmax or 0.0
    facts = (
        f"target: {extent(found.target)}, and no gradient flows through it",
        f"prediction: {extent(found.prediction)}",
        f"the loss has been above ten times its first values for {grown} recorded steps",
    )
    summary = f"the target, itself made of the network's predictions, reached {num(target)} against predictions of {num(prediction)}"
    made = producer(session, found.target)
    slow = grown >= MANY or grows_at_a_tenth(session) or 0 < typical_ratio_before(session, MANY) < LARGE_UPDATE
    return Verdict(0.94 if slow else 0.6, summary, facts, made.site if made else None)


def _errors(session: Session, operation: Operation) -> list[Error]:
    if operation.direction != "forward" or operation.op not in ERRORS or len(operation.inputs) < 2:
        return []
    pairs = (operation.inputs[:2], operation.inputs[1::-1])
    return [Error(operation, one, other) for one, other in pairs if _bootstraps(session, one, other)]


def _bootstraps(session: Session, prediction: Operand, target: Operand) -> bool:
    """Whether the target comes from weights of the same shapes without a gradient, and the data explain neither's size."""
    if not prediction.graded or target.graded or "parameter" not in session.flow.kinds(target):
        return False
    behind, before = list(sources(session, (target,))), list(sources(session, (prediction,)))
    largest = max((one.stats.absmax or 0.0 for one in (*behind, *before) if one.source == "input"), default=0.0)
    size = target.stats.absmax
    grown = size is not None and size > BEYOND * max(largest, 1.0) and size >= AHEAD * (prediction.stats.absmax or 0.0)
    return grown and bool(_shapes(behind) & _shapes(before))


def _shapes(operands: list[Operand]) -> set[tuple[int, ...]]:
    return {one.stats.shape for one in operands if one.source == "parameter" and one.stats.shape}


EXAMPLE = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1, bias=False)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
discount = 0.99
for step in range(800):
    state, reward = torch.rand(32, 4), 0.1 * torch.randn(32, 1)
    following = 2 * state
    with torch.no_grad():
        target = reward + discount * model(following)  # culprit
    loss = nn.functional.mse_loss(model(state), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4g}")
"""
TWIN = EXAMPLE.replace("discount = 0.99", "discount = 0.3")
