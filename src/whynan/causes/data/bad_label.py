"""A degenerate label.

What happens
    A target that is legal as a number has no meaning for the loss: a box of width 0 after cropping, a duration of 0, an empty
    mask, a probability of exactly 1 that is turned into logits, an angle of a zero vector.

Why it gives NaN or Inf
    The loss transforms the label (a logarithm, a quotient, an inverse function), and the label lies at the edge of that
    function.

How to recognise it
    The operation that failed depends on the batch alone, its result does not enter the model, and the loss compares it with
    what the model puts out.

How to fix it
    Filter such labels where they are made (drop boxes without an area, clip probabilities), or weight them with 0 before the
    transform.

When this diagnosis is wrong
    If such labels are valid, the transform needs a form that covers them, and the operation is the cause.

References
    https://github.com/facebookresearch/detectron2/blob/main/detectron2/structures/boxes.py (nonempty)
"""

from __future__ import annotations

from whynan.causes._flow import origins, sources
from whynan.causes._functions import DIVISIONS, POLES
from whynan.causes._words import at_rows, called, extent
from whynan.core.catalogue import Advice, Cause, Verdict
from whynan.core.session import Birth, Session

CAUSE = Cause(
    name="bad-label",
    title="a degenerate label",
    level="operation",
    why="The loss transforms the label, and the label lies where that transform has no finite value.",
    doubt="Wrong if such labels are valid: then the transform has to cover them.",
    remedies=(
        Advice("filter-labels", "Filter degenerate labels where they are made, or where the batch is put together."),
        Advice("mask-labels-first", "Mask degenerate labels before they are transformed, not afterwards."),
    ),
)
TRANSFORMS = DIVISIONS | frozenset(POLES) | frozenset("sqrt pow acos asin atanh acosh logit erfinv lgamma digamma exp".split())

ERRORS = frozenset("mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy binary_cross_entropy_with_logits".split())


def probe(birth: Birth, session: Session) -> Verdict | None:
    operation = birth.operation
    if birth.direction != "forward" or birth.op in ("input", "param", "buffer") or operation.op not in TRANSFORMS or operation.module:
        return None
    if birth.samples is None or any(not one.stats.finite for one in operation.inputs):
        return None
    found, flow = origins(session, operation.inputs), session.flow
    labels = [one for one in sources(session, operation.inputs) if one.from_batch and one.source == "input"]
    if not labels or found - {"input", "constant", "operation"} or flow.prepares_input(operation):
        return None
    if len(birth.samples) * 2 > (operation.outputs[0].shape or (1,))[0]:
        return None
    error = next((op for op in flow.meetings(operation) if op.op in ERRORS), None)
    facts = [extent(labels[0]), "no parameter of the model leads to this operation"]
    facts += [f"{called(birth, error)} compares its result with the model's"] if error is not None else []
    summary = f"{called(birth)} transforms the labels alone, and those{at_rows(birth)} have no finite image"
    return Verdict(0.6 if error is None else 0.95, summary, tuple(facts))


EXAMPLE = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(5, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x, size = torch.randn(6, 5), torch.rand(6, 2) * 50 + 4
size[4, 0] = 0.0
for step in range(3):
    keep = torch.ones(6, dtype=torch.bool)
    target = torch.log(size[keep] / 16.0)  # culprit
    loss = nn.functional.smooth_l1_loss(model(x[keep]), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4g}")
"""
TWIN = EXAMPLE.replace("torch.ones(6, dtype=torch.bool)", "(size > 0).all(1)")
