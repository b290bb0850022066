"""A NaN in the data that a mask was to remove too late.

What happens
    Missing values are NaN in the batch, and a mask takes them out by multiplication with 0, or by selecting after the loss
    has been computed element by element.

Why it gives NaN or Inf
    NaN * 0 is NaN. Selecting behind the loss makes the loss finite, but its backward pass still visits the dropped elements:
    the gradient 0 that arrives there is multiplied by a derivative that is NaN.

How to recognise it
    The batch holds NaN, and either a product with a mask of 0 lies at these elements, or the loss is finite while a gradient
    is NaN.

How to fix it
    Select prediction and target with the mask before the loss, or replace the missing values by any finite number first
    (torch.where, nan_to_num) and mask afterwards.

When this diagnosis is wrong
    If no mask was meant, the missing values themselves are to be repaired: see nan-in-data.

References
    https://github.com/pytorch/pytorch/issues/4132
"""

from __future__ import annotations

from whynan.causes._flow import operation, sources
from whynan.causes._functions import SELECTS, subject
from whynan.causes._operands import all_meet, carried, is_zero
from whynan.causes._words import at_rows, called, shape
from whynan.core.catalogue import Advice, Cause, Verdict
from whynan.core.records import Operand, Operation
from whynan.core.session import Birth, Session

CAUSE = Cause(
    name="nan-times-zero-mask",
    title="a NaN in the data, masked too late",
    level="data",
    why="NaN * 0 is NaN: a mask behind the loss leaves NaN in the product or, where it selects, in the gradient.",
    doubt="Wrong if the missing values were not meant to be masked.",
    remedies=(
        Advice("select-before-loss", "Select prediction and target with the mask before the loss is computed."),
        Advice("fill-missing-first", "Replace missing values by a finite number first (torch.nan_to_num) and mask afterwards."),
    ),
)


def probe(birth: Birth, session: Session) -> Verdict | None:
    if session.what == "gradient":
        return _selected_afterwards(birth, session)
    missing = carried(birth) if birth.op == "input" else None
    if missing is None or not missing.stats.nan:
        return None
    masked = next((op for op in (operation(session, index) for index in birth.chain) if op is not None and _masks(op)), None)
    if masked is None:
        return None
    facts = (
        _missing(missing),
        f"the mask of {called(birth, masked)}" + (f" on line {masked.site.line}" if masked.site else "") + " is 0 there",
    )
    return Verdict(0.98, f"NaN of the batch{at_rows(birth)} was multiplied by a mask of 0, which leaves NaN", facts)


def _selected_afterwards(birth: Birth, session: Session) -> Verdict | None:
    """The loss is finite, its gradient is not, and the operation behind it read NaN from the batch."""
    function = subject(birth, session)
    if function is None:
        return None
    missing = next((one for one in sources(session, function.inputs) if one.source == "input" and one.stats.nan), None)
    missing = missing or (carried(birth) if birth.op == "input" else None)
    if missing is None or not missing.stats.nan:
        return None
    selected = any(op.op in SELECTS for op in session.operations)
    facts = (_missing(missing), "the loss is finite, a gradient is not")
    summary = f"NaN of the batch went through {called(birth, function)}{at_rows(birth)} and was selected away only after it"
    return Verdict(0.98 if selected else 0.8, summary, facts)


def _missing(operand: Operand) -> str:
    return f"{operand.stats.nan} NaN among the {operand.stats.numel} elements of the batch's {shape(operand.stats)}"


def _masks(op: Operation) -> bool:
    """A product whose factor is 0 wherever the other one is NaN."""
    if op.op != "mul" or not op.makes_nan:
        return False
    bad = next((one for one in op.inputs if one.stats.nan), None)
    mask = next((one for one in op.inputs if one is not bad and one.stats.finite), None)
    if bad is None or mask is None:
        return False
    if mask.at_birth:
        return all_meet(mask, is_zero)
    return bool(mask.stats.zero) and mask.stats.min == 0 and mask.stats.max in (0, 1)


EXAMPLE = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
x, y = torch.randn(5, 4), torch.randn(5, 1)
y[2] = float("nan")
for step in range(3):
    known = ~torch.isnan(y)
    loss = nn.functional.mse_loss(model(x), y, reduction="none")[known].mean()  # culprit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4g}")
"""
TWIN = EXAMPLE.replace('mse_loss(model(x), y, reduction="none")[known].mean()', "mse_loss(model(x)[known], y[known])")
