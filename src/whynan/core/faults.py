"""Whose an exception is that arrives in one of our hooks: a fault of ours, or the user's own, which merely happened to arrive there."""

from __future__ import annotations

import functools
import signal
import sys
from collections.abc import Iterator
from types import CodeType, TracebackType
from typing import Any

ROOM = 200  # frames below the recursion limit within which the recursion, not the hook, is to blame


def is_ours(error: BaseException) -> bool:
    """Not what a signal handler of the user raised, nor the end of a deep recursion of the user's functions."""
    return not _from_signal_handler(error.__traceback__) and not (isinstance(error, RecursionError) and _is_deep())


def _from_signal_handler(trace: TracebackType | None) -> bool:
    codes = set(_codes_of_handlers())
    while trace is not None and codes:
        if trace.tb_frame.f_code in codes:
            return True
        trace = trace.tb_next
    return False


def _codes_of_handlers() -> Iterator[CodeType]:
    for number in signal.valid_signals():
        handler: Any = signal.getsignal(number)
        while isinstance(handler, functools.partial):
            handler = handler.func
        if callable(handler):
            function = getattr(handler, "__func__", handler)
            code = getattr(function, "__code__", None) or getattr(type(function).__call__, "__code__", None)
            if code is not None:
                yield code


def _is_deep() -> bool:
    depth, frame = 0, sys._getframe()
    while frame.f_back is not None:
        depth, frame = depth + 1, frame.f_back
    return depth > sys.getrecursionlimit() - ROOM
