"""A recurrence that multiplies by the same weight at every time step until it overflows.

What happens
    A recurrent network is unrolled over a long sequence. Each time step multiplies the state, and in the backward pass the
    gradient, by the same matrix; nothing normalises in between and nothing clips the gradient.

Why it gives NaN or Inf
    If the matrix enlarges some direction by a factor above 1, the factor is taken to the power of the length: 1.3 over 400 steps
    exceeds float32. One such gradient ruins the weights even where it is still finite.

How to recognise it
    The same weight is read by many products in a row, and their results, or the gradients on the way back through them, grow
    from one time step to the next; or the gradient norm jumps a thousandfold while the loss is still moderate.

How to fix it
    Clip the gradient's norm before each update, cut the sequence (truncated backpropagation), start from an orthogonal matrix,
    and use gated cells or a layer norm in the recurrence.

When this diagnosis is wrong
    If updates were too large from the start, they have made the matrix large: see lr-too-high.

References
    Pascanu, Mikolov, Bengio: On the Difficulty of Training Recurrent Neural Networks (2013)
    Le, Jaitly, Hinton: A Simple Way to Initialize Recurrent Networks of Rectified Linear Units (2015)
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

from whynan.causes._course import jumped, typical_ratio_before, when_clipped
from whynan.causes._floats import limits
from whynan.causes._recurrence import TIMES, fused, gradients, recurrences
from whynan.causes._words import num
from whynan.core.catalogue import Advice, Cause, Verdict
from whynan.core.records import Operation
from whynan.core.session import Birth, Session
from whynan.core.trials import CLIPPED

CAUSE = Cause(
    name="exploding-rnn",
    title="a recurrence that multiplies by the same weight at every time step until it overflows",
    level="run",
    trials=(CLIPPED,),
    why="The factor by which one time step enlarges the state or the gradient is taken to the power of the sequence's length.",
    doubt="Wrong if updates were too large from the start: then they have made the recurrent weight large.",
    remedies=(
        Advice("clip-gradient-norm", "Clip the norm of the gradient before each update (torch.nn.utils.clip_grad_norm_)."),
        Advice("truncate-backpropagation", "Detach the state every few dozen time steps."),
        Advice("orthogonal-recurrence", "Initialise the recurrent matrix orthogonally, and normalise the state or use a gated cell."),
    ),
)
GROWN, STEADY = 1e3, 0.7  # overall, and the share of the time steps that have to grow
LARGE_UPDATE = 0.15


def probe(birth: Birth, session: Session) -> Verdict | None:
    found = _found(birth, session)
    return found and replace(found, evidence=(*found.evidence, *when_clipped(session)))


def _found(birth: Birth, session: Session) -> Verdict | None:
    if birth.op in ("input", "buffer") or birth.direction == "optimizer":
        return None
    inside = _through_kernel(birth, session)
    if inside is not None or not _overflowed(birth):
        return inside
    chains = list(recurrences(session))
    found = (_in_time(birth, session, chain) for chain in chains)
    grown = next((verdict for verdict in found if verdict is not None), None)
    return grown or _jumped(session, chains)


def _overflowed(birth: Birth) -> bool:
    return birth.from_infinity or any(out.inf for out in birth.operation.outputs)


def _in_time(birth: Birth, session: Session, chain: list[Operation]) -> Verdict | None:
    if birth.direction == "backward":
        sizes, what = gradients(session, chain), "gradients grow"
    else:
        sizes = [op.outputs[0].absmax for op in chain if op.index <= birth.operation.index and op.outputs]
        what = "the state grows"
    known = [size for size in sizes if size]
    ratios = [later / earlier for earlier, later in itertools.pairwise(known)]
    if len(known) < TIMES or max(known) < GROWN * known[0] or sum(ratio > 1 for ratio in ratios) < STEADY * len(ratios):
        return None
    factor = num(sorted(ratios)[len(ratios) // 2])
    span = f"largest magnitudes from {num(known[0])} to {num(known[-1])}, by {factor} a time step in the median"
    facts = (f"{len(chain)} products in a row read the same weight", span)
    return Verdict(_confidence(session, 0.93), f"{what} {factor}-fold a time step, over {len(known)} steps", facts, chain[-1].site)


def _through_kernel(birth: Birth, session: Session) -> Verdict | None:
    """One kernel runs over the whole sequence: what its derivative was given against what it gave."""
    back = birth.operation
    op, length = next((found for found in fused(session) if found[0].index == back.forward), (None, 0))
    given = max((one.stats.absmax or 0.0 for one in back.inputs if one.role.startswith("grad")), default=0.0)
    held = limits(back.outputs[0].dtype) if back.outputs else None
    if op is None or length < TIMES or held is None or not 0 < given < held.largest / GROWN:
        return None
    facts = (f"the gradient behind {op.op} reaches {num(given)}, before it more than {num(held.largest)}", f"{length} time steps")
    summary = f"gradients grew from {num(given)} until they overflowed, over {length} time steps"
    return Verdict(_confidence(session, 0.93), summary, facts, op.site)


def _jumped(session: Session, chains: Sequence[list[Operation]]) -> Verdict | None:
    """The weights were ruined before this step: the gradient had jumped while the loss was moderate."""
    lengths = [(chain[-1], len(chain)) for chain in chains] + [one for one in fused(session) if one[1] >= TIMES]
    jump = jumped(session, GROWN)
    if not lengths or jump is None:
        return None
    recurrent, length = max(lengths, key=lambda one: one[1])
    usual, norm, loss = jump
    before = f"gradient norm: {num(usual)} in the median, then {num(norm)}" if usual else f"gradient norm: {num(norm)}"
    facts = (f"{before} at a loss of {num(loss)}", f"a sequence of {length} steps")
    summary = f"the gradient through {length} time steps reached {num(norm)} while the loss was {num(loss)}"
    return Verdict(_confidence(session, 0.92), summary, facts, recurrent.site)


def _confidence(session: Session, full: float) -> float:
    return full if typical_ratio_before(session, GROWN) <= LARGE_UPDATE else 0.62


EXAMPLE = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.RNNCell(4, 32, nonlinearity="relu")
gain = 2.0
nn.init.orthogonal_(model.weight_hh, gain)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-5)
x = torch.randn(200, 8, 4)
for step in range(3):
    state = torch.zeros(8, 32)
    for t in range(200):
        state = model(x[t], state)  # culprit
    loss = nn.functional.smooth_l1_loss(state, torch.ones(8, 32))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4g}")
"""
TWIN = EXAMPLE.replace("gain = 2.0", "gain = 0.9")
