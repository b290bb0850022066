"""A step that is run again must end: what it waited for the first time may never come a second time."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import threading
import time

from whynan.core.backend import Passing

GRACE = 5.0  # seconds that an interrupted run may still take
INCIDENT = 3  # exit status
LEAST, TIMES = 60.0, 100  # seconds, and times as long as the first run: what recording may cost, with room to spare


class Overdue(Passing):
    """Raised in the thread that has run a step again for too long."""


class Deadline:
    """`first`: the seconds of the first run. `passed` tells whether the thread that made it was interrupted."""

    def __init__(self, first: float) -> None:
        self.seconds = LEAST + TIMES * first
        self.passed = False
        self._thread = threading.get_ident()
        self._lock = threading.Lock()
        self._over = False
        self._timer = threading.Timer(self.seconds, self._expire)
        self._timer.daemon = True
        self._timer.start()

    def cancel(self) -> None:
        """An interruption that is already on its way is waited for."""
        self._timer.cancel()
        with contextlib.suppress(KeyboardInterrupt, Overdue):
            with self._lock:
                self._over = True
            if self.passed:
                time.sleep(0.01)

    def _expire(self) -> None:
        with self._lock:
            if not self._over:
                self.passed = True
                self._interrupt()
                self._timer = threading.Timer(GRACE, self._leave)
                self._timer.daemon = True
                self._timer.start()

    def _leave(self) -> None:
        """It waits where no exception reaches it (SIGINT is ignored, as under nohup). The incident is on disk."""
        with self._lock:
            if not self._over:
                os._exit(INCIDENT)

    def _interrupt(self) -> None:
        """A signal ends system calls that block, as Ctrl-C does; elsewhere the exception comes with the thread's next instruction."""
        if self._thread == threading.main_thread().ident and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.pthread_kill(self._thread, signal.SIGINT)
        else:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._thread), ctypes.py_object(Overdue))
