"""An argument at or beyond the edge of a function's domain.

What happens
    acos, asin, atanh, acosh, erfinv, logit, lgamma or digamma is given a number on the edge of its domain or just outside: a
    cosine that rounds to 1.0000001, an action clipped to exactly 1, a probability of exactly 1, a shape parameter of 0.

Why it gives NaN or Inf
    Beyond the edge there is no value: NaN. On the edge the value is infinite (atanh(1), logit(1), lgamma(0)) or finite with
    an infinite derivative (acos(1)), which the chain rule turns into NaN.

How to recognise it
    The largest magnitude of the argument reaches the edge; for a derivative the loss is finite and the birth lies in the
    backward pass.

How to fix it
    Clamp into the open interval, a few rounding errors inside it: 1 - 1e-6 in float32, 1 - 1e-3 in float16. For an angle
    between vectors atan2 of the cross and dot product has no edge.

When this diagnosis is wrong
    If the argument is far outside the domain, it is not rounding: then what makes it is the mistake.

References
    https://github.com/pytorch/pytorch/issues/8069
"""

from __future__ import annotations

import math

from whynan.causes._functions import DOMAINS, subject
from whynan.causes._operands import argument, extreme, meets
from whynan.causes._words import at_rows, called, extent, num, outcome
from whynan.core.catalogue import Advice, Cause, Edit, Verdict
from whynan.core.records import Operand, Operation
from whynan.core.session import Birth, Session

CAUSE = Cause(
    name="domain-boundary",
    title="an argument at or beyond the edge of a function's domain",
    level="operation",
    why="Beyond the edge the function has no value; on it the value or the derivative is infinite.",
    doubt="Wrong if the argument is far outside the domain: then what makes it is the mistake.",
    remedies=(
        Advice(
            "clamp-into-domain",
            "Clamp the argument into the open interval, a few rounding errors inside it.",
            (
                Edit(
                    "argument",
                    "{}.clamp(-1 + 1e-6, 1 - 1e-6)",
                    calls=("acos", "asin", "atanh", "erfinv", "arccos", "arcsin", "arctanh"),
                    half="{}.clamp(-0.99, 0.99)",
                ),
                Edit("argument", "{}.clamp(1e-6, 1 - 1e-6)", calls=("logit",), half="{}.clamp(0.01, 0.99)"),
                Edit("argument", "{}.clamp_min(1 + 1e-6)", calls=("acosh", "arccosh"), half="{}.clamp_min(1.01)"),
                Edit("argument", "{}.clamp_min(1e-6)", calls=("lgamma", "digamma")),
            ),
            when=lambda birth, session: not _is_angle(birth, session, "atan2"),
        ),
        Advice(
            "use-atan2",
            "For the angle between vectors, use atan2 of the cross and dot product.",
            when=lambda birth, session: _is_angle(birth, session, "acos", "asin"),
        ),
        Advice(
            "select-directed-vectors",
            "Leave the vectors of length 0 out before the angle is taken: they have none.",
            when=lambda birth, session: _is_angle(birth, session, "atan2"),
        ),
    ),
)


def probe(birth: Birth, session: Session) -> Verdict | None:
    function = subject(birth, session)
    if function is None:
        return None
    if function.op == "atan2" and birth.direction == "backward":
        return _undirected(birth, function)
    domain, operand = DOMAINS.get(function.op), argument(function)
    if domain is None or operand is None:
        return None
    low, high = domain
    if not meets(operand, lambda value: value <= low or value >= high):
        return None
    return _verdict(birth, function, operand, domain)


def _verdict(birth: Birth, function: Operation, operand: Operand, domain: tuple[float, float]) -> Verdict:
    low, high = domain
    least, most = extreme(operand, min), extreme(operand, max)
    worst = most if most is not None and most >= high else least
    beyond = worst is not None and (worst < low or worst > high)
    facts = [extent(operand), f"the domain of {function.op} is {_interval(low, high)}"]
    result = "gradient" if birth.direction == "backward" else "result"
    facts.append(f"{result}: {outcome(birth.operation)}")
    side = "beyond" if beyond else "on"
    given = f"{worst:.9g}" if worst is not None else num(worst)
    derivative = "; its derivative there is infinite" if birth.direction == "backward" and not beyond else ""
    summary = f"{called(birth, function)} was given {given}{at_rows(birth)}, {side} the edge of its domain{derivative}"
    return Verdict(0.95 if birth.direction == "forward" else 0.93, summary, tuple(facts))


def _is_angle(birth: Birth, session: Session, *names: str) -> bool:
    function = subject(birth, session)
    return function is not None and function.op in names


def _interval(low: float, high: float) -> str:
    return f"{num(low)} to {num(high)}" if math.isfinite(high) else f"from {num(low)} up"


def _undirected(birth: Birth, function: Operation) -> Verdict | None:
    """The angle of the vector (0, 0) has no derivative."""
    if len(function.inputs) < 2 or not all(meets(one, lambda value: value == 0) for one in function.inputs[:2]):
        return None
    facts = (*(extent(one) for one in function.inputs[:2]), f"gradient: {outcome(birth.operation)}")
    return Verdict(0.8, f"{called(birth, function)} was given the vector (0, 0){at_rows(birth)}, whose angle has no derivative", facts)


EXAMPLE = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(3, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
x = torch.randn(6, 3)
for step in range(3):
    a = model(x)
    cosine = nn.functional.cosine_similarity(a, a.detach())
    loss = torch.acos(cosine * (1 + 1e-6)).mean()  # culprit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4g}")
"""
TWIN = EXAMPLE.replace("cosine * (1 + 1e-6)", "cosine.clamp(-1 + 1e-6, 1 - 1e-6)")
