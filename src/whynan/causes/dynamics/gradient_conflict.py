"""Components of the loss that pull shared layers in opposite directions.

What happens
    Two terms of a loss share layers, and what lowers one of them raises the other: a reconstruction against an adversary, matching
    against classification. One of the two gradients is much longer.

Why it gives NaN or Inf
    The longer gradient wins every update and drives the other term up without bound, until that term or the weights overflow.

How to recognise it
    On the shared parameters the cosine between the components' gradients is clearly below 0, and their norms differ by a factor of
    two and more. With the longer one switched off the same steps stay finite.

How to fix it
    Weight the components by their gradient norms, project conflicting gradients on each other's normal plane (PCGrad), or give the
    components layers of their own.

When this diagnosis is wrong
    If one component alone diverges as well, the conflict only speeds it up: look at the rate first.

References
    Yu et al.: Gradient Surgery for Multi-Task Learning (2020)
"""

from __future__ import annotations

from whynan.causes._components import gradients, measured, without_it
from whynan.causes._words import num
from whynan.core.catalogue import Advice, Cause, Verdict
from whynan.core.components import Component
from whynan.core.session import Birth, Session
from whynan.core.trials import WITHOUT_LARGEST, Survived

CAUSE = Cause(
    name="gradient-conflict",
    title="components of the loss that pull shared layers in opposite directions",
    level="run",
    course=True,
    trials=(WITHOUT_LARGEST,),
    why="The longer of two opposed gradients wins every update and drives the other component up, until something overflows.",
    doubt="Wrong if one component alone diverges as well: then the rate is too high for it.",
    remedies=(
        Advice("balance-gradient-norms", "Weight the components so that their gradients on the shared layers have about the same norm."),
        Advice("project-conflicting-gradients", "Project conflicting gradients on each other's normal plane (PCGrad, in torchjd)."),
    ),
)
OPPOSED = -0.5  # cosine
LONGER = 2.0


def probe(birth: Birth, session: Session) -> Verdict | None:
    found = _opposed(measured(birth, session))
    if found is None:
        return None
    longer, shorter = found
    more, facts = without_it(session)
    cosine = longer.cosine or 0.0
    alone = isinstance(session.trials.get(WITHOUT_LARGEST.name), Survived)
    pull = "pull the layers that they share in opposite directions"
    summary = f"{longer.name} and {shorter.name} {pull}: the cosine of their gradients is {num(cosine)}"
    evidence = (gradients([longer, shorter]), f"cosine between the first and the rest, on shared parameters: {num(cosine)}", *facts)
    weighted = next((one for one in (shorter, longer) if abs(one.weight) != 1), longer)
    return Verdict((0.84 if alone else 0.55) + more, summary, evidence, weighted.site)


def _opposed(components: list[Component]) -> tuple[Component, Component] | None:
    """The longest gradient and the next, where they are opposed and neither is nothing beside the other."""
    if len(components) < 2:
        return None
    longer, shorter = components[:2]
    ratio = (longer.shared or 0.0) / (shorter.shared or float("inf"))
    if longer.cosine is None or longer.cosine > OPPOSED or not LONGER <= ratio < 1e4:
        return None
    return longer, shorter


EXAMPLE = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
x = torch.randn(64, 8)
wanted = x[:, :1] * 2
for step in range(900):
    out = model(x)
    fit = (out - wanted).pow(2).mean()
    fair = (out + wanted).pow(2).mean()
    loss = fit + 0.4 * fair  # culprit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4g}")
"""
TWIN = EXAMPLE.replace("0.4 * fair", "0.01 * fair")
