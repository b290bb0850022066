"""Runs a source in which `hit()` stands for the moment something is found: the innermost attempt around it is run again.

What the source hands to `seen(...)` in the first run of that attempt has to be the same in the second, up to `hit()`.
"""

from __future__ import annotations

import copy
import sys
import textwrap
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from whynan.core.backend import Hit, Replayed, Stopped
from whynan.script.hooks import NAME, Hooks
from whynan.script.rewrite import rewrite_source
from whynan.script.runtime import Runtime
from whynan.script.sites import SiteTable


@dataclass
class Outcome:
    """`first` and `again`: what each run of the attempt saw. `error`: what ended the program, None for a hit."""

    first: list[Any] = field(default_factory=list)
    again: list[Any] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    replays: int = 0
    error: BaseException | None = None
    names: dict[str, Any] = field(default_factory=dict)
    sites: SiteTable = field(default_factory=SiteTable)


class Backend:
    """`out`: how many attempts out from the innermost the one to be run again lies. `hit(quietly=True)`: it is asked for only
    when it has ended, without an exception."""

    watching = True

    def __init__(self, outcome: Outcome, out: int) -> None:
        self.outcome, self.out = outcome, out
        self.found: Any = None
        self.runtime: Any = None
        self.log: dict[int, list[Any]] = {}
        self.replaying = False

    def enter(self, attempt: Any) -> None:
        self.log[id(attempt)] = []

    def leave(self, attempt: Any, error: BaseException | None) -> bool:
        return attempt is self.found

    def loop_left(self) -> None:
        pass

    def expect_replay(self) -> None:
        pass

    def begin_replay(self, attempt: Any) -> None:
        self.outcome.first, self.replaying = self.log[id(attempt)], True
        self.outcome.replays += 1

    def close_trace(self) -> None:
        self.replaying = False

    def end_replay(self, attempt: Any, error: BaseException | None, reasons: list[str]) -> None:
        self.outcome.reasons = reasons
        raise Stopped

    def give_up(self, doing: str, error: BaseException) -> None:
        raise AssertionError(doing) from error

    def seen(self, *values: Any) -> None:
        kept = copy.deepcopy(values)
        if self.replaying:
            self.outcome.again.append(kept)
            return
        for attempt in self.runtime.stack:
            self.log[id(attempt)].append(kept)

    def hit(self, quietly: bool = False) -> None:
        if self.replaying:
            raise Replayed
        self.found = self.runtime.stack[-1 - self.out]
        if not quietly:
            raise Hit


def replayed(source: str, out: int = 0, **names: Any) -> Outcome:
    outcome = Outcome()
    backend = Backend(outcome, out)
    backend.runtime = runtime = Runtime(outcome.sites, backend)  # type: ignore[arg-type]
    module = ModuleType("user")
    module.__file__, namespace = "user.py", module.__dict__
    namespace |= {"seen": backend.seen, "hit": backend.hit, NAME: Hooks(runtime), **names}
    limits: list[str] = []
    code = rewrite_source(textwrap.dedent(source), "user.py", {"hit"}, outcome.sites, limit=limits.append)
    assert limits == []
    outcome.sites.executing("user.py", namespace)
    sys.modules["user"] = module
    try:
        exec(code, namespace)
    except BaseException as error:
        outcome.error = None if isinstance(error, Stopped) else error
    finally:
        del sys.modules["user"]
    outcome.names = namespace
    return outcome


def assert_sees_the_same(source: str, out: int = 0, **names: Any) -> Outcome:
    """The second run of the attempt saw what the first one saw, and nothing stood in the way."""
    outcome = replayed(source, out, **names)
    assert outcome.error is None, outcome.error
    assert outcome.replays == 1
    assert outcome.first, "the source shows nothing"
    assert outcome.again == outcome.first
    assert outcome.reasons == []
    return outcome
