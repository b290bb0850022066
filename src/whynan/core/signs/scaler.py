"""A gradient scaler that skips one step after another."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from whynan.core.signs.sign import Sign

IN_A_ROW, LOW = 8, 128.0  # steps in a row, by which the scale has fallen so low
AT_FIRST, LOWEST = 14, 4.0  # the same before the first step that was not skipped: a scale may begin much too high
WINDOW, SHARE = 60, 0.3
FOUND = 40  # steps after which the scale has been found


class ScalerSkipping(Sign):
    """Skipping a step now and then is how a scale is found."""

    name = "scaler-skipping"

    def __init__(self) -> None:
        super().__init__()
        self._last = deque[bool](maxlen=WINDOW)
        self._count = self._in_a_row = 0
        self._has_stepped = False

    def add(self, step: int, skipped: bool, scale: Callable[[], float]) -> None:
        self._count += 1
        self._in_a_row = self._in_a_row + 1 if skipped else 0
        self._has_stepped |= not skipped
        if self._count > FOUND:
            self._last.append(skipped)
        often = len(self._last) == WINDOW and sum(self._last) > SHARE * WINDOW
        enough, low = (IN_A_ROW, LOW) if self._has_stepped else (AT_FIRST, LOWEST)
        if self._in_a_row >= enough and scale() <= low:
            what = f"the gradient scaler has skipped the last {self._in_a_row} steps"
        elif often:
            what = f"the gradient scaler has skipped {sum(self._last)} of the last {WINDOW} steps"
        else:
            return
        self.say(
            step,
            f"{what}, its scale is down to {scale():g}: gradients overflow whatever the scale, and nothing is learned in these steps. "
            f"Compute what overflows in float32, or train in bfloat16",
        )
