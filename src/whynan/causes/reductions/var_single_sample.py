"""The unbiased variance of a single element.

What happens
    A variance or standard deviation with Bessel's correction is taken over one element: a mini-batch of one, the last batch
    of an epoch, a group with one member, a sequence of length one.

Why it gives NaN or Inf
    The unbiased variance divides by n - 1, which is 0; torch returns NaN and warns once that the degrees of freedom are not
    positive.

How to recognise it
    The number of elements less the correction is 0 or below.

How to fix it
    Drop the last incomplete batch, use the biased variance (correction=0) and an epsilon, or skip the standardisation where
    there is nothing to standardise.

When this diagnosis is wrong
    If more than one element was meant to be reduced, the dimension is wrong.

References
    https://pytorch.org/docs/stable/generated/torch.std.html
"""

from __future__ import annotations

from whynan.causes._functions import SPREADS
from whynan.causes._operands import argument, number
from whynan.causes._words import called, num, shape
from whynan.core.catalogue import Advice, Cause, Verdict
from whynan.core.records import Operation
from whynan.core.session import Birth, Session

CAUSE = Cause(
    name="var-single-sample",
    title="the unbiased variance of a single element",
    level="operation",
    why="The unbiased variance divides by n - 1, which is 0 for a single element.",
    doubt="Wrong if more than one element was meant to be reduced: then the dimension is at fault.",
    remedies=(
        Advice("biased-variance", "Use the biased variance, correction=0, with an epsilon in the division."),
        Advice("drop-last-batch", "Drop the last incomplete batch (drop_last=True), or skip the standardisation of a single element."),
    ),
)


def probe(birth: Birth, session: Session) -> Verdict | None:
    operation = birth.operation
    if operation.op not in SPREADS or birth.direction != "forward" or not operation.makes_nan:
        return None
    operand = argument(operation)
    if operand is None or operand.stats.numel == 0 or not operand.stats.finite:
        return None
    left = operation.degrees if operation.degrees is not None else _degrees(operation)
    if left is None or left > 0:
        return None
    facts = (f"the argument is {shape(operand.stats)}", f"elements less the correction: {num(left)}")
    return Verdict(0.97, f"{called(birth)} ran over too few elements: {num(left)} degrees of freedom are left", facts)


def _degrees(operation: Operation) -> float | None:
    """n - correction where the whole tensor was reduced."""
    operand, result = argument(operation), next(iter(operation.outputs), None)
    if operand is None or result is None or result.numel == 0:
        return None
    correction = number(operation, "correction")
    return operand.stats.numel / result.numel - (1.0 if correction is None else correction)


EXAMPLE = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 2)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step, size in enumerate((8, 8, 1)):
    x, reward = torch.randn(size, 4), torch.randn(size)
    advantage = (reward - reward.mean()) / (reward.std() + 1e-8)  # culprit
    loss = -(torch.log_softmax(model(x), 1)[:, 0] * advantage).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4g}")
"""
TWIN = EXAMPLE.replace("reward.std()", "reward.std(correction=0)")
