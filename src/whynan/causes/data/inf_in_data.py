"""The batch already holds infinity.

What happens
    An input or target comes into the step as inf or -inf: the logarithm of a count of 0 taken while the data were prepared, a
    ray that a sensor missed, a ratio with an empty denominator, a float16 file that overflowed.

Why it gives NaN or Inf
    A weight times inf is inf, two of them of different sign sum to NaN, and a weight of 0 makes NaN at once.

How to recognise it
    The first operation that reads the batch already has infinite elements among its operands.

How to fix it
    Clip or reject these values where the data are prepared; give a missing reading a finite value within the range and a
    mask.

When this diagnosis is wrong
    If the infinity is a mask or a sentinel that was meant, the operation that turned it into NaN is the cause.

References
    https://numpy.org/doc/stable/reference/generated/numpy.log1p.html
"""

from __future__ import annotations

from whynan.causes._operands import carried
from whynan.causes._words import at_rows, listing, num, shape
from whynan.core.catalogue import Advice, Cause, Verdict
from whynan.core.session import Birth, Session

CAUSE = Cause(
    name="inf-in-data",
    title="the batch already holds infinity",
    level="data",
    why="A weight times inf is inf, and a sum of infinities of different sign is NaN.",
    doubt="Wrong if the infinity is a mask that was meant.",
    remedies=(
        Advice("clip-data", "Clip or reject infinite values where the data are prepared."),
        Advice("finite-sentinel", "Give a missing reading a finite value within the range of the data, and a mask."),
    ),
)


def probe(birth: Birth, session: Session) -> Verdict | None:
    operand = carried(birth)
    if birth.op != "input" or operand is None or not operand.stats.inf:
        return None
    stats = operand.stats
    facts = [f"the batch's {shape(stats)} holds {stats.posinf} inf and {stats.neginf} -inf"]
    if birth.dataset_indices:
        facts.append(f"they are the samples {listing(birth.dataset_indices)} of the dataset")
    if stats.max is not None:
        facts.append(f"its finite elements run from {num(stats.min)} to {num(stats.max)}")
    confidence = (0.96 if operand.from_batch else 0.8) - (0.3 if stats.nan else 0.0)
    return Verdict(confidence, f"the batch came in with infinite elements{at_rows(birth)}", tuple(facts))


EXAMPLE = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
counts = torch.rand(24, 3) * 4
counts[11, 1] = 0.0
features, y = torch.log(counts), torch.randn(24, 1)
for step in range(3):
    rows = slice(8 * step, 8 * step + 8)
    loss = nn.functional.mse_loss(model(features[rows]), y[rows])  # culprit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4g}")
"""
TWIN = EXAMPLE.replace("torch.log(counts)", "torch.log1p(counts)")
