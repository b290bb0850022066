"""The square root of a negative number.

What happens
    A root is taken of a number below 0. Often it is negative by rounding alone: 1 - cos**2 with a cosine of 1.0000001, a
    variance as the mean of squares less the square of the mean, a squared distance as |a|**2 + |b|**2 - 2 a.b.

Why it gives NaN or Inf
    The real root has no value below 0, and floating point returns NaN.

How to recognise it
    The smallest argument is negative; a magnitude below 1e-4 next to operands near 1 speaks of rounding.

How to fix it
    Where rounding is to blame, clamp at a small positive minimum (0 would give an infinite derivative) or use the form that
    does not cancel: sin from the sine, a two-pass variance, torch.cdist. Where the number is meant to be positive, constrain
    it.

When this diagnosis is wrong
    If torch.where selects these elements away, the derivative of the unused branch is at fault: see where-grad-trap.

References
    Higham: Accuracy and Stability of Numerical Algorithms, chapter 1 (2002)
"""

from __future__ import annotations

from whynan.causes._flow import producer
from whynan.causes._functions import subject
from whynan.causes._operands import argument, extreme, is_negative, meets
from whynan.causes._words import at_rows, called, extent, made_by, num
from whynan.core.catalogue import Advice, Cause, Edit, Verdict
from whynan.core.session import Birth, Session

ROUNDING = 1e-4


def _is_rounding(birth: Birth, session: Session) -> bool:
    """Whether the argument is negative by so little that a difference may have rounded."""
    operand = argument(subject(birth, session))
    least = extreme(operand, min) if operand is not None else None
    return least is not None and -ROUNDING < least < 0


CAUSE = Cause(
    name="sqrt-of-negative",
    title="the square root of a negative number",
    level="operation",
    why="The real root has no value below 0, so the result is NaN.",
    doubt="Wrong if these elements are selected away later: then their derivative is at fault.",
    remedies=(
        Advice(
            "clamp-root-argument",
            "Clamp the argument at a small positive minimum; at 0 the derivative would be infinite.",
            (Edit("argument", "{}.clamp_min(1e-8)", calls=("sqrt", "rsqrt"), half="{}.clamp_min(1e-6)"),),
        ),
        Advice(
            "avoid-cancellation",
            "Use the form that does not cancel (a two-pass variance, torch.cdist, the sine itself).",
            when=_is_rounding,
        ),
    ),
)


def probe(birth: Birth, session: Session) -> Verdict | None:
    root = subject(birth, session)
    if root is None or root.op not in ("sqrt", "rsqrt"):
        return None
    operand = argument(root)
    if operand is None or not meets(operand, is_negative):
        return None
    least = extreme(operand, min)
    made = producer(session, operand)
    facts = [extent(operand)]
    if made is not None:
        facts.append(f"it comes out of {made_by(made, birth)}")
    rounding = _is_rounding(birth, session)
    if rounding:
        facts.append(f"{num(least)} is within rounding of 0")
    by = ", negative by rounding" if rounding else ""
    summary = f"{called(birth, root)} was given numbers down to {num(least)}{by}{at_rows(birth)}"
    return Verdict(0.94 if birth.direction == "forward" else 0.7, summary, tuple(facts))


EXAMPLE = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(7, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
x = torch.randn(200, 7)
for step in range(3):
    w = model.weight / model.weight.norm(dim=1, keepdim=True)
    cosine = (w * w).sum(1) + 1e-6
    loss = torch.sqrt(1 - cosine**2).mean() + model(x).pow(2).mean()  # culprit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4g}")
"""
TWIN = EXAMPLE.replace("1 - cosine**2", "(1 - cosine**2).clamp_min(1e-6)")
