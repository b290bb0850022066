"""A learned scale that ran to zero.

What happens
    A model learns its own uncertainty: a standard deviation, a variance, a task weight exp(-s). Where the error vanishes, a
    smaller scale always lowers the loss, and nothing stops it: softplus or exp underflows to 0, or s runs to minus infinity.

Why it gives NaN or Inf
    The likelihood divides by the scale and takes its logarithm; the task weight exp(-s) overflows once s passes -88.7.

How to recognise it
    The divisor comes out of softplus, exp or sigmoid of what training moves, and is 0 or vanishes beside what it divides, in the
    forward pass or where the derivative divides by its square; or the exponent that overflowed is the
    negative of a parameter.

How to fix it
    Bound the scale from below (sigma = softplus(x) + 1e-3, s clamped to [-6, 6]), or add a prior that makes very small scales
    costly.

When this diagnosis is wrong
    If the scale is small because another term diverged, look at that term.

References
    Kendall, Gal, Cipolla: Multi-Task Learning Using Uncertainty to Weigh Losses (2018)
"""

from __future__ import annotations

from whynan.causes._course import optimizer_site
from whynan.causes._floats import limits
from whynan.causes._flow import RENAMES, producer, upstream
from whynan.causes._functions import POLES, log_argument
from whynan.causes._operands import argument, divisors, extreme, is_negative, is_zero, meets, number
from whynan.causes._scales import POSITIVE, THROUGH, collapsed
from whynan.causes._words import at_rows, called, extent, made_by, num
from whynan.core.catalogue import Advice, Cause, Verdict
from whynan.core.records import Operand, Operation
from whynan.core.session import Birth, Session

CAUSE = Cause(
    name="scale-collapse",
    title="a learned scale that ran to zero",
    level="run",
    course=True,
    why="Where the error vanishes a smaller scale always lowers the loss, and nothing stops it before 0.",
    doubt="Wrong if the scale is small because another term diverged.",
    remedies=(
        Advice("bound-learned-scale", "Bound the scale from below: softplus(x) + 1e-3, or a log-variance clamped to [-6, 6]."),
        Advice("scale-prior", "Add a term that makes very small scales costly."),
    ),
)


def probe(birth: Birth, session: Session) -> Verdict | None:
    operation = birth.operation
    if birth.direction != "forward":
        return collapsed(birth, session) if birth.direction == "backward" else None
    if operation.op == "exp" and any(out.posinf for out in operation.outputs):
        return _negated_parameter(birth, session)
    if operation.op in POLES and (fallen := _below_zero(birth, log_argument(operation))) is not None:
        return fallen
    for divisor in divisors(operation):
        if meets(divisor, is_zero):
            return _underflowed(birth, session, divisor)
    return collapsed(birth, session)


def _negated_parameter(birth: Birth, session: Session) -> Verdict | None:
    """exp(-s): the exponent is a parameter with its sign turned."""
    operand, sign = argument(birth.operation), 1
    for _ in range(8):
        made = producer(session, operand)
        if made is None or operand is None:
            break
        if made.op not in RENAMES | {"neg", "mul", "rsub"}:
            return _predicted(birth, made, sign)
        sign *= _sign(made)
        operand = next(iter(made.inputs), None)
    if operand is None or operand.source != "parameter" or sign > 0:
        return None
    least = extreme(operand, min)
    facts = (f"{operand.name or 'the parameter'}: {extent(operand)}", extent(birth.operation.inputs[0]))
    return Verdict(
        0.88,
        f"the learned log-scale {operand.name or ''} ran down to {num(least)}".replace("  ", " "),
        facts,
        optimizer_site(session),
    )


def _predicted(birth: Birth, made: Operation, sign: int) -> Verdict | None:
    if sign > 0 or made.op not in ("addmm", "mm", "convolution", "bmm"):
        return None
    facts = (extent(birth.operation.inputs[0]), f"its negative comes out of {made_by(made, birth)}")
    return Verdict(0.5, f"a predicted log-scale ran to {num(-(extreme(birth.operation.inputs[0], max) or 0.0))}{at_rows(birth)}", facts)


def _sign(made: Operation) -> int:
    factor = number(made, "other") if made.op == "mul" else None
    return -1 if made.op in ("neg", "rsub") or (factor is not None and factor < 0) else 1


def _below_zero(birth: Birth, operand: Operand | None) -> Verdict | None:
    if operand is None or operand.source != "parameter" or not (meets(operand, is_zero) or meets(operand, is_negative)):
        return None
    facts = (f"{operand.name or 'the parameter'}: {extent(operand)}",)
    return Verdict(0.55, f"the learned scale {operand.name or ''} fell to {num(extreme(operand, min))}".replace("  ", " "), facts)


def _underflowed(birth: Birth, session: Session, divisor: Operand) -> Verdict | None:
    for found in upstream(session, divisor, THROUGH):
        given = argument(found)
        held = limits(given.stats.dtype) if given is not None else None
        if found.op not in POSITIVE or given is None or held is None or given.stats.min is None:
            continue
        if given.stats.min < held.exp_floor and any(out.zero for out in found.outputs):
            facts = (extent(divisor), extent(given), f"{found.op} is 0 below {num(held.exp_floor)} in {given.stats.dtype}")
            return Verdict(0.72, f"{called(birth)} divided by a scale out of {found.op} that is 0{at_rows(birth)}", facts)
    return None


EXAMPLE = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
model.s = nn.Parameter(torch.zeros(()))
optimizer = torch.optim.SGD(model.parameters(), lr=2.0)  # culprit
x, lowest = torch.zeros(8, 4), -200.0
for step in range(60):
    error = 0.0 * model(x).pow(2).mean()
    s = model.s.clamp_min(lowest)
    loss = torch.exp(-s) * error + s
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4g}")
"""
TWIN = EXAMPLE.replace("lowest = torch.zeros(8, 4), -200.0", "lowest = torch.zeros(8, 4), -6.0")
