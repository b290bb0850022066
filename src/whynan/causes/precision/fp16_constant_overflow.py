"""A constant that float16 cannot hold.

What happens
    A number that the programmer wrote, most often the -1e9 or -1e10 of an attention mask, is converted to float16 or
    multiplied into a float16 tensor.

Why it gives NaN or Inf
    float16 holds at most 65504, so the constant becomes inf or -inf. Times the 0 of visible positions it is NaN; where it
    fills a whole row the softmax of that row is NaN.

How to recognise it
    The operation got one single number beyond 65504 and put out infinities of float16.

How to fix it
    Write torch.finfo(x.dtype).min, use masked_fill with a boolean mask, or compute the mask in float32.

When this diagnosis is wrong
    If the number is a measured value and no constant, it is an overflow of the data: see fp16-overflow.

References
    https://pytorch.org/docs/stable/type_info.html
"""

from __future__ import annotations

import math

from whynan.causes._conditions import unless
from whynan.causes._floats import limits
from whynan.causes._flow import upstream
from whynan.causes._operands import constants, output_type
from whynan.causes._words import at_rows, called, num
from whynan.core.catalogue import Advice, Cause, Verdict
from whynan.core.records import HALVES, Operation
from whynan.core.session import Birth, Session


def _is_negative(birth: Birth, session: Session) -> bool:
    """Whether the constant is one that masks."""
    return _found(birth, session)[1] < 0


CAUSE = Cause(
    name="fp16-constant-overflow",
    title="a constant that float16 cannot hold",
    level="operation",
    why="float16 holds at most 65504, so the constant becomes infinite; times 0 it is NaN.",
    doubt="Wrong if the infinity was written on purpose.",
    remedies=(
        Advice("use-finfo-min", "Write torch.finfo(x.dtype).min in place of the constant.", when=_is_negative),
        Advice(
            "mask-with-boolean",
            "Use masked_fill with a boolean mask instead of adding or multiplying a large constant.",
            when=_is_negative,
        ),
        Advice(
            "compute-in-float32",
            "Compute this operation in float32 (x.float(), or autocast with enabled=False around it), or write a smaller constant.",
            when=unless(_is_negative),
        ),
    ),
)
COPIES = frozenset({"_to_copy", "to", "copy", "half", "type_as"})
FILLS = frozenset("full full_like fill scalar_tensor masked_fill new_full mul add sub where clamp clamp_min clamp_max".split())
BETWEEN = COPIES | frozenset(["mul", "add", "sub", "neg", "clone", "masked_fill", "where", "div"])


def probe(birth: Birth, session: Session) -> Verdict | None:
    if birth.direction == "optimizer":
        return None
    found, value = _found(birth, session)
    if found is not None:
        return _verdict(birth, found, value, 0.95 if found is birth.operation else 0.96)
    if not math.isinf(value):
        return None
    summary = f"{called(birth)} was given the float16 constant {num(value)}{at_rows(birth)}"
    return Verdict(0.6, summary, ("float16 holds at most 65504", f"the constant arrived as {num(value)}"))


def _found(birth: Birth, session: Session) -> tuple[Operation | None, float]:
    """The operation that took the constant in, and the constant; without an operation what has become of it, 0 if there is none."""
    direct = _too_large(birth.operation)
    if direct is not None:
        return birth.operation, direct
    for operand in birth.operation.inputs:
        if not operand.stats.inf:
            continue
        if operand.constant is not None and math.isinf(operand.constant) and operand.stats.dtype == "float16":
            return None, operand.constant
        for found in upstream(session, operand, BETWEEN):
            value = _too_large(found)
            if value is not None:
                return found, value
    return None, 0.0


def _too_large(operation: Operation) -> float | None:
    """The single finite number beyond the limit of the result's format that made this operation's results infinite."""
    if not any(out.inf for out in operation.outputs) or any(one.stats.inf for one in operation.inputs):
        return None
    held = limits(output_type(operation))
    if held is None or output_type(operation) not in HALVES:
        return None
    written = list(constants(operation)) + _number(operation, "fill_value", "s") if operation.op in FILLS else []
    if operation.op in COPIES:
        written = [
            v for one in operation.inputs for v in (one.stats.min, one.stats.max) if v is not None and one.stats.min == one.stats.max
        ]
    return next((value for value in written if math.isfinite(value) and abs(value) > held.largest), None)


def _number(operation: Operation, *names: str) -> list[float]:
    values = (operation.scalars.get(name) for name in names)
    return [float(value) for value in values if isinstance(value, (int, float))]


def _verdict(birth: Birth, operation: Operation, value: float, confidence: float) -> Verdict:
    dtype = output_type(operation)
    held = limits(dtype)
    facts = (f"the constant is {num(value)}", f"{dtype} holds at most {num(held.largest) if held else '65504'}")
    summary = f"the constant {num(value)} does not fit into {dtype} and became {'-inf' if value < 0 else 'inf'}"
    return Verdict(confidence, summary, facts, None if operation is birth.operation else operation.site)


EXAMPLE = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(8, 5)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x, keep = torch.randn(4, 8), torch.rand(4, 5) > 0.3
for step in range(3):
    scores = model(x).half()
    mask = torch.full((), -1e10).to(scores.dtype)  # culprit
    loss = torch.softmax(scores + (1 - keep.half()) * mask, 1)[:, 0].float().pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4g}")
"""
TWIN = EXAMPLE.replace("-1e10", "torch.finfo(torch.float16).min / 2")
