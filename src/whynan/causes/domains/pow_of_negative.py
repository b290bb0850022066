"""A negative number to a fractional power.

What happens
    A negative base meets an exponent that is no whole number: a weighted degree below 0 to the power -1/2, a cube root
    written as ** (1/3), a gamma correction of a value that went below 0, a norm of order p without the absolute value.

Why it gives NaN or Inf
    The real power has no value there (the complex one has), and floating point returns NaN. A guard that replaces inf does
    not see it.

How to recognise it
    The base is negative at the elements that became NaN, and the exponent is fractional.

How to fix it
    Take the absolute value and put the sign back where that is meant (sign(x) * abs(x) ** p), or make the base positive by
    construction.

When this diagnosis is wrong
    With a whole exponent a negative base is fine; then the NaN has another origin.

References
    https://pytorch.org/docs/stable/generated/torch.pow.html
"""

from __future__ import annotations

import math

from whynan.causes._functions import subject
from whynan.causes._operands import argument, extreme, is_negative, meets, number, sick
from whynan.causes._words import at_rows, called, extent, num
from whynan.core.catalogue import Advice, Cause, Edit, Verdict
from whynan.core.session import Birth, Session

CAUSE = Cause(
    name="pow-of-negative",
    title="a negative number to a fractional power",
    level="operation",
    why="The real power of a negative base has no value for a fractional exponent, so the result is NaN.",
    doubt="Wrong if the exponent is a whole number.",
    remedies=(
        Advice(
            "clamp-power-base",
            "Make the base positive, by construction or with a small floor.",
            (Edit("base", "{}.clamp_min(1e-6)", calls=("pow", "float_power"), number="max({}, 1e-6)"),),
        ),
        Advice("signed-power", "Take the absolute value and put the sign back: x.sign() * x.abs() ** p."),
    ),
)


def probe(birth: Birth, session: Session) -> Verdict | None:
    power = subject(birth, session)
    if power is None or power.op not in ("pow", "float_power"):
        return None
    base, exponent = argument(power), number(power, "exponent", "other")
    whole = exponent is not None and (math.isinf(exponent) or exponent.is_integer())
    if base is None or whole or not meets(base, is_negative) or not (sick(power)[0] or birth.direction == "backward"):
        return None
    operand = power.operand("exponent")
    facts = [extent(base)]
    facts += [f"the exponent is {num(exponent)}"] if exponent is not None else []
    facts += [extent(operand)] if operand is not None else []
    least = extreme(base, min)
    summary = f"{called(birth, power)} raised numbers down to {num(least)} to a fractional power{at_rows(birth)}"
    return Verdict(0.95 if birth.direction == "forward" else 0.7, summary, tuple(facts))


EXAMPLE = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(3, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
x, y, edges = torch.randn(4, 3), torch.randn(4, 2), torch.rand(4, 4)
edges[1, 0] = -3.0
for step in range(3):
    scale = edges.sum(1) ** -0.5  # culprit
    loss = ((scale[:, None] * (edges @ model(x)) - y) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4g}")
"""
TWIN = EXAMPLE.replace("edges.sum(1)", "edges.abs().sum(1)")
