"""`__whynan__`: the one name that rewritten code uses. It stands in the globals of every rewritten module."""

from __future__ import annotations

import builtins
import threading
from typing import Any

from whynan.core.backend import Passing

NAME = "__whynan__"


class Again(Passing):
    """Raised by an attempt's `__exit__` after a body that ended without an exception (at its end, or by `return` or `break`), to
    have it run again. The rewritten code catches it right outside the `with`."""


class Hooks:
    """The functions of a runtime, bound once so that a call costs one attribute look-up.

    `here` holds the attempt that a loop of a module is about to start, one a thread: a name of its own among the module's globals
    would be the user's to see. `globals` is the built-in one even where the user has a variable of that name.
    """

    Again = Again

    def __init__(self, runtime: Any) -> None:
        self.here = threading.local()
        self.globals = builtins.globals
        self.attempts, self.passing, self.leaving = runtime.attempts, runtime.passing, runtime.leaving
        self.next, self.iterate, self.record = runtime.next, runtime.iterate, runtime.record

    def __reduce__(self) -> Any:
        """A function that is pickled by value (cloudpickle, joblib) runs plainly where it is loaded."""
        return plain_hooks, ()


class PlainAttempt:
    """A body that runs once and is never run again."""

    replaying = False

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


PLAIN = (PlainAttempt(),)


class PlainRuntime:
    """What rewritten code needs in a process that is not watched."""

    def attempts(self, _site: int, _live: dict[str, Any]) -> tuple[PlainAttempt, ...]:
        return PLAIN

    def passing(self) -> None:
        pass

    leaving = passing

    def _unchanged(self, thing: Any) -> Any:
        return thing

    next = iterate = record = _unchanged


def plain_hooks() -> Hooks:
    return Hooks(PlainRuntime())
