"""A buffer that kept the NaN of an earlier batch.

What happens
    A batch with NaN is noticed and skipped, but the running mean and variance of a normalisation layer (or another moving
    average: a codebook, a teacher, a centre of outputs) were updated in its forward pass already.

Why it gives NaN or Inf
    A moving average never forgets NaN: every later value is 0.9 * NaN + ... In training mode the running statistics are not
    read, so all looks well until the first evaluation.

How to recognise it
    A buffer of a module is not finite when the step begins, while all parameters are.

How to fix it
    Test the batch before the forward pass, or keep a copy of the buffers and put it back when a batch is skipped.

When this diagnosis is wrong
    If the buffer was made non-finite on purpose (a mask, a best loss so far), the operation that used it is the cause.

References
    https://pytorch.org/docs/stable/generated/torch.nn.BatchNorm1d.html
"""

from __future__ import annotations

from whynan.causes._operands import carried
from whynan.causes._words import called, shape
from whynan.core.catalogue import Advice, Cause, Verdict
from whynan.core.records import Operand
from whynan.core.session import Birth, Session

CAUSE = Cause(
    name="poisoned-running-stats",
    title="a buffer that kept the NaN of an earlier batch",
    level="run",
    why="A moving average never forgets NaN, and the forward pass of a skipped batch has updated it already.",
    doubt="Wrong if the buffer was made non-finite on purpose.",
    remedies=(
        Advice("check-before-forward", "Test the batch for NaN before the forward pass."),
        Advice("restore-buffers", "Keep a copy of the buffers and put it back when a batch is skipped."),
    ),
)
NORMALISATIONS = frozenset({"batch_norm", "instance_norm", "group_norm"})


def probe(birth: Birth, session: Session) -> Verdict | None:
    buffer = _buffer(birth)
    if buffer is None:
        return None
    stats = buffer.stats
    facts = (f"{buffer.name or buffer.role} ({shape(stats)}) holds {stats.nan} NaN and {stats.inf} infinite elements at first",)
    named = f"the buffer {buffer.name}" if buffer.name else f"the {buffer.role} of a normalisation layer"
    return Verdict(0.93 if stats.nan else 0.7, f"{named} was not finite before {called(birth)} read it", facts)


def _buffer(birth: Birth) -> Operand | None:
    operand = carried(birth)
    if birth.op == "buffer":
        return None if birth.since_made else operand  # a table that was made with NaN has kept nothing of any batch
    running = operand is not None and operand.role.startswith("running_") and birth.operation.op in NORMALISATIONS
    return operand if running else None


EXAMPLE = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.Linear(5, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
batches = [(torch.randn(6, 4), torch.randint(0, 2, (6,))) for _ in range(4)]
batches[1][0][1, 0] = float("nan")
for step, (x, y) in enumerate(batches):
    with torch.no_grad():
        teacher = torch.softmax(model.eval()(x.nan_to_num()), 1)  # culprit
    loss = nn.functional.cross_entropy(model.train()(x), y)
    if not torch.isfinite(loss):
        continue
    loss = loss + nn.functional.kl_div(torch.log_softmax(model(x), 1), teacher, reduction="batchmean")
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4g}")
"""
TWIN = EXAMPLE.replace("    with torch", "    if not torch.isfinite(x).all():\n        continue\n    with torch")
