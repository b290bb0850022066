"""Ten small steps with a known birth, with which `whynan doctor` tries the recorder on this machine."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import torch

from whynan.core.locate import locate
from whynan.core.session import Birth, Reproduced, Seed, Session, What
from whynan.torch.trace import Trace

Step = Callable[[torch.Tensor], torch.Tensor]


@dataclass(frozen=True, slots=True)
class KnownBirth:
    """`step` computes a loss from a leaf of shape (4,), whose values are `start`; `op` is where it goes wrong."""

    name: str
    step: Step
    start: tuple[float, ...]
    op: str
    direction: str
    what: What


KNOWN = (
    KnownBirth("log of zero", lambda w: torch.log(w).sum(), (0.0, 1, 2, 3), "log", "forward", "loss"),
    KnownBirth("zero divided by zero", lambda w: (w / w).sum(), (0.0, 1, 2, 3), "div", "forward", "loss"),
    KnownBirth("overflow of exp", lambda w: torch.exp(w * 50).sum(), (1.0, 1, 2, 3), "exp", "forward", "loss"),
    KnownBirth("root of a negative number", lambda w: torch.sqrt(w).sum(), (-1.0, 1, 2, 3), "sqrt", "forward", "loss"),
    KnownBirth("fully masked row", lambda w: w.masked_fill(w < 9, -torch.inf).softmax(0).sum(), (1.0, 1, 2, 3), "softmax", "forward", "loss"),  # noqa: E501
    KnownBirth("slope of the root at zero", lambda w: torch.sqrt(w * w).sum(), (0.0, 1, 2, 3), "div", "backward", "gradient"),
    KnownBirth("slope of a power at zero", lambda w: (w**0.5).sum(), (0.0, 1, 2, 3), "pow", "backward", "gradient"),
    KnownBirth("variance of one element", lambda w: w[:1].std() + w.sum(), (1.0, 1, 2, 3), "std", "forward", "loss"),
    KnownBirth("infinity minus infinity", lambda w: (w * 3e38 - w * 3e38).sum(), (2.0, 1, 2, 3), "mul", "forward", "loss"),
    KnownBirth("half-precision overflow", lambda w: w.half().mul(60000).sum().float(), (2.0, 1, 1, 1), "mul", "forward", "loss"),
)  # fmt: skip


def find(known: KnownBirth) -> Birth | None:
    """Run the step under the recorder and locate its birth."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _find(known)


def _find(known: KnownBirth) -> Birth | None:
    leaf = torch.tensor(known.start, requires_grad=True)
    trace = Trace()
    trace.know(leaf, "parameter")
    with trace.where, trace:
        loss = known.step(leaf)
        if known.what == "gradient":
            trace.where.engine_frames.append(None)
            loss.backward()  # type: ignore[no-untyped-call]
    bad = leaf.grad if known.what == "gradient" else loss
    assert bad is not None
    seed = Seed(known.what, known.name, trace.last_writer(bad))
    operations = trace.finished({}, {})
    return locate(Session(0, known.what, seeds=(seed,), operations=operations, replay=Reproduced(0.0)))
