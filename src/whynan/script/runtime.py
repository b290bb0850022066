"""The object that rewritten code calls, as `__whynan__`."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable, Sequence
from threading import get_ident
from time import perf_counter
from typing import Any

from whynan.core.backend import Passing, StepBackend, Stopped
from whynan.core.faults import is_ours
from whynan.core.places import user_frame
from whynan.script import random_states
from whynan.script.attempts import Attempt
from whynan.script.capture import NOTHING
from whynan.script.deadline import Deadline
from whynan.script.diversion import Diversion
from whynan.script.handlers import will_be_caught
from whynan.script.hooks import PLAIN, PlainAttempt
from whynan.script.journal import Journal
from whynan.script.settled import SettledAttempt
from whynan.script.silence import Silence
from whynan.script.sites import SiteTable

TEMPORARY = 2  # references to an argument that nobody else holds: the parameter, and that of getrefcount


class Runtime:
    """It captures what a second run of a body needs; the backend decides at a hit which attempt is run again. `spent` is the time, in
    seconds, spent in its hooks; `settled` the attempt of the place whose runs go one like the other, if there is one. `silenced`: this is a
    child in which nobody hears anything, and which somebody else ends."""

    def __init__(self, sites: SiteTable, backend: StepBackend) -> None:
        self.sites, self.backend = sites, backend
        self.journal = Journal()
        self.here = self.journal.here
        self.diversion = Diversion()
        self._known_sources = self.journal.external.get
        self.spent = 0.0
        self.settled: SettledAttempt | None = None
        self.silenced = False

    @property
    def stack(self) -> list[Attempt]:
        """The attempts that are running in this thread, outermost first."""
        return self.here.tape.attempts

    def attempts(self, site_id: int, live: dict[str, Any]) -> Sequence[Attempt | PlainAttempt]:
        """What the rewritten code iterates over."""
        settled = self.settled
        if settled is not None and settled.site_id == site_id and settled.live is NOTHING and settled.thread == get_ident():
            settled.live = live
            return settled.turns
        if self.backend.watching:
            try:
                return Attempt(self, site_id, live).turns
            except Exception as error:
                self.fault("beginning a step", error)
        return PLAIN

    def settle(self, site_id: int, noted: Any, again: Callable[[Any], object], over: Callable[[Any], bool]) -> SettledAttempt:
        """The runs of this place go one like the other from now on, until `unsettle` (see `SettledAttempt`)."""
        self.settled = SettledAttempt(self, site_id, noted, again, over)
        return self.settled

    def unsettle(self) -> None:
        self.settled = None

    def next(self, iterator: Any) -> Any:
        return self._journalled(self.journal.next, iterator)

    def iterate(self, iterable: Any) -> Any:
        """A generator made in the loop's own line is the body's work: it is made again when the body runs again."""
        if sys.getrefcount(iterable) <= TEMPORARY:
            return iterable
        return self._journalled(self.journal.iterate, iterable)

    def record(self, thing: Any) -> Any:
        if self._known_sources(type(thing)) is False:
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

    def hear_nothing(self, keep: Iterable[int]) -> None:
        """From here on nothing that this process prints or writes arrives anywhere, but in the descriptors `keep`. For good."""
        self.silenced = True
        Silence(keep, flushed=True).__enter__()  # by the second run of the step, which has just ended

    def _put_back(self, attempt: Attempt) -> None:
        if not self.silenced:
            attempt.deadline = Deadline(perf_counter() - attempt.started)
        attempt.left = random_states.take()
        if attempt.held:
            attempt.restore()
        self.stack.append(attempt)
        self.journal.resume(attempt.tape)
        attempt.tape.rewind(attempt.position)
        if not self.silenced:
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
