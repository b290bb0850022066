"""Updates that are large beside what they change."""

from __future__ import annotations

from collections import deque
from statistics import median

from whynan.core.signs.rising import Blocks
from whynan.core.signs.sign import Sign

HIGH, RAISED = 0.3, 0.1
BLOCKS = 5
TIMES = 3.0  # that a ratio which is merely raised has grown
FIRST = 40  # steps: small fresh parameters are changed much


class UpdateRatioHigh(Sign):
    """`recent`: the median of the last block."""

    name = "update-ratio-high"

    def __init__(self) -> None:
        super().__init__()
        self.recent: float | None = None
        self._blocks, self._medians = Blocks(), deque[float](maxlen=BLOCKS)

    def add(self, step: int, ratio: float) -> None:
        block = self._blocks.add(step, ratio)
        if block is None:
            return
        self.recent = block[1]
        self._medians.append(block[1])
        if step < FIRST or len(self._medians) < BLOCKS:
            return
        first, last, least = self._medians[0], block[1], min(self._medians)
        grown = least >= first and last >= TIMES * first and last >= RAISED
        if (least >= HIGH and last >= 0.9 * median(self._medians)) or (grown and list(self._medians) == sorted(self._medians)):
            self.say(
                step,
                f"every update changes the parameters by about {last:.0%} of their own size; 0.01 % to 1 % is healthy. "
                f"The learning rate is too high for them: try a tenth of it",
            )
