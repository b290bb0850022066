"""The derivative of a fractional power at zero.

What happens
    A number that is exactly 0 is raised to a power below 1: the focal factor (1 - p) ** 0.5 of a saturated prediction, a root
    written as ** 0.5 or ** (1/3), a learned exponent, a gamma correction of a black pixel.

Why it gives NaN or Inf
    The derivative is p * x ** (p - 1), and 0 to a negative power is infinite; times a gradient of 0 it is NaN.

How to recognise it
    The loss is finite, the birth lies in the backward pass of the power, the exponent is below 1 and the base was exactly 0.

How to fix it
    Keep the base away from 0 before the power (clamp_min, an epsilon inside), or use an exponent of at least 1.

When this diagnosis is wrong
    With an exponent of at least 1 the first derivative is finite; then a higher derivative or another factor is at fault.

References
    https://github.com/pytorch/pytorch/issues/9190
"""

from __future__ import annotations

from whynan.causes._functions import node_is, subject
from whynan.causes._operands import argument, is_zero, meets, number
from whynan.causes._words import at_rows, called, num, outcome, with_zeros
from whynan.core.catalogue import Advice, Cause, Edit, Verdict
from whynan.core.records import Operand, Operation
from whynan.core.session import Birth, Session

EDITS = (Edit("base", "{}.clamp_min(1e-6)", calls=("pow", "float_power")),)
CAUSE = Cause(
    name="pow-grad-at-zero",
    title="the derivative of a fractional power at zero",
    level="operation",
    why="The derivative of x ** p is p * x ** (p - 1), and 0 to a negative power is infinite.",
    doubt="Wrong if the exponent is 1 or more.",
    remedies=(
        Advice("floor-power-base", "Keep the base away from 0.", EDITS),
        Advice("exponent-at-least-one", "Use an exponent of at least 1."),
    ),
)
POWERS = frozenset({"pow", "float_power"})


def probe(birth: Birth, session: Session) -> Verdict | None:
    power = subject(birth, session)
    if birth.direction != "backward" or power is None or not (power.op in POWERS or node_is(birth, "Pow", "FloatPower")):
        return None
    base, exponent = argument(power), _exponent(power, birth.operation)
    if base is None or not meets(base, is_zero) or (exponent is not None and exponent >= 2):
        return None
    sure = exponent is not None and exponent < 1
    facts = with_zeros(base, "base")
    facts += [] if exponent is None else [f"the exponent is {num(exponent)}, that of the derivative {num(exponent - 1)}"]
    facts.append(f"gradient: {outcome(birth.operation)}")
    named = "a power" if exponent is None else f"the power {num(exponent)}"
    summary = f"{called(birth, power)} raised 0 to {named}{at_rows(birth)}; the derivative there is infinite"
    return Verdict(0.94 if sure else 0.7, summary, tuple(facts))


def _exponent(power: Operation, born: Operation) -> float | None:
    """The exponent of the forward power; the kernel in the backward pass has it less 1."""
    plain = number(power, "exponent", "other")
    if plain is not None:
        return plain
    operand: Operand | None = power.operand("exponent")
    if operand is not None and operand.stats.min is not None:
        return operand.stats.min
    inner = number(born, "exponent") if born.op in POWERS else None
    return None if inner is None else inner + 1


EXAMPLE = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
x = torch.randn(5, 3)
x[2] *= 1e4
for step in range(3):
    p = torch.sigmoid(model(x).abs())
    loss = -((1 - p) ** 0.5 * torch.log(p)).mean()  # culprit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4g}")
"""
TWIN = EXAMPLE.replace("(1 - p) ** 0.5", "(1 - p).clamp_min(1e-6) ** 0.5")
