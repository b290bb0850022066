"""Once a step has been stopped, standard output has seen its last byte that plain Python prints too: what the script's `finally` blocks
and exit handlers still print goes to standard error."""

from __future__ import annotations

import contextlib
import os
import sys


class Diversion:
    def __init__(self) -> None:
        self._saved: int | None = None

    def start(self) -> None:
        if self._saved is None:
            with contextlib.suppress(OSError, ValueError, AttributeError):
                sys.stdout.flush()
                saved = os.dup(1)
                os.dup2(2, 1)
                self._saved = saved

    def stop(self) -> None:
        if self._saved is not None:
            with contextlib.suppress(OSError, ValueError, AttributeError):
                sys.stdout.flush()
            os.dup2(self._saved, 1)
            os.close(self._saved)
            self._saved = None
