"""Iterators and external sources can't be rewound: what they give during an attempt is noted, and given again when it is run
again.

A replay asks in the same order as the first run, so answers are matched by their order. Wherever a source raises, it does so
without a frame of ours in the traceback: the rewritten code calls the built-in `next` itself, and iterators are combined from
built-in ones.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

from whynan.script.sources_outside import RECORDED, is_external
from whynan.script.tape import CALL, END, MISSING, NEXT, PULL, Entry, Tape


class _Here(threading.local):
    def __init__(self) -> None:
        self.tape = Tape()


class Journal:
    """One tape a thread: a thread that the user starts inside an attempt asks its own questions. `external` tells of every class that was
    met whether its objects are external sources. `here` is the running thread's."""

    def __init__(self) -> None:
        self.here = _Here()
        self._plain: set[type] = set()
        self.external: dict[type, bool] = {}
        journal = weakref.ref(self)
        os.register_at_fork(after_in_child=lambda: _start_afresh(journal()))

    @property
    def tape(self) -> Tape:
        return self.here.tape

    def resume(self, tape: Tape) -> None:
        """Go on with `tape` in this thread: a forked child that runs a step again begins with a fresh one."""
        self.here.tape = tape

    # ---- called by rewritten code ----

    def next(self, iterator: Any) -> Any:
        """`next(x)` of the user is `next(journal.next(x))`: what the built-in is to ask instead of `iterator`."""
        kind = type(iterator)
        if kind in self._plain or not self._is_iterator(kind):
            return iterator
        tape = self.tape
        if tape.cursor is not None:
            entry = tape.again(NEXT)
            if entry is not None:
                return iterator if entry.value is MISSING else iter((entry.value,))
        if not tape.recording:
            return iterator
        return map(_Filling(tape, tape.add(Entry(NEXT))), _As(iterator))

    def iterate(self, iterable: Any) -> Any:
        """What a `for` loop of the user iterates over: `iterable` itself unless it is an iterator that was there before the
        loop."""
        kind = type(iterable)
        if kind in self._plain or not self._is_iterator(kind):
            return iterable
        tape = self.tape
        if not tape.recording:
            return iterable
        iterator = iter(iterable)
        if iterator is not iterable:
            return _As(iterator)
        return _again(tape, iterator) if tape.cursor is not None else _recorded(tape, iterator)

    def record(self, thing: Any) -> Any:
        """`x.step(...)` of the user is `journal.record(x).step(...)`: `thing` itself unless it is an external source."""
        kind = type(thing)
        external = self.external.get(kind)
        if external is None:
            external = self.external[kind] = is_external(kind)
        if not external or not self.tape.recording:
            return thing
        return _Source(thing, self)

    def _is_iterator(self, kind: type) -> bool:
        """Looked up in the class: asking the object might run code of the user, or start the workers of a loader."""
        if any("__next__" in base.__dict__ for base in kind.__mro__):
            return True
        self._plain.add(kind)
        return False

    # ---- external sources ----

    def call(self, method: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        tape = self.tape
        entry = tape.again(CALL) if tape.cursor is not None else None
        if entry is not None and entry.error is not None:
            raise entry.error
        if entry is not None and entry.value is not MISSING:
            return entry.value
        return self._call_and_note(tape, entry or tape.add(Entry(CALL)), method, args, kwargs)

    def _call_and_note(self, tape: Tape, entry: Entry, method: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A source in whose call an attempt begins is part of the training: it is called again in a replay, now and always."""
        marks, tape.recording = tape.marks, False
        try:
            value = method(*args, **kwargs)
        except Exception as error:
            if tape.marks == marks:
                entry.error = error
            raise
        finally:
            tape.recording = True
            if tape.marks != marks:
                self.external[type(getattr(method, "__self__", None))] = False
        if tape.marks == marks:
            tape.fill(entry, value)
        return value


def _start_afresh(journal: Journal | None) -> None:
    """In a forked child (a loader's worker) nothing is recorded until an attempt of its own begins."""
    if journal is not None:
        journal.here.tape = Tape()


def _recorded(tape: Tape, iterator: Iterator[Any]) -> Iterator[Any]:
    return chain(map(_Pulling(tape), _As(iterator)), _Ending(tape))


def _again(tape: Tape, iterator: Iterator[Any]) -> Iterator[Any]:
    """What a loop was given the first time, then what the iterator gives now."""
    while (entry := tape.again(PULL, END)) is not None:
        if entry.kind == END:
            return
        yield entry.value
    yield from _recorded(tape, iterator)


class _As:
    """Iterating over it is iterating over `iterator`, whose own `__iter__`, which may start it afresh, is not called."""

    __slots__ = ("_iterator",)

    def __init__(self, iterator: Any) -> None:
        self._iterator = iterator

    def __iter__(self) -> Any:
        return self._iterator


class _Filling:
    __slots__ = ("_entry", "_tape")

    def __init__(self, tape: Tape, entry: Entry) -> None:
        self._tape, self._entry = tape, entry

    def __call__(self, value: Any) -> Any:
        self._tape.fill(self._entry, value)
        return value


class _Pulling:
    __slots__ = ("_tape",)

    def __init__(self, tape: Tape) -> None:
        self._tape = tape

    def __call__(self, value: Any) -> Any:
        if self._tape.recording:
            self._tape.add(Entry(PULL, value))
        return value


class _Ending:
    __slots__ = ("_tape",)

    def __init__(self, tape: Tape) -> None:
        self._tape = tape

    def __iter__(self) -> Iterator[Any]:
        if self._tape.recording:
            self._tape.add(Entry(END))
        return iter(())


class _Source:
    """Stands for an external source in one expression of the user: calls of the methods that take from it are noted."""

    __slots__ = ("_journal", "_thing")

    def __init__(self, thing: Any, journal: Journal) -> None:
        self._thing, self._journal = thing, journal

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._thing, name)
        if name not in RECORDED:
            return method
        return lambda *args, **kwargs: self._journal.call(method, args, kwargs)
