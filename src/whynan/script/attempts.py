"""Attempts: bodies of the user's loops and functions that can be run again in their own frame.

An attempt captures what a second run of the body needs; the backend decides at a hit which attempt is run again.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from types import TracebackType
from typing import TYPE_CHECKING, Any

from whynan.core.backend import Rerun
from whynan.script import random_states
from whynan.script.capture import Captured
from whynan.script.deadline import Deadline
from whynan.script.hooks import Again
from whynan.script.memory import OTHER, Memory, go_on
from whynan.script.silence import Silence
from whynan.script.tape import Tape

if TYPE_CHECKING:
    from whynan.script.runtime import Runtime

NONE: list[Attempt] = []


class Attempt(Captured):
    """One run of one body. `turns` is the list over which the rewritten code iterates while the body runs: the attempt itself, to which it
    adds itself once more if the body is to be run again. `leaving`: it is about to end by `break` or `return`, which leaves the loop.
    `left`: the generators as its first run left them, for training that goes on after the second. `onward`: what its next run is given,
    which otherwise goes on from where the last one ended.
    """

    OTHER = OTHER
    replaying = leaving = False
    noted: Any = None
    position = 0
    left: random_states.State = ()
    onward: dict[str, Any] | None = None
    silence: Silence | None = None
    deadline: Deadline | None = None

    def __init__(self, runtime: Runtime, site_id: int, live: dict[str, Any]) -> None:
        self.runtime, self.site_id, self.live = runtime, site_id, live
        self.site = runtime.sites.all[site_id]
        self.tape: Tape = runtime.here.tape
        self.turns: list[Attempt] = [self]

    @property
    def batch(self) -> tuple[Any, ...]:
        """What the loop was given for this run."""
        return tuple(self.names[name] for name in self.site.target if name in self.names)

    def remember(self, clone: Callable[[Any], Any]) -> Memory:
        """`clone` gives a copy of a tensor that may be kept, and `OTHER` for what is none."""
        return Memory.of(self, clone)

    def answers(self) -> list[Any]:
        """What iterators and external sources have given this run."""
        return self.tape.since(self.position)

    def go_on(self, values: Mapping[str, Any], random: random_states.State, answers: Sequence[Any]) -> None:
        go_on(self, values, random, answers)

    def forget_before(self) -> None:
        """No attempt that began earlier will be run again: what iterators gave before it may go."""
        self.tape.forget(self.position)

    def __enter__(self) -> None:
        runtime = self.runtime
        if self.replaying:
            if self.onward is not None:
                self.live, self.undo = {**sys._getframe(1).f_locals, **self.onward}, ()
            runtime.begin_replay(self)
            return
        start = self.started = perf_counter()
        try:
            self.position = self.tape.begin(self)
            self.capture(start)
            self.noted = runtime.backend.enter(self)
        except Exception as error:
            runtime.fault("entering a step", error)
        runtime.spent += perf_counter() - start

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> bool:
        runtime, tape, turns = self.runtime, self.tape, self.turns
        self.turns = NONE  # the list holds the attempt, which holds the values of the step
        if self.replaying:
            return self._end_replay(turns, error)
        start = perf_counter()
        stack = tape.attempts
        while stack and stack.pop() is not self:
            pass
        try:
            if runtime.backend.leave(self, error):
                self.replaying = True
            else:
                tape.release()
        except Exception as fault:
            runtime.fault("leaving a step", fault)
        runtime.spent += perf_counter() - start
        if not self.replaying:
            self.let_go()
            return False
        return self._run_again(turns, error)

    def _end_replay(self, turns: list[Attempt], error: BaseException | None) -> bool:
        try:
            self.runtime.end_replay(self, error)
        except Rerun:
            return self._run_again(turns, error)
        return False

    def _run_again(self, turns: list[Attempt], error: BaseException | None) -> bool:
        self.turns = turns
        turns.append(self)
        if error is None:
            raise Again  # a body that ended by `return` or `break` would leave the loop around it
        return True
