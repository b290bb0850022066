"""What is noted of the program's state: without calling the user's code, in microseconds, and within bounds."""

from __future__ import annotations

import argparse
import enum
import gc
import random
import threading
import time
import timeit
import types
import weakref
from collections import OrderedDict, deque
from typing import Any

import pytest

from whynan.script import capture as capturing
from whynan.script.capture import Captured
from whynan.script.sites import AttemptSite, SiteTable


def capture(place: AttemptSite, live: dict[str, Any]) -> Captured:
    captured = Captured(place, live)
    captured.capture(capturing.perf_counter())
    return captured


def noted(bound: tuple[str, ...] = (), **live: Any) -> Captured:
    return capture(site(bound, *live), live)


def site(bound: tuple[str, ...], *live: str) -> AttemptSite:
    return AttemptSite("user.py", 1, "loop", "<module>", bound=bound, touched=live, live=live)


class Loud:
    """Nothing of it may be called."""

    def __init__(self) -> None:
        self.x, self.items = 1, [1]

    def _loud(self, *_: object) -> Any:
        raise AssertionError("code of the user was called")

    __eq__ = __len__ = __bool__ = __iter__ = __getattr__ = __setattr_ = __copy__ = __deepcopy__ = __reduce__ = _loud  # type: ignore[assignment]
    __hash__ = _loud  # type: ignore[assignment]

    @property
    def size(self) -> Any:
        return self._loud()


class LoudList(list[int]):
    __len__ = __iter__ = __getitem__ = __eq__ = __bool__ = Loud._loud  # type: ignore[assignment]


class LoudDict(dict[str, Any]):
    __len__ = __iter__ = __getitem__ = keys = items = values = update = clear = copy = Loud._loud  # type: ignore[assignment]


class LoudOrder(OrderedDict[str, int]):
    __len__ = __iter__ = __getitem__ = keys = items = values = update = clear = copy = Loud._loud  # type: ignore[assignment]


class LoudDeque(deque[int]):
    __len__ = __iter__ = __getitem__ = append = copy = pop = Loud._loud  # type: ignore[assignment]


class LoudSet(set[int]):
    __len__ = __iter__ = add = update = clear = copy = Loud._loud  # type: ignore[assignment]


def test_names_are_those_that_the_body_binds() -> None:
    captured = noted(("a", "b", "missing"), a=1, b=None, c=[3])
    assert captured.names == {"a": 1, "b": None}


def test_code_of_the_user_is_not_called() -> None:
    loud = Loud()
    things = LoudList([1]), LoudDict(a=1), LoudOrder(), LoudDeque([1]), LoudSet([1])
    OrderedDict.__setitem__(things[2], "k", 1)
    captured = noted(("loud",), loud=loud, a=things[0], b=things[1], c=things[2], d=things[3], e=things[4])
    loud.x = 2
    object.__getattribute__(loud, "items").append(2)
    list.append(things[0], 2), dict.__setitem__(things[1], "b", 2), OrderedDict.__setitem__(things[2], "l", 2)
    deque.append(things[3], 2), set.add(things[4], 2)
    captured.restore()
    assert captured.reasons == []
    assert (loud.__dict__["x"], loud.__dict__["items"]) == (1, [1])
    assert list.__repr__(things[0]) == "[1]"
    assert dict.__repr__(things[1]) == "{'a': 1}"
    assert list(OrderedDict.items(things[2])) == [("k", 1)]
    assert list(deque.__iter__(things[3])) == [1]
    assert list(set.__iter__(things[4])) == [1]


def test_attributes_that_were_replaced_as_a_whole() -> None:
    class Bag:
        def __init__(self) -> None:
            self.a = 1

    bag = Bag()
    attributes = bag.__dict__
    captured = noted(bag=bag)
    bag.__dict__ = {"b": 2}
    captured.restore()
    assert bag.__dict__ is attributes
    assert vars(bag) == {"a": 1}


def test_plain_data_of_the_library() -> None:
    args, space = argparse.Namespace(lr=1, seen=[]), types.SimpleNamespace(n=0)
    captured = noted(args=args, space=space)
    args.lr, space.n = 2, 1
    args.seen.append(1)
    captured.restore()
    assert (args.lr, args.seen, space.n) == (1, [], 0)


def test_objects_that_run_are_left_alone() -> None:
    class Worker(threading.Thread):
        def run(self) -> None:
            pass

    worker = Worker()
    captured = noted(worker=worker)
    worker.start()
    worker.join()
    captured.restore()
    assert not worker.is_alive()
    with pytest.raises(RuntimeError):
        worker.start()


def test_classes_functions_and_constants_are_not_noted() -> None:
    class Colour(enum.Enum):
        RED = 1

    captured = noted(a=Colour, b=len, c=random, d=1.5, e="x", f=(1, [2]), g=None, h=ValueError(1), i=object())
    assert not captured.undo


def test_cycles_and_shared_objects() -> None:
    node: dict[str, Any] = {"items": []}
    node["self"] = node
    captured = noted(a=node, b=node, c=node["items"])
    node["items"].append(1)
    node["other"] = 1
    captured.restore()
    assert node == {"items": [], "self": node}
    assert len(captured.undo) == 2


def test_generators_of_random_numbers() -> None:
    np = pytest.importorskip("numpy")
    torch = pytest.importorskip("torch")
    own, new, old, tensor = random.Random(1), np.random.default_rng(1), np.random.RandomState(1), torch.Generator()

    def draw() -> list[float]:
        return [own.gauss(0, 1), own.random(), new.random(), old.randn(), old.rand(), float(torch.rand(1, generator=tensor))]

    draw()
    captured = noted(own=own, new=new, holder={"old": old, "tensor": tensor})
    first = draw()
    draw()
    captured.restore()
    assert draw() == first


def test_arrays_in_place() -> None:
    np = pytest.importorskip("numpy")
    small, large, fixed = np.zeros(8), np.zeros(100_000), np.zeros(3)
    fixed.flags.writeable = False
    captured = noted(small=small, large=large, fixed=fixed, objects=np.array([[]], dtype=object))
    small[2] = large[2] = 5
    captured.restore()
    assert (small[2], large[2]) == (0, 5)
    assert captured.reasons == []


def test_user_modules_below_installed_ones() -> None:
    torch = pytest.importorskip("torch")

    class Cell(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.hidden, self.log = None, []
            self.register_buffer("state", torch.zeros(1))

    cell = Cell()
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Sequential(cell))
    before = cell.state
    captured = noted(model=model)
    cell.hidden, cell.state = torch.ones(1), torch.ones(1)
    cell.log.append(1)
    cell.extra = 3
    cell.register_forward_hook(lambda *_: None)
    captured.restore()
    assert (cell.hidden, cell.log, hasattr(cell, "extra")) == (None, [], False)
    assert cell.state is before
    assert cell._parameters == {}


def test_globals_that_functions_write() -> None:
    table = SiteTable()
    table.writes_globals("user.py", ("position", "made", "items"))
    namespace: dict[str, Any] = {"position": 1, "items": [1]}
    table.executing("user.py", namespace)
    captured = capture(AttemptSite("user.py", 1, "loop", "f", namespaces=table.namespaces), {})
    namespace.update(position=2, made=3)
    namespace["items"].append(2)
    captured.restore()
    assert namespace == {"position": 1, "items": [1]}


def test_fault_while_putting_back_is_told() -> None:
    class Odd:
        __slots__ = ("x",)

    odd = Odd()
    odd.x = [1]
    captured = noted(odd=odd)
    captured.undo[0] = (lambda *_: 1 / 0, odd, None)  # type: ignore[arg-type, return-value]
    captured.restore()
    assert captured.reasons == ["an object of class Odd could not be put back (ZeroDivisionError: division by zero)"]


def test_number_of_objects_is_bounded() -> None:
    class Leaf:
        def __init__(self, n: int) -> None:
            self.children = [Leaf(n - 1) for _ in range(30)] if n else []

    captured = noted(tree=Leaf(3))
    assert len(captured.undo) < 3 * capturing.MAX_OBJECTS


def test_objects_are_followed_less_far_where_it_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    deep = {"a": {"b": {"c": [0]}}}
    place = site((), "deep")
    clock = iter(k * 0.5 for k in range(1000))  # seconds: every capture takes half of a step
    monkeypatch.setattr(capturing, "perf_counter", lambda: next(clock))
    captured = [capture(place, {"deep": deep}) for _ in range(8)]
    assert len(captured[0].undo) == 4
    assert len(captured[-1].undo) == 2
    captured[-1].restore()
    assert "takes too long" in captured[-1].reasons[0]


def test_what_was_noted_is_let_go() -> None:
    class Big:
        pass

    big = Big()
    gone = weakref.ref(big)
    place = site(("x",), "x")
    captured: Captured | None = capture(place, {"x": big})
    del big
    assert captured is not None
    del captured
    gc.collect()
    assert gone() is None


def test_noting_a_usual_step_costs_microseconds() -> None:
    torch = pytest.importorskip("torch")

    class Net(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b, self.log = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4), []

    model = Net()
    live = {"i": 1, "x": torch.ones(3), "y": torch.ones(3), "step": 3, "model": model, "losses": [1.0] * 100}
    live |= {"optimizer": torch.optim.SGD(model.parameters(), 0.1), "criterion": torch.nn.MSELoss()}
    place = site(("i", "x", "y", "step"), *live)
    capture(place, live)
    time.sleep(0.01)
    best = min(timeit.repeat(lambda: capture(place, live), number=200, repeat=30)) / 200
    assert best < 30e-6  # 8 us where nothing else runs
