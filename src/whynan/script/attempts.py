"""Attempts: bodies of the user's loops and functions that can be run again in their own frame.

`__whynan__`, the object that rewritten code calls, is a `Runtime`. It captures what a second run of the body needs; the backend decides at
a hit which attempt is run again.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from time import perf_counter
from types import TracebackType
from typing import Any

from whynan.core.backend import Passing, StepBackend, Stopped
from whynan.core.faults import is_ours
from whynan.core.places import user_frame
from whynan.script import random_states
from whynan.script.capture import Captured
from whynan.script.deadline import Deadline
from whynan.script.diversion import Diversion
from whynan.script.handlers import will_be_caught
from whynan.script.hooks import PLAIN, Again, PlainAttempt
from whynan.script.journal import Journal
from whynan.script.silence import Silence
from whynan.script.sites import SiteTable
from whynan.script.tape import Tape

NONE: list[Attempt] = []
TEMPORARY = 2  # references to an argument that nobody else holds: the parameter, and that of getrefcount


class Attempt(Captured):
    """One run of one body. `turns` is the list over which the rewritten code iterates while the body runs: the attempt itself, to which it
    adds itself once more if the body is to be run again. `leaving`: it is about to end by `break` or `return`, which leaves the loop.
    `left`: the generators as its first run left them, for training that goes on after the second.
    """

    replaying = leaving = False
    noted: Any = None
    position = 0
    left: random_states.State = ()
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

    def forget_before(self) -> None:
        """No attempt that began earlier will be run again: what iterators gave before it may go."""
        self.tape.forget(self.position)

    def __enter__(self) -> None:
        runtime = self.runtime
        if self.replaying:
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
            runtime.end_replay(self, error)
            return False
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
        turns.append(self)
        if error is None:
            raise Again  # a body that ended by `return` or `break` would leave the loop around it
        return True


class Runtime:
    """What rewritten code calls, as `__whynan__`. `spent` is the time, in seconds, spent in its hooks."""

    def __init__(self, sites: SiteTable, backend: StepBackend) -> None:
        self.sites, self.backend = sites, backend
        self.journal = Journal()
        self.here = self.journal.here
        self.diversion = Diversion()
        self.spent = 0.0

    @property
    def stack(self) -> list[Attempt]:
        """The attempts that are running in this thread, outermost first."""
        return self.here.tape.attempts

    def attempts(self, site_id: int, live: dict[str, Any]) -> Sequence[Attempt | PlainAttempt]:
        """What the rewritten code iterates over."""
        if self.backend.watching:
            try:
                return Attempt(self, site_id, live).turns
            except Exception as error:
                self.fault("beginning a step", error)
        return PLAIN

    def next(self, iterator: Any) -> Any:
        return self._journalled(self.journal.next, iterator)

    def iterate(self, iterable: Any) -> Any:
        """A generator made in the loop's own line is the body's work: it is made again when the body runs again."""
        if sys.getrefcount(iterable) <= TEMPORARY:
            return iterable
        return self._journalled(self.journal.iterate, iterable)

    def record(self, thing: Any) -> Any:
        if self.journal.external.get(type(thing)) is False:
            return thing
        return self._journalled(self.journal.record, thing)

    def _journalled(self, note: Any, thing: Any) -> Any:
        """What stands in for `thing` while it is journalled; none of these calls runs the user's code."""
        try:
            return note(thing)
        except Exception as error:
            self.fault("journalling what an iterator gives", error)
            return thing

    def fault(self, doing: str, error: Exception) -> None:
        """What one of our hooks met: the user's own goes on its way, a fault of ours ends the watch."""
        if not is_ours(error):
            raise error
        if self.backend.watching:
            self.backend.give_up(doing, error)

    def passing(self) -> None:
        """The first statement of the user's handlers that catch everything: what is ours goes on its way."""
        error = sys.exception()
        if isinstance(error, Passing):
            raise error

    def leaving(self) -> None:
        """The statement before a `break` or `return` that leaves a loop whose body is an attempt."""
        stack = self.stack
        if stack and self.backend.watching:
            stack[-1].leaving = True
            try:
                self.backend.loop_left()
            except Exception as error:
                self.fault("leaving a loop", error)

    def will_be_caught(self, attempt: Attempt, error: BaseException) -> bool:
        """Whether the script catches `error`, which is leaving `attempt`, further out and goes on."""
        frame = user_frame(sys._getframe())
        site = attempt.site
        return frame is not None and will_be_caught(error, frame, site.line if site.kind == "loop" else None)

    def begin_replay(self, attempt: Attempt) -> None:
        try:
            self.backend.expect_replay()
            self._put_back(attempt)
            self.backend.begin_replay(attempt)
        except Exception as fault:
            self._abandon(attempt, fault)

    def end_replay(self, attempt: Attempt, error: BaseException | None) -> None:
        try:
            try:
                self.backend.close_trace()
            finally:
                overdue = self._end_silence(attempt)
            while self.stack and self.stack.pop() is not attempt:
                pass
            reasons = [*attempt.reasons, *attempt.tape.reasons]
            self.backend.end_replay(attempt, None if overdue else error, [*overdue, *reasons])
            random_states.put(attempt.left)
            attempt.tape.release()
            attempt.let_go()
        except Exception as fault:
            self._abandon(attempt, fault)

    def _put_back(self, attempt: Attempt) -> None:
        attempt.deadline = Deadline(perf_counter() - attempt.started)
        attempt.left = random_states.take()
        if attempt.held:
            attempt.restore()
        self.stack.append(attempt)
        self.journal.resume(attempt.tape)
        attempt.tape.rewind(attempt.position)
        attempt.silence = Silence()
        attempt.silence.__enter__()

    def _end_silence(self, attempt: Attempt) -> list[str]:
        """-> why the replay was broken off, if it was."""
        deadline, attempt.deadline = attempt.deadline, None
        if deadline is not None:
            deadline.cancel()
        silence, attempt.silence = attempt.silence, None
        try:
            if silence is not None:
                silence.__exit__(None, None, None)
        finally:  # whatever fails, the user hears again
            if silence is not None:
                silence.restore()
            attempt.tape.live()
        return [f"run again, the step had not ended after {deadline.seconds:.0f} s"] if deadline is not None and deadline.passed else []

    def _abandon(self, attempt: Attempt, fault: Exception) -> None:
        """A fault of ours while a step is run again: the incident stands without a place; if not even that can be told, the run stops."""
        with contextlib.suppress(Exception):
            self._end_silence(attempt)
        try:
            self.backend.replay_failed(attempt, fault)
        except Exception as another:
            print(f"whynan: a fault of its own: {type(another).__name__}: {another}", file=sys.__stderr__)
        raise Stopped("a fault of whynan's own")
