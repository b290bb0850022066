"""A learning rate that rises without end."""

from __future__ import annotations

from itertools import pairwise
from math import log

from whynan.core.signs.sign import Sign, shown

LONG = 80  # steps
TIMES = 10.0
EXPONENTIAL = 0.95  # how its growth in the later half compares with the earlier one's; a warm-up levels off
RAISED_RATIO = 0.05
KEPT = 64


class RateRising(Sign):
    """It never fell, has risen to the last, and either grows by the same factor again and again or has brought the updates above what is
    healthy. A warm-up does neither: it adds the same amount, so that its factor falls, and ends before the updates are large."""

    name = "rate-rising"

    def __init__(self) -> None:
        super().__init__()
        self._points: list[tuple[int, float]] = []
        self._at = -1
        self._ratio: float | None = None

    def add(self, step: int, rate: float) -> None:
        points = self._points
        if points and rate == points[-1][1]:
            self._at = step
            return
        if points and rate < points[-1][1] or not rate > 0:
            points.clear()
        points.append((step, rate))
        self._at = step
        if len(points) > KEPT:
            del points[1:-1:2]

    def judge(self, step: int, update_ratio: float | None) -> None:
        """`update_ratio`: the median of the last ones."""
        points = self._points
        if len(points) < 8 or step - points[0][0] < LONG or not self._still_rises():
            return
        first, last = points[0], points[-1]
        grown = last[1] / first[1]
        fast = update_ratio is not None and update_ratio > RAISED_RATIO and grown >= 3
        if fast or grown >= TIMES and self._by_a_factor():
            how = f" and an update now changes the parameters by {update_ratio:.1%}" if fast and update_ratio is not None else ""
            self.say(
                step,
                f"the learning rate has risen in every step for {step - first[0]} steps, from {shown(first[1])} to {shown(last[1])}{how}. "
                f"If the schedule has no end the run diverges: check it, and bound the rate",
            )

    def _still_rises(self) -> bool:
        """Not at rest for longer than it usually was between two rises."""
        gaps = [b[0] - a[0] for a, b in pairwise(self._points)]
        return self._at - self._points[-1][0] <= 2 * max(gaps)

    def _by_a_factor(self) -> bool:
        first, last = self._points[0], self._points[-1]
        middle = min(self._points[1:-1], key=lambda point: abs(point[0] - (first[0] + last[0]) / 2))
        early = log(middle[1] / first[1]) / max(middle[0] - first[0], 1)
        return log(last[1] / middle[1]) / max(last[0] - middle[0], 1) >= EXPONENTIAL * early > 0
