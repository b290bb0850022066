"""Counterfactual steps: what a cause wants to have tried, as data, and how it went."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Trial:
    """The steps that led to the incident, made once more from an earlier state with one change: every learning rate times `rate`; the
    global norm of the gradients at most `norm`; or without the gradient of the loss component that has the largest one."""

    name: str
    rate: float = 1.0
    norm: float | None = None
    without_largest: bool = False


@dataclass(frozen=True, slots=True)
class Survived:
    """All steps stayed finite. Losses as the first and the last of them had them, before their update."""

    steps: int
    loss_first: float | None
    loss_last: float | None


@dataclass(frozen=True, slots=True)
class Failed:
    """A value of this step was not finite."""

    step: int
    loss_first: float | None = None


@dataclass(frozen=True, slots=True)
class Untried:
    reason: str


Outcome = Survived | Failed | Untried

AS_IT_WAS = Trial("as-it-was")
LOWER_RATE = Trial("lower-rate", rate=0.1)
CLIPPED = Trial("clipped-gradients", norm=1.0)
WITHOUT_LARGEST = Trial("without-largest-component", without_largest=True)
