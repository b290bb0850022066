"""Zero times infinity.

What happens
    A product meets an infinity with a factor of 0: p * log(p) at p = 0, a reward that is masked to 0 times an infinite
    log-probability, an infinite mask value times 1 - keep, an attention weight of 0 times a value that overflowed.

Why it gives NaN or Inf
    0 * inf has no value and is NaN, although the limit that was meant is usually 0.

How to recognise it
    At the elements that became NaN one factor is exactly 0 and the other infinite.

How to fix it
    Select instead of multiplying (torch.where with a safe argument, masked_fill), use torch.xlogy or torch.special.entr for p
    log p, or a finite number in place of the infinity.

When this diagnosis is wrong
    If the infinity is no mask but an overflow or the logarithm of 0, that operation is the cause; it is named first where it
    shows.

References
    https://pytorch.org/docs/stable/special.html#torch.special.entr
"""

from __future__ import annotations

import math

from whynan.causes._flow import RENAMES, upstream
from whynan.causes._functions import LINEAR, POLES
from whynan.causes._operands import all_meet, is_zero
from whynan.causes._words import at_rows, called, count, extent, with_zeros
from whynan.core.catalogue import Advice, Cause, Verdict
from whynan.core.operands import is_number, operands
from whynan.core.records import Operand, Operation
from whynan.core.session import Birth, Session

WRITTEN = frozenset("full full_like fill masked_fill where scalar_tensor new_full".split())


def _is_of_logarithm(birth: Birth, session: Session) -> bool:
    """Whether the infinity is a logarithm."""
    return any(op.op in POLES for op in upstream(session, _factors(birth.operation)[1], RENAMES | {"neg"}))


def _is_written(birth: Birth, session: Session) -> bool:
    """Whether the infinity stands in the program: a number, or what a mask was filled with."""
    infinite = _factors(birth.operation)[1]
    if infinite is not None and (infinite.source == "constant" or infinite.constant is not None):
        return True
    return any(op.op in WRITTEN for op in upstream(session, infinite, RENAMES | {"neg", "mul"}))


CAUSE = Cause(
    name="zero-times-inf",
    title="zero times infinity",
    level="operation",
    why="0 * inf has no value and is NaN, although the limit that was meant is usually 0.",
    doubt="Wrong if the infinity was never meant: then the operation that made it is at fault.",
    remedies=(
        Advice("select-instead-of-multiply", "Select with torch.where or masked_fill instead of multiplying by 0."),
        Advice("use-xlogy", "Use torch.special.entr(p) or torch.xlogy(p, p) for p * log(p).", when=_is_of_logarithm),
        Advice("finite-mask-value", "Put a large finite number in place of the infinity.", when=_is_written),
    ),
)
PRODUCTS = frozenset({"mul", "addcmul", "outer", "ger"})


def probe(birth: Birth, session: Session) -> Verdict | None:
    operation = birth.operation
    if not operation.makes_nan or any(one.stats.nan for one in operation.inputs):
        return None
    zero, infinite = _factors(operation)
    if zero is None or infinite is None:
        return None
    sure = all_meet(zero, is_zero) and operation.op in PRODUCTS
    confidence = 0.92 if sure else 0.55
    if birth.direction == "backward":
        confidence -= 0.3
    infinities = infinite.stats.posinf + infinite.stats.neginf
    holds = extent(infinite) if is_number(infinite) else f"the {infinite.role} holds {count(infinities, 'infinite element')}"
    facts = (holds, *with_zeros(zero, "element"))
    return Verdict(confidence, f"{called(birth)} multiplied 0 by {_sign(infinite)}{at_rows(birth)}", facts)


def _factors(operation: Operation) -> tuple[Operand | None, Operand | None]:
    """The factor that is 0 where the other is infinite."""
    if operation.op not in PRODUCTS | LINEAR:
        return None, None
    given = operands(operation)
    infinite = next((one for one in given if one.stats.inf), None)
    zero = next((one for one in given if one is not infinite and _may_be_zero(one)), None)
    return zero, infinite


def _may_be_zero(operand: Operand) -> bool:
    return any(value == 0 for value in operand.at_birth) if operand.at_birth else bool(operand.stats.zero)


def _sign(operand: Operand) -> str:
    infinities = [value for value in operand.at_birth if math.isinf(value)]
    negative = all(value < 0 for value in infinities) if infinities else not operand.stats.posinf
    return "-inf" if negative else "inf"


EXAMPLE = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(5, 4)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
x, allowed = torch.randn(4, 5), torch.ones(4, 4, dtype=torch.bool)
allowed[0, 1] = allowed[2, 3] = False
for step in range(3):
    logp = torch.log_softmax(model(x).masked_fill(~allowed, float("-inf")), 1)
    entropy = -(logp.exp() * logp).sum(1)  # culprit
    loss = -entropy.mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4g}")
"""
TWIN = EXAMPLE.replace('float("-inf")', "-1e4")
