"""One term of the loss that dwarfs the others."""

from __future__ import annotations

from collections.abc import Sequence

from whynan.core.signs.sign import Sign, shown

TIMES = 1000.0
LOOKS, STEPS = 30, 50
SHARE = 0.9
MEANT = 0.1  # a term with a weight below it is meant to be small


class LossComponentDominates(Sign):
    name = "loss-component-dominates"

    def __init__(self) -> None:
        super().__init__()
        self._looks: dict[str, int] = {}
        self.looks, self._first = 0, 0

    def add(self, step: int, terms: Sequence[tuple[str, float, float]]) -> None:
        """`terms`: (name, value as it stands in the sum, its weight)."""
        if not self.looks:
            self._first = step
        self.looks += 1
        ranked = sorted((abs(value), name, weight) for name, value, weight in terms if value)
        if len(ranked) < 2 or ranked[-1][0] <= TIMES * ranked[-2][0] or abs(ranked[-2][2]) < MEANT:
            return
        largest, name, _ = ranked[-1]
        self._looks[name] = self._looks.get(name, 0) + 1
        if self._looks[name] >= max(LOOKS, SHARE * self.looks) and step - self._first >= STEPS:
            self.say(
                step,
                f"the term {name} of the loss is {shown(largest)}, the next largest ({ranked[-2][1]}) {shown(ranked[-2][0])}: more than "
                f"{TIMES:.0f} times as much in {self._looks[name]} of {self.looks} steps looked at. The others hardly count: weigh them",
            )
