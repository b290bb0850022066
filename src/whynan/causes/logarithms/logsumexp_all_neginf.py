"""logsumexp over a row of nothing but -inf.

What happens
    A log-sum-exp runs over a row in which every element is -inf: no path, no positive, no allowed action is left. Its value,
    -inf, is right and often harmless, because it is masked afterwards.

Why it gives NaN or Inf
    The gradient is exp(x - result) = exp(-inf + inf), which is NaN, and a mask behind it multiplies this NaN by 0.

How to recognise it
    The loss is finite while a gradient is NaN, the birth lies in the backward pass of logsumexp (or logaddexp, logcumsumexp),
    and the result of the forward pass was -inf.

How to fix it
    Use a large finite number, such as -1e4, in place of -inf, or leave such rows out before the logsumexp.

When this diagnosis is wrong
    If only some elements of the row are -inf the gradient is finite, and the NaN comes from elsewhere.

References
    https://github.com/pytorch/pytorch/issues/31829
"""

from __future__ import annotations

from whynan.causes._functions import node_is, subject
from whynan.causes._operands import argument
from whynan.causes._words import at_rows, count
from whynan.core.catalogue import Advice, Cause, Verdict
from whynan.core.records import Operation
from whynan.core.session import Birth, Session

CAUSE = Cause(
    name="logsumexp-all-neginf",
    title="logsumexp over a row of nothing but -inf",
    level="operation",
    why="The value -inf is right, but the gradient exp(x - result) is exp(-inf + inf), which is NaN.",
    doubt="Wrong if a finite element is left in the row.",
    remedies=(
        Advice("finite-mask-value", "Mask with a large finite number such as -1e4 instead of -inf."),
        Advice("drop-empty-rows", "Leave rows without a finite element out before the logsumexp."),
    ),
)
FUNCTIONS = frozenset({"logsumexp", "logcumsumexp", "logaddexp", "logaddexp2"})


def probe(birth: Birth, session: Session) -> Verdict | None:
    function = subject(birth, session)
    if birth.direction != "backward" or not _sums_exponentials(birth, function):
        return None
    operand = argument(function)
    empty = sum(out.neginf for out in function.outputs) if function else 0
    if function is not None and not (empty and operand is not None and operand.stats.neginf):
        return None
    name = function.op if function else "logsumexp"
    facts = [f"{count(empty, 'result')} of {name} in the forward pass: -inf"] if empty else []
    if operand is not None:
        facts.append(f"{operand.stats.neginf} of the {operand.stats.numel} elements it ran over are -inf")
    summary = f"{name} ran over rows of nothing but -inf{at_rows(birth)}: its value -inf is right, its gradient is NaN"
    return Verdict(0.98 if empty else 0.7, summary, tuple(facts))


def _sums_exponentials(birth: Birth, function: Operation | None) -> bool:
    return (function is not None and function.op in FUNCTIONS) or node_is(birth, "Logsumexp", "Logcumsumexp", "Logaddexp", "Logaddexp2")


EXAMPLE = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(3, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, allowed = torch.randn(5, 3), torch.ones(5, 4, dtype=torch.bool)
allowed[2] = False
for step in range(3):
    scores = model(x) + torch.zeros(5, 4).masked_fill(~allowed, float("-inf"))
    total = torch.logsumexp(scores, 1)  # culprit
    loss = total.masked_fill(~allowed.any(1), 0.0).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4g}")
"""
TWIN = EXAMPLE.replace('float("-inf")', "-1e4")
