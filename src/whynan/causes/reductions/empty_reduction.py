"""The mean of nothing.

What happens
    A mean is taken over no elements: every label of the batch is ignored, a boolean mask selects no row, a rank holds no
    token, a count that divides a sum is 0.

Why it gives NaN or Inf
    The sum of nothing is 0 and so is the count; 0 / 0 is NaN. torch returns NaN for the mean of an empty tensor without a
    warning.

How to recognise it
    The reduced tensor has no elements, or the divisor is a count (a whole number, or the sum of a mask) that is 0.

How to fix it
    Sum the loss and divide by the count but at least 1, so that an empty batch contributes 0; or leave such batches out.

When this diagnosis is wrong
    If the count is 0 because the labels are shifted or tokenised wrongly, the data pipeline is what needs mending.

References
    https://pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html (ignore_index and the mean)
"""

from __future__ import annotations

from whynan.causes._flow import upstream
from whynan.causes._functions import SPREADS
from whynan.causes._operands import all_meet, divisors, is_zero, meets, number
from whynan.causes._words import called, extent, shape
from whynan.core.catalogue import Advice, Cause, Edit, Verdict
from whynan.core.operands import is_number
from whynan.core.records import Operand
from whynan.core.session import Birth, Session

CAUSE = Cause(
    name="empty-reduction",
    title="the mean of nothing",
    level="operation",
    why="The sum of nothing is 0 and so is the count, and 0 / 0 is NaN.",
    doubt="Wrong if there ought to have been something to average: then the labels or the mask are at fault.",
    remedies=(
        Advice(
            "count-at-least-one",
            "Sum the loss and divide by the number of valid elements, but at least 1.",
            (Edit("divisor", "{}.clamp_min(1)", calls=("div", "true_divide", "divide"), number="max({}, 1)"),),
        ),
        Advice("skip-empty-batch", "Leave batches without a valid element out."),
    ),
)
LABELLED = frozenset({"nll_loss", "nll_loss2d"})
WHOLE = frozenset({"int64", "int32", "int16", "int8", "uint8", "bool"})
COUNTS = frozenset("sum mean _to_copy to clone clamp clamp_min mul add expand count_nonzero".split())


def probe(birth: Birth, session: Session) -> Verdict | None:
    operation = birth.operation
    if birth.direction != "forward" or birth.op in ("input", "param", "buffer") or not operation.makes_nan:
        return None
    if operation.op in LABELLED:
        return _ignored(birth)
    if operation.op == "div":
        return _count_of_zero(birth, session)
    return _of_nothing(birth)


def _ignored(birth: Birth) -> Verdict | None:
    """A likelihood that ignored every label: its second result is the sum of the weights, here the number of labels."""
    operation = birth.operation
    total = operation.outputs[1] if len(operation.outputs) > 1 else None
    target = operation.operand("target")
    empty = target is not None and target.stats.numel == 0
    if operation.operand("weight") is not None or not (empty or (total is not None and total.numel == 1 and total.absmax == 0)):
        return None
    facts = [] if target is None else [f"the labels ({shape(target.stats)}) run from {target.stats.min} to {target.stats.max}"]
    ignored = number(operation, "ignore_index")
    facts += [] if ignored is None else [f"the label {ignored:.0f} is ignored"]
    return Verdict(
        0.95,
        f"{called(birth)} averaged over 0 labels: every label of the batch is ignored",
        (*facts, "the count of valid labels is 0"),
    )


def _count_of_zero(birth: Birth, session: Session) -> Verdict | None:
    operation = birth.operation
    count = next((one for one in divisors(operation) if meets(one, is_zero)), None)
    if count is None or not meets(operation.operand("dividend"), is_zero):
        return None
    if is_number(count):
        return _number_of_zero(birth, count)
    confidence = 0.95 if count.stats.dtype in WHOLE else _of_mask(session, count)
    if not confidence:
        return None
    facts = (extent(count), "it is a count: a whole number or the sum of a mask")
    return Verdict(confidence, f"{called(birth)} divided a sum of 0 by a count of 0", facts)


def _number_of_zero(birth: Birth, count: Operand) -> Verdict | None:
    """A number is a count of nothing only if all that was divided by it is 0."""
    dividend = birth.operation.operand("dividend")
    if dividend is None or not all_meet(dividend, is_zero):
        return None
    whole = count.stats.dtype == "int"
    return Verdict(0.93 if whole else 0.8, f"{called(birth)} divided 0 by the count 0", (extent(dividend), extent(count)))


def _of_mask(session: Session, count: Operand) -> float:
    """How surely a floating-point divisor is the number of elements that a mask lets through."""
    for found in upstream(session, count, COUNTS):
        if any(one.stats.dtype in WHOLE for one in found.inputs):
            return 0.93 if not count.stats.shape else 0.85
    return 0.0


def _of_nothing(birth: Birth) -> Verdict | None:
    operation = birth.operation
    given = next((one for one in operation.inputs if one.stats.numel == 0), None)
    if given is None or any(out.numel == 0 for out in operation.outputs):
        return None
    summary = f"{called(birth)} ran over a tensor without elements"
    return Verdict(0.96 if operation.op not in SPREADS else 0.9, summary, (f"the {given.role} is {shape(given.stats)}: 0 elements",))


EXAMPLE = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 3)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
x, y = torch.randn(8, 4), torch.full((8,), -100)
for step in range(3):
    losses = nn.functional.cross_entropy(model(x), y, reduction="none")
    loss = losses.sum() / (y != -100).sum()  # culprit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4g}")
"""
TWIN = EXAMPLE.replace("(y != -100).sum()", "(y != -100).sum().clamp_min(1)")
