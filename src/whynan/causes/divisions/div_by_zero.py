"""A division of a number by zero.

What happens
    Something other than 0 is divided by 0, its reciprocal or inverse square root is taken, or 0 is raised to a negative
    power: the degree of an isolated node to the power -1/2, a distance of 0 in a denominator, a scale that vanished, a plain
    number that was computed as 0.

Why it gives NaN or Inf
    x / 0 is inf with the sign of x, and a remainder by 0 is NaN. The next operation that subtracts two infinities or
    multiplies one by 0 gives NaN.

How to recognise it
    The divisor is exactly 0 and the numerator is not.

How to fix it
    Keep the divisor away from 0 (a floor, an epsilon inside the root), or set the quotient to its intended value where the
    divisor is 0 before the division is made, not afterwards.

When this diagnosis is wrong
    If the divisor only became 0 because exponentials underflowed or an epsilon rounded away, that is the cause.

References
    https://github.com/pyg-team/pytorch_geometric/blob/master/torch_geometric/nn/conv/gcn_conv.py (deg_inv_sqrt)
"""

from __future__ import annotations

from whynan.causes._conditions import all_of, divides_by_no_negative, is_power, unless, zero_below
from whynan.causes._edits import FLOORED_DIVISOR
from whynan.causes._functions import subject
from whynan.causes._operands import dividend, exponent, is_nonzero, meets, sick
from whynan.causes._words import at_rows, called, extent, num, with_zeros
from whynan.core.catalogue import Advice, Cause, Edit, Verdict
from whynan.core.operands import DIVISIONS
from whynan.core.records import Operation
from whynan.core.session import Birth, Session

CAUSE = Cause(
    name="div-by-zero",
    title="a division of a number by zero",
    level="operation",
    why="x / 0 is inf with the sign of x; the next difference of two of them, or product with 0, is NaN.",
    doubt="Wrong if the quotient is replaced before it is used: then its gradient, 0 * inf, is at fault.",
    remedies=(
        Advice(
            "floor-divisor",
            "Keep the divisor away from 0 with a small floor.",
            (
                FLOORED_DIVISOR,
                Edit("argument", "{}.clamp_min(1e-6)", calls=("rsqrt", "reciprocal"), half="{}.clamp_min(1e-3)"),
            ),
            when=all_of(divides_by_no_negative, unless(is_power)),
        ),
        Advice(
            "floor-power-base",
            "Keep the base of a negative power away from 0.",
            (Edit("base", "{}.clamp_min(1e-6)", calls=("pow",), half="{}.clamp_min(1e-2)", number="max({}, 1e-6)"),),
            when=all_of(divides_by_no_negative, is_power),
        ),
        Advice(
            "replace-zero-divisor",
            "Replace the zeros by a small number before the division: torch.where(d == 0, 1e-6, d). A floor would change negative ones.",
            when=unless(divides_by_no_negative),
        ),
    ),
)
QUOTIENTS = DIVISIONS | {"addcdiv"}
OF_NO_VALUE = frozenset({"remainder", "fmod"})


def probe(birth: Birth, session: Session) -> Verdict | None:
    operation = subject(birth, session)
    zero = zero_below(birth, session)
    if operation is None or zero is None:
        return None
    divided = dividend(operation) if operation.op in QUOTIENTS else None
    if divided is not None and not meets(divided, is_nonzero):
        return None
    if birth.direction != "backward" and not _has_gone_bad(operation):
        return None
    facts = [*([extent(divided)] if divided is not None else []), *with_zeros(zero, "element")]
    if is_power(birth, session) and exponent(operation) is not None:
        facts.append(f"the exponent is {num(exponent(operation))}")
    done = "raised 0 to a negative power" if is_power(birth, session) else "divided by 0"
    why = "A remainder by 0 has no value, whatever is divided." if operation.op in OF_NO_VALUE else ""
    summary = f"{called(birth, operation)} {done}{at_rows(birth)}"
    return Verdict(0.6 if birth.direction == "backward" else 0.9, summary, tuple(facts), why=why)


def _has_gone_bad(operation: Operation) -> bool:
    nan, inf, neginf = sick(operation)
    return bool(inf or neginf or (nan and operation.op in OF_NO_VALUE))


EXAMPLE = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(3, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
x, y, edges = torch.randn(4, 3), torch.randn(4, 2), torch.ones(4, 4)
edges[2] = 0.0
for step in range(3):
    scale = edges.sum(1).rsqrt()  # culprit
    loss = ((scale[:, None] * (edges @ model(x)) * scale[:, None] - y) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4g}")
"""
TWIN = EXAMPLE.replace("edges.sum(1).rsqrt()", "edges.sum(1).clamp_min(1.0).rsqrt()")
