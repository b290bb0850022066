"""Targets far from the scale of the network's output.

What happens
    A regression has targets in the hundreds and more (pixels, prices, house numbers) and a squared error on them, while the
    network starts with outputs near 0.

Why it gives NaN or Inf
    The squared error is of the size of the squared target and its gradient of the size of the target. At an ordinary rate the
    first updates are then hundreds of times too large, and the error grows with each step; in float16 the square overflows
    from 256 on.

How to recognise it
    The targets reach 1e3 (300 where the run came apart), the loss starts at about their square and the gradient norm is large
    from the first step on.

How to fix it
    Standardise the targets per column on the training data and invert that for predictions, or use a loss whose gradient is
    bounded (Huber) with a smaller weight.

When this diagnosis is wrong
    If the same rate fails with standardised targets too, it is the rate: see lr-too-high.

References
    https://scikit-learn.org/stable/modules/generated/sklearn.compose.TransformedTargetRegressor.html
"""

from __future__ import annotations

from whynan.causes._course import exploded, finite
from whynan.causes._flow import origins, producer
from whynan.causes._words import called, extent, num
from whynan.core.catalogue import Advice, Cause, Verdict
from whynan.core.records import Operand, Operation
from whynan.core.session import Birth, Session

CAUSE = Cause(
    name="target-scale",
    title="targets far from the scale of the network's output",
    level="run",
    why="The gradient of a squared error is of the size of the target, so updates at an ordinary rate are far too large.",
    doubt="Wrong if standardised targets fail at the same rate too.",
    remedies=(
        Advice("standardise-targets", "Standardise the targets per column on the training data, and invert that for predictions."),
        Advice("use-huber-loss", "Use a loss with a bounded gradient (smooth_l1_loss)."),
    ),
)
LARGE, SUSPECT, ABSURD = 1e3, 300.0, 1e15
ERRORS = frozenset(["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"])
OVERFLOWS = ERRORS | frozenset(["sub", "pow", "mul", "square", "sum", "mean", "abs"])


def probe(birth: Birth, session: Session) -> Verdict | None:
    operation = birth.operation
    if birth.op in ("input", "param", "buffer") or not any(out.inf for out in operation.outputs):
        return None
    apart = exploded(session)
    overflowed = operation.op in OVERFLOWS and birth.phase == "loss" and session.step <= 2
    if not apart and not overflowed:
        return None
    found = next(((op, target) for op in session.operations for target in [_target(session, op)] if target is not None), None)
    if found is None:
        return None
    error, target = found
    size = target.stats.absmax or 0.0
    if size < (SUSPECT if apart else LARGE):
        return None
    losses, norms = finite(session.trend.loss), finite(session.trend.grad_norm)
    facts = [extent(target)]
    facts += [f"the loss started at {num(losses[0])}"] if losses else []
    facts += [f"the gradient norm started at {num(norms[0])}"] if norms else []
    summary = f"the targets reach {num(size)}, and {called(birth, error)} measures the error on that scale"
    from_start = bool(losses) and losses[0] >= 0.01 * size**2  # the error was of the targets' size before anything grew
    return Verdict(0.92 if apart and (from_start or size >= LARGE) else 0.8, summary, tuple(facts), error.site)


def _target(session: Session, operation: Operation) -> Operand | None:
    """The operand of an error that comes from the batch alone, where the other one comes from the model."""
    if operation.direction != "forward" or operation.op not in ERRORS | {"sub"} or len(operation.inputs) < 2:
        return None
    large = [one for one in operation.inputs[:2] if LARGE * 0.3 <= (one.stats.absmax or 0.0) < ABSURD]
    for operand in large:
        other = next(one for one in operation.inputs[:2] if one is not operand)
        from_data = operand.source == "input" or (
            producer(session, operand) is not None and "parameter" not in origins(session, (operand,))
        )
        if from_data and operand.from_batch and "parameter" in origins(session, (other,)):
            return operand
    return None


EXAMPLE = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 32), nn.LeakyReLU(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x = torch.randn(64, 4)
y = 1000.0 * (x.sum(1, keepdim=True) + 3)
for step in range(20):
    loss = nn.functional.mse_loss(model(x), y)  # culprit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4g}")
"""
TWIN = EXAMPLE.replace("1000.0 * (x.sum(1, keepdim=True) + 3)", "x.sum(1, keepdim=True) / 2")
