"""Which state of a random generator a body that is run again has to find. Most bodies draw nothing: theirs is not copied every time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

STILL = 32  # runs in a row that found the same state, after which it is looked at now and then only
PAUSE = 15  # runs without a look
CHANGES = 8  # different states in a row after which they are no longer compared


class Draws:
    """Of one place and the generators whose state `take` copies; `same` compares two such states.

    A state is that of the last look. Only a run that drew since, which the next look shows, makes it another one than a run began with:
    of a place that hardly ever draws, two runs within `PAUSE` of each other. `pause`: how many more runs there are before that look;
    `last` is what it found. (Where time is short they are read and counted down in place.)
    """

    __slots__ = ("_changes", "_same", "_still", "_take", "last", "pause")

    def __init__(self, take: Callable[[], Any], same: Callable[[Any, Any], bool]) -> None:
        self._take, self._same = take, same
        self.last: Any = None
        self.pause = self._still = self._changes = 0

    def state(self) -> Any:
        """What a run that begins now finds."""
        if self.pause:
            self.pause -= 1
        elif self._changes > CHANGES:
            self.last = self._take()
        else:
            self._look()
        return self.last

    def _look(self) -> None:
        before, self.last = self.last, self._take()
        if before is not None and self._same(before, self.last):
            self._still, self._changes = self._still + 1, 0
            self.pause = PAUSE if self._still >= STILL else 0
        else:
            self._still, self._changes = 0, self._changes + (before is not None)
