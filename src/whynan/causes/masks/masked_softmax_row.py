"""A softmax over a row of nothing but -inf.

What happens
    An attention mask, or a mask of allowed actions, leaves a row without a single visible element: an empty sequence in a
    padded batch, a query that sees no key, a causal and a padding mask that meet.

Why it gives NaN or Inf
    The softmax subtracts the row's maximum first, and -inf - (-inf) is NaN; the row has no distribution to give.

How to recognise it
    The logits hold -inf, the result is NaN in whole rows, and other rows with fewer -inf come out finite.

How to fix it
    Leave at least one element of each row visible, or zero the result of rows without any; a boolean mask for
    scaled_dot_product_attention gives 0 for such rows. A large finite number in place of -inf gives them a uniform
    distribution.

When this diagnosis is wrong
    If the logits hold +inf, an overflow before the softmax is the cause, and no mask.

References
    https://github.com/pytorch/pytorch/issues/41508
"""

from __future__ import annotations

from whynan.causes._flow import CARRIES_ZERO, producer, upstream
from whynan.causes._functions import SOFTMAXES
from whynan.causes._operands import divisors, is_zero, meets
from whynan.causes._words import at_rows, called, num
from whynan.core.catalogue import Advice, Cause, Verdict
from whynan.core.records import Operand
from whynan.core.session import Birth, Session

CAUSE = Cause(
    name="masked-softmax-row",
    title="a softmax over a row of nothing but -inf",
    level="operation",
    why="The softmax subtracts the row's maximum, and where every element is -inf this is -inf - (-inf) = NaN.",
    doubt="Wrong if a row with a visible element came out NaN too.",
    remedies=(
        Advice("keep-one-visible", "Leave at least one element of each row visible, or zero the result of rows that have none."),
        Advice("finite-mask-value", "Mask with a large finite number, such as torch.finfo(x.dtype).min, instead of -inf."),
    ),
)
MAXIMA = frozenset({"amax", "max"})


def probe(birth: Birth, session: Session) -> Verdict | None:
    operation = birth.operation
    if not operation.makes_nan or birth.direction != "forward":
        return None
    if operation.op in SOFTMAXES:
        masked = next((one for one in operation.inputs if one.stats.neginf), None)
        return _verdict(birth, masked, 0.95) if masked is not None and not masked.stats.nan and not masked.stats.posinf else None
    if operation.op == "sub":
        return _less_its_maximum(birth, session)
    if operation.op == "div":
        return _over_its_sum(birth, session)
    return None


def _verdict(birth: Birth, masked: Operand, confidence: float) -> Verdict:
    stats = masked.stats
    facts = [f"{stats.neginf} of the {stats.numel} elements of the {masked.role} {'is' if stats.neginf == 1 else 'are'} -inf"]
    row = stats.shape[-1] if stats.shape else 1
    nan = sum(out.nan for out in birth.operation.outputs)
    if birth.operation.op in ("softmax", "log_softmax") and row and not nan % row:
        facts.append(f"{nan // row} of {stats.numel // row} rows (of {row} elements each) became NaN")
    if stats.max is not None:
        facts.append(f"the visible elements are at most {num(stats.max)}")
    return Verdict(confidence, f"{called(birth)} ran over rows{at_rows(birth)} in which every element is masked with -inf", tuple(facts))


def _less_its_maximum(birth: Birth, session: Session) -> Verdict | None:
    """A softmax by hand: x - x.max()."""
    left, right = (*birth.operation.inputs, None, None)[:2]
    made = producer(session, right)
    if left is None or right is None or made is None or made.op not in MAXIMA or not (left.stats.neginf and right.stats.neginf):
        return None
    return _verdict(birth, left, 0.93)


def _over_its_sum(birth: Birth, session: Session) -> Verdict | None:
    """A softmax by hand: exp(x) / exp(x).sum(), where exp(-inf) is 0."""
    for divisor in divisors(birth.operation):
        if not meets(divisor, is_zero):
            continue
        for found in upstream(session, divisor, CARRIES_ZERO):
            masked = next((one for one in found.inputs if one.stats.neginf), None)
            if found.op == "exp" and masked is not None:
                return _verdict(birth, masked, 0.94)
    return None


EXAMPLE = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(8, 24)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
x, padding = torch.randn(4, 6, 8), torch.zeros(4, 6, dtype=torch.bool)
padding[1, 4:] = True
padding[2] = True
for step in range(3):
    q, k, v = model(x).chunk(3, -1)
    scores = (q @ k.transpose(1, 2)).masked_fill(padding[:, None, :], float("-inf"))
    out = torch.softmax(scores, -1) @ v  # culprit
    loss = out.pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4g}")
"""
TWIN = EXAMPLE.replace("padding[2] = True", "padding[2, 1:] = True")
