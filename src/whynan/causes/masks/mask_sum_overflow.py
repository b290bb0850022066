"""A mask of the smallest number plus something negative.

What happens
    A mask is built from torch.finfo(dtype).min, the most negative finite number, and a second mask or a negative score is
    added to it.

Why it gives NaN or Inf
    The smallest number has no room below it: adding another large negative number gives -inf. A row in which every element is
    masked this way is then a softmax over nothing but -inf, which is NaN.

How to recognise it
    One addend equals the format's smallest number (-65504, -3.4e38), both are finite, and the sum is -inf.

How to fix it
    Combine masks as booleans and fill once, or clamp the sum to the smallest number.

When this diagnosis is wrong
    If the addend is a positive largest number that stands for "none", it is a sentinel: see sentinel-overflow.

References
    https://github.com/huggingface/transformers/issues/17433
"""

from __future__ import annotations

from whynan.causes._floats import limits
from whynan.causes._flow import upstream
from whynan.causes._functions import SOFTMAXES
from whynan.causes._operands import output_type
from whynan.causes._words import at_rows, count, extent, num
from whynan.core.catalogue import Advice, Cause, Edit, Verdict
from whynan.core.operands import is_number, operands
from whynan.core.records import Operand, Operation
from whynan.core.session import Birth, Session

CAUSE = Cause(
    name="mask-sum-overflow",
    title="a mask of the smallest number plus something negative",
    level="operation",
    why="Below the smallest finite number there is only -inf, and a row of nothing but -inf has no softmax.",
    doubt="Wrong if the smallest number is no mask.",
    remedies=(
        Advice("combine-boolean-masks", "Combine the masks as booleans and fill once with the smallest number."),
        Advice(
            "clamp-mask-sum",
            "Clamp the sum to the smallest number.",
            (Edit("whole", "{}.clamp_min(torch.finfo(torch.float32).min)"),),
            when=lambda birth, session: output_type(birth.operation) == "float32",
        ),
    ),
)
SUMS = frozenset({"add", "sub", "baddbmm", "addmm"})
BETWEEN = frozenset(["mul", "div", "clone", "_to_copy", "to", "masked_fill", "where", "add"])


def probe(birth: Birth, session: Session) -> Verdict | None:
    if birth.direction != "forward":
        return None
    found = birth.operation if birth.operation.op in SUMS else _before_softmax(birth, session)
    lowest = _lowest(found)
    if found is None or lowest is None:
        return None
    dtype = output_type(found)
    other = next((one for one in operands(found) if one is not lowest), None)
    facts = [extent(one) for one in (lowest, other) if one is not None]
    held = limits(dtype)
    if held is not None:
        facts.append(f"the smallest {dtype} is {num(-held.largest)}")
    neginf = sum(out.neginf for out in found.outputs)
    facts.append(f"{count(neginf, 'sum')} {'is' if neginf == 1 else 'are'} -inf")
    site = found.site if found is not birth.operation else None
    return Verdict(0.95, f"the smallest {dtype} was added to another number{at_rows(birth)} and became -inf", tuple(facts), site)


def _before_softmax(birth: Birth, session: Session) -> Operation | None:
    if birth.operation.op not in SOFTMAXES:
        return None
    masked = next((one for one in birth.operation.inputs if one.stats.neginf), None)
    return next((op for op in upstream(session, masked, BETWEEN) if op.op in SUMS and _lowest(op) is not None), None)


def _lowest(operation: Operation | None) -> Operand | None:
    """The addend that holds the format's smallest number, where the sum of finite numbers is -inf."""
    if (
        operation is None
        or not any(out.neginf for out in operation.outputs)
        or any(one.stats.inf or one.stats.nan for one in operation.inputs)
    ):
        return None
    for operand in operands(operation):
        held = limits(output_type(operation) if is_number(operand) else operand.stats.dtype)
        if held is not None and operand.stats.min is not None and operand.stats.min <= -0.99 * held.largest:
            return operand
    return None


EXAMPLE = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
x, lowest = torch.randn(2, 4, 8), torch.finfo(torch.float32).min
padding, dropped = torch.zeros(2, 1, 4), torch.zeros(2, 1, 4)
padding[1] = lowest
dropped[1] = lowest
for step in range(3):
    mask = padding + dropped  # culprit
    scores = model(x) @ x.transpose(1, 2) + mask
    loss = (torch.softmax(scores, -1) @ x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4g}")
"""
TWIN = EXAMPLE.replace("padding + dropped", "(padding + dropped).clamp_min(lowest)")
