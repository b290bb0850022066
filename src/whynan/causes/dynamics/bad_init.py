"""An initialisation that lets activations grow from layer to layer.

What happens
    Weights are drawn with a spread that does not shrink with the width of the layer (N(0, 1)), or a deep stack has no
    normalisation, so every layer enlarges its input by the same factor.

Why it gives NaN or Inf
    A factor of 8 a layer is 8**n after n layers: 43 layers exceed float32, 6 exceed float16. The gradient grows the same way
    backwards.

How to recognise it
    In the first step, before any update, the magnitudes of successive linear layers grow by a steady factor until one
    overflows.

How to fix it
    Use a scaled initialisation (kaiming_normal_, xavier_uniform_: a spread of about 1 / sqrt(width)), normalisation layers,
    or residual branches that start near 0.

When this diagnosis is wrong
    If the inputs of the first layer are already that large, their scale is the mistake.

References
    He et al.: Delving Deep into Rectifiers (2015)
    Glorot, Bengio: Understanding the difficulty of training deep feedforward neural networks (2010)
"""

from __future__ import annotations

import itertools

from whynan.causes._functions import LINEAR
from whynan.causes._words import num
from whynan.core.catalogue import Advice, Cause, Verdict
from whynan.core.records import Operation, Site
from whynan.core.session import Birth, Session

CAUSE = Cause(
    name="bad-init",
    title="an initialisation that lets activations grow from layer to layer",
    level="run",
    why="Each layer enlarges its input by the same factor, so the magnitude grows exponentially with depth.",
    doubt="Wrong if the inputs of the first layer are already that large.",
    remedies=(
        Advice("scaled-initialisation", "Use a scaled initialisation, for example nn.init.kaiming_normal_(w)."),
        Advice("normalisation-layers", "Put a normalisation layer between the layers of the stack."),
    ),
)
LAYERS = 5  # fewer do not show a trend
FACTOR = 1.8
STEADY = 0.8  # share of the layers that have to grow


def probe(birth: Birth, session: Session) -> Verdict | None:
    if session.step > 1 or birth.op in ("input", "param", "buffer") or birth.direction == "optimizer":
        return None
    if not any(out.inf for out in birth.operation.outputs):
        return None
    sizes = _sizes(session, birth.operation)
    ratios = [later / earlier for earlier, later in itertools.pairwise(sizes)]
    if len(ratios) < LAYERS:
        return None
    typical = sorted(ratios)[len(ratios) // 2]
    growing = sum(ratio > 1 for ratio in ratios) / len(ratios)
    if typical < FACTOR or growing < STEADY or sizes[-1] < 1e3 * sizes[0]:
        return None
    facts = (
        f"{len(sizes)} linear layers, largest magnitudes from {num(sizes[0])} to {num(sizes[-1])}",
        f"growth a layer, in the median: {num(typical)}",
        f"no more than {session.step} updates have been made",
    )
    summary = f"activations grow {num(typical)}-fold a layer, over {len(sizes)} layers, before training has begun"
    return Verdict(0.9, summary, facts, site=_made(session, birth.operation))


def _made(session: Session, birth: Operation) -> Site | None:
    """Where the weights of the last layer before the birth were initialised."""
    layers = (op for op in reversed(session.operations[: birth.index + 1]) if op.op in LINEAR)
    names = (one.name for op in layers for one in op.inputs if one.source == "parameter" and len(one.stats.shape) > 1)
    return next((session.made[name] for name in names if name in session.made), None)


def _sizes(session: Session, birth: Operation) -> list[float]:
    """The largest magnitudes put out by the linear layers up to the birth, each with a parameter of its own."""
    sizes, seen = [], set[str]()
    for op in session.operations:
        if op.index > birth.index or op.direction != "forward" or op.op not in LINEAR or not op.outputs:
            continue
        weights = {one.name or str(one.identity) for one in op.inputs if one.source == "parameter"}
        size = op.outputs[0].absmax
        if weights and not weights & seen and size:
            sizes.append(size)
        seen |= weights
    return sizes


EXAMPLE = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(*(nn.Linear(64, 64, bias=False) for _ in range(50)))
scale = 1.0
for layer in model:
    nn.init.normal_(layer.weight, 0.0, scale)  # culprit
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
x, y = torch.randn(8, 64), torch.randint(0, 64, (8,))
for step in range(2):
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4g}")
"""
TWIN = EXAMPLE.replace("scale = 1.0", "scale = 64**-0.5")
