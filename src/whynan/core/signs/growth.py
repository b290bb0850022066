"""Quantities that grow without end: the loss, the gradient norm, a parameter. All in powers of ten."""

from __future__ import annotations

from math import log10

from whynan.core.signs.rising import Rise
from whynan.core.signs.sign import Sign, shown

BLOCKS = 5
SMALL = 1e-3  # below it nothing is called large, however much it grew
NEGATIVE_SMALL = 0.1


class LossGrowing(Sign):
    """A positive loss that has risen steadily, above all it ever was."""

    name = "loss-growing"
    DECADES, ABOVE = 1.5, 1.0

    def __init__(self) -> None:
        super().__init__()
        self._rise = Rise()

    def add(self, step: int, loss: float) -> None:
        rise = self._rise
        if not rise.add(step, log10(max(loss, SMALL))):
            return
        if rise.amount >= self.DECADES and rise.last[1] >= rise.highest + self.ABOVE and rise.is_steady(BLOCKS):
            first, value = rise.start
            self.say(
                step,
                f"the loss has been rising steadily, from {shown(10**value)} around step {first} to {shown(loss)}: the run diverges. "
                f"Try a lower learning rate, and look at the terms of the loss for one that has no bound",
            )


class LossUnbounded(Sign):
    """A loss that falls below zero ever faster: its objective has no minimum."""

    name = "loss-unbounded"
    DECADES = 2.0

    def __init__(self) -> None:
        super().__init__()
        self._rise = Rise()

    def add(self, step: int, loss: float) -> None:
        rise = self._rise
        if not rise.add(step, log10(max(-loss, NEGATIVE_SMALL))):
            return
        if rise.amount >= self.DECADES and rise.last[1] >= rise.highest + 1 and rise.is_steady(BLOCKS, late=0.42):
            self.say(
                step,
                f"the loss falls below zero ever faster, it is {shown(loss)} now: what is minimised seems to have no minimum. "
                f"Bound it: clip or penalise what can grow, or bound the parameter that makes it fall",
            )


class GradientNormGrowing(Sign):
    """A gradient norm that has risen steadily, above all it ever was, and not only because a step or two were large."""

    name = "gradient-norm-growing"
    DECADES, ABOVE = 2.0, 0.5

    def __init__(self) -> None:
        super().__init__()
        self._rise = Rise()

    def add(self, step: int, norm: float) -> None:
        rise = self._rise
        if not rise.add(step, log10(max(norm, SMALL))):
            return
        if rise.amount >= self.DECADES and rise.last[1] >= rise.highest + self.ABOVE and rise.is_steady(BLOCKS, late=0.42):
            first, value = rise.start
            self.say(
                step,
                f"the gradient norm has been growing steadily, from {shown(10**value)} around step {first} to {shown(norm)}. "
                f"If it goes on the run diverges: lower the learning rate, or clip the gradient norm",
            )


class ParameterRunningAway(Sign):
    """A parameter that has moved ever further from where it began while the loss falls below zero, or does not fall.

    Where a loss that can't be negative falls meanwhile, the parameter may be on its way to where it belongs."""

    name = "parameter-running-away"
    LARGE, TIMES = 10.0, 10.0

    def __init__(self, first: float) -> None:
        """`first`: its size when training began."""
        super().__init__()
        self._rise, self._loss = Rise(), Rise()
        self._first = first

    def add(self, step: int, size: float, loss: float | None) -> bool:
        """`size`: root mean square. Whether there is something to say; it is said by `name_it`."""
        rise = self._rise
        if loss is not None:
            self._loss.add(step, loss)
        if not rise.add(step, size) or size < self.LARGE or size < self.TIMES * self._first:
            return False
        falls = loss is not None and loss >= 0 and not self._loss.amount > 0
        return rise.last[1] >= rise.highest and rise.is_steady(BLOCKS) and not falls

    def name_it(self, step: int, parameter: str, size: float) -> None:
        self.say(
            step,
            f"{parameter} moves away from where it began without stopping, its values are about {shown(size)} now (at first "
            f"{shown(self._first)} or less): the loss seems to have no minimum in it. Bound it (clamp, softplus) or penalise its size",
        )
