"""A learning rate that is too high.

What happens
    The run starts in good health, then each update overshoots: the loss jumps or oscillates, the gradient follows, and within
    some steps the weights are out of range. A configuration for eight devices runs on one, a fine-tuning rate is a thousand
    times too high.

Why it gives NaN or Inf
    Beyond twice the inverse of the curvature every step increases the error, and it grows geometrically until a product
    overflows. The operation that overflows first is chance.

How to recognise it
    The loss grew more than a hundredfold within the last steps, or updates change the parameters by a third of their size and
    more (healthy: 0.0001 to 0.01), while the rate itself did not change.

How to fix it
    Lower the rate tenfold, warm it up over the first hundred steps, scale it with the batch size, and clip the gradient's
    norm.

When this diagnosis is wrong
    If inputs or targets are in the thousands, the scale of the data makes an ordinary rate too high.

References
    Goyal et al.: Accurate, Large Minibatch SGD (2017)
    Cohen et al.: Gradient Descent on Neural Networks Typically Occurs at the Edge of Stability (2021)
"""

from __future__ import annotations

from whynan.causes._conditions import is_of_data
from whynan.causes._course import EXPLODED, at_a_tenth, finite, growth, optimizer_site, rates, rising, typical_ratio
from whynan.causes._functions import divides_by_zero
from whynan.causes._words import num
from whynan.core.catalogue import Advice, Cause, Edit, Verdict
from whynan.core.session import Birth, Session
from whynan.core.trials import LOWER_RATE

CAUSE = Cause(
    name="lr-too-high",
    title="a learning rate that is too high",
    level="run",
    course=True,
    trials=(LOWER_RATE,),
    why="Each update overshoots, so the error grows from step to step until some operation overflows; which one is chance.",
    doubt="Wrong if inputs or targets are in the thousands: then their scale is to be mended first.",
    remedies=(
        Advice("lower-learning-rate", "Lower the rate tenfold.", (Edit("keyword", "{} / 10", (), (), "lr"),)),
        Advice("warm-up", "Warm the rate up linearly over the first hundred steps."),
        Advice("clip-gradient-norm", "Clip the norm of the gradient before each update (torch.nn.utils.clip_grad_norm_)."),
    ),
)
LARGE_UPDATE = 0.15  # of the parameters' own size, in the median of the last steps
DATA = frozenset({"input", "param", "buffer"})


def probe(birth: Birth, session: Session) -> Verdict | None:
    if birth.op in DATA or birth.direction == "optimizer":
        return None
    trend = session.trend
    loss, gradient, ratio = growth(trend.loss), growth(trend.grad_norm), typical_ratio(session)
    if is_of_data(birth, session):
        return None
    overflowed = (any(out.inf for out in birth.operation.outputs) or birth.from_infinity) and not divides_by_zero(birth.operation)
    confidence = _confidence(loss, gradient, ratio, overflowed)
    if not confidence:
        return None
    if rising(trend.lr):
        confidence -= 0.1
    more, facts = at_a_tenth(session)
    summary = _summary(session, loss, ratio)
    evidence = _evidence(session, loss, gradient, ratio)
    return Verdict(min(confidence + more, 0.91), summary, (*facts, *evidence), optimizer_site(session))


def _confidence(loss: float, gradient: float, ratio: float, overflowed: bool) -> float:
    apart = loss > EXPLODED or gradient > EXPLODED**2
    if apart and ratio > LARGE_UPDATE:
        return 0.91
    if apart:
        return 0.72
    return 0.65 if ratio > 2 * LARGE_UPDATE and overflowed else 0.0


def _summary(session: Session, loss: float, ratio: float) -> str:
    rate = max(rates(session), default=None)
    at = f" at a rate of {num(rate)}" if rate is not None else ""
    if loss > EXPLODED:
        return f"the loss grew {num(loss)}-fold within the last steps{at}"
    return f"each update changed the parameters by {num(100 * ratio)} % of their size{at}"


def _evidence(session: Session, loss: float, gradient: float, ratio: float) -> tuple[str, ...]:
    trend = session.trend
    facts = []
    for name, values, grown in (("loss", trend.loss, loss), ("gradient norm", trend.grad_norm, gradient)):
        known = finite(values)
        if known:
            facts.append(f"{name}: {num(known[0])} at first, {num(max(known[-5:], key=abs))} at most in the last steps" * (grown > 1))
    if ratio:
        facts.append(f"update ratio of the last steps: {num(ratio)}; healthy: 0.0001 to 0.01")
    found = rates(session)
    if found:
        facts.append(f"learning rate: {num(max(found))}")
    return tuple(fact for fact in facts if fact)


EXAMPLE = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9)  # culprit
weights = torch.randn(12, 4)
for step in range(40):
    x = torch.randn(8, 12)
    loss = ((model(x) - x @ weights) ** 2).sum(1).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4g}")
"""
TWIN = EXAMPLE.replace("lr=0.3", "lr=0.003")
