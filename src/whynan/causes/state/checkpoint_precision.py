"""An optimizer state that lost its precision in a checkpoint.

What happens
    The state of Adam is saved in half precision to spare space. Second moments are squares of gradients and mostly below
    6e-8, the smallest positive float16, so they are 0 when the run resumes.

Why it gives NaN or Inf
    The update is m / (sqrt(v) + eps): with v = 0 it is m / 1e-8, a thousand times the rate and more. The weights jump at the
    first step after the resumption, and the next forward pass overflows.

How to recognise it
    The optimizer is of Adam's kind, an early update changed the parameters by many times their own size, and a parameter is
    now larger than Adam's bounded steps (about the rate each) can have made it since the run began.

How to fix it
    Save the optimizer's state in float32, or reset it (both moments and the step count) after loading the weights.

When this diagnosis is wrong
    If the state was never restored, betas with beta1 squared above beta2 let Adam take such steps as well.

References
    Kingma, Ba: Adam, section 2.1 on the bound of the step (2015)
"""

from __future__ import annotations

import math

from whynan.causes._course import optimizer_site, rates
from whynan.causes._words import extent, num
from whynan.core.catalogue import Advice, Cause, Verdict
from whynan.core.records import Operand
from whynan.core.session import Birth, Session

CAUSE = Cause(
    name="checkpoint-precision",
    title="an optimizer state that lost its precision in a checkpoint",
    level="run",
    course=True,
    why="Second moments that became 0 make the first update after the resumption m / eps, thousands of times the rate.",
    doubt="Wrong if the optimizer's state was never restored.",
    remedies=(
        Advice("save-state-in-float32", "Save the optimizer's state in float32."),
        Advice("reset-optimizer-state", "Reset the optimizer's state after loading the weights."),
    ),
)
ADAMS = ("adam", "adamw", "nadam", "adamax", "radam", "amsgrad")
JUMP = 10.0  # an update of ten times the parameters' own size
BOUND = 20.0  # times the rate: far above what one step of Adam can change an element by


def probe(birth: Birth, session: Session) -> Verdict | None:
    trend, rate = session.trend, max(rates(session), default=0.0)
    if not any(one.type.lower() in ADAMS for one in session.optimizers) or not 0 < rate < math.inf:
        return None
    jump = next((i for i, ratio in enumerate(trend.update_ratio) if ratio is not None and JUMP < ratio < math.inf), None)
    if jump is None or len(trend.update_ratio) - jump > 20:
        return None
    bound = BOUND * rate * (len(trend.update_ratio) - jump)
    large = _largest_parameter(session)
    if large is None or (large.stats.absmax or 0.0) <= bound:
        return None
    step = trend.steps[jump] if jump < len(trend.steps) else jump
    facts = (
        f"the update of step {step} was {num(trend.update_ratio[jump])} times the size of the parameters",
        f"{large.name or 'a parameter'}: {extent(large)}",
        f"steps of Adam at the rate {num(rate)} could have made it {num(bound)} at most",
    )
    return Verdict(0.85, f"the optimizer's update at step {step} was far larger than its rate allows", facts, optimizer_site(session))


def _largest_parameter(session: Session) -> Operand | None:
    parameters = [one for op in session.operations for one in op.inputs if one.source == "parameter" and one.stats.absmax is not None]
    return max(parameters, key=lambda one: one.stats.absmax or 0.0, default=None)


EXAMPLE = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Embedding(12, 4), nn.Linear(4, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.05)


def stored(state, precision):
    for moments in state["state"].values():
        for name in ("exp_avg", "exp_avg_sq"):
            moments[name] = moments[name].to(precision).float()
    return state


for step in range(6):
    rows = torch.arange(12) if step < 4 else torch.arange(6) + 6 * (step % 2)
    loss = 1e-3 * (torch.exp(model(rows)) - 0.5).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step == 3:
        state = optimizer.state_dict()
        state["param_groups"][0]["lr"] = 0.1
        optimizer = torch.optim.Adam(model.parameters())
        optimizer.load_state_dict(stored(state, torch.float16))  # culprit
    print(f"step {step} loss {loss.item():.4g}")
"""
TWIN = EXAMPLE.replace("torch.float16", "torch.float32")
