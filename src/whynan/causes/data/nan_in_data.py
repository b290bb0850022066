"""The batch already holds NaN.

What happens
    An input or target comes into the step as NaN: a missing value of a table, a hole in a depth map, a feature divided by a
    spread of 0 while the data were prepared, a failed reading of a sensor.

Why it gives NaN or Inf
    Every arithmetic with NaN gives NaN. One element makes its row NaN, and the mean over the batch the whole loss.

How to recognise it
    The first operation that reads the batch already has NaN among its operands; the rows tell which samples.

How to fix it
    Repair or drop these samples where the data are prepared, or replace the missing values and tell the model by a mask. Test
    for them once, when the data are loaded.

When this diagnosis is wrong
    If the model's own earlier result was fed back as data (a replay buffer, a teacher), it went bad there.

References
    https://scikit-learn.org/stable/modules/impute.html
"""

from __future__ import annotations

from whynan.causes._operands import carried
from whynan.causes._words import at_rows, extent, listing, shape
from whynan.core.catalogue import Advice, Cause, Verdict
from whynan.core.session import Birth, Session

CAUSE = Cause(
    name="nan-in-data",
    title="the batch already holds NaN",
    level="data",
    why="Every arithmetic with NaN gives NaN, and a mean over the batch spreads it to the whole loss.",
    doubt="Wrong if these data are an earlier result of the model.",
    remedies=(
        Advice("repair-data", "Repair or drop these samples where the data are prepared, and test for NaN when they are loaded."),
        Advice("mask-missing-values", "Replace missing values by a finite number before the model and the loss, and mask them there."),
    ),
)


def probe(birth: Birth, session: Session) -> Verdict | None:
    operand = carried(birth)
    if birth.op != "input" or operand is None or not operand.stats.nan:
        return None
    stats = operand.stats
    facts = [f"{stats.nan} of the {stats.numel} elements of the batch's {shape(stats)} are NaN"]
    if birth.dataset_indices:
        facts.append(f"they are the samples {listing(birth.dataset_indices)} of the dataset")
    if stats.min is not None:
        facts.append("of its finite elements, " + extent(operand))
    confidence = 0.96 if operand.from_batch else 0.8
    return Verdict(confidence, f"the batch came in with NaN{at_rows(birth)}", tuple(facts))


EXAMPLE = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(5, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
batches = [(torch.randn(10, 5), torch.randn(10, 1)) for _ in range(3)]
batches[2][0][6, 2] = float("nan")
for step, (x, y) in enumerate(batches):
    loss = nn.functional.mse_loss(model(x), y)  # culprit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4g}")
"""
TWIN = EXAMPLE.replace("model(x)", "model(x.nan_to_num())")
