"""Processes that the program starts: what they train is not watched, and the report says so."""

from __future__ import annotations

import functools
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from typing import Any

from whynan.torch.guard import UNGUARDED, Guard


class Children:
    """`started`: processes of the program's own; those that end with it (a loader's or a pool's workers) do not count."""

    def __init__(self, guard: Guard = UNGUARDED) -> None:
        self._guard = guard
        self.started = 0
        self._undo: list[Callable[[], None]] = []

    def install(self) -> None:
        original = BaseProcess.start

        @functools.wraps(original)
        def start(process: Any) -> None:
            self._guard("noting a process", self._note, process)
            original(process)

        kind: Any = BaseProcess
        kind.start = start
        self._undo.append(lambda: setattr(BaseProcess, "start", original))

    def uninstall(self) -> None:
        while self._undo:
            self._undo.pop()()

    def _note(self, process: Any) -> None:
        self.started += not process.daemon

    @property
    def limit(self) -> str | None:
        if not self.started:
            return None
        started = "a process of its own" if self.started == 1 else f"{self.started} processes of its own"
        return f"the program started {started}: what is trained there is not watched (start each rank as `whynan run`, by torchrun)"
