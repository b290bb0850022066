"""A learning rate that is not a number, or that never stops rising.

What happens
    The schedule divides by a warm-up of 0 steps or a total of 0, takes a root of a negative step count, or the warm-up is
    longer than the whole training and keeps raising the rate.

Why it gives NaN or Inf
    A rate of NaN writes NaN into every parameter, although loss and gradients are finite. A rate that keeps rising passes the
    largest stable one sooner or later, and the run comes apart at some point of the warm-up.

How to recognise it
    A parameter group's rate is NaN or infinite; or the rate has risen in every step up to the incident, while loss and
    gradient exploded at the end.

How to fix it
    Treat a warm-up of 0 as none (max(1, warmup)), let it end after a few hundred steps at the intended rate, and log the
    rate.

When this diagnosis is wrong
    If the run came apart early in a short warm-up, the rate is too high from the start: see lr-too-high.

References
    https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate
"""

from __future__ import annotations

import math

from whynan.causes._conditions import is_of_data
from whynan.causes._course import exploded, finite, growth, optimizer_site, rates, rising
from whynan.causes._words import num
from whynan.core.catalogue import Advice, Cause, Verdict
from whynan.core.session import Birth, Session

CAUSE = Cause(
    name="bad-lr-schedule",
    title="a learning rate that is not a number, or that never stops rising",
    level="run",
    course=True,
    why="A rate of NaN writes NaN into every parameter; one that keeps rising passes the largest stable rate sooner or later.",
    doubt="Wrong if the rate was meant to rise: then the peak is too high.",
    remedies=(
        Advice("guard-warm-up", "Guard the schedule's divisions: max(1, warmup) and max(1, total)."),
        Advice("end-warm-up", "Let the warm-up end after a few hundred steps at the intended rate, then decay."),
    ),
)
RATES = ("lr", "alpha", "value", "weight")


def probe(birth: Birth, session: Session) -> Verdict | None:
    bad = [rate for rate in rates(session) if not math.isfinite(rate)]
    if bad:
        facts = (f"a parameter group has the rate {num(bad[0])}",)
        return Verdict(
            0.98,
            f"the learning rate is {num(bad[0])}, and the update wrote it into the parameters",
            facts,
            optimizer_site(session),
        )
    if birth.direction == "optimizer":
        return _in_kernel(birth, session)
    return _rising(birth, session)


def _in_kernel(birth: Birth, session: Session) -> Verdict | None:
    """The schedule has moved on, but the update itself was called with a number that is none."""
    written = ((name, birth.operation.scalars.get(name)) for name in RATES)
    found = next(((name, value) for name, value in written if isinstance(value, float) and not math.isfinite(value)), None)
    if found is None:
        return None
    facts = (f"the update was called with {found[0]} = {num(found[1])}",)
    return Verdict(0.95, f"the update was made with a factor of {num(found[1])}", facts, optimizer_site(session))


def _rising(birth: Birth, session: Session) -> Verdict | None:
    rate = finite(session.trend.lr)
    if not rising(session.trend.lr) or not exploded(session) or birth.op in ("input", "param", "buffer") or is_of_data(birth, session):
        return None
    facts = (
        f"the rate rose in every recorded step, from {num(rate[0])} to {num(rate[-1])}",
        f"the loss grew {num(growth(session.trend.loss))}-fold in the last steps",
    )
    summary = f"the learning rate was still rising, from {num(rate[0])} to {num(rate[-1])}, when the run came apart"
    return Verdict(0.93, summary, facts, optimizer_site(session))


EXAMPLE = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 32), nn.LeakyReLU(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=1.0)  # culprit
peak = 6.0
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda t: peak * (t + 1) / 200)
for step in range(200):
    x = torch.randn(16, 4)
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    print(f"step {step} loss {loss.item():.4g}")
"""
TWIN = EXAMPLE.replace("peak = 6.0", "peak = 0.05")
