"""A square, product or sum beyond the range of its format.

What happens
    Numbers that are finite by themselves exceed 3.4e38 (or the range of bfloat16 or float64) when they are squared,
    multiplied, summed or raised to a power.

Why it gives NaN or Inf
    What exceeds the largest number is inf; inf - inf, 0 * inf and inf / inf behind it are NaN.

How to recognise it
    All operands are finite, the result is infinite, and the format is not float16. The square of 1.9e19 is enough.

How to fix it
    Scale before squaring or multiplying, not after it; add logarithms instead of multiplying numbers; bound the values.
    Numbers of that size have mostly grown from something else: look at what made the largest operand.

When this diagnosis is wrong
    If the operands grew over many steps, the rate, the scale of data or the initialisation is at fault; those stand before
    this cause.

References
    https://pytorch.org/docs/stable/type_info.html
"""

from __future__ import annotations

from whynan.causes._floats import limits
from whynan.causes._flow import producer
from whynan.causes._functions import EXPONENTIALS, divides_by_zero, subject
from whynan.causes._operands import output_type
from whynan.causes._words import at_rows, called, extent, made_by, num, outcome
from whynan.core.catalogue import Advice, Cause, Verdict
from whynan.core.operands import operands
from whynan.core.session import Birth, Session

CAUSE = Cause(
    name="fp32-overflow",
    title="a square, product or sum beyond the range of its format",
    level="operation",
    why="Finite operands of this size give a result above the largest number of the format, which is inf.",
    doubt="Wrong if the operands grew over many steps: then what drives them up is at fault.",
    remedies=(
        Advice("scale-before-product", "Scale before squaring or multiplying, or add logarithms instead of multiplying numbers."),
        Advice("bound-values", "Bound the values that grow (normalisation, clamp, tanh)."),
    ),
)
SINGULAR = EXPONENTIALS | frozenset(
    "log log2 log10 log1p reciprocal rsqrt atanh lgamma digamma erfinv logit xlogy linalg_slogdet linalg_inv "
    "ctc_loss nll_loss polygamma".split()
)
LARGE = 1e4  # operands below it do not overflow 32 bits in any ordinary operation


def probe(birth: Birth, session: Session) -> Verdict | None:
    operation = birth.operation
    if birth.op in ("input", "param", "buffer") or operation.op in SINGULAR or not any(out.inf for out in operation.outputs):
        return None
    dtype = output_type(operation)
    held = limits(dtype)
    if held is None or dtype == "float16" or any(not one.stats.finite for one in operation.inputs) or divides_by_zero(operation):
        return None
    given = operands(operation)
    largest = max((one.stats.absmax or 0.0 for one in given), default=0.0)
    if largest < LARGE and operation.op not in ("pow", "prod", "cumprod", "div", "float_power"):
        return None
    confidence = 0.8 if operation.float64_finite is not False else 0.5
    facts = [extent(one) for one in given[:3]]
    facts.append(f"result: {outcome(operation)}; {dtype} holds at most {num(held.largest)}")
    big = next((one for one in given if one.stats.absmax == largest), None)
    made = producer(session, big)
    if made is not None:
        facts.append(f"the largest operand comes out of {made_by(made, birth)}")
    within = "the derivative of " if birth.direction == "backward" else ""
    name = called(birth, subject(birth, session) or operation)
    return Verdict(confidence, f"{within}{name} exceeded {num(held.largest)}, the largest {dtype}{at_rows(birth)}", tuple(facts))


EXAMPLE = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
x = torch.randn(6, 4)
x[2] *= 1e20
for step in range(3):
    h = model(x)
    loss = (h.pow(2).sum(1) * 1e-40).mean()  # culprit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4g}")
"""
TWIN = EXAMPLE.replace("h.pow(2).sum(1) * 1e-40", "(h * 1e-20).pow(2).sum(1)")
