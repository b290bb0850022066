"""Infinity minus infinity.

What happens
    Two infinities meet in a difference, a sum, a mean or a variance: two logarithms of zero, two squares that both
    overflowed, a softmax over an overflowed score, a normalisation of an infinite activation.

Why it gives NaN or Inf
    inf - inf has no value and is NaN.

How to recognise it
    Both operands are infinite where the result is NaN, or one operand that is reduced holds infinities of both signs (a
    softmax or a normalisation needs only one, because it subtracts the maximum or the mean).

How to fix it
    Find where each infinity was born and use the stable form of the whole expression: a ratio instead of a difference of
    logarithms of ratios, logsumexp, a smaller range.

When this diagnosis is wrong
    If only one of the two is infinite the result is infinite and not NaN: then look further.

References
    https://en.wikipedia.org/wiki/NaN#Operations_generating_NaN
"""

from __future__ import annotations

import math

from whynan.causes._flow import producer
from whynan.causes._operands import all_meet
from whynan.causes._words import at_rows, called, extent, made_by
from whynan.core.catalogue import Advice, Cause, Verdict
from whynan.core.operands import is_number, operands
from whynan.core.records import Operand
from whynan.core.session import Birth, Session

CAUSE = Cause(
    name="inf-minus-inf",
    title="infinity minus infinity",
    level="operation",
    why="inf - inf has no value, so the result is NaN; each infinity was born before it.",
    doubt="Wrong if one of the infinities has a cause of its own that the record shows.",
    remedies=(
        Advice("stable-form", "Rewrite the expression so that the large terms cancel before they are computed (logsumexp, a ratio)."),
        Advice("bound-values", "Bound the values that became infinite."),
    ),
)
DIFFERENCES = frozenset({"sub", "add", "rsub", "lerp"})
REDUCTIONS = frozenset(["sum", "mean", "cumsum", "var", "std", "var_mean", "std_mean", "logsumexp"])
CENTRING = frozenset("softmax log_softmax layer_norm batch_norm group_norm var std var_mean std_mean".split())


def probe(birth: Birth, session: Session) -> Verdict | None:
    operation = birth.operation
    if not operation.makes_nan or any(one.stats.nan for one in operation.inputs):
        return None
    infinite = [one for one in operands(operation) if one.stats.inf]
    if operation.op in DIFFERENCES and len(infinite) >= 2:
        known = all(one.at_birth for one in infinite)
        if known and not all(all_meet(one, math.isinf) for one in infinite[:2]):
            return None
        confidence = 0.9 if known else 0.75
    elif operation.op in REDUCTIONS and any(one.stats.posinf and one.stats.neginf for one in infinite):
        confidence = 0.85
    elif operation.op in CENTRING and any(one.stats.posinf for one in infinite):
        confidence = 0.8
    else:
        return None
    facts = tuple(_fact(birth, session, one) for one in infinite)
    if birth.direction == "backward":
        confidence -= 0.2
    return Verdict(confidence, f"{called(birth)} took infinity from infinity{at_rows(birth)}", facts)


def _fact(birth: Birth, session: Session, operand: Operand) -> str:
    stats = operand.stats
    if is_number(operand):
        return extent(operand)
    made = producer(session, operand)
    origin = f", made by {made_by(made, birth)}" if made is not None else ""
    return f"the {operand.role} holds {stats.posinf} inf and {stats.neginf} -inf{origin}"


EXAMPLE = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(3, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, allowed = torch.randn(5, 3), torch.ones(5, 2, dtype=torch.bool)
allowed[2] = False
for step in range(3):
    z = model(x) + torch.zeros(5, 2).masked_fill(~allowed, float("-inf"))
    loss = (z[:, 0] - z[:, 1]).mean()  # culprit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4g}")
"""
TWIN = EXAMPLE.replace('float("-inf")', "-1e4")
