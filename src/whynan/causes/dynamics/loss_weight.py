"""A component of the loss whose weight makes its gradient dwarf the others.

What happens
    A loss is the sum of several terms, and one of them is multiplied by a number of 100 or 10,000: a penalty, a coordinate loss, a
    divergence. Its gradient is then as many times larger than that of the rest.

Why it gives NaN or Inf
    The learning rate suits the loss without that factor. With it every update is too large by the same factor, and the run diverges
    as with a rate that is too high.

How to recognise it
    In a healthy early step the weighted component's gradient norm is tens of times that of all others, but without its weight it is
    of their size. With its gradient switched off the same steps stay finite.

How to fix it
    Lower the weight until the gradient norms are within a factor of ten of each other, ramp it up over the first steps, or bound what
    the component may contribute (clip its gradient, not its value).

When this diagnosis is wrong
    If the component is as large without its weight, its own scale is the mistake: look at its targets and at what it sums over.

References
    Chen et al.: GradNorm, Gradient Normalization for Adaptive Loss Balancing (2018)
"""

from __future__ import annotations

from whynan.causes._components import gradients, measured, without_it
from whynan.causes._words import num
from whynan.core.catalogue import Advice, Cause, Verdict
from whynan.core.session import Birth, Session
from whynan.core.trials import WITHOUT_LARGEST

CAUSE = Cause(
    name="loss-weight",
    title="a component of the loss whose weight makes its gradient dwarf the others",
    level="run",
    course=True,
    trials=(WITHOUT_LARGEST,),
    why="The rate suits the loss without that weight; with it every update is too large by as much, and the run diverges.",
    doubt="Wrong if the component is that large without its weight: then its own scale is the mistake.",
    remedies=(
        Advice("lower-loss-weight", "Lower the weight until the components' gradient norms are within a factor of ten of each other."),
        Advice("ramp-up-loss-weight", "Raise the weight from 0 over the first few hundred steps."),
    ),
)
DWARFS = 20.0  # times the gradient of all other components
WEIGHT = 10.0


def probe(birth: Birth, session: Session) -> Verdict | None:
    components = measured(birth, session)
    if not components:
        return None
    largest, *others = components
    norm, weight = largest.norm or 0.0, abs(largest.weight)
    rest = sum(one.norm or 0.0 for one in others)
    typical = max((one.norm or 0.0) / max(abs(one.weight), 1e-12) for one in others)
    relative = weight / max((abs(one.weight) for one in others), default=1.0)
    if norm < DWARFS * rest or weight < WEIGHT or relative < WEIGHT:
        return None
    more, facts = without_it(session)
    own = norm / weight <= 3 * WEIGHT * typical  # without the weight it would be of the others' size
    summary = f"{largest.name} counts {num(weight)} times, and its gradient is {num(norm / rest)} times that of the rest of the loss"
    evidence = (gradients(components), f"without its weight it would be {num(norm / weight)}", *facts)
    return Verdict((0.86 if own else 0.6) + more, summary, evidence, largest.site)


EXAMPLE = """
import torch
from torch import nn

torch.manual_seed(0)
trunk, classes, box = nn.Sequential(nn.Linear(16, 64), nn.ReLU()), nn.Linear(64, 4), nn.Linear(64, 4)
model = nn.ModuleList([trunk, classes, box])
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
x, labels, boxes = torch.randn(64, 16), torch.randint(0, 4, (64,)), torch.rand(64, 4)
for step in range(40):
    features = trunk(x)
    classification = nn.functional.cross_entropy(classes(features), labels)
    regression = nn.functional.mse_loss(box(features), boxes)
    loss = classification + 1000 * regression  # culprit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4g}")
"""
TWIN = EXAMPLE.replace("1000 * regression", "regression")
