"""Standardising by a spread that is zero.

What happens
    Data are centred and divided by their standard deviation, and one column, sample or channel is constant: a silent clip, a
    padded row, a feature that never changes, a batch of identical rewards.

Why it gives NaN or Inf
    The spread of equal numbers is exactly 0. The centred values are 0 as well, so the quotient is 0 / 0 = NaN; where the mean
    rounds, it is a small number over 0 = inf.

How to recognise it
    The divisor comes out of std, var or the root of a mean square of centred values, and is exactly 0 there.

How to fix it
    Divide by the larger of the spread and a small number, or by sqrt(var + eps) as the normalisation layers do; leave
    constant columns out of the features altogether.

When this diagnosis is wrong
    A spread of NaN rather than 0 comes from a single element: see var-single-sample.

References
    https://scikit-learn.org/stable/modules/generated/sklearn.preprocessing.StandardScaler.html (scale_ of a constant column is 1)
"""

from __future__ import annotations

from whynan.causes._flow import CARRIES_ZERO, producer, upstream
from whynan.causes._functions import SPREADS, subject
from whynan.causes._operands import argument, divisors, is_zero, meets
from whynan.causes._words import at_rows, extent, made_by, with_zeros
from whynan.core.catalogue import Advice, Cause, Edit, Verdict
from whynan.core.records import Operand, Operation
from whynan.core.session import Birth, Session

CAUSE = Cause(
    name="zero-variance-scale",
    title="standardising by a spread of zero",
    level="operation",
    why="The spread of equal numbers is exactly 0, and the centred values divided by it are 0 / 0.",
    doubt="Wrong if the divisor is 0 for another reason than equal values.",
    remedies=(
        Advice(
            "floor-spread",
            "Divide by the larger of the spread and a small number.",
            (
                Edit(
                    "divisor",
                    "{}.clamp_min(1e-5)",
                    calls=("div", "true_divide", "divide"),
                    half="{}.clamp_min(1e-3)",
                    number="max({}, 1e-5)",
                ),
                Edit("argument", "({} + 1e-5)", calls=("rsqrt",), half="({} + 1e-3)"),
            ),
        ),
        Advice("drop-constant-columns", "Leave constant columns and empty samples out."),
    ),
)
PASSES = (CARRIES_ZERO - {"mul", "mm", "bmm", "mv", "dot", "addmm"}) | {"add"}


def probe(birth: Birth, session: Session) -> Verdict | None:
    operation = subject(birth, session)
    if operation is None or birth.direction == "optimizer":
        return None
    below = (argument(operation),) if operation.op == "rsqrt" else divisors(operation)
    for operand in below:
        if meets(operand, is_zero):
            spread = _spread(session, operand)
            if spread is not None:
                return _verdict(birth, operand, spread)
    return None


def _verdict(birth: Birth, operand: Operand | None, spread: Operation) -> Verdict:
    given = argument(spread)
    facts = [*(with_zeros(operand, "spread") if operand is not None else []), *([extent(given)] if given is not None else [])]
    facts.append(f"the divisor comes out of {made_by(spread, birth)}")
    summary = f"values were divided by their own spread, which is 0{at_rows(birth)}: they are all equal there"
    return Verdict(0.94 if birth.direction == "forward" else 0.6, summary, tuple(facts))


def _spread(session: Session, operand: Operand | None) -> Operation | None:
    """The operation that measured the spread: std or var, or a mean of squares of values less their mean."""
    for found in upstream(session, operand, PASSES):
        if found.op in SPREADS:
            return found
        if found.op == "mean" and _of_centred_squares(session, found):
            return found
    return None


def _of_centred_squares(session: Session, mean: Operation) -> bool:
    square = producer(session, argument(mean))
    if square is None or square.op not in ("pow", "mul", "square"):
        return False
    centred = producer(session, argument(square))
    return (
        centred is not None
        and centred.op == "sub"
        and any(made is not None and made.op == "mean" for made in (producer(session, one) for one in centred.inputs))
    )


EXAMPLE = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(20, 3)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
x, y = torch.randn(4, 20), torch.randint(0, 3, (4,))
x[1] = -100.0
for step in range(3):
    z = (x - x.mean(1, keepdim=True)) / x.std(1, keepdim=True)  # culprit
    loss = nn.functional.cross_entropy(model(z), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4g}")
"""
TWIN = EXAMPLE.replace("x.std(1, keepdim=True)", "x.std(1, keepdim=True).clamp_min(1e-5)")
