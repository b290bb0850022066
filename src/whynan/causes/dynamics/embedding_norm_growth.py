"""Embeddings without a norm, whose similarities grow until they overflow.

What happens
    Two encoders or tables give embeddings, the loss is taken of their dot products, and nothing keeps their length: no
    normalisation, no penalty. Longer vectors separate pairs better, so training lengthens them.

Why it gives NaN or Inf
    A similarity is the product of two norms and an angle: it grows with their square. Its exponential overflows above 88.7 in
    float32, and in float16 the product itself does at 65504.

How to recognise it
    After some steps a product of two embeddings is what overflowed, or what was exponentiated; no norm was divided by on the way.
    The larger of two norms is at least the root of their similarity.

How to fix it
    Normalise both sides (torch.nn.functional.normalize, cosine similarity) and divide by a temperature of about 0.07, or
    penalise the squared norms.

When this diagnosis is wrong
    If it overflows in the first steps, the similarities lack their factor 1/sqrt(d): see length-not-normalised.

References
    Chen et al.: A Simple Framework for Contrastive Learning of Visual Representations, section 5.1 (2020)
    Wang et al.: NormFace: L2 Hypersphere Embedding for Face Verification (2017)
"""

from __future__ import annotations

from whynan.causes._course import exploded
from whynan.causes._functions import EXPONENTIALS, divides_by_zero
from whynan.causes._operands import argument, extreme
from whynan.causes._similarity import is_attention, is_bounded, products_before
from whynan.causes._words import called, extent, num
from whynan.core.catalogue import Advice, Cause, Verdict
from whynan.core.records import Operand, Operation
from whynan.core.session import Birth, Session

CAUSE = Cause(
    name="embedding-norm-growth",
    title="embeddings without a norm, whose similarities grow until they overflow",
    level="run",
    course=True,
    why="Longer vectors separate pairs better, so training lengthens them, and a similarity grows with the square of their length.",
    doubt="Wrong if it overflows in the first steps: then the similarities lack a factor of 1/sqrt(d).",
    remedies=(
        Advice("normalise-embeddings", "Normalise both sides (torch.nn.functional.normalize), and divide by a temperature of about 0.07."),
        Advice("penalise-norms", "Add a penalty on the squared norms of the embeddings to the loss."),
    ),
)
GROWING = 10  # steps before which nothing has grown yet
LARGE = 20.0  # a similarity of unit vectors is at most 1, over a usual temperature at most this


def probe(birth: Birth, session: Session) -> Verdict | None:
    if birth.op in ("input", "param", "buffer") or birth.direction != "forward" or session.step < GROWING:
        return None
    if not any(out.inf for out in birth.operation.outputs) or divides_by_zero(birth.operation):
        return None
    for product, pair in products_before(session, birth.operation):
        size = _largest(birth, product)
        if size < LARGE or any(is_bounded(session, one) for one in pair) or is_attention(session, product):
            continue
        return _verdict(birth, session, product, pair, size)
    return None


def _largest(birth: Birth, product: Operation) -> float:
    """The largest similarity seen, which of one that overflowed is the largest finite."""
    exponent = argument(birth.operation) if birth.operation.op in EXPONENTIALS else None
    ends = [end for end in (extreme(exponent, min), extreme(exponent, max)) if end is not None] if exponent is not None else []
    size = product.outputs[0].absmax if product.outputs else None
    if product is birth.operation:
        size = max(size or 0.0, *(one.stats.absmax or 0.0 for one in product.inputs))
    return size if size is not None else max(map(abs, ends), default=0.0)


def _verdict(birth: Birth, session: Session, product: Operation, pair: tuple[Operand, Operand], size: float) -> Verdict:
    facts = (
        *dict.fromkeys(map(extent, pair)),
        f"similarities reach {num(size)}, so some embedding has a norm of at least {num(size**0.5)}",
        f"{session.step} updates have been made, and nothing normalised the embeddings",
    )
    summary = f"{called(birth)} overflowed on similarities of up to {num(size)} between embeddings that nothing normalises"
    return Verdict(0.6 if exploded(session) else 0.78, summary, facts, product.site)


EXAMPLE = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.ModuleDict({"left": nn.Linear(16, 32), "right": nn.Linear(16, 32)})
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
unit = False
for step in range(300):
    x = torch.randn(32, 16)
    a, b = model["left"](x), model["right"](x + 0.1 * torch.randn(32, 16))
    if unit:
        a, b = nn.functional.normalize(a, dim=1), nn.functional.normalize(b, dim=1)
    scores = torch.exp(a @ b.t())  # culprit
    loss = -torch.log(scores.diagonal() / scores.sum(1)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4g}")
"""
TWIN = EXAMPLE.replace("unit = False", "unit = True")
