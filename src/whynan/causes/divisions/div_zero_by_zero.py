"""Zero divided by zero.

What happens
    A quotient of two numbers that vanish together: a dice or IoU score without a foreground, the cosine of a zero vector, a
    row normalised by its own sum, a correlation with a constant series, a mean over an empty group.

Why it gives NaN or Inf
    0 / 0 has no value and floating point returns NaN. That the numerator is 0 does not save the quotient.

How to recognise it
    Numerator and denominator are both exactly 0 at the rows that became NaN.

How to fix it
    Decide what the empty case is worth and write it: an epsilon in the denominator (and in the numerator of a dice score), a
    count of at least 1, torch.nn.functional.normalize for vectors, or leave such rows out.

When this diagnosis is wrong
    If the denominator should not be 0 at all, look at what made it: a count over nothing, a spread of a constant column,
    exponentials that underflowed, an epsilon that rounded away. Those causes are named first where the record shows them.

References
    https://pytorch.org/docs/stable/generated/torch.nn.functional.normalize.html
"""

from __future__ import annotations

from whynan.causes._conditions import divides_by_no_negative, leaves_other_rows, unless
from whynan.causes._edits import FLOORED_DIVISOR
from whynan.causes._functions import subject
from whynan.causes._operands import dividend, divisors, is_zero, meets, sick
from whynan.causes._words import at_rows, called, extent, with_zeros, zeros
from whynan.core.catalogue import Advice, Cause, Verdict
from whynan.core.records import Operation
from whynan.core.session import Birth, Session

CAUSE = Cause(
    name="div-zero-by-zero",
    title="zero divided by zero",
    level="operation",
    why="0 / 0 has no value, and floating point returns NaN even though the numerator is 0.",
    doubt="Wrong if the denominator ought never to be 0: then what made it is the mistake.",
    remedies=(
        Advice(
            "floor-divisor",
            "Keep the divisor away from 0 with a small floor (for a count: 1).",
            (FLOORED_DIVISOR,),
            when=divides_by_no_negative,
        ),
        Advice("skip-empty-rows", "Leave the rows out whose denominator is 0.", when=leaves_other_rows),
        Advice(
            "replace-zero-divisor",
            "Replace the zeros by a number before the division: torch.where(d == 0, 1.0, d). A floor would change negative ones.",
            when=unless(divides_by_no_negative),
        ),
    ),
)
QUOTIENTS = frozenset({"div", "addcdiv", "floor_divide", "remainder", "fmod"})
MEANS = frozenset({"nll_loss", "nll_loss2d"})  # they divide a sum of weights by itself
NORMALISERS = frozenset({"_weight_norm_interface"})  # they divide rows by their norms, the second result


def probe(birth: Birth, session: Session) -> Verdict | None:
    operation = subject(birth, session)
    if operation is None:
        return None
    if operation.op in MEANS:
        return _weighted_mean(birth, operation)
    if operation.op in NORMALISERS:
        return _normalised(birth, operation)
    if operation.op not in QUOTIENTS:
        return None
    divided, by = dividend(operation), next((one for one in divisors(operation) if meets(one, is_zero)), None)
    if divided is None or by is None:
        return None
    if birth.direction != "backward" and not (sick(operation)[0] and meets(divided, is_zero)):
        return None
    summary = f"{called(birth, operation)} was given 0 and 0{at_rows(birth)}; 0 / 0 is NaN"
    return Verdict(0.9 if birth.direction != "backward" else 0.5, summary, (extent(divided), *with_zeros(by, "divisor")))


def _weighted_mean(birth: Birth, operation: Operation) -> Verdict | None:
    """The mean of a negative log-likelihood is a sum over the sum of weights, its second result."""
    total = operation.outputs[1] if len(operation.outputs) > 1 else None
    if total is None or total.numel != 1 or total.absmax != 0 or not sick(operation)[0]:
        return None
    summary = f"{called(birth)} divided its sum of losses, 0, by its sum of weights, 0"
    return Verdict(0.6, summary, ("the sum of the weights of all labels is 0",))


def _normalised(birth: Birth, operation: Operation) -> Verdict | None:
    norms = operation.outputs[1] if len(operation.outputs) > 1 else None
    if norms is None or not norms.zero or not sick(operation)[0]:
        return None
    summary = f"{called(birth)} divided a row of zeros by its norm, 0"
    return Verdict(0.9, summary, (zeros(norms, "norm"),))


EXAMPLE = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 6)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
x, y = torch.randn(3, 4), (torch.rand(3, 6) > 0.5).float()
x[1], y[1] = 0.0, 0.0
for step in range(3):
    p = torch.relu(model(x)) * (x.abs().sum(1, keepdim=True) > 0)
    dice = 2 * (p * y).sum(1) / (p.sum(1) + y.sum(1))  # culprit
    loss = 1 - dice.mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4g}")
"""
TWIN = EXAMPLE.replace("(p.sum(1) + y.sum(1))", "(p.sum(1) + y.sum(1)).clamp_min(1e-6)")
