"""A temperature so small, or a logit scale so large, that similarities overflow.

What happens
    Similarities between -1 and 1 are divided by a temperature, or multiplied by the exponential of a learned logit scale.
    Once the pairs are separated the loss keeps rewarding a smaller temperature, and nothing stops it.

Why it gives NaN or Inf
    exp(similarity / T) exceeds float32 for T below 0.0113 and float16 for T below 0.09; exp(logit_scale) itself exceeds
    float16 once the learned parameter passes 11.09, float32 once it passes 88.72.

How to recognise it
    The exponent that overflowed is a parameter of one element, or a similarity of at most about 1 divided by a small
    constant.

How to fix it
    Clamp the learned scale (CLIP: at most log 100) and give it a smaller rate, use a larger temperature, and pass the scaled
    similarities to cross_entropy, which subtracts the row's maximum.

When this diagnosis is wrong
    If the similarities themselves are much larger than 1, the embeddings are not normalised and that is the mistake.

References
    Radford et al.: Learning Transferable Visual Models From Natural Language Supervision, section 2.5 (2021)
"""

from __future__ import annotations

from whynan.causes._course import optimizer_site
from whynan.causes._floats import limits
from whynan.causes._flow import RENAMES, producer, upstream
from whynan.causes._functions import EXPONENTIALS
from whynan.causes._operands import argument, extreme, first, number, output_type
from whynan.causes._words import called, extent, num
from whynan.core.catalogue import Advice, Cause, Verdict
from whynan.core.records import Operand, Operation
from whynan.core.session import Birth, Session

CAUSE = Cause(
    name="temperature-too-small",
    title="a temperature so small that scaled similarities overflow",
    level="run",
    course=True,
    why="Separated pairs keep rewarding a smaller temperature, until the exponential of the scaled similarity leaves the range.",
    doubt="Wrong if the similarities are not bounded by 1: then the embeddings lack their normalisation.",
    remedies=(
        Advice("clamp-logit-scale", "Clamp the learned logit scale to at most log(100) and give it a smaller rate."),
        Advice("larger-temperature", "Use a larger temperature, and cross_entropy on the scaled similarities."),
    ),
)
BOUNDED = 1.1  # similarities of unit vectors, with their rounding
SCALES = frozenset({"div", "mul"})


def probe(birth: Birth, session: Session) -> Verdict | None:
    operation = birth.operation
    if operation.op not in EXPONENTIALS or birth.direction != "forward" or not any(out.posinf for out in operation.outputs):
        return None
    exponent = argument(operation)
    if exponent is None:
        return None
    return _learned(birth, session, exponent) or _written(birth, session, exponent)


def _learned(birth: Birth, session: Session, exponent: Operand) -> Verdict | None:
    """The exponent is a parameter of one element, at most cast to another format on the way."""
    scale = exponent
    for found in upstream(session, exponent, RENAMES):
        if found.op not in RENAMES:
            return None
        scale = found.inputs[0] if found.inputs else scale
    if scale.source != "parameter" or scale.producer is not None or scale.stats.numel != 1:
        return None
    held, value = limits(output_type(birth.operation)), extreme(exponent, max)
    limit = num(held.exp_limit) if held else "the limit"
    name = scale.name or "the parameter"
    facts = (extent(exponent), f"exp overflows above {limit} in {output_type(birth.operation)}")
    return Verdict(0.88, f"the learned scale {name} rose to {num(value)}, and its exponential overflowed", facts, optimizer_site(session))


def _written(birth: Birth, session: Session, exponent: Operand) -> Verdict | None:
    """The exponent is a bounded similarity divided by a small constant."""
    scaling = producer(session, exponent)
    if scaling is None or scaling.op not in SCALES:
        return None
    similarity = first(scaling, "dividend", "input")
    factor = _factor(scaling)
    if similarity is None or factor is None or similarity.stats.absmax is None or similarity.stats.absmax > BOUNDED:
        return None
    facts = (extent(similarity), f"the temperature is {num(1 / factor)}", extent(exponent))
    given = f"{called(birth)} was given similarities of at most {num(similarity.stats.absmax)}"
    summary = f"{given} divided by a temperature of {num(1 / factor)}"
    return Verdict(0.85, summary, facts, scaling.site)


def _factor(scaling: Operation) -> float | None:
    """By how much the similarity was enlarged, where that is one number."""
    other = next((one for one in scaling.inputs if one.role in ("divisor", "other") and one.stats.numel == 1), None)
    value = number(scaling, "other")
    if value is None and other is not None:
        value = other.constant if other.constant is not None else other.stats.max
    if not value:
        return None
    factor = 1 / value if scaling.op == "div" else value
    return factor if factor > 1 else None


EXAMPLE = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(6, 8)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
x = torch.randn(4, 6)
for step in range(3):
    a = nn.functional.normalize(model(x), dim=1)
    b = nn.functional.normalize(model(x + 0.01), dim=1)
    scores = torch.exp(a @ b.t() / 0.005)  # culprit
    loss = -torch.log(scores.diagonal() / scores.sum(1)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4g}")
"""
TWIN = EXAMPLE.replace("0.005", "0.07")
