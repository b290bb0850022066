"""An epsilon that rounds away.

What happens
    A small constant is added to keep a logarithm, root or quotient away from 0, but the format cannot hold it: 1e-8 and 1e-12
    are 0 in float16, 1 - 1e-8 is 1 in float32, 1e-10 + 1 - p is 1 - p.

Why it gives NaN or Inf
    The protected argument is still exactly 0, so the logarithm is -inf, the quotient x / 0, and the derivative of the root
    infinite.

How to recognise it
    A constant was added, subtracted or used as a bound, left the other operand as it was, and the result is exactly 0 at the
    birth. The smallest positive float16 is 6e-8; next to 1 float32 resolves 6e-8 and float16 5e-4.

How to fix it
    Use an epsilon that the format holds at that magnitude (1e-6 next to 0 and 1e-3 next to 1 in float16), add it last ((1 -
    p) + eps), or compute this part in float32.

When this diagnosis is wrong
    If the operand is exactly the negative of the constant, the sum is 0 without any rounding.

References
    https://pytorch.org/docs/stable/type_info.html
"""

from __future__ import annotations

from whynan.causes._conditions import in_half
from whynan.causes._epsilon import Lost, lost_behind
from whynan.causes._floats import limits, rounded
from whynan.causes._functions import POLES, log_argument, subject
from whynan.causes._operands import argument, divisors, meets
from whynan.causes._words import at_rows, called, num, zeros
from whynan.core.catalogue import Advice, Cause, Verdict
from whynan.core.records import Operand, Operation, TensorStats
from whynan.core.session import Birth, Session

CAUSE = Cause(
    name="eps-underflow",
    title="an epsilon that rounds away",
    level="operation",
    why="The constant is too small for the format at that magnitude, so the argument it was to protect is still exactly 0.",
    doubt="Wrong if the operand was exactly the negative of the constant.",
    remedies=(
        Advice("representable-epsilon", "Use an epsilon that the format holds at that magnitude, and add it last."),
        Advice(
            "compute-in-float32",
            "Compute this part in float32: x.float() before it, under autocast with enabled=False.",
            when=in_half,
        ),
    ),
)
PROTECTED = frozenset({"sqrt", "rsqrt", "pow", "acos", "asin", "atanh", "logit"})


def probe(birth: Birth, session: Session) -> Verdict | None:
    if birth.direction == "optimizer":
        return None
    operation = subject(birth, session)
    for operand in _protected(operation):
        lost = lost_behind(session, operand)
        if lost is not None:
            return _verdict(birth, operation, lost)
    return None


def _protected(operation: Operation | None) -> tuple[Operand, ...]:
    """The operands that the epsilon was to keep away from 0 (or from 1), and which are there nevertheless."""
    if operation is None:
        return ()
    found = (log_argument(operation),) if operation.op in POLES else divisors(operation)
    if not found and operation.op in PROTECTED:
        found = (argument(operation),)
    return tuple(one for one in found if one is not None and meets(one, lambda value: abs(value) in (0, 1)))


def _verdict(birth: Birth, operation: Operation | None, lost: Lost) -> Verdict:
    result = lost.operation.outputs[0]
    protected = "its derivative there is not finite" if birth.direction == "backward" else f"{called(birth, operation)} was given 0"
    summary = f"the epsilon {num(abs(lost.epsilon))} rounds away in {result.dtype}, so {protected}{at_rows(birth)}"
    confidence = 0.94 if not lost.sure else 0.96 if birth.direction == "forward" else 0.95
    return Verdict(confidence, summary, _evidence(lost, result))


def _evidence(lost: Lost, result: TensorStats) -> tuple[str, ...]:
    held, value = limits(result.dtype), rounded(lost.value, result.dtype)
    where = f" on line {lost.operation.site.line}" if lost.operation.site else ""
    if lost.sure:
        facts = [f"the constant {lost.value:.12g}{where} is {num(value)} in {result.dtype}"]
    else:
        facts = [f"the constant {num(lost.value)}{where} left {lost.operation.absorbed} elements as they were"]
    if held is not None:
        near_zero = f"the smallest positive {result.dtype} is {num(held.least)}"
        facts.append(near_zero if value == 0 else f"{result.dtype} resolves {num(held.eps)} next to 1")
    if result.zero:
        facts.append(zeros(result, "result"))
    return tuple(facts)


EXAMPLE = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(6, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
x, y = torch.randn(8, 6) * 40, torch.randint(0, 4, (8,))
for step in range(3):
    p = torch.softmax(model(x).half(), 1)
    loss = -torch.log(p + 1e-8)[range(8), y].float().mean()  # culprit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4g}")
"""
TWIN = EXAMPLE.replace("model(x).half()", "model(x)")
