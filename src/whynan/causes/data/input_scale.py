"""Inputs in the thousands.

What happens
    Raw features go into the network: prices, pixel values times a factor, coordinates in metres, counts. The first layer,
    initialised for inputs near 1, puts out numbers as large as its inputs.

Why it gives NaN or Inf
    An exponential of such a number overflows at once (88.7 in float32), float16 holds only 65504, and gradients that are a
    thousand times too large make the first updates destroy the weights.

How to recognise it
    The batch holds magnitudes of 1e3 and more in most of its rows, and the overflow comes in the first steps, before training
    could have moved anything.

How to fix it
    Standardise every input column with its mean and spread on the training data, or normalise in the first layer.

When this diagnosis is wrong
    If a few rows alone are that large they are outliers, and the data are to be cleaned.

References
    https://scikit-learn.org/stable/modules/preprocessing.html
    LeCun, Bottou, Orr, Mueller: Efficient BackProp, section 4.3 (1998)
"""

from __future__ import annotations

from whynan.causes._course import exploded
from whynan.causes._flow import sources
from whynan.causes._functions import DIVISIONS, DOMAINS, POLES, divides_by_zero
from whynan.causes._words import called, extent, num, outcome
from whynan.core.catalogue import Advice, Cause, Verdict
from whynan.core.records import Operand
from whynan.core.session import Birth, Session

CAUSE = Cause(
    name="input-scale",
    title="inputs in the thousands",
    level="run",
    why="A network initialised for inputs near 1 puts out numbers as large as its inputs, which overflow.",
    doubt="Wrong if only a few rows are that large: then they are outliers.",
    remedies=(
        Advice("standardise-inputs", "Standardise every input column with its mean and spread on the training data."),
        Advice("normalise-first", "Start the network with a normalisation layer."),
    ),
)
LARGE, ABSURD = 1e3, 1e15  # beyond the second it is a sentinel or garbage, and no scale
EARLY = 2
SINGULAR = frozenset(DOMAINS) | DIVISIONS | frozenset(POLES)  # where a small number does it, not a large one


def probe(birth: Birth, session: Session) -> Verdict | None:
    operation = birth.operation
    if birth.op in ("input", "param", "buffer") or birth.direction == "optimizer" or not any(out.inf for out in operation.outputs):
        return None
    if divides_by_zero(operation):
        return None
    early = session.step <= EARLY
    if not early and not exploded(session):
        return None
    large = next((one for one in sources(session, operation.inputs) if _is_large(one)), None)
    if large is None:
        return None
    facts = (extent(large), f"{called(birth)} gave {outcome(operation)} at step {session.step}")
    confidence = 0.9 if _most_rows(birth) and operation.op not in SINGULAR else 0.45
    return Verdict(confidence, f"the inputs reach {num(large.stats.absmax)}, and {called(birth)} overflowed on them", facts)


def _is_large(operand: Operand) -> bool:
    size = operand.stats.absmax
    floating = operand.stats.dtype.startswith(("float", "bfloat"))
    return operand.source == "input" and operand.from_batch and floating and size is not None and LARGE <= size < ABSURD


def _most_rows(birth: Birth) -> bool:
    """Whether at least half of the rows overflowed; a few would be outliers."""
    shape = birth.operation.outputs[0].shape
    return birth.samples is None or not shape or len(birth.samples) * 2 >= shape[0]


EXAMPLE = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
x, y = torch.rand(10, 6) * 5000.0, torch.rand(10, 2)
for step in range(3):
    scale = torch.exp(model(x).abs())  # culprit
    loss = (scale.log() + (y / scale).pow(2)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4g}")
"""
TWIN = EXAMPLE.replace(" * 5000.0", "")
