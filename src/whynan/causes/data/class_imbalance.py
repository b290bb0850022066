"""One label that fills the batch, so that its logits run away.

What happens
    Nearly all labels of the batch are the same (fraud, defects, rare events, a sorted data set), or the rare class is given a
    weight that makes up for it, in the hundreds and more.

Why it gives NaN or Inf
    Nothing pulls the other way, so the logits grow with every step until a probability rounds to exactly 0 or 1 and its
    logarithm is taken; or the gradient of the few weighted samples is hundreds of times the usual one.

How to recognise it
    One label has 95 % of the batch and more, and the logits lie where a sigmoid or softmax is 0 or 1 in their format; or the
    weight of the rare label is about the inverse of its share and the loss grew.

How to fix it
    Draw batches with a balanced sampler or shuffle the data, bound the weight (its square root, at most about 10), and let
    cross_entropy or binary_cross_entropy_with_logits work on the logits.

When this diagnosis is wrong
    If balanced batches fail as well, look at the operation that went bad and at the rate.

References
    https://pytorch.org/docs/stable/data.html#torch.utils.data.WeightedRandomSampler
    Johnson, Khoshgoftaar: Survey on Deep Learning with Class Imbalance (2019)
"""

from __future__ import annotations

from dataclasses import dataclass

from whynan.causes._conditions import is_of_data
from whynan.causes._course import exploded
from whynan.causes._floats import limits
from whynan.causes._flow import upstream
from whynan.causes._words import extent, num
from whynan.core.catalogue import Advice, Cause, Verdict
from whynan.core.flow import TRAINED
from whynan.core.records import Operand, Operation
from whynan.core.session import Birth, Session

CAUSE = Cause(
    name="class-imbalance",
    title="one label that fills the batch, so that its logits run away",
    level="run",
    course=True,
    why="Nothing pulls the other way, so the logits of the common label grow until its probability rounds to 1 and the others to 0.",
    doubt="Wrong if balanced batches fail as well.",
    remedies=(
        Advice("balanced-sampler", "Draw batches with a balanced sampler (torch.utils.data.WeightedRandomSampler), or shuffle the data."),
        Advice("bounded-class-weight", "Bound the weight of the rare label: its square root, at most about 10."),
    ),
)
FULL = 0.95  # share of the commonest label
LEAST = 16  # labels; in fewer a single one is no surprise
HEAVY = 1 / (1 - FULL)  # a weight that makes up for such a share
LOSSES = frozenset({"nll_loss", "nll_loss2d", "binary_cross_entropy", "binary_cross_entropy_with_logits"})
PROBABILITIES = frozenset("clamp rsub log log1p index gather mul pow stack cat _to_copy add view neg".split())


@dataclass(frozen=True, slots=True)
class Labelled:
    loss: Operation
    share: float
    count: int


def probe(birth: Birth, session: Session) -> Verdict | None:
    if birth.op in ("input", "buffer") or birth.direction == "optimizer" or is_of_data(birth, session):
        return None
    found = next((one for op in session.operations for one in [_labelled(session, op)] if one is not None), None)
    return None if found is None else _weighted(birth, session, found) or _saturated(session, found)


def _labelled(session: Session, operation: Operation) -> Labelled | None:
    """A loss whose labels are nearly all the same."""
    target = operation.operand("target") if operation.op in LOSSES else _by_hand(session, operation)
    if operation.direction != "forward" or target is None or target.stats.numel < LEAST:
        return None
    share = target.share if target.share is not None else _binary(target)
    return Labelled(operation, share, target.stats.numel) if share is not None and share >= FULL else None


def _binary(target: Operand) -> float | None:
    """The larger share of labels that are 0 or 1. Where a sample has several, most of them are 0 in any case."""
    stats = target.stats
    if stats.zero is None or stats.min not in (0.0, 1.0) or stats.max not in (0.0, 1.0) or len(stats.shape) == 2 and stats.shape[1] > 1:
        return None
    return max(stats.zero, stats.numel - stats.zero) / stats.numel


def _by_hand(session: Session, product: Operation) -> Operand | None:
    """The labels y of a loss written as y * log(p) + (1 - y) * log(1 - p), whatever else is multiplied with."""
    if product.op != "mul" or len(product.inputs) != 2 or not session.flow.is_trained(product):
        return None
    untrained = [one for one in product.inputs if not session.flow.kinds(one) & TRAINED]
    turned = any(op.op == "rsub" and one.identity == op.inputs[0].identity for one in untrained for op in session.operations if op.inputs)
    return untrained[0] if turned else None


def _weighted(birth: Birth, session: Session, found: Labelled) -> Verdict | None:
    weight = next((one for one in found.loss.inputs if one.role in ("weight", "pos_weight") and (one.stats.absmax or 0.0) >= HEAVY), None)
    if weight is None or not exploded(session) or not any(out.inf for out in birth.operation.outputs):
        return None
    summary = f"the rare label has a weight of {num(weight.stats.absmax)}, for {num(100 * (1 - found.share))} % of the batch"
    return Verdict(0.92, summary, (_shares(found), extent(weight)), found.loss.site)


def _saturated(session: Session, found: Labelled) -> Verdict | None:
    """The logits lie where the probability of the common label is exactly 1 in their format."""
    logits = _logits(session, found.loss)
    held = limits(logits.stats.dtype) if logits is not None else None
    if logits is None or held is None or held.eps * 2.718281828 ** min(logits.stats.absmax or 0.0, 700.0) < 1:
        return None
    facts = (_shares(found), extent(logits), f"a sigmoid or softmax of such logits is exactly 0 or 1 in {logits.stats.dtype}")
    summary = f"one label has {num(100 * found.share)} % of the batch, and the logits ran to {num(logits.stats.absmax)}"
    return Verdict(0.62 if exploded(session) else 0.75, summary, facts, found.loss.site)


def _logits(session: Session, loss: Operation) -> Operand | None:
    """What the probabilities in the loss were made of."""
    given = next((one for one in loss.inputs if session.flow.kinds(one) & TRAINED), loss.inputs[0])
    if loss.op == "binary_cross_entropy_with_logits":
        return given
    makers = upstream(session, given, PROBABILITIES)
    made = next((op for op in makers if op.op in ("softmax", "log_softmax", "sigmoid") and op.inputs), None)
    return made.inputs[0] if made is not None else None


def _shares(found: Labelled) -> str:
    return f"the commonest of the {found.count} labels has a share of {num(100 * found.share)} %"


EXAMPLE = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(8, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=0.3)
rare = 0.0
for step in range(300):
    x, y = torch.rand(64, 8), (torch.rand(64, 1) >= rare).float()
    p = torch.sigmoid(model(x))
    loss = -(y * p.log() + (1 - y) * (1 - p).log()).mean()  # culprit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4g}")
"""
TWIN = EXAMPLE.replace("rare = 0.0", "rare = 0.5")
