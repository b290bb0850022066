"""An optimizer that divides by zero.

What happens
    The update divides by the norm of a gradient, or by the root of a second moment, without an epsilon: a normalised step on
    a layer behind a dead ReLU, Adam with eps=0 on embedding rows that no batch has used.

Why it gives NaN or Inf
    A gradient of 0 divided by its norm of 0 is NaN, and it is written into the weights although loss and gradients are
    finite.

How to recognise it
    The birth lies in the optimizer, its divisor is exactly 0, and the epsilon is 0 or missing.

How to fix it
    Give the optimizer an epsilon (1e-8 in float32), or skip parameters whose gradient is 0.

When this diagnosis is wrong
    If the epsilon is positive as written, it rounded away in half precision: see adam-eps-underflow.

References
    https://pytorch.org/docs/stable/generated/torch.optim.Adam.html
"""

from __future__ import annotations

from whynan.causes._floats import rounded
from whynan.causes._operands import divisors, is_zero, meets
from whynan.causes._words import called, num, with_zeros
from whynan.core.catalogue import Advice, Cause, Edit, Verdict
from whynan.core.records import OptimizerState
from whynan.core.session import Birth, Session

CAUSE = Cause(
    name="optimizer-div-zero",
    title="an optimizer that divides by zero",
    level="operation",
    why="A gradient of 0 divided by its norm or second moment of 0 is NaN, and the update writes it into the weights.",
    doubt="Wrong if the optimizer has a positive epsilon that its format holds.",
    remedies=(
        Advice(
            "optimizer-epsilon",
            "Give the optimizer an epsilon, 1e-8 in float32.",
            (Edit("keyword", "1e-8", keyword="eps", half="1e-4"), Edit("divisor", "({} + 1e-8)", half="({} + 1e-4)")),
        ),
        Advice("skip-zero-gradients", "Skip parameters whose gradient is exactly 0."),
    ),
)
FUSED = frozenset({"adam", "adamw", "adagrad"})


def probe(birth: Birth, session: Session) -> Verdict | None:
    if birth.direction != "optimizer" or birth.operation.finite:
        return None
    zero = next((one for one in divisors(birth.operation) if meets(one, is_zero)), None)
    without = next((one for one in session.optimizers if any(group.get("eps") == 0 for group in one.groups)), None)
    if zero is None and not (birth.operation.op in FUSED and without is not None):
        return None
    if without is None and any(_rounds_away(one) for one in session.optimizers):
        return None
    facts = []
    if zero is not None:
        facts += with_zeros(zero, "divisor")
    if without is not None:
        facts.append(f"{without.type} was made with eps = 0")
    who = without.type if without is not None else called(birth)
    confidence = 0.96 if zero is not None else 0.85
    return Verdict(confidence, f"{who} divided an update by {num(0.0)}", tuple(facts), without.site if without is not None else None)


def _rounds_away(optimizer: OptimizerState) -> bool:
    epsilons = [group.get("eps") for group in optimizer.groups]
    return any(isinstance(eps, float) and eps > 0 and rounded(eps, dtype) == 0 for eps in epsilons for dtype in optimizer.dtypes)


EXAMPLE = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Embedding(30, 4), nn.Linear(4, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, eps=0.0)  # culprit
x, y = torch.randint(0, 10, (8,)), torch.randint(0, 3, (8,))
for step in range(3):
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4g}")
"""
TWIN = EXAMPLE.replace("eps=0.0", "eps=1e-8")
