"""What iterators and external sources gave in one thread, in order, since the oldest attempt that may still be run again
began."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

MISSING = object()
NEXT, PULL, END, CALL = "next", "pull", "end", "call"

MAX_BYTES = 256 << 20  # of arrays and tensors held for a replay
MAX_ENTRIES = 1 << 16


class Entry:
    """One answer. `value` stays MISSING where the source raised or was interrupted; `error` is what an external source raised."""

    __slots__ = ("error", "kind", "size", "value")

    def __init__(self, kind: str, value: Any = MISSING) -> None:
        self.kind, self.value, self.size = kind, value, 0
        self.error: BaseException | None = None


class Tape:
    """`position`s count all entries there ever were. `cursor` is the position of the next answer in a replay, None outside of
    one. `entries` are what is kept of it. `attempts`: those that are running in the thread, outermost first."""

    def __init__(self) -> None:
        self.attempts: list[Any] = []
        self.recording = False
        self.cursor: int | None = None
        self.marks = 0
        self.open = 0
        self.reasons: list[str] = []
        self.entries: list[Entry] = []
        self._dropped = 0
        self._bytes = 0

    @property
    def end(self) -> int:
        return self._dropped + len(self.entries)

    def begin(self, attempt: Any) -> int:
        """An attempt begins: everything from here on, which is the position returned, is kept until it is forgotten."""
        self.attempts.append(attempt)
        self.marks += 1
        self.open += 1
        self.recording = True
        return self._dropped + len(self.entries)

    def release(self) -> None:
        """One attempt has ended. After the outermost one nothing is kept."""
        self.open -= 1
        if self.open <= 0 and self.cursor is None:
            self.open, self.recording = 0, False
            if self.entries:
                self.forget(self.end)

    def add(self, entry: Entry) -> Entry:
        entry.size = _size(entry.value)
        self._bytes += entry.size
        self.entries.append(entry)
        if self.cursor is not None:
            self.cursor = self.end
        elif self._bytes > MAX_BYTES or len(self.entries) > MAX_ENTRIES:
            self.forget(self.end - len(self.entries) // 2)
        return entry

    def fill(self, entry: Entry, value: Any) -> None:
        entry.value, entry.size = value, _size(value)
        self._bytes += entry.size

    def forget(self, position: int) -> None:
        """Drop what was given before `position`."""
        count = position - self._dropped
        if count <= 0:
            return
        self._bytes -= sum(entry.size for entry in self.entries[:count])
        del self.entries[:count]
        self._dropped = max(self._dropped, position)

    def load(self, entries: Sequence[Entry]) -> int:
        """These are what there is to be given again; the position of the first."""
        self.entries, self._dropped, self._bytes = list(entries), 0, 0
        return 0

    def since(self, position: int) -> list[Entry]:
        """What was given from `position` on, as far as it is kept."""
        return self.entries[max(position - self._dropped, 0) :]

    def rewind(self, position: int) -> None:
        self.reasons = []
        self.cursor = position
        if position < self._dropped:
            self._lose("what iterators gave at its start is no longer there (more than was kept)")

    def live(self) -> None:
        self.cursor = None

    def again(self, *kinds: str) -> Entry | None:
        """The next answer, if it is of one of `kinds`; None where the source itself has to be asked."""
        if self.cursor is None or self.cursor >= self.end:
            return None
        entry = self.entries[self.cursor - self._dropped]
        if entry.kind not in kinds:
            self._lose("it took another way through its iterators than the first time")
            return None
        self.cursor += 1
        return entry

    def _lose(self, reason: str) -> None:
        """From here on the sources themselves are asked."""
        self.reasons.append(reason)
        self.cursor = self.end


def _size(value: Any) -> int:
    """Bytes of the arrays in a value, a level deep; no code of the user runs."""
    kind = type(value)
    if kind is tuple or kind is list:
        return sum(map(_array_size, value[:16]))
    if kind is dict:
        return sum(map(_array_size, value.values())) if len(value) <= 16 else 0
    return _array_size(value)


def _array_size(value: Any) -> int:
    if type(value).__module__.partition(".")[0] not in ("torch", "numpy"):
        return 0
    try:
        return int(value.nbytes)
    except Exception:
        return 0
