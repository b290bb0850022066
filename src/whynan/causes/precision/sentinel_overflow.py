"""Arithmetic on a largest number that stands for "none".

What happens
    The largest float (or a power of ten like 1e30) marks a missing value: a ray that misses the scene, a node without a
    neighbour, an empty minimum. Then it is used in a sum, a product or a square as if it were measured.

Why it gives NaN or Inf
    Twice the largest float is inf, and so is the square of 1e30; times a direction of 0 it is NaN. A weight of 0 given later
    to the missing element does not help, because 0 * inf is NaN.

How to recognise it
    An operand holds exactly the largest number of a format, or a round power of ten from 1e18 on, where the result
    overflowed.

How to fix it
    Mask the missing elements before the arithmetic, or use a finite sentinel within the range of the data (the bound of the
    scene).

When this diagnosis is wrong
    If the number is negative and marks masked attention scores, it is a mask: see mask-sum-overflow.

References
    https://pytorch.org/docs/stable/type_info.html
"""

from __future__ import annotations

import math

from whynan.causes._floats import FLOATS
from whynan.causes._words import at_rows, called, extent, num, outcome
from whynan.core.catalogue import Advice, Cause, Verdict
from whynan.core.records import Operand
from whynan.core.session import Birth, Session

CAUSE = Cause(
    name="sentinel-overflow",
    title='arithmetic on a largest number that stands for "none"',
    level="operation",
    why="A sum or product with the largest number of a format becomes inf, whatever weight the element gets later.",
    doubt="Wrong if this number was measured and marks nothing.",
    remedies=(
        Advice("mask-sentinel-first", "Mask the missing elements before the arithmetic."),
        Advice("finite-sentinel", "Use a finite sentinel within the range of the data, for example the bound of the scene."),
    ),
)
LARGEST = (*(held.largest for held in FLOATS.values()), float(2**63 - 1), float(2**31 - 1))


def probe(birth: Birth, session: Session) -> Verdict | None:
    operation = birth.operation
    if birth.direction != "forward" or birth.op in ("input", "param", "buffer") or operation.finite:
        return None
    if any(one.stats.nan for one in operation.inputs):
        return None
    for operand in operation.inputs:
        sentinel = _sentinel(operand)
        if sentinel is not None:
            return _verdict(birth, operand, sentinel)
    return None


def _verdict(birth: Birth, operand: Operand, sentinel: float) -> Verdict:
    exact = any(abs(sentinel) == largest for largest in LARGEST)
    negative_mask = sentinel < 0 and birth.operation.op in ("add", "sub")
    confidence = 0.55 if negative_mask else 0.95 if exact else 0.82
    meaning = "the largest number of its format" if exact else "a round power of ten"
    facts = (extent(operand), f"{num(sentinel)} is {meaning}", f"result: {outcome(birth.operation)}")
    return Verdict(confidence, f"{called(birth)} was given {num(sentinel)}, which stands for a missing value{at_rows(birth)}", facts)


def _sentinel(operand: Operand) -> float | None:
    """The marker that the operand held where the result went bad; elsewhere it does no harm."""
    if not operand.stats.dtype.startswith(("float", "bfloat", "int")):
        return None
    values = operand.at_birth or tuple(v for v in (operand.stats.max, operand.stats.min) if v is not None)
    found = (value for value in values if math.isfinite(value) and (abs(value) in LARGEST or _round_power(value)))
    return next(found, None)


def _round_power(value: float) -> bool:
    """1e18, 1e20 ... 1e38, as float64 or as the nearest float32."""
    size = abs(value)
    if not 0.999e18 < size < 1e300:
        return False
    power = float(f"1e{round(math.log10(size))}")
    return abs(size - power) <= power * 6e-8


EXAMPLE = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(3, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
missing = torch.finfo(torch.float32).max
near, direction = torch.rand(8), torch.randn(8, 3)
near[3] = missing
far, direction[3, 0] = near + 2.0, 0.0
for step in range(3):
    middle = (near + far) / 2  # culprit
    weight = (near < missing).float()
    loss = (torch.sigmoid(model(direction * middle[:, None]))[:, 0] * weight).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4g}")
"""
TWIN = EXAMPLE.replace("near + far)", "near.clamp(max=10.0) + far.clamp(max=10.0))")
