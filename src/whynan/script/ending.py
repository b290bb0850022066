"""How a program ended, shown to the user as plain Python shows it."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Literal

from whynan.core.backend import Passing

INTERRUPTED = 130
OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
BELOW = "sys" if sys.version_info < (3, 13) else "<sys>"  # the file name of the frame below the program's own


@dataclass(frozen=True, slots=True)
class Ending:
    """`code` is what plain Python's exit status would be. `stopped`: an incident ended it, `error` is then ours."""

    kind: Literal["returned", "exit", "raised", "interrupted", "stopped"]
    code: int
    error: BaseException | None = None


def ending_of(error: BaseException | None) -> Ending:
    """How it ended with `error`, after that has been shown."""
    if error is None:
        return Ending("returned", 0)
    if _is_ours(error):
        return Ending("stopped", 0, error)
    if isinstance(error, SystemExit):
        return Ending("exit", exit_code(error), error)
    code = _show(error)
    if isinstance(error, KeyboardInterrupt):
        return Ending("interrupted", INTERRUPTED, error)
    return Ending("raised", code, error)


def _is_ours(error: BaseException) -> bool:
    return isinstance(error, Passing) or (isinstance(error, BaseExceptionGroup) and error.subgroup(Passing) is not None)


def exit_code(error: SystemExit) -> int:
    """The exit status; what is no number is printed and counts as 1."""
    if error.code is None:
        return 0
    if isinstance(error.code, int):
        return int(error.code)
    with contextlib.suppress(Exception):
        print(error.code, file=sys.stderr)
    return 1


def _show(error: BaseException) -> int:
    """Hand an uncaught exception to `sys.excepthook`; the exit status."""
    clean(error)
    trace = error.__traceback__
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, trace
    if sys.version_info >= (3, 12):
        sys.last_exc = error
    try:
        sys.excepthook(type(error), error, trace)
    except SystemExit as left:
        return exit_code(left)
    except BaseException as fault:
        _show_broken_hook(fault, error)
    return 1


def _show_broken_hook(fault: BaseException, error: BaseException) -> None:
    clean(fault)
    fault.__context__ = None if fault.__context__ is error else fault.__context__
    with contextlib.suppress(Exception):
        print("Error in sys.excepthook:", file=sys.stderr)
        sys.__excepthook__(type(fault), fault, fault.__traceback__)
        print("\nOriginal exception was:", file=sys.stderr)
        sys.__excepthook__(type(error), error, error.__traceback__)


def clean(error: BaseException) -> None:
    """Take frames of ours out of the tracebacks of an exception and of those it came from, and what was raised in ours alone."""
    seen: set[int] = set()
    pending: list[BaseException | None] = [error]
    while pending:
        part = pending.pop()
        if part is None or id(part) in seen:
            continue
        seen.add(id(part))
        part.__traceback__ = without_our_frames(part.__traceback__)
        while part.__context__ is not None and _only_ours(part.__context__):
            part.__context__ = part.__context__.__context__
        pending += [part.__cause__, part.__context__]
        if isinstance(part, BaseExceptionGroup):
            pending += part.exceptions


def _only_ours(error: BaseException) -> bool:
    files = []
    trace = error.__traceback__
    while trace is not None:
        files.append(trace.tb_frame.f_code.co_filename)
        trace = trace.tb_next
    return bool(files) and all(map(_is_below, files))


def without_our_frames(trace: TracebackType | None) -> TracebackType | None:
    """The traceback from the first frame of the program to its last: what it called of ours has no place there either."""
    frames = []
    while trace is not None:
        frames.append(trace)
        trace = trace.tb_next
    shown = None
    for frame in reversed([f for f in frames if not _is_below(f.tb_frame.f_code.co_filename)]):
        frame.tb_next = shown
        shown = frame
    return shown


def _is_below(file: str) -> bool:
    return file == BELOW or os.path.abspath(file).startswith(OURS)


def wait_for_threads() -> None:
    """Plain Python ends when the last thread of the program ends that is no daemon.

    The threads of executors that nobody shut down end only when `threading` tells them to, so that comes first, as in its own
    shutdown, which can't be called here: it leaves a process in which hardly anything can be started any more.
    """
    callbacks: list[Callable[[], object]] | None = getattr(threading, "_threading_atexits", None)
    if callbacks is None:
        return
    with contextlib.suppress(KeyboardInterrupt):
        while callbacks:
            with contextlib.suppress(Exception):
                callbacks.pop()()
        while others := [t for t in threading.enumerate() if t is not threading.current_thread() and not t.daemon]:
            for thread in others:
                thread.join()
