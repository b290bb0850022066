"""Adam's epsilon and second moment round to zero in half precision.

What happens
    The parameters themselves are float16, and so is the state of the optimizer. The default epsilon of 1e-8 is below the
    smallest positive float16 (6e-8), and so is the square of any gradient below 2e-4.

Why it gives NaN or Inf
    The update divides by sqrt(v) + eps, and both are 0: m / 0 is inf, 0 / 0 NaN, and it is written into the weights although
    loss and gradients are finite.

How to recognise it
    The birth lies in the optimizer's division, the parameters are float16, and the epsilon rounds to 0 in that format.

How to fix it
    Keep the parameters in float32 and run the forward pass under autocast; otherwise float32 master weights, bfloat16, or an
    epsilon of 1e-4.

When this diagnosis is wrong
    If the epsilon is 0 as written, the format is not to blame: see optimizer-div-zero.

References
    https://pytorch.org/docs/stable/amp.html (why parameters stay in float32)
"""

from __future__ import annotations

from whynan.causes._floats import rounded
from whynan.causes._flow import upstream
from whynan.causes._operands import divisors, is_zero, meets
from whynan.causes._words import num
from whynan.core.catalogue import Advice, Cause, Edit, Verdict
from whynan.core.records import OptimizerState
from whynan.core.session import Birth, Session

CAUSE = Cause(
    name="adam-eps-underflow",
    title="Adam's epsilon and second moment round to zero in half precision",
    level="operation",
    why="The update divides by sqrt(v) + eps, and in float16 both round to 0.",
    doubt="Wrong if the epsilon is 0 as written.",
    remedies=(
        Advice("float32-master-weights", "Keep the parameters in float32 and run the forward pass under autocast."),
        Advice("representable-optimizer-epsilon", "Give the optimizer an epsilon of 1e-4.", (Edit("keyword", "1e-4", (), (), "eps"),)),
    ),
)
FUSED = frozenset({"adam", "adamw", "adagrad"})
ROOTS = frozenset("sqrt add div mul clone addcmul lerp maximum _to_copy".split())


def probe(birth: Birth, session: Session) -> Verdict | None:
    if birth.direction != "optimizer" or birth.operation.finite:
        return None
    zero = next((one for one in divisors(birth.operation) if meets(one, is_zero)), None)
    if zero is None and birth.operation.op not in FUSED:
        return None
    for optimizer in session.optimizers:
        lost = _lost(optimizer)
        if lost is not None:
            return _verdict(lost[0], lost[1], optimizer, zero is not None)
    return _by_hand(birth, session) if zero is not None else None


def _lost(optimizer: OptimizerState) -> tuple[float, str] | None:
    """An epsilon that one of the optimizer's parameters rounds to 0."""
    for group in optimizer.groups:
        eps = group.get("eps")
        for dtype in optimizer.dtypes:
            if isinstance(eps, float) and eps > 0 and rounded(eps, dtype) == 0:
                return eps, dtype
    return None


def _verdict(eps: float, dtype: str, optimizer: OptimizerState, seen: bool) -> Verdict:
    facts = [
        f"the parameters are {dtype}",
        f"eps = {num(eps)} is 0 in {dtype}, whose smallest positive number is {num(2.0**-24)}",
    ]
    if seen:
        facts.append("the divisor sqrt(v) + eps is exactly 0")
    return Verdict(
        0.97 if seen else 0.8,
        f"{optimizer.type} divides by sqrt(v) + eps, and both are 0 in {dtype}",
        tuple(facts),
        optimizer.site,
    )


def _by_hand(birth: Birth, session: Session) -> Verdict | None:
    """An optimizer of the user's own: its epsilon was absorbed in an addition before the division."""
    for divisor in divisors(birth.operation):
        for found in upstream(session, divisor, ROOTS):
            value = found.scalars.get("other")
            if found.op == "add" and isinstance(value, float) and value and rounded(value, divisor.stats.dtype) == 0:
                facts = (f"the epsilon {num(value)} is 0 in {divisor.stats.dtype}", "the divisor is exactly 0")
                return Verdict(0.95, f"the optimizer divides by a number whose epsilon {num(value)} rounded to 0", facts, found.site)
    return None


EXAMPLE = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 2).half()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, eps=1e-8)  # culprit
x, y = torch.randn(4, 4).half(), torch.randn(4, 2).half()
for step in range(3):
    loss = (model(x) - y).float().pow(2).mean() * 1e-4
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4g}")
"""
TWIN = EXAMPLE.replace("eps=1e-8", "eps=1e-4")
