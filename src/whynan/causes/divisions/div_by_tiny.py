"""A division by a number so small that the quotient overflows.

What happens
    The divisor is not 0 but close to the smallest number that the format holds: a sum of scores that all but vanished, a
    product of probabilities, a norm of a vector that shrank.

Why it gives NaN or Inf
    1e-30 fits into float32, 1 / 1e-39 does not: the quotient exceeds 3.4e38 (65504 in float16) and becomes inf. In the
    backward pass the derivative divides by the square of the divisor, so it overflows long before the quotient itself does.

How to recognise it
    The divisor is non-zero, its magnitude far below 1e-30 (1e-3 in float16), and the quotient is inf.

How to fix it
    Give the divisor a floor in proportion to what it stands for (1 for a count or a sum of weights), or stay in the
    logarithm.

When this diagnosis is wrong
    If the numerator is what is huge, the overflow is its own: see fp32-overflow and fp16-overflow.

References
    https://en.wikipedia.org/wiki/Subnormal_number
"""

from __future__ import annotations

from whynan.causes._conditions import all_of, is_never_negative, unless
from whynan.causes._floats import limits
from whynan.causes._functions import subject
from whynan.causes._operands import argument, divisors, first, output_type
from whynan.causes._words import at_rows, called, extent, num
from whynan.core.catalogue import Advice, Cause, Edit, Verdict
from whynan.core.operands import is_number
from whynan.core.records import Operand, Operation
from whynan.core.session import Birth, Session

DIV = ("div", "true_divide", "divide")
TINY = {"float16": 1e-3, "bfloat16": 1e-30, "float32": 1e-30, "float64": 1e-290}
BACKWARD_TINY = {"float16": 1e-1, "bfloat16": 1e-15, "float32": 1e-15, "float64": 1e-145}  # the derivative divides by the square


def _is_positive(birth: Birth, session: Session) -> bool:
    return is_never_negative(_small(birth, session))


def _all_are_tiny(birth: Birth, session: Session) -> bool:
    """Whether a floor of 1 leaves no other divisor changed."""
    small = _small(birth, session)
    return small is not None and (small.stats.numel == 1 or (small.stats.max or 0.0) <= TINY["float32"])


CAUSE = Cause(
    name="div-by-tiny",
    title="a division by a vanishingly small number",
    level="operation",
    why="The divisor is not 0, but so small that the quotient exceeds the largest number of its format.",
    doubt="Wrong if the numerator is the one out of range.",
    remedies=(
        Advice(
            "floor-divisor-at-one",
            "Give the divisor a floor in proportion to what it stands for: 1 for a count or a sum of weights.",
            (Edit("divisor", "{}.clamp_min(1.0)", calls=DIV, number="max({}, 1.0)"),),
            when=all_of(_is_positive, _all_are_tiny),
        ),
        Advice(
            "floor-divisor",
            "Give the divisor a floor in proportion to what it stands for.",
            (Edit("divisor", "{}.clamp_min(1e-6)", calls=DIV, half="{}.clamp_min(1e-3)", number="max({}, 1e-6)"),),
            when=all_of(_is_positive, unless(_all_are_tiny)),
        ),
        Advice("stay-in-logarithm", "Stay in the logarithm: subtract logarithms instead of dividing by what vanishes."),
    ),
)


def probe(birth: Birth, session: Session) -> Verdict | None:
    operation = subject(birth, session)
    if operation is None:
        return None
    backward, small = birth.direction == "backward", _small(birth, session)
    if small is None or not any(out.inf for out in birth.operation.outputs):
        return None
    least, dtype = _smallest(small), output_type(birth.operation)
    held = limits(dtype)
    facts = [extent(operand) for operand in (first(operation, "dividend"), small) if operand is not None]
    facts.append(f"the smallest divisor is {num(least)}" + (f"; {dtype} holds at most {num(held.largest)}" if held else ""))
    done = "the derivative of " * backward + f"{called(birth, operation)} divided by {num(least)}{at_rows(birth)}"
    return Verdict(0.7 if backward else 0.92, f"{done} and overflowed", tuple(facts))


def _small(birth: Birth, session: Session) -> Operand | None:
    """The divisor that is all but 0; a number of Python takes the format of the quotient."""
    operation, backward = subject(birth, session), birth.direction == "backward"
    bounds = BACKWARD_TINY if backward else TINY
    for one in _below(operation, backward) if operation is not None else ():
        if _smallest(one) < bounds.get(output_type(birth.operation) if is_number(one) else one.stats.dtype, 0.0):
            return one
    return None


def _below(operation: Operation, backward: bool) -> tuple[Operand, ...]:
    if operation.op in ("div", "addcdiv", "reciprocal"):
        return divisors(operation)
    operand = argument(operation)
    return (operand,) if operand is not None and backward and operation.op in ("log", "log2", "log10", "rsqrt") else ()


def _smallest(operand: Operand) -> float:
    """The smallest magnitude where the quotient went bad; infinite where the divisor is 0 there, which is another cause."""
    if operand.at_birth:
        found = [abs(value) for value in operand.at_birth if value == value]
        return min(found) if found and min(found) > 0 else float("inf")
    if operand.stats.zero or operand.stats.absmin is None:
        return float("inf")
    return operand.stats.absmin


EXAMPLE = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(5, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x, score = torch.randn(6, 5), torch.rand(6, 3) * 1e-40
for step in range(3):
    total = (torch.sigmoid(model(x)) - score).abs().sum()
    loss = total / score.sum()  # culprit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4g}")
"""
TWIN = EXAMPLE.replace("score.sum()", "score.sum().clamp_min(1.0)")
