"""An exponential beyond the range of its format.

What happens
    exp (or expm1, exp2, sinh, cosh, a power with a constant base) is given a number too large: a hand-written softmax or
    log-sum-exp, an importance ratio of a stale sample, an unbounded scale of a flow, a score divided by a small temperature.

Why it gives NaN or Inf
    exp(x) exceeds the largest float32 for x > 88.72 and the largest float16 for x > 11.09, and becomes inf; inf / inf, inf -
    inf and 0 * inf behind it are NaN.

How to recognise it
    The largest exponent exceeds that limit, and the result is inf.

How to fix it
    Subtract the maximum first (logsumexp, log_softmax, cross_entropy on the logits), bound the exponent (tanh, clamp), or use
    softplus where a positive number is all that is wanted.

When this diagnosis is wrong
    If the exponent grew step by step, the rate, the scale of the inputs or the objective is at fault; those stand before this
    cause.

References
    Blanchard, Higham, Higham: Accurately computing the log-sum-exp and softmax functions (2021)
"""

from __future__ import annotations

import math

from whynan.causes._floats import limits
from whynan.causes._flow import downstream
from whynan.causes._functions import EXPONENTIALS, subject
from whynan.causes._operands import argument, extreme, number, output_type
from whynan.causes._words import at_rows, called, extent, num, outcome
from whynan.core.catalogue import Advice, Cause, Edit, Verdict
from whynan.core.records import Operand, Operation
from whynan.core.session import Birth, Session


def _is_summed(birth: Birth, session: Session) -> bool:
    """Whether a logarithm or a quotient of sums follows: a softmax or a logsumexp by hand."""
    operation = subject(birth, session)
    following = {op.op for op in downstream(session, operation.index)} if operation is not None else set()
    return "logsumexp" in following or bool(following & {"sum", "cumsum", "mean"} and following & {"log", "div"})


CAUSE = Cause(
    name="exp-overflow",
    title="an exponential beyond the range of its format",
    level="operation",
    why="The exponential exceeds the largest number of its format and becomes inf; inf / inf, inf - inf and 0 * inf are NaN.",
    doubt="Wrong if the exponent grew over many steps: then what drives it up is at fault.",
    remedies=(
        Advice(
            "use-logsumexp",
            "Stay in the logarithm: logsumexp, log_softmax or cross_entropy on the logits.",
            when=_is_summed,
        ),
        Advice(
            "bound-exponent",
            "Bound the exponent before the exponential, for example to +-20, or by tanh.",
            (Edit("argument", "{}.clamp(max=20.0)", calls=("exp", "exp2", "expm1"), half="{}.clamp(max=10.0)"),),
        ),
    ),
)
BOTH_SIDES = frozenset({"sinh", "cosh"})


def probe(birth: Birth, session: Session) -> Verdict | None:
    operation = subject(birth, session)
    if operation is None:
        return None
    exponent = _exponent(operation)
    if exponent is None:
        return None
    dtype = output_type(birth.operation) if birth.direction == "backward" else output_type(operation)
    held, largest = limits(dtype), extreme(exponent, max)
    if held is None or largest is None:
        return None
    if operation.op in BOTH_SIDES:
        largest = max(largest, -(extreme(exponent, min) or 0.0))
    limit = held.exp_limit / _log_base(operation)
    if largest <= limit * (0.999 if birth.direction != "backward" else 0.45):
        return None
    if birth.direction == "backward":
        return _derivative(birth, operation, exponent, largest) if any(out.inf for out in birth.operation.outputs) else None
    if not any(out.inf for out in operation.outputs):
        return None
    given = f"{called(birth, operation)} was given up to {num(largest)}{at_rows(birth)}"
    summary = f"{given}; {dtype} holds its result only up to {num(limit)}"
    return Verdict(0.93, summary, (extent(exponent), f"largest exponent of {dtype}: {num(limit)}", f"result: {outcome(operation)}"))


def _derivative(birth: Birth, operation: Operation, exponent: Operand, largest: float) -> Verdict:
    summary = f"the derivative of {called(birth, operation)} at {num(largest)} overflowed{at_rows(birth)}"
    return Verdict(0.6, summary, (extent(exponent), f"gradient: {outcome(birth.operation)}"))


def _exponent(operation: Operation) -> Operand | None:
    if operation.op in EXPONENTIALS:
        return argument(operation)
    base = number(operation, "self", "input", "base")
    return operation.operand("exponent") if operation.op == "pow" and base is not None and base > 1 else None


def _log_base(operation: Operation) -> float:
    if operation.op == "exp2":
        return math.log(2)
    base = number(operation, "self", "input", "base") if operation.op == "pow" else None
    return math.log(base) if base is not None and base > 1 else 1.0


EXAMPLE = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
x, y = torch.randn(6, 4) * 200, torch.randint(0, 3, (6,))
for step in range(3):
    scores = model(x)
    total = torch.log(torch.exp(scores).sum(1))  # culprit
    loss = (total - scores[range(6), y]).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4g}")
"""
TWIN = EXAMPLE.replace("torch.log(torch.exp(scores).sum(1))", "torch.logsumexp(scores, 1)")
