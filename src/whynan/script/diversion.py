"""Once a step has been stopped, standard output has seen its last byte that plain Python prints too: what the script's `finally` blocks
and exit handlers still print goes to standard error, and nobody is shown the exception of ours that ends a thread."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

from whynan.core.backend import Passing


class Diversion:
    def __init__(self) -> None:
        self._saved: int | None = None
        self._undo: list[Callable[[], None]] = []

    def start(self) -> None:
        if not self._undo:
            self._quiet(threading, "excepthook")
            self._quiet(sys, "unraisablehook")
            with contextlib.suppress(OSError, ValueError, AttributeError):
                sys.stdout.flush()
                saved = os.dup(1)
                os.dup2(2, 1)
                self._saved = saved

    def stop(self) -> None:
        while self._undo:
            self._undo.pop()()
        if self._saved is not None:
            with contextlib.suppress(OSError, ValueError, AttributeError):
                sys.stdout.flush()
            with contextlib.suppress(OSError):  # the script may have closed it
                os.dup2(self._saved, 1)
                os.close(self._saved)
            self._saved = None

    def _quiet(self, owner: Any, name: str) -> None:
        original = getattr(owner, name)

        def hook(args: Any) -> None:
            if not isinstance(args.exc_value, Passing):
                original(args)

        setattr(owner, name, hook)
        self._undo.append(lambda: setattr(owner, name, original))
