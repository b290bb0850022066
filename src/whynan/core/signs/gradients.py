"""Parameters that are not trained although an optimizer holds them."""

from __future__ import annotations

from collections.abc import Sequence

from whynan.core.signs.sign import Sign

FEW = 20  # measured steps below which nothing can be said
LONG = 150  # steps: a run may begin with a phase that leaves some parameters out
DIED, NEVER = 40, 100  # steps, for one that was trained before and for one that never was


class ParameterWithoutGradient(Sign):
    """`never`: the numbers of the parameters that had no gradient in any measured step."""

    name = "parameter-without-gradient"

    def __init__(self) -> None:
        super().__init__()
        self.never: set[int] | None = None
        self._first = self._measured = 0

    def add(self, step: int, missing: Sequence[int]) -> bool:
        """Whether there is something to say; it is said by `name_them`."""
        if self.never is None:
            self.never, self._first = set(missing), step
        elif self.never:
            self.never.intersection_update(missing)
        self._measured += 1
        return bool(self.never) and self.text is None and self._measured >= FEW and step - self._first >= LONG

    @property
    def at_the_end(self) -> bool:
        """Whether it is to be said of a run that is over."""
        return bool(self.never) and self.text is None and self._measured >= FEW

    def name_them(self, step: int, names: Sequence[str], together: int) -> None:
        """`names`: of the first of `together`."""
        listed = ", ".join(names) + (f" and {together - len(names)} more" if together > len(names) else "")
        have, they, them = ("have", "they", "them") if together > 1 else ("has", "it", "it")
        self.say(
            step,
            f"{listed} {have} never had a gradient in {step - self._first + 1} steps, although the optimizer holds {them}: {they} will "
            f"not learn. Use {them} in the loss (is something detached?), or leave {them} out",
        )


class DeadLayer(Sign):
    """Weights whose whole gradient is exactly 0, while that of others is not."""

    name = "dead-layer"

    def __init__(self) -> None:
        super().__init__()
        self._alive_at: dict[int, int] = {}
        self._since: dict[int, tuple[int, int]] = {}

    def add(self, step: int, norms: Sequence[tuple[int, float]]) -> int | None:
        """`norms`: (number of a weight, norm of its gradient). The number of one that is dead; it is said by `name_it`."""
        if not any(norm for _, norm in norms):
            return None
        for number, norm in norms:
            if norm != 0:
                self._alive_at[number] = step
                self._since.pop(number, None)
                continue
            first, count = self._since.get(number, (step, 0))
            self._since[number] = first, count + 1
            enough = DIED if number in self._alive_at else NEVER
            if self.text is None and count + 1 >= min(enough, FEW * 2) and step - first >= enough:
                return number
        return None

    def name_it(self, step: int, number: int, name: str) -> None:
        first, count = self._since[number]
        before = "" if number not in self._alive_at else ", but not before"
        self.say(
            step,
            f"the gradient of {name} has been exactly 0 in all {count} steps measured since step {first}{before}: the layer is dead. "
            f"Look for units that are never active (a too high learning rate, a large negative bias) or gradients too small for the dtype",
        )
