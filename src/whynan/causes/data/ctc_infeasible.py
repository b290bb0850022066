"""A CTC target that is longer than its input.

What happens
    An utterance has fewer output frames than its transcript has labels (plus one frame between equal neighbours): a clip that
    was cut, a down-sampling that is too strong, a transcript that belongs to another clip.

Why it gives NaN or Inf
    No alignment exists, so the probability of the target is 0 and the loss inf; its gradient is NaN.

How to recognise it
    ctc_loss puts out inf at some samples, and their target length exceeds their input length.

How to fix it
    Filter such pairs, down-sample less, and pass zero_infinity=True so that those that remain do no harm.

When this diagnosis is wrong
    If the lengths fit, the log-probabilities themselves hold -inf.

References
    https://pytorch.org/docs/stable/generated/torch.nn.CTCLoss.html
"""

from __future__ import annotations

from whynan.causes._functions import node_is, subject
from whynan.causes._words import at_rows, listing, num
from whynan.core.catalogue import Advice, Cause, Edit, Verdict
from whynan.core.records import Operation
from whynan.core.session import Birth, Session

CAUSE = Cause(
    name="ctc-infeasible",
    title="a CTC target that is longer than its input",
    level="operation",
    why="No alignment of the target with the input exists, so its probability is 0, the loss inf and the gradient NaN.",
    doubt="Wrong if the lengths fit: then the log-probabilities hold -inf.",
    remedies=(
        Advice(
            "zero-infinity",
            "Pass zero_infinity=True to ctc_loss.",
            (Edit("keyword", "True", ("ctc_loss",), (), "zero_infinity"),),
        ),
        Advice("filter-long-targets", "Drop pairs whose target is longer than their input, or down-sample less."),
    ),
)


def probe(birth: Birth, session: Session) -> Verdict | None:
    function = subject(birth, session)
    known = function is not None and function.op == "ctc_loss"
    if not (known or node_is(birth, "CtcLoss")):
        return None
    if function is not None and function.inputs and not function.inputs[0].stats.finite:
        return None
    infinite = sum(out.posinf for out in function.outputs) if function else 0
    if birth.direction == "forward" and not infinite:
        return None
    facts = [f"{infinite} of the losses are inf"] if infinite else []
    facts += _lengths(function) if function else []
    return Verdict(0.95, f"ctc_loss has no alignment{at_rows(birth)}: the target is longer than the input allows", tuple(facts))


def _lengths(function: Operation) -> list[str]:
    """The lengths as far as the record holds them: lists passed as numbers, or the extremes of tensors."""
    facts = []
    for name, words in (("input_lengths", "input lengths"), ("target_lengths", "target lengths")):
        plain, operand = function.scalars.get(name), function.operand(name)
        if isinstance(plain, list):
            facts.append(f"{words}: {listing(plain)}")
        elif operand is not None and operand.stats.min is not None:
            facts.append(f"{words}: {num(operand.stats.min)} to {num(operand.stats.max)}")
    return facts


EXAMPLE = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(8, 6)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
x, target = torch.randn(12, 3, 8), torch.randint(1, 6, (3, 5))
frames, labels = torch.tensor([12, 3, 12]), torch.tensor([3, 5, 2])
for step in range(3):
    logp = torch.log_softmax(model(x), -1)
    loss = nn.functional.ctc_loss(logp, target, frames, labels, zero_infinity=False)  # culprit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4g}")
"""
TWIN = EXAMPLE.replace("zero_infinity=False", "zero_infinity=True")
