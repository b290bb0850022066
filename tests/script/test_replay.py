"""A body that is run again starts from the state that it started from, whatever it binds, changes or takes from iterators."""

from __future__ import annotations

from typing import Any

import pytest

from tests.script.replaying import assert_sees_the_same, replayed


def in_function(source: str) -> str:
    """The same loop inside a function, where names are local."""
    lines = source.strip("\n").splitlines()
    return "def program():\n" + "\n".join("    " + line for line in lines) + "\n\n\nprogram()\n"


BODIES = {
    "counter": """
        step = 0
        for k in range(5):
            step += 1
            seen(k, step)
            if k == 3:
                hit()
        """,
    "carried state": """
        h = [0.0]
        for k in range(5):
            h = [h[0] * 2 + k]
            seen(h)
            if k == 3:
                hit()
        """,
    "batch fetched at the end of the body": """
        source = iter(range(100))
        x = next(source)
        for k in range(5):
            seen(k, x)
            x = next(source)
            seen(x)
            if k == 2:
                hit()
            x = x * 1
        """,
    "name bound for the first time": """
        for k in range(1):
            try:
                fresh
            except NameError:
                fresh = 1
                seen("fresh")
            else:
                seen("there already")
            fresh += 1
            hit()
        """,
    "name deleted": """
        x = 1
        for k in range(3):
            seen(x)
            del x
            x = k
            if k == 1:
                del x
                hit()
        """,
    "containers": """
        from collections import Counter, OrderedDict, defaultdict, deque
        q, losses, best, met, raw = deque(range(9), 9), [], {}, set(), bytearray(3)
        counts, table, order = Counter(), defaultdict(list), OrderedDict()
        history = {"loss": [], "inner": {"deep": [1]}}
        for k in range(4):
            x = q.popleft()
            q.append(k)
            losses.append(x)
            best[x] = k
            met.add(k)
            raw[0] += 1
            counts[k] += 1
            table[k].append(x)
            order[k] = x
            if k in order and k > 1:
                order.move_to_end(0)
            history["loss"].append(x)
            history["inner"]["deep"].append(x)
            seen(x, q, losses, best, met, raw, counts, table, order, history)
            losses[:1] = [5]
            losses.pop()
            del best[x]
            if k == 2:
                hit()
        """,
    "long containers": """
        from collections import deque
        losses, memory, full, table = list(range(5000)), deque(range(5000)), deque(range(3000), 3000), dict.fromkeys(range(2000))
        for k in range(4):
            losses.append(k)
            memory.append(k)
            memory.popleft()
            full.append(k)
            full.append(k)
            table[k + 5000] = k
            seen(len(losses), losses[-3:], list(memory)[:5], list(memory)[-5:], list(full)[:5], list(full)[-5:], len(table))
            if k == 2:
                hit()
        """,
    "own random generator": """
        import random
        own = random.Random(3)
        held = [random.Random(4)]
        for k in range(4):
            seen(own.random(), own.gauss(0, 1), held[0].random(), random.random(), random.gauss(0, 1))
            if k == 2:
                hit()
        """,
    "iterator in a loop": """
        stream = iter(range(100))
        for k in range(4):
            for x in stream:
                seen(x)
                if x % 7 == 3:
                    break
            for index, (x, y) in enumerate(zip(stream, stream)):
                seen(index, x, y)
                if index == 1:
                    break
            if k == 2:
                hit()
        """,
    "iterator that ends": """
        def numbers(n):
            yield from range(n)
            return "finished"
        stream, source = numbers(5), iter([1, 2])
        for k in range(4):
            for x in stream:
                seen(x)
                if x == 2:
                    break
            else:
                seen("ended")
            try:
                seen(next(source))
            except StopIteration:
                seen("stopped")
                source = iter([1, 2])
                seen(next(source))
            seen(next(iter([]), "default"))
            if k == 2:
                hit()
        """,
    "queue": """
        import queue
        q = queue.Queue()
        for k in range(9):
            q.put(k)
        for k in range(4):
            seen(q.get(), q.get_nowait())
            try:
                queue.Queue().get_nowait()
            except queue.Empty:
                seen("empty")
            if k == 2:
                hit()
        """,
    "names in every kind of statement": """
        import contextlib
        for k in range(3):
            with contextlib.nullcontext(k) as w:
                pass
            try:
                raise ValueError(k)
            except ValueError as error:
                text = str(error)
            if (n := k * 2) > 100:
                pass
            import os as system
            def nested(): return k
            class Inner: value = k
            match [k, n, {"z": k}]:
                case [first, *others]:
                    pass
            (a, *b), c = (k, n), w
            squares = [z := i for i in range(k + 1)]
            seen(w, text, n, nested(), Inner.value, first, others, a, b, c, squares, z)
            if k == 1:
                hit()
        """,
}


@pytest.mark.parametrize("name", BODIES)
def test_loop_of_a_module(name: str) -> None:
    assert_sees_the_same(BODIES[name])


@pytest.mark.parametrize("name", BODIES)
def test_loop_of_a_function(name: str) -> None:
    source = "\n".join(line.removeprefix(" " * 8) for line in BODIES[name].splitlines())
    assert_sees_the_same(in_function(source))


@pytest.mark.parametrize("end", ["return x", "return", "pass"])
def test_function_body(end: str) -> None:
    assert_sees_the_same(
        f"""
        calls = []
        def step(x, scale=2, *rest, **named):
            x = x * scale
            scale = "changed"
            calls.append(x)
            seen(x, calls, rest, named)
            if x > 4:
                hit()
            {end}
        for k in range(9):
            step(k)
        """
    )


@pytest.mark.parametrize("end", ["return 1", "pass"])
def test_function_that_has_ended_already(end: str) -> None:
    """What was bad is seen only when the body is over."""
    source = f"""
    def step(x):
        x += 1
        seen(x)
        if x == 3:
            hit(quietly=True)
        {end}
    for k in range(9):
        step(k)
    """
    assert_sees_the_same(source)


@pytest.mark.parametrize("end", ["break", "continue", "pass"])
def test_loop_body_that_has_ended_already(end: str) -> None:
    source = f"""
    total = 0
    for k in range(9):
        total += k
        seen(k, total)
        if k == 3:
            hit(quietly=True)
            {end}
    """
    assert_sees_the_same(source)
    assert_sees_the_same(in_function("\n".join(line.removeprefix("    ") for line in source.splitlines())))


def test_outer_attempt_runs_its_inner_loops_again() -> None:
    outcome = assert_sees_the_same(
        """
        stream = iter(range(100))
        def epoch(n):
            total = 0
            for k in range(3):
                x = next(stream)
                total += x
                seen(n, k, x, total)
                if x == 7:
                    hit()
        for n in range(9):
            epoch(n)
        """,
        out=1,
    )
    assert len(outcome.again) == 2


def test_finally_of_the_user_runs_for_both_runs_and_except_for_none() -> None:
    outcome = replayed(
        """
        order = []
        for k in range(3):
            try:
                hit()
            except Exception:
                order.append("except Exception")
            except BaseException:
                order.append("except BaseException")
            finally:
                ended = True
        """
    )
    assert outcome.error is None
    assert outcome.names["order"] == []


@pytest.mark.parametrize("handler", ["except:", "except BaseException:", "except (ValueError, BaseException) as error:"])
def test_handler_of_everything_lets_a_hit_pass(handler: str) -> None:
    outcome = replayed(
        f"""
        caught = []
        for k in range(3):
            try:
                seen(k)
                hit()
            {handler}
                caught.append(k)
        """
    )
    assert (outcome.replays, outcome.names["caught"]) == (1, [])


def test_globals_that_functions_declare() -> None:
    assert_sees_the_same(
        """
        position, table = 0, {}
        def batch():
            global position, made
            position += 2
            made = position
            table[position] = made
            return position
        def train():
            for k in range(4):
                seen("made" in globals() and made, batch(), dict(table))
                if k == 2:
                    hit()
        train()
        """
    )


def test_nonlocal_of_a_nested_function() -> None:
    assert_sees_the_same(
        """
        def train():
            step, seen_ones = 0, []
            def advance():
                nonlocal step
                step += 1
                seen_ones.append(step)
                return step
            for k in range(4):
                seen(advance(), seen_ones)
                if k == 2:
                    hit()
        train()
        """
    )


class Memory:
    """A user's object: `tests` counts as user code."""

    __slots__ = ("__dict__", "slot", "unset")

    def __init__(self) -> None:
        self.items: list[int] = []
        self.step = 0
        self.slot = 0
        self.inner = Inner()
        self.table = {"a": {"b": [0]}}

    def push(self, x: int) -> tuple[Any, ...]:
        self.items.append(x)
        self.step += 1
        self.slot += 1
        self.inner.values.append(x)
        self.inner.count += 1
        self.table["a"]["b"].append(x)
        self.made = x
        self.unset = x
        return list(self.items), self.step, self.slot, list(self.inner.values), self.inner.count, self.table["a"]["b"][:]

    def __eq__(self, other: object) -> bool:
        raise AssertionError("code of the user was called")

    __hash__ = None  # type: ignore[assignment]

    def __len__(self) -> int:
        raise AssertionError("code of the user was called")

    __bool__ = __len__


class Inner:
    def __init__(self) -> None:
        self.values: list[int] = []
        self.count = 0


def test_objects_of_the_user() -> None:
    memory = Memory()
    assert_sees_the_same(
        """
        for k in range(4):
            seen(memory.push(k))
            if k == 2:
                hit()
        """,
        memory=memory,
    )
    assert memory.items == [0, 1, 2]
    memory = Memory()
    assert_sees_the_same(
        """
        for k in range(4):
            seen(hasattr(memory, "made"), hasattr(memory, "unset"))
            memory.push(k)
            hit()
        """,
        memory=memory,
    )


def test_environment_is_not_stepped_again() -> None:
    class Env:
        steps = 0

        def reset(self) -> int:
            return 0

        def step(self, action: int) -> int:
            Env.steps += 1
            return Env.steps * action

    source = """
    for k in range(4):
        state = env.reset()
        for _ in range(3):
            state = env.step(2)
            seen(state)
        if k == 2:
            hit()
    """
    assert_sees_the_same(source, env=Env())
    assert Env.steps == 9


def test_trainer_that_looks_like_an_environment_is_run_again() -> None:
    source = """
    class Trainer:
        def reset(self):
            self.n = 0
        def step(self, x):
            for _ in range(1):
                self.n += 1
                seen(x, self.n)
                if x == 2:
                    hit()
    trainer = Trainer()
    trainer.reset()
    for k in range(4):
        trainer.step(k)
    """
    assert_sees_the_same(source, out=1)


def test_what_such_a_trainer_takes_before_its_attempts_is_given_again() -> None:
    source = """
    class Trainer:
        def reset(self): pass
        def step(self):
            self.run(next(stream))
        def run(self, x):
            seen(x)
            if x == 3:
                hit()
    stream, trainer = iter(range(9)), Trainer()
    for k in range(9):
        hit
        trainer.step()
    """
    assert_sees_the_same(source, out=1)


def test_numpy_state_and_small_arrays() -> None:
    np = pytest.importorskip("numpy")
    assert_sees_the_same(
        """
        own, old = np.random.default_rng(0), np.random.RandomState(0)
        buffer, index = np.zeros(8), np.arange(20)
        for k in range(4):
            buffer[k] = k + 1
            np.random.shuffle(index)
            seen(buffer.tolist(), index.tolist(), own.random(), old.rand(), old.randn(), np.random.rand(), np.random.randn())
            if k == 2:
                hit()
        """,
        np=np,
    )


def test_what_cannot_be_put_back_is_said() -> None:
    outcome = replayed(
        """
        numbers, words = list(range(3000)), set(range(3000))
        for k in range(4):
            seen(k)
            numbers.pop(0)
            words.add(-k - 1)
            hit()
        """
    )
    assert any("a list of 3000 elements" in reason for reason in outcome.reasons)
    assert any("a set of 3000 elements" in reason for reason in outcome.reasons)


def test_body_that_yields_is_no_attempt() -> None:
    outcome = replayed(
        """
        def steps():
            for k in range(3):
                yield k
                hit
            for k in range(2):
                seen(k)
                hit()
        for k in steps():
            pass
        """
    )
    assert outcome.replays == 1
    assert [(s.kind, s.line) for s in map(outcome.sites.__getitem__, range(len(outcome.sites)))] == [("loop", 6)]


def test_names_of_the_last_step_are_not_held_while_a_body_runs() -> None:
    """A tensor that the body rebinds before it reads it would stay alive one step longer: memory that plain Python needs not."""
    source = """
    import weakref
    class Big: pass
    def train():
        alive = None
        for k in range(3):
            big = Big()
            seen(k, alive is None or alive() is None)
            alive = weakref.ref(big)
            hit
    train()
    for k in range(3):
        big = Big()
        seen(k, k == 0 or alive() is None)
        alive = weakref.ref(big)
        if k == 2:
            hit()
    """
    outcome = assert_sees_the_same(source)
    assert outcome.first == [(2, True)]
