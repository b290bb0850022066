"""While a body runs again, what it prints or writes goes nowhere, and it removes and renames nothing."""

from __future__ import annotations

import builtins
import contextlib
import functools
import gc
import io
import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any

FILES = "/proc/self/fd"
CHANGING = "remove unlink rename renames replace mkdir makedirs rmdir removedirs link symlink truncate chmod utime chown mkfifo"
CHANGING_TREES = "rmtree move copytree copyfile copy copy2 copymode copystat"
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Silence:
    """A context manager. `keep`: descriptors that stay as they are. `flushed`: nothing waits in Python's buffers.

    Standard output and error, and every descriptor that is open for writing only, lead to the null device inside; those open for
    reading too (databases, sockets) are left alone. Standard input is empty. Text in Python's buffers is flushed on both sides: what
    was printed before arrives, what was printed inside does not. Functions that open or change files, or end the process, are
    replaced for the thread that entered; descriptors are the whole process's.
    """

    def __init__(self, keep: Iterable[int] = (), *, flushed: bool = False) -> None:
        self._keep, self._flushed = frozenset(keep), flushed
        self._thread, self._process = threading.get_ident(), os.getpid()
        self._undo: list[Callable[[], object]] = []

    def __enter__(self) -> Silence:
        if not self._flushed:
            flush_all()
        try:
            self._descriptors()
            self._functions()
        except BaseException:
            self.restore()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            flush_all()
        finally:
            self.restore()

    def restore(self) -> None:
        while self._undo:
            with contextlib.suppress(OSError):
                self._undo.pop()()

    # ---- descriptors ----

    def _descriptors(self) -> None:
        silenced = [fd for fd in sorted({1, 2} | _write_only()) if fd not in self._keep]
        null = os.open(os.devnull, os.O_WRONLY)
        self._undo.append(lambda: os.close(null))
        for descriptor in silenced:
            with contextlib.suppress(OSError):  # one of 1 and 2 may be closed
                self._redirect(descriptor, null)
        with contextlib.suppress(OSError):
            empty = os.open(os.devnull, os.O_RDONLY)
            self._undo.append(lambda: os.close(empty))
            self._redirect(0, empty)

    def _redirect(self, descriptor: int, null: int) -> None:
        inheritable = os.get_inheritable(descriptor)
        saved = os.dup(descriptor)
        os.dup2(null, descriptor, inheritable)

        def restore() -> None:
            try:
                os.dup2(saved, descriptor, inheritable)
            finally:
                os.close(saved)

        self._undo.append(restore)

    # ---- functions ----

    def _functions(self) -> None:
        opener, low = builtins.open, os.open
        self._replace(builtins, "open", _open_nowhere(opener))
        self._replace(io, "open", builtins.open)
        self._replace(os, "open", _low_open_nowhere(low))
        for name in CHANGING.split():
            self._replace(os, name, _nothing)
        for name in CHANGING_TREES.split():
            self._replace(shutil, name, _nothing)
        self._replace(os, "_exit", _leave)

    def _replace(self, owner: Any, name: str, function: Any) -> None:
        original = getattr(owner, name, None)
        if original is None:
            return

        @functools.wraps(original)
        def instead(*args: Any, **kwargs: Any) -> Any:
            inside = threading.get_ident() == self._thread and os.getpid() == self._process
            return (function if inside else original)(*args, **kwargs)

        setattr(owner, name, instead)
        self._undo.append(lambda: setattr(owner, name, original))


def _write_only() -> set[int]:
    """Descriptors of this process that are open for writing only; none where the system does not tell."""
    found: set[int] = set()
    with contextlib.suppress(OSError):
        for name in os.listdir(FILES):
            with contextlib.suppress(OSError, ValueError), open(f"/proc/self/fdinfo/{name}") as info:
                flags = next(int(line.split()[1], 8) for line in info if line.startswith("flags:"))
                if flags & os.O_ACCMODE == os.O_WRONLY:
                    found.add(int(name))
    return found


def flush_all() -> None:
    """Empty the buffers of all open files of Python's own classes, text before bytes."""
    files = [f for f in gc.get_objects() if type(f) in (io.TextIOWrapper, io.BufferedWriter)]
    files += [f for f in (sys.stdout, sys.stderr) if f is not None and not any(f is known for known in files)]
    for kind in (io.TextIOWrapper, io.BufferedWriter):
        for file in files:
            if isinstance(file, kind):
                with contextlib.suppress(Exception):
                    kind.flush(file)


def _open_nowhere(opener: Callable[..., Any]) -> Callable[..., Any]:
    def open(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        if isinstance(file, int) or not isinstance(mode, str) or not set(mode) & set("wax+"):
            return opener(file, mode, *args, **kwargs)
        kwargs.pop("opener", None)
        return opener(os.devnull, mode.replace("x", "w"), *args[:4], **kwargs)

    return open


def _low_open_nowhere(low: Callable[..., int]) -> Callable[..., int]:
    def open(path: Any, flags: int, mode: int = 0o777, **kwargs: Any) -> int:
        return low(os.devnull, os.O_RDWR) if flags & WRITING else low(path, flags, mode, **kwargs)

    return open


def _nothing(*args: Any, **kwargs: Any) -> None:
    """Stands for what would change the disk."""


def _leave(status: int) -> None:
    """Stands for `os._exit`: the second run of a body ends, the process does not."""
    raise SystemExit(status)
