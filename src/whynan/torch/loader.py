"""Exact dataset indices of the batch in hand, with workers and shuffling too."""

from __future__ import annotations

import collections
import functools
from collections.abc import Callable
from typing import Any

from whynan.torch.guard import UNGUARDED, Guard


class LoaderWatch:
    """`current` are the dataset indices of the batch given last, None where there are none to name."""

    def __init__(self, guard: Guard = UNGUARDED) -> None:
        self._guard = guard
        self.current: tuple[int, ...] | None = None
        self._undo: list[Callable[[], None]] = []

    def install(self) -> None:
        from torch.utils.data import dataloader

        self._patch(dataloader._BaseDataLoaderIter, "__next__", self._watch_next)
        for kind in (dataloader._BaseDataLoaderIter,):
            self._patch(kind, "_next_index", self._watch_index)

    def uninstall(self) -> None:
        while self._undo:
            self._undo.pop()()

    def _patch(self, owner: Any, name: str, wrap: Callable[[Any], Any]) -> None:
        original = owner.__dict__[name]
        setattr(owner, name, functools.wraps(original)(wrap(original)))
        self._undo.append(lambda: setattr(owner, name, original))

    def _watch_index(self, original: Any) -> Any:
        def _next_index(iterator: Any) -> Any:
            index = original(iterator)
            self._guard("following a loader", self._asked, iterator, index)
            return index

        return _next_index

    def _watch_next(self, original: Any) -> Any:
        def __next__(iterator: Any) -> Any:
            batch = original(iterator)
            self._guard("following a loader", self._gave, iterator)
            return batch

        return __next__

    def _asked(self, iterator: Any, index: Any) -> None:
        iterator.__dict__.setdefault("_whynan_indices", collections.deque()).append(index)

    def _gave(self, iterator: Any) -> None:
        pending = iterator.__dict__.get("_whynan_indices")
        self.current = _plain(pending.popleft()) if pending else None


def _plain(index: Any) -> tuple[int, ...] | None:
    if isinstance(index, (list, tuple)) and all(isinstance(i, int) for i in index):
        return tuple(index)
    return None
