"""A gradient beyond the range of float16.

What happens
    The forward pass is finite, but a gradient in half precision exceeds 65504: the loss was scaled up by a constant, the loss
    scale is too high and the update is not skipped, or the error signal itself is that large.

Why it gives NaN or Inf
    Gradients are multiplied by the loss scale. What exceeds 65504 is inf, and 0 * inf or inf - inf further back is NaN.

How to recognise it
    The birth lies in the backward pass, in float16, all operands are finite, and the same operation in float64 is finite.

How to fix it
    Use torch.amp.GradScaler, which lowers the scale and skips such updates, unscale before clipping, or use bfloat16, which
    needs no scale.

When this diagnosis is wrong
    If the gradient overflows at scale 1 too, the loss or the activations are too large, and no scale helps.

References
    https://pytorch.org/docs/stable/amp.html#gradient-scaling
    Micikevicius et al.: Mixed Precision Training (2018)
"""

from __future__ import annotations

from whynan.causes._conditions import unless
from whynan.causes._operands import constants, output_type
from whynan.causes._words import at_rows, extent, num, outcome
from whynan.core.catalogue import Advice, Cause, Verdict
from whynan.core.records import Operation
from whynan.core.session import Birth, Session


def _has_scaler(birth: Birth, session: Session) -> bool:
    """Whether the loss is multiplied by a tensor that was there before the step."""
    return any(one.producer is None and one.stats.numel == 1 for op in _products(birth, session) for one in op.inputs)


CAUSE = Cause(
    name="fp16-grad-overflow",
    title="a gradient beyond the range of float16",
    level="operation",
    why="The gradient, times the loss scale, exceeds 65504 and becomes inf.",
    doubt="Wrong if it overflows at scale 1 too: then the loss or the activations are too large.",
    remedies=(
        Advice(
            "use-grad-scaler",
            "Use torch.amp.GradScaler: it lowers the scale and skips the updates that overflow.",
            when=unless(_has_scaler),
        ),
        Advice("use-bfloat16", "Use bfloat16 instead of float16: the range of float32, and no loss scale."),
    ),
)
LEAST_SCALE = 16.0  # a smaller factor is a weight of the loss


def probe(birth: Birth, session: Session) -> Verdict | None:
    operation = birth.operation
    if any(not one.stats.finite for one in operation.inputs) or not any(out.inf and out.dtype == "float16" for out in operation.outputs):
        return None
    if birth.direction != "backward" and not _scales_loss(operation, session):
        return None
    if operation.float64_finite is False or any(one.role == "divisor" and one.stats.zero for one in operation.inputs):
        return None
    facts = [extent(one) for one in operation.inputs[:2]]
    facts.append(f"gradient: {outcome(operation)}; {output_type(operation)} holds at most 65504")
    scale, scaling = session.scale, _scaling(birth, session)
    if scaling is not None:
        scale = max(constants(scaling))
        facts.append(f"the loss was multiplied by {num(scale)}" + (f" on line {scaling.site.line}" if scaling.site else ""))
    elif scale is not None:
        facts.append(f"the loss scale is {num(scale)}")
    times = f", with a loss scale of {num(scale)}," if scale is not None and scale != 1 else ""
    node = f" in {operation.node}" if operation.node else ""
    summary = f"a gradient{times} exceeded 65504{node}{at_rows(birth)}"
    return Verdict(0.9 if operation.float64_finite else 0.8, summary, tuple(facts), scaling.site if scaling is not None else None)


def _scaling(birth: Birth, session: Session) -> Operation | None:
    """The product with a constant by which the user scaled the loss."""
    products = _products(birth, session) if birth.direction == "backward" else []
    return next((op for op in products if max(constants(op), default=0.0) >= LEAST_SCALE), None)


def _products(birth: Birth, session: Session) -> list[Operation]:
    """The products of a single number at the end of the forward pass, which only the gradient of 1 is made like."""
    forward = [op for op in session.operations if op.direction == "forward" and op.index < birth.operation.index]
    read = {one.producer for op in forward if op.op != "ones_like" for one in op.inputs}
    return [op for op in forward if op.op == "mul" and op.index not in read and op.outputs and op.outputs[0].numel == 1]


def _scales_loss(operation: Operation, session: Session) -> bool:
    return session.scale is not None and session.scale > 1 and operation.op == "mul" and session.scale in constants(operation)


EXAMPLE = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(8, 4).half()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
x, y = torch.randn(16, 8).half(), torch.randn(16, 4).half() * 20
for step in range(3):
    loss = (model(x) - y).float().pow(2).mean()
    optimizer.zero_grad()
    (loss * 2.0**16).backward()  # culprit
    for p in model.parameters():
        p.grad /= 2.0**16
    optimizer.step()
    print(f"step {step} loss {loss.item():.4g}")
"""
TWIN = EXAMPLE.replace("2.0**16", "2.0**8")
