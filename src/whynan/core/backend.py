"""The protocols through which a backend, the script runner and the recorder meet; none of them knows the others' types."""

from __future__ import annotations

from typing import Any, Protocol

from whynan.core.incident import Incident, Run


class Passing(BaseException):
    """Something of ours on its way through the user's frames. No `except Exception` sees it."""


class Hit(Passing):
    """Something harmful was found: back to the attempt that is to be run again."""


class Replayed(Passing):
    """The replay has met the same quantity again; the rest of the body need not run."""


class Rerun(Passing):
    """In a child that tries something: the body runs once more."""


class Stopped(Passing):
    """An incident has been recorded; the run ends."""


class Attempt(Protocol):
    """One run of a loop body or function body that can be run again."""

    replaying: bool


class StepBackend(Protocol):
    """What the script runner asks of a framework around an attempt."""

    @property
    def watching(self) -> bool: ...

    def enter(self, attempt: Any) -> Any:
        """Note what a replay needs (random state, sequence number); the result is kept as `attempt.noted`."""

    def leave(self, attempt: Any, error: BaseException | None) -> bool:
        """Tell whether this attempt is to be run again now. Also called when nothing is watched any more."""

    def loop_left(self) -> None:
        """The user's code leaves a loop by `break` or `return`."""

    def expect_replay(self) -> None:
        """A body is about to run again: keep what is known, while files can still be written."""

    def begin_replay(self, attempt: Any) -> None:
        """Put the framework's state back as it was on entry and start to record."""

    def close_trace(self) -> None:
        """Stop recording."""

    def end_replay(self, attempt: Any, error: BaseException | None, reasons: list[str]) -> None:
        """Locate and report; `reasons` says what of the attempt could not be put back. Raises `Stopped`."""

    def replay_failed(self, attempt: Any, fault: Exception) -> None:
        """A fault of ours while a step was run again: report without a place. Raises `Stopped`."""

    def give_up(self, doing: str, error: BaseException) -> None:
        """A fault of ours: tell it in one line and stop watching."""


class Recorder(Protocol):
    """Where a backend puts what it found; it must never raise into the user's run."""

    run: Run
    steps: list[tuple[int, float | None, float | None, float | None, float | None]]
    """Rows that wait to be written. Where time is short they are added here; a call of `step` now and then sees to the writing."""

    def step(self, row: tuple[int, float | None, float | None, float | None, float | None]) -> None:
        """`row`: step, loss, gradient norm, update ratio, learning rate; None for what was not measured."""

    def warning(self, step: int, name: str, text: str) -> None:
        """An early sign that the run goes wrong, told while training goes on."""

    def expected(self, incident: Incident) -> None:
        """What is known of an incident before its step is run again."""

    def incident(self, incident: Incident, write_artifacts: Any) -> None:
        """The whole of it, in place of what was expected."""

    def withdraw(self) -> None:
        """What was expected turned out to be none."""
