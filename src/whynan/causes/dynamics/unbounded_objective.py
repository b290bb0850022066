"""An objective without a minimum.

What happens
    The loss rewards a number for being large and nothing holds it back: a critic without a Lipschitz constraint, the energies of
    contrastive divergence without a penalty, a reward, a variance or an entropy that is maximised, a hinge without its clamp.

Why it gives NaN or Inf
    The lowest loss lies at infinity. Every update moves the weights further out, each layer multiplies the growth of the one
    before, and at last a product overflows. A lower rate only takes longer.

How to recognise it
    The loss is negative and its magnitude grows by orders, or it goes on falling in a straight line. A loss with a minimum
    flattens out, and one that a high rate drives apart grows upwards.

How to fix it
    Constrain what is maximised: a gradient penalty or spectral normalisation for a critic, a penalty on squared energies, a
    hinge or a log-sigmoid in place of the bare score, bounds on a learned standard deviation.

When this diagnosis is wrong
    If the loss is a likelihood whose scale ran to zero, bound that scale: see scale-collapse.

References
    Gulrajani et al.: Improved Training of Wasserstein GANs (2017)
    Du, Mordatch: Implicit Generation and Modeling with Energy-Based Models (2019)
"""

from __future__ import annotations

import itertools

from whynan.causes._conditions import is_of_data
from whynan.causes._course import LAST, by_turn, finite, straight
from whynan.causes._flow import downstream
from whynan.causes._functions import divides_by_zero, subject
from whynan.causes._words import num
from whynan.causes.dynamics import scale_collapse
from whynan.core.catalogue import Advice, Cause, Verdict
from whynan.core.records import Site
from whynan.core.session import Birth, Session

CAUSE = Cause(
    name="unbounded-objective",
    title="an objective without a minimum",
    level="run",
    course=True,
    why="The lowest loss lies at infinity, so every update moves the weights further out until a product overflows.",
    doubt="Wrong if the loss is a likelihood whose scale ran to zero: then that scale is to be bounded.",
    remedies=(
        Advice("constrain-objective", "Constrain what is maximised: a gradient penalty, spectral normalisation, bounds on its size."),
        Advice("bounded-score", "Put a function with a limit around the score (a hinge, logsigmoid), or add a penalty on its square."),
    ),
)
ORDERS = 100.0  # times the first losses: no logarithm of a float falls as far
FALLEN = 10.0
TORN = 4  # steps
DATA = frozenset({"input", "param", "buffer"})


def probe(birth: Birth, session: Session) -> Verdict | None:
    if birth.op in DATA or is_of_data(birth, session) or divides_by_zero(birth.operation) or not _overflowed(birth):
        return None
    if scale_collapse.probe(birth, session) is not None:
        return None
    courses = by_turn(session.trend.steps, _signed(session))
    found = (_fallen(birth, session, steps, values) for steps, values in courses)
    return next((verdict for verdict in found if verdict is not None), None)


def _fallen(birth: Birth, session: Session, steps: list[int], values: list[float | None]) -> Verdict | None:
    losses = _until_torn(finite(values))
    if len(losses) < LAST:
        return None
    start = max(abs(loss) for loss in losses[:3])
    least = min(losses[-LAST:])
    still = least < 0 and least <= 0.3 * min(losses) and max(losses[-LAST:]) < -least  # neither turned round nor driven apart
    if still and start and -least > ORDERS * start:
        return _verdict(0.94, birth, session, losses, f"the loss fell from {num(losses[0])} to {num(least)}")
    if still and -least > FALLEN * start and straight(steps, values):
        return _verdict(0.7, birth, session, losses, f"the loss went on falling in a straight line, from {num(losses[0])} to {num(least)}")
    return None


def _overflowed(birth: Birth) -> bool:
    return birth.from_infinity or any(out.inf for out in birth.operation.outputs)


def _signed(session: Session) -> list[float | None]:
    """The losses, turned round where the optimizer maximises them."""
    groups = [group for optimizer in session.optimizers for group in optimizer.groups]
    sign = -1.0 if groups and all(group.get("maximize") is True for group in groups) else 1.0
    return [None if loss is None else sign * loss for loss in session.trend.loss]


def _until_torn(losses: list[float]) -> list[float]:
    """Without the last few, in which weights out of range may throw it anywhere."""
    lowest = losses.index(min(losses)) if losses else 0
    before = losses[max(lowest + 1 - LAST, 0) : lowest + 1]
    falling = all(later < earlier for earlier, later in itertools.pairwise(before))
    return losses[: lowest + 1] if falling and len(losses) - lowest <= TORN else losses


def _verdict(confidence: float, birth: Birth, session: Session, losses: list[float], summary: str) -> Verdict:
    facts = [f"loss: {num(losses[0])} at first, {num(min(losses))} at least, in {len(losses)} recorded steps; it has no minimum"]
    norms = finite(session.trend.grad_norm)
    facts += [f"gradient norm: {num(norms[0])} at first, {num(max(norms[-LAST:]))} in the last steps"] if norms else []
    return Verdict(confidence, f"{summary}, and nothing bounds it", tuple(facts), _formed(birth, session))


def _formed(birth: Birth, session: Session) -> Site | None:
    """Where the loss is formed: the last single number that was made of what was born, or of what its derivative belongs to."""
    function = subject(birth, session)
    if function is None:
        return None
    made = [function, *downstream(session, function.index)]
    single = (op for op in reversed(made) if op.outputs and op.outputs[0].numel == 1 and op.op != "ones_like")  # that is backward's own
    return next((op.site for op in single if op.site), None)


EXAMPLE = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.5)
penalty = 0.0
for step in range(200):
    real, fake = torch.randn(32, 2) + 2, torch.randn(32, 2)
    real_score, fake_score = model(real), model(fake)
    held = penalty * torch.cat([real_score, fake_score]).abs().clamp(max=1e6).pow(2).mean()
    loss = (fake_score - real_score).mean() + held  # culprit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4g}")
"""
TWIN = EXAMPLE.replace("penalty = 0.0", "penalty = 0.5")
