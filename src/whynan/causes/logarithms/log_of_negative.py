"""The logarithm of a negative number.

What happens
    A logarithm is taken of a number below 0 (below -1 for log1p): a rate or variance that a linear layer puts out without a
    constraint, 1 - a**2 with |a| > 1, an overlap that became negative, a parameter that a step pushed across 0.

Why it gives NaN or Inf
    The real logarithm has no value there, and the floating-point function returns NaN.

How to recognise it
    The smallest argument is negative, and the result is NaN rather than -inf.

How to fix it
    Make the argument positive by construction: softplus or exp of a free number, a learned log-variance in place of a
    variance, the log_input=True form of the Poisson likelihood. A floor hides the sign but gives no gradient that would bring
    it back.

When this diagnosis is wrong
    A number that is negative by rounding alone (-1e-8) comes from a difference of nearly equal numbers: compute that one
    otherwise.

References
    https://pytorch.org/docs/stable/generated/torch.nn.PoissonNLLLoss.html
"""

from __future__ import annotations

from whynan.causes._conditions import all_of, is_learned, unless
from whynan.causes._flow import RENAMES, producer, upstream
from whynan.causes._functions import LINEAR, POLES, log_argument, subject
from whynan.causes._operands import extreme, meets
from whynan.causes._words import at_rows, called, extent, made_by, num
from whynan.core.catalogue import Advice, Cause, Edit, Verdict
from whynan.core.records import Operand
from whynan.core.session import Birth, Session


def _is_free(birth: Birth, session: Session) -> bool:
    """Whether the argument is what a layer puts out, or a parameter: a number that any function may be put around."""
    log = subject(birth, session)
    operand = log_argument(log) if log is not None else None
    if operand is None or operand.source == "parameter":
        return operand is not None
    return is_learned(birth, session) and any(op.op in LINEAR for op in upstream(session, operand, RENAMES))


CAUSE = Cause(
    name="log-of-negative",
    title="the logarithm of a negative number",
    level="operation",
    why="The real logarithm has no value for a negative argument, so the result is NaN.",
    doubt="Wrong if the argument is negative by rounding only: then the difference before it is to be computed otherwise.",
    remedies=(
        Advice(
            "constrain-log-argument",
            "Make the argument positive by construction, with softplus or exp of a free number.",
            (Edit("argument", "torch.nn.functional.softplus({})", calls=("log", "log2", "log10")),),
            when=_is_free,
        ),
        Advice(
            "use-log-parametrisation",
            "Let the network put out the logarithm itself (log_input=True, a learned log-variance).",
            when=_is_free,
        ),
        Advice(
            "compute-otherwise",
            "Compute the argument so that it cannot fall below the domain: without a difference of nearly equal numbers, or bounded.",
            when=all_of(is_learned, unless(_is_free)),
        ),
        Advice(
            "clip-data",
            "Clip or reject values outside the domain where the data are prepared.",
            (Edit("argument", "{}.clamp_min(1e-6)", calls=("log", "log2", "log10")),),
            when=unless(is_learned),
        ),
    ),
)


def probe(birth: Birth, session: Session) -> Verdict | None:
    log = subject(birth, session)
    if log is None or log.op not in POLES:
        return None
    operand, pole = log_argument(log), POLES[log.op]
    if operand is None or not meets(operand, lambda value: value < pole):
        return None
    least = extreme(operand, min)
    given = f"{called(birth, log)} was given numbers down to {num(least)}{at_rows(birth)}"
    return Verdict(0.94, f"{given}; a logarithm has no value below {num(pole)}", _evidence(birth, session, operand, pole))


def _evidence(birth: Birth, session: Session, operand: Operand, pole: float) -> tuple[str, ...]:
    facts = [f"{extent(operand)}; the domain begins at {num(pole)}"]
    made = producer(session, operand)
    if operand.source == "parameter":
        facts.append(f"it is the parameter {operand.name or ''}".rstrip() + ", which nothing keeps positive")
    elif made is not None:
        facts.append(f"it comes out of {made_by(made, birth)}")
    return tuple(facts)


EXAMPLE = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
x, y = torch.randn(8, 4), torch.randint(0, 9, (8, 1)).float()
for step in range(3):
    rate = model(x)
    loss = (rate - y * torch.log(rate)).mean()  # culprit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4g}")
"""
TWIN = EXAMPLE.replace("rate = model(x)", "rate = nn.functional.softplus(model(x))")
