"""Does a noisy quantity rise steadily? Answered from medians over short stretches of the run, in bounded memory."""

from __future__ import annotations

import math
from itertools import pairwise
from statistics import median

FULL = 8  # values of a block
SPARSE, LONG = 3, 24  # so few are enough where they span so many steps
KEPT = 64
DIP = 0.15  # of the rise so far that a block may lie below the highest


class Blocks:
    """Medians of consecutive values. Values that are not finite are passed over."""

    def __init__(self) -> None:
        self._steps: list[int] = []
        self._values: list[float] = []

    def add(self, step: int, value: float) -> tuple[int, float] | None:
        """The (last step, median) of the block that this value completes."""
        if not math.isfinite(value):
            return None
        self._steps.append(step)
        self._values.append(value)
        count = len(self._values)
        if count < FULL and (count < SPARSE or step - self._steps[0] < LONG):
            return None
        found = step, median(self._values)
        self._steps.clear()
        self._values.clear()
        return found


class Rise:
    """The present stretch of blocks, (step, value) each, in which the quantity did not fall; `highest`: of all blocks before it."""

    def __init__(self) -> None:
        self.points: list[tuple[int, float]] = []
        self.highest = -math.inf
        self._top = -math.inf
        self._blocks = Blocks()

    def add(self, step: int, value: float) -> bool:
        """Whether a block was completed."""
        block = self._blocks.add(step, value)
        if block is None:
            return False
        if self.points and block[1] < self._top - max(1e-9, DIP * self.amount):
            self.highest, self._top, self.points = max(self.highest, self._top), -math.inf, []
        self.points.append(block)
        self._top = max(self._top, block[1])
        if len(self.points) > KEPT:
            self._forget_one()
        return True

    def _forget_one(self) -> None:
        """The point whose neighbours are nearest to each other: what is flat is remembered coarsely."""
        points = self.points
        del points[min(range(1, len(points) - 1), key=lambda i: points[i + 1][1] - points[i - 1][1])]

    @property
    def amount(self) -> float:
        return self._top - self.points[0][1] if self.points else 0.0

    @property
    def start(self) -> tuple[int, float]:
        """The point from which it went up: the last that was about as low as the first."""
        low = self.points[0][1] + DIP * self.amount
        return next(point for point in reversed(self.points) if point[1] <= low)

    @property
    def last(self) -> tuple[int, float]:
        return self.points[-1]

    def is_steady(self, blocks: int, late: float = 0.35, leap: float = 0.6) -> bool:
        """Whether at least so many blocks went up, none of them made more than `leap` of the way alone, and it does not level off: the
        later half of the steps made at least the share `late` of the way."""
        begin = self.start
        climb = self.points[self.points.index(begin) :]
        way = climb[-1][1] - begin[1]
        if len(climb) <= blocks or way <= 0 or climb[-1][1] < self._top:
            return False
        middle = (begin[0] + climb[-1][0]) / 2
        half = max(value for step, value in climb if step <= middle)
        steepest = max(b[1] - a[1] for a, b in pairwise(climb))
        return climb[-1][1] - half >= late * way and steepest <= leap * way

    @property
    def pace(self) -> float:
        """By how much a step it rises, over the later half of the way."""
        begin = self.start
        climb = self.points[self.points.index(begin) :]
        middle = climb[len(climb) // 2] if len(climb) > 2 else climb[0]
        steps = climb[-1][0] - middle[0]
        return (climb[-1][1] - middle[1]) / steps if steps else 0.0
