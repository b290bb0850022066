"""A sum of exponentials that all rounded to zero.

What happens
    Exponentials of large negative numbers are summed and the sum is divided by, or its logarithm taken: a hand-written
    softmax, the kernel of a Sinkhorn iteration or of a Gaussian process with a small length scale, mixture weights far from
    every component.

Why it gives NaN or Inf
    exp(x) rounds to 0 for x < -104 in float32 (-17.3 in float16). If all terms do, the sum is 0 and the division by it is x /
    0.

How to recognise it
    The divisor is a sum, mean or matrix product of exponentials, it is exactly 0, and the exponents reach below that limit.

How to fix it
    Work with the logarithms (logsumexp, log_softmax, Sinkhorn in the log domain), which is the subtraction of the row's
    maximum before the exponential; or use a larger temperature, regulariser or length scale.

When this diagnosis is wrong
    If the terms were masked with -inf, the row has nothing to attend to: see masked-softmax-row.

References
    Peyre, Cuturi: Computational Optimal Transport, section 4.4 (2019)
"""

from __future__ import annotations

from whynan.causes._floats import limits
from whynan.causes._flow import CARRIES_ZERO, upstream
from whynan.causes._functions import EXPONENTIALS, POLES, log_argument, subject
from whynan.causes._operands import argument, divisors, is_zero, meets
from whynan.causes._words import at_rows, extent, num
from whynan.core.catalogue import Advice, Cause, Verdict
from whynan.core.records import Operand, Operation
from whynan.core.session import Birth, Session

CAUSE = Cause(
    name="exp-underflow",
    title="a sum of exponentials that all rounded to zero",
    level="operation",
    why="Exponentials of large negative numbers round to 0; where all terms of a sum do, the sum is 0 and is then divided by.",
    doubt="Wrong if the exponents are that negative because something else diverged.",
    remedies=(
        Advice(
            "work-in-log-domain",
            "Keep the logarithms: logsumexp or log_softmax, or subtract the row's maximum before the exponential.",
        ),
        Advice("larger-regulariser", "Use a larger temperature, regulariser or length scale, so that the exponents stay above -80."),
    ),
)
SUMS = frozenset("sum mean mv mm bmm addmm matmul dot cumsum index_add scatter_add".split())


def probe(birth: Birth, session: Session) -> Verdict | None:
    operation = subject(birth, session)
    if operation is None:
        return None
    confidence = 0.93
    below = divisors(operation)
    if operation.op in POLES:
        log = log_argument(operation)
        below, confidence = ((log,) if log is not None else ()), 0.85
    vanished = next((one for one in below if meets(one, is_zero)), None)
    found = _exponentials(session, vanished)
    exponent = argument(found)
    if vanished is None or found is None or exponent is None:
        return None
    held = limits(exponent.stats.dtype)
    floor = held.exp_floor if held else None
    if floor is None or exponent.stats.min is None or exponent.stats.min > floor or exponent.stats.neginf:
        return None
    facts = (extent(vanished), extent(exponent), f"{found.op} rounds to 0 below {num(floor)} in {exponent.stats.dtype}")
    summary = f"all exponentials of a sum rounded to 0{at_rows(birth)}: the exponents reach down to {num(exponent.stats.min)}"
    return Verdict(confidence if birth.direction == "forward" else 0.6, summary, facts)


def _exponentials(session: Session, operand: Operand | None) -> Operation | None:
    """The exponential behind a sum that is 0."""
    summed = False
    for found in upstream(session, operand, CARRIES_ZERO | SUMS):
        summed |= found.op in SUMS
        if found.op in EXPONENTIALS:
            return found if summed and any(out.zero for out in found.outputs) else None
    return None


EXAMPLE = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(2, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
x, centres = torch.randn(5, 2), torch.randn(6, 2)
x[3] = 40.0
for step in range(3):
    distance = (model(x)[:, None] - centres).pow(2).sum(-1)
    k = torch.exp(-distance / 0.5)
    weights = k / k.sum(1, keepdim=True)  # culprit
    loss = (weights * distance).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4g}")
"""
TWIN = EXAMPLE.replace("k / k.sum(1, keepdim=True)", "torch.softmax(-distance / 0.5, 1)")
