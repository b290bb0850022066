"""How far the values of a narrow number format are from its largest number."""

from __future__ import annotations

from math import log2

from whynan.core.signs.rising import Rise
from whynan.core.signs.sign import Sign, shown

LEFT = 8.0  # bits between the largest value and the limit
LOST = 3.0
SOON = 300  # steps within which the limit is reached at this pace
BLOCKS = 4


class HeadroomShrinking(Sign):
    """`limit`: the largest number of `dtype`; `what` names the values in the plural."""

    name = "headroom-shrinking"

    def __init__(self, what: str, dtype: str, limit: float) -> None:
        super().__init__()
        self._what, self._dtype, self._limit = what, dtype, limit
        self._rise = Rise()

    def add(self, step: int, largest: float) -> None:
        rise = self._rise
        if not 0 < largest < self._limit or not rise.add(step, log2(largest)):
            return
        left = log2(self._limit) - rise.last[1]
        if left > LEFT or rise.amount < LOST or rise.last[1] < rise.highest or not rise.is_steady(BLOCKS):
            return
        if left <= SOON * rise.pace:
            first, value = rise.start
            self.say(
                step,
                f"{self._what} come near to the limit of {self._dtype}: the largest was {shown(2**value)} around step {first} and is "
                f"{shown(largest)} now, {shown(self._limit)} is the end, in about {left / rise.pace:.0f} steps at this pace. "
                f"Bound what grows, or compute it in float32 or bfloat16",
            )
