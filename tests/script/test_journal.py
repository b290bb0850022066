"""What iterators and sources give is handed through unchanged, noted in attempts, and given again in the same order."""

from __future__ import annotations

import gc
import os
import queue
import socket
import threading
import weakref
from collections.abc import Iterator
from multiprocessing import Pipe
from typing import Any

import pytest

from tests.script.driver import NullBackend
from whynan.script import tape
from whynan.script.hooks import Hooks
from whynan.script.journal import Journal
from whynan.script.runtime import Runtime
from whynan.script.sites import SiteTable


@pytest.fixture
def journal() -> Journal:
    return Journal()


def pulled(journal: Journal, stream: Any, count: int) -> list[Any]:
    """What a `for` loop over it takes before it breaks."""
    taken: list[Any] = []
    for x in journal.iterate(stream):
        taken.append(x)
        if len(taken) == count:
            break
    return taken


def test_nothing_is_wrapped_outside_attempts(journal: Journal) -> None:
    stream, q = iter(range(3)), queue.Queue[int]()
    assert journal.next(stream) is stream
    assert journal.iterate(stream) is stream
    assert journal.record(q) is q


def test_what_is_no_iterator_is_never_wrapped(journal: Journal) -> None:
    class Loader:
        def __iter__(self) -> Iterator[int]:
            raise AssertionError("the loop asks, not the journal")

        def step(self) -> int:
            return 1

    journal.tape.begin(None)
    for thing in ([1], "ab", {1: 2}, range(3), Loader(), None, 5, int):
        assert journal.iterate(thing) is thing
        assert journal.next(thing) is thing
        assert journal.record(thing) is thing


def test_iterator_that_nobody_else_holds_is_not_wrapped() -> None:
    """It is made anew when the body runs again; recording it would hold every batch of an evaluation."""
    runtime = Runtime(SiteTable(), NullBackend())
    hooks = Hooks(runtime)
    runtime.journal.tape.begin(None)
    fresh = [type(thing) for thing in (hooks.iterate(iter([1])), hooks.iterate(x for x in [1]))]
    assert [kind.__name__ for kind in fresh] == ["list_iterator", "generator"]
    held = iter([1])
    assert type(hooks.iterate(held)).__name__ == "chain"


def test_answers_are_given_again_in_order(journal: Journal) -> None:
    a, b = iter(range(10)), iter("abcdef")

    def body() -> list[Any]:
        return [pulled(journal, a, 2), next(journal.next(b)), pulled(journal, b, 9), next(journal.next(b), "end"), next(journal.next(a))]

    next(a)
    position = journal.tape.begin(None)
    first = body()
    assert first == [[1, 2], "a", list("bcdef"), "end", 3]
    for _ in range(2):
        journal.tape.rewind(position)
        assert body() == first
        journal.tape.live()
    assert next(a) == 4
    assert journal.tape.reasons == []


def test_replay_of_an_inner_attempt_starts_at_its_own_mark(journal: Journal) -> None:
    stream = iter(range(10))
    journal.tape.begin(None)
    next(journal.next(stream))
    inner = journal.tape.begin(None)
    assert next(journal.next(stream)) == 1
    journal.tape.rewind(inner)
    assert next(journal.next(stream)) == 1
    assert next(journal.next(stream)) == 2  # the first run had not come that far
    journal.tape.live()


def test_exceptions_of_an_iterator_pass_without_frames_of_ours(journal: Journal) -> None:
    def failing() -> Iterator[int]:
        yield 1
        raise KeyError("inside")

    journal.tape.begin(None)
    for ask in (lambda s: next(journal.next(s)), lambda s: list(journal.iterate(s))):
        stream = failing()
        next(stream)
        with pytest.raises(KeyError) as caught:
            ask(stream)
        names = []
        trace = caught.value.__traceback__
        while trace is not None:
            names.append(trace.tb_frame.f_code.co_filename)
            trace = trace.tb_next
        assert set(names) == {__file__}


def test_value_of_a_finished_generator_is_kept(journal: Journal) -> None:
    def finishing() -> Iterator[int]:
        return "value"
        yield 1

    journal.tape.begin(None)
    stream = finishing()
    with pytest.raises(StopIteration) as caught:
        next(journal.next(stream))
    assert caught.value.value == "value"


def test_iterator_that_starts_afresh_is_started_once(journal: Journal) -> None:
    class Resetting:
        starts = 0

        def __iter__(self) -> Resetting:
            self.starts += 1
            self.n = 0
            return self

        def __next__(self) -> int:
            self.n += 1
            return self.n

    journal.tape.begin(None)
    thing = Resetting()
    assert pulled(journal, thing, 2) == [1, 2]
    assert next(journal.next(thing)) == 3
    assert thing.starts == 1


def test_path_that_differs_is_told(journal: Journal) -> None:
    stream, q = iter(range(10)), queue.Queue[int]()
    q.put(5)
    position = journal.tape.begin(None)
    next(journal.next(stream))
    journal.tape.rewind(position)
    assert journal.record(q).get() == 5
    assert journal.tape.reasons == ["it took another way through its iterators than the first time"]
    journal.tape.live()


def test_what_was_forgotten_is_told(journal: Journal) -> None:
    stream = iter(range(10))
    first = journal.tape.begin(None)
    next(journal.next(stream))
    second = journal.tape.begin(None)
    next(journal.next(stream))
    journal.tape.forget(second)
    journal.tape.rewind(second)
    assert next(journal.next(stream)) == 1
    assert journal.tape.reasons == []
    journal.tape.rewind(first)
    assert next(journal.next(stream)) == 2
    assert "no longer there" in journal.tape.reasons[0]


class Value:
    pass


def test_memory_is_let_go(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = (Value() for _ in range(20))
    journal.tape.begin(None)
    kept = [weakref.ref(next(journal.next(stream))) for _ in range(3)]
    assert all(ref() is not None for ref in kept)
    inner = journal.tape.begin(None)
    last = weakref.ref(next(journal.next(stream)))
    journal.tape.forget(inner)
    assert all(ref() is None for ref in kept)
    journal.tape.release()
    assert last() is not None
    journal.tape.release()
    assert last() is None
    monkeypatch.setattr(tape, "MAX_ENTRIES", 4)
    journal.tape.begin(None)
    many = [weakref.ref(next(journal.next(stream))) for _ in range(10)]
    gc.collect()
    assert sum(ref() is not None for ref in many) <= 4


def test_large_arrays_are_held_within_a_limit(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    np = pytest.importorskip("numpy")
    monkeypatch.setattr(tape, "MAX_BYTES", 10_000)
    stream = ((np.zeros(100), k) for k in range(100))
    journal.tape.begin(None)
    held = [weakref.ref(next(journal.next(stream))[0]) for _ in range(50)]
    assert 2 <= sum(ref() is not None for ref in held) <= 13


def test_queues_connections_and_sockets(journal: Journal) -> None:
    q, simple = queue.Queue[int](), queue.SimpleQueue[int]()
    here, there = Pipe()
    left, right = socket.socketpair()
    for k in range(2):
        q.put(k), simple.put(k), there.send(k), there.send_bytes(b"x"), right.send(b"y")

    def body() -> list[Any]:
        taken: list[Any] = [journal.record(q).get(timeout=1), journal.record(simple).get_nowait()]
        taken += [journal.record(here).recv(), journal.record(here).recv_bytes(), journal.record(left).recv(1)]
        try:
            journal.record(queue.Queue()).get_nowait()
        except queue.Empty:
            taken.append("empty")
        return taken

    position = journal.tape.begin(None)
    first = body()
    assert first == [0, 0, 0, b"x", b"y", "empty"]
    journal.tape.rewind(position)
    assert body() == first
    journal.tape.live()
    assert q.qsize() == 1
    for thing in (here, there, left, right):
        thing.close()


def test_environments_by_their_methods_alone(journal: Journal) -> None:
    class Env:
        calls = 0

        def reset(self) -> str:
            return "reset"

        def step(self, action: int) -> int:
            if action < 0:
                raise ValueError(action)
            Env.calls += 1
            return Env.calls

        def render(self) -> str:
            return "drawn"

    class Scheduler:
        __module__ = "torch.optim.lr_scheduler"
        reset = step = lambda self: 1

    env = Env()
    position = journal.tape.begin(None)

    def body() -> list[Any]:
        with pytest.raises(ValueError, match="-1"):
            journal.record(env).step(-1)
        return [journal.record(env).reset(), journal.record(env).step(1), journal.record(env).render()]

    first = body()
    journal.tape.rewind(position)
    assert body() == first
    assert Env.calls == 1
    scheduler = Scheduler()
    assert journal.record(scheduler) is scheduler


def test_each_thread_has_its_own_tape(journal: Journal) -> None:
    stream = iter(range(10))
    position = journal.tape.begin(None)
    next(journal.next(stream))
    thread = threading.Thread(target=lambda: next(journal.next(stream)))
    thread.start()
    thread.join()
    next(journal.next(stream))
    journal.tape.rewind(position)
    assert [next(journal.next(stream)) for _ in range(2)] == [0, 2]


def test_forked_child_records_nothing(journal: Journal) -> None:
    stream = iter(range(3))
    journal.tape.begin(None)
    child = os.fork()
    if child == 0:
        os._exit(0 if journal.next(stream) is stream else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert journal.next(stream) is not stream


def test_journal_can_be_let_go() -> None:
    journal = Journal()
    gone = weakref.ref(journal)
    del journal
    gc.collect()
    assert gone() is None
