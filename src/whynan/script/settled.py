"""The attempt of a place whose runs go one like the other: one object, used again for each of them."""

from __future__ import annotations

from collections.abc import Callable
from threading import get_ident
from time import perf_counter
from types import TracebackType
from typing import TYPE_CHECKING, Any

from whynan.script.attempts import Attempt
from whynan.script.capture import NOTHING

if TYPE_CHECKING:
    from whynan.script.runtime import Runtime


class SettledAttempt(Attempt):
    """In the thread that makes it. `noted` is the backend's, as of other attempts. `again` tells the backend of another run, which then
    needs no `enter`; `over` asks it at the end whether that run went like those before, and needs no `leave`. One that did not is the
    last. While it is not running it holds NOTHING. `times`: how many runs the time of this one stands for; most are not timed.

    In a step of a millisecond making an attempt and what belongs to it anew costs more than whatever else is done about it.
    """

    def __init__(self, runtime: Runtime, site_id: int, noted: Any, again: Callable[[Any], object], over: Callable[[Any], bool]) -> None:
        super().__init__(runtime, site_id, NOTHING)
        self.replaying, self.times = False, 0  # defaults of a class take longer to read
        self.noted, self.again, self.over, self.thread = noted, again, over, get_ident()

    def __enter__(self) -> None:
        if self.replaying:
            super().__enter__()
            return
        start = self.started = perf_counter()
        try:
            self.position = self.tape.begin(self)
            self.capture(start)
            self.again(self)
        except Exception as error:
            self.runtime.fault("entering a step", error)
        if self.times:
            self.runtime.spent += self.times * (perf_counter() - start)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> bool:
        if error is not None or self.replaying or not self.over(self):
            self.runtime.unsettle()
            return super().__exit__(kind, error, trace)
        start = perf_counter() if self.times else 0.0
        tape = self.tape
        stack = tape.attempts
        while stack and stack.pop() is not self:
            pass
        tape.release()
        self.live, self.undo = NOTHING, ()
        if self.times:
            self.runtime.spent += self.times * (perf_counter() - start)
            self.times = 0
        return False
