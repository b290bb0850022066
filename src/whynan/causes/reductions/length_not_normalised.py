"""A sum that grows with the length of what it sums over.

What happens
    Tokens, nodes, time steps or features are summed, or queries are multiplied with keys, and the result is not divided by their
    number or its root. It works on short sequences and small graphs and fails on long ones.

Why it gives NaN or Inf
    A sum of n terms is up to n times a term, a product of vectors of d elements about sqrt(d) times that of two elements. In
    float16 (65504), below an exponential (88.7) or a square, the length alone then makes the difference.

How to recognise it
    On the way to the overflow lies a sum over 64 elements and more that enlarged its input by about that number or its root, or
    a product of activations that nothing scales; divided by it the value would have stayed in range.

How to fix it
    Use the mean in place of the sum, divide scores by sqrt(d) (scaled_dot_product_attention does), aggregate neighbours with a
    mean or by 1/sqrt(degree).

When this diagnosis is wrong
    If the terms are far larger than usual for the model, look at what made them.

References
    Vaswani et al.: Attention Is All You Need, section 3.2.1 (2017)
    Kipf, Welling: Semi-Supervised Classification with Graph Convolutional Networks (2017)
"""

from __future__ import annotations

from whynan.causes._course import exploded
from whynan.causes._floats import limits
from whynan.causes._flow import upstream
from whynan.causes._functions import EXPONENTIALS, LINEAR, divides_by_zero
from whynan.causes._operands import argument, extreme
from whynan.causes._similarity import VALUES, is_scaled, length, products_before
from whynan.causes._sums import SUMS, enlarged, summed
from whynan.causes._words import called, extent, num
from whynan.core.catalogue import Advice, Cause, Verdict
from whynan.core.records import HALVES, Operation
from whynan.core.session import Birth, Session

CAUSE = Cause(
    name="length-not-normalised",
    title="a sum that grows with the length of what it sums over",
    level="run",
    why="A sum of n terms is up to n times a term, so the length alone carries it out of the range.",
    doubt="Wrong if the terms are far larger than usual for the model.",
    remedies=(
        Advice("mean-instead-of-sum", "Use the mean in place of the sum."),
        Advice("scale-by-root", "Divide scores by sqrt(d), the number of elements that each of them sums over."),
    ),
)
LONG, LONGER = 64, 8
SQUARES = frozenset({"pow", "square"})


def probe(birth: Birth, session: Session) -> Verdict | None:
    if birth.op in ("input", "param", "buffer") or birth.direction != "forward" or divides_by_zero(birth.operation):
        return None
    if not any(out.inf for out in birth.operation.outputs):
        return None
    if exploded(session):
        return _longer(session)
    return _long_sum(birth, session) or _unscaled(birth, session)


def _longer(session: Session) -> Verdict | None:
    """The run came apart when a sum that was short in an earlier step was made over many times as much."""
    earlier = session.earlier
    if earlier is None:
        return None
    before = {(op.site, op.op): summed(op) for op in earlier.operations if op.op in SUMS}
    for op in session.operations:
        size, short = summed(op), before.get((op.site, op.op), 0)
        if op.direction == "forward" and op.op in SUMS and short and size >= LONG and size >= LONGER * short:
            facts = (f"the same sum went over {short} elements at step {earlier.step}", extent(op.inputs[0]))
            summary = f"the run came apart when a sum that is not divided by its length went over {size} elements"
            return Verdict(0.86, summary, facts, op.site)
    return None


def _long_sum(birth: Birth, session: Session) -> Verdict | None:
    born = birth.operation
    for op in (born, *(made for one in born.inputs for made in upstream(session, one, VALUES | LINEAR))):
        size, terms = enlarged(op)
        if size < LONG or _is_loss_in_half(op) or op is not born and not _in_range(birth, size):
            continue
        given = f"the sum over {size} elements gave up to {num(op.outputs[0].absmax)} where the largest term was {num(terms)}"
        facts = (extent(op.inputs[0]), given)
        return Verdict(0.8, f"{called(birth)} overflowed on a sum over {size} elements that is not divided by their number", facts, op.site)
    return None


def _is_loss_in_half(op: Operation) -> bool:
    """A loss summed to one number in half precision: there the format is the mistake."""
    return op.outputs[0].numel == 1 and op.outputs[0].dtype in HALVES


def _in_range(birth: Birth, by: float) -> bool:
    """Whether the function that overflowed would have been given something in its range."""
    operand = argument(birth.operation)
    held = limits(operand.stats.dtype) if operand is not None else None
    size = max((abs(end) for end in (extreme(operand, min), extreme(operand, max)) if end is not None), default=0.0) if operand else 0.0
    if held is None:
        return False
    if birth.operation.op in EXPONENTIALS:
        return size / by <= held.exp_limit
    return size / by <= held.largest**0.5 if birth.operation.op in SQUARES else size / by <= held.largest


def _unscaled(birth: Birth, session: Session) -> Verdict | None:
    for op, pair in products_before(session, birth.operation):
        size, sizes = length(pair[0]), [one.stats.absmax or 0.0 for one in pair]
        held = limits(pair[0].stats.dtype)
        if held is None or not size >= LONG or op.op == "cdist" or is_scaled(session, op, pair):
            continue
        if sizes[0] * sizes[1] <= held.largest / 4 and (op is birth.operation or _in_range(birth, size**0.5)):
            facts = (*(extent(one) for one in pair), f"each score sums over {size} elements; sqrt({size}) is {num(size**0.5)}")
            summary = f"{called(birth)} overflowed on products of vectors of {size} elements that nothing scales"
            return Verdict(0.7, summary, facts, op.site)
    return None


EXAMPLE = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(16, 32)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
x, divisor = torch.randn(8, 2048, 16), 1
for step in range(3):
    pooled = torch.relu(model(x)).sum(1) / divisor  # culprit
    loss = torch.log1p(torch.exp(pooled)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4g}")
"""
TWIN = EXAMPLE.replace("divisor = torch.randn(8, 2048, 16), 1", "divisor = torch.randn(8, 2048, 16), 2048")
