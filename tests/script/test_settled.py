"""A settled place uses one attempt again and again, and only where that can be told from no other run of it."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

import pytest

from tests.script.driver import NullBackend
from whynan.script.runtime import Runtime
from whynan.script.settled import SettledAttempt
from whynan.script.sites import AttemptSite, SiteTable


class Noted:
    """What a backend that has settled a place is told of its runs."""

    def __init__(self) -> None:
        self.runs = 0
        self.alike = True

    def again(self, settled: Any) -> None:
        self.runs += 1


@pytest.fixture
def runtime() -> Runtime:
    table = SiteTable()
    table.add(AttemptSite("train.py", 1, "function", "step", live=("x",)))
    return Runtime(table, NullBackend())


@pytest.fixture
def noted() -> Noted:
    return Noted()


@pytest.fixture
def settled(runtime: Runtime, noted: Noted) -> SettledAttempt:
    return runtime.settle(0, noted, noted.again, lambda settled: noted.alike)


def run(runtime: Runtime, value: object, body: Any = lambda: None) -> Any:
    for attempt in runtime.attempts(0, {"x": value}):
        with attempt:
            body()
    return attempt


def test_one_attempt_serves_all_runs(runtime: Runtime, settled: SettledAttempt, noted: Noted) -> None:
    seen: list[Any] = []
    for value in (1, [2], "three"):
        assert run(runtime, value, lambda: seen.append((list(runtime.stack), dict(settled.names)))) is settled
        assert settled.names == {}  # nothing of the run is kept alive
        assert settled.undo == ()
    assert seen == [([settled], {}), ([settled], {}), ([settled], {})]
    assert noted.runs == 3
    assert runtime.backend.entered == 0


def test_what_a_run_changes_is_noted_each_time(runtime: Runtime, settled: SettledAttempt) -> None:
    for start in ([1], [2, 3]):
        kept = list(start)

        def change(numbers: list[int] = start, kept: list[int] = kept) -> None:
            numbers.append(0)
            settled.restore()
            assert numbers == kept

        assert run(runtime, start, change) is settled


def test_inside_itself_a_place_has_another(runtime: Runtime, settled: SettledAttempt) -> None:
    inner: list[Any] = []
    assert run(runtime, 1, lambda: inner.append(run(runtime, 2))) is settled
    assert inner[0] is not settled
    assert run(runtime, 3) is settled


def test_another_thread_has_another(runtime: Runtime, settled: SettledAttempt) -> None:
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(run(runtime, 1)))
    thread.start()
    thread.join()
    assert found[0] is not settled
    assert run(runtime, 2) is settled


def test_another_place_has_another(runtime: Runtime, settled: SettledAttempt) -> None:
    runtime.sites.add(AttemptSite("train.py", 9, "loop", "main"))
    [other] = runtime.attempts(1, {})
    assert other is not settled


@pytest.mark.parametrize("reason", ["unlike", "error", "unsettled"])
def test_a_run_that_went_otherwise_is_the_last(runtime: Runtime, settled: SettledAttempt, noted: Noted, reason: str) -> None:
    def body() -> None:
        if reason == "error":
            raise KeyError("of the user")
        if reason == "unlike":
            noted.alike = False
        else:
            runtime.unsettle()

    if reason == "error":
        with pytest.raises(KeyError, match="of the user"):
            run(runtime, 1, body)
    else:
        run(runtime, 1, body)
    ran: list[int] = []
    assert run(runtime, 2, lambda: ran.append(1)) is not settled
    assert ran == [1]
    assert runtime.stack == []


@pytest.mark.parametrize("times", [0, 5])
def test_the_time_of_one_run_stands_for_many(runtime: Runtime, settled: SettledAttempt, times: int) -> None:
    settled.times = times
    run(runtime, 1)
    assert (runtime.spent > 0) == bool(times)
    assert settled.times == 0


def test_a_fault_ends_the_watch_and_nothing_else(runtime: Runtime, settled: SettledAttempt, monkeypatch: pytest.MonkeyPatch) -> None:
    def planted(values: Iterable[object]) -> None:
        raise LookupError("planted")

    monkeypatch.setattr("whynan.script.capture.compress", planted)
    ran: list[int] = []
    run(runtime, 1, lambda: ran.append(1))
    assert ran == [1]
    assert not runtime.backend.watching
