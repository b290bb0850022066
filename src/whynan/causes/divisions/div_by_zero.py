"""A division of a number by zero.

What happens
    Something other than 0 is divided by 0, its reciprocal or inverse square root is taken, or 0 is raised to a negative
    power: the degree of an isolated node to the power -1/2, a distance of 0 in a denominator, a scale that vanished.

Why it gives NaN or Inf
    x / 0 is inf with the sign of x. The next operation that subtracts two of them or multiplies one by 0 gives NaN.

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

from whynan.causes._functions import subject
from whynan.causes._operands import argument, divisors, exponent, first, is_nonzero, is_zero, meets, sick
from whynan.causes._words import at_rows, called, extent, num
from whynan.core.catalogue import Advice, Cause, Edit, Verdict
from whynan.core.records import Operand, Operation
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
                Edit("divisor", "{}.clamp_min(1e-6)", calls=("div", "true_divide", "divide")),
                Edit("argument", "{}.clamp_min(1e-6)", calls=("rsqrt", "reciprocal")),
            ),
        ),
        Advice(
            "floor-power-base",
            "Keep the base of a negative power away from 0.",
            (Edit("base", "{}.clamp_min(1e-6)", calls=("pow",)),),
        ),
    ),
)


def probe(birth: Birth, session: Session) -> Verdict | None:
    operation = subject(birth, session)
    if operation is None:
        return None
    zero = _vanished(operation)
    if zero is None or (birth.direction != "backward" and not (sick(operation)[1] or sick(operation)[2])):
        return None
    divided = first(operation, "dividend") if operation.op in ("div", "addcdiv") else None
    if divided is not None and not meets(divided, is_nonzero):
        return None
    done = "raised 0 to a negative power" if operation.op == "pow" else "divided by 0"
    facts = [extent(operand) for operand in (divided, zero) if operand is not None]
    if zero.stats.zero:
        facts.append(f"{zero.stats.zero} of its {zero.stats.numel} elements are exactly 0")
    if operation.op == "pow":
        facts.append(f"the exponent is {num(exponent(operation))}")
    return Verdict(0.6 if birth.direction == "backward" else 0.9, f"{called(birth, operation)} {done}{at_rows(birth)}", tuple(facts))


def _vanished(operation: Operation) -> Operand | None:
    """The operand that is 0 where it stands below a fraction bar."""
    if operation.op in ("div", "addcdiv", "reciprocal"):
        return next((one for one in divisors(operation) if meets(one, is_zero)), None)
    below = operation.op == "rsqrt" or (operation.op in ("pow", "float_power") and (exponent(operation) or 0.0) < 0)
    operand = argument(operation)
    return operand if below and meets(operand, is_zero) else None


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
