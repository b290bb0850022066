"""Random generators and small arrays that a program holds itself, told by their class names: no framework is imported.

As in `containers`: `save(value)` gives what `put(value, saved)` needs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from whynan.script.containers import Saver
from whynan.script.random_states import NumpyRandom, PythonRandom

SMALL_ARRAY = 64 << 10  # bytes
MAX_KNOWN = 64


def saver_of(kind: type) -> Saver | None:
    """How a value of this class is saved; None if it is neither a generator nor an array."""
    return _SAVERS.get((str(kind.__module__).partition(".")[0], kind.__name__))


def save_array(array: Any) -> Any:
    """A copy of an array that may be written in place. Larger ones are not copied each step; nor those of objects or read-
    only."""
    if array.nbytes > SMALL_ARRAY or array.dtype.hasobject or not array.flags.writeable:
        return None
    return array.copy()


def put_array(array: Any, saved: Any) -> str | None:
    if saved is not None:
        array[...] = saved
    return None


def save_bits(generator: Any) -> Any:
    return (generator.bit_generator.state,)


def put_bits(generator: Any, saved: Any) -> str | None:
    (generator.bit_generator.state,) = saved
    return None


def save_state(generator: Any) -> Any:
    return generator.get_state()


def put_state(generator: Any, saved: Any) -> str | None:
    generator.set_state(saved)
    return None


class Twisters:
    """`random.Random` or `RandomState` objects; where the memory of each lies is found out once."""

    def __init__(self, make: Callable[[Any], Any]) -> None:
        self._make = make
        self._known: dict[int, tuple[Any, Any]] = {}

    def save(self, generator: Any) -> Any:
        _, memory = self._known.get(id(generator)) or self._learn(generator)
        return memory, memory.take()

    @staticmethod
    def put(_: Any, saved: Any) -> str | None:
        memory, state = saved
        memory.put(state)
        return None

    def _learn(self, generator: Any) -> tuple[Any, Any]:
        if len(self._known) >= MAX_KNOWN:
            self._known.clear()
        self._known[id(generator)] = generator, self._make(generator)
        return self._known[id(generator)]


_python, _numpy = Twisters(PythonRandom), Twisters(NumpyRandom)
_SAVERS: dict[tuple[str, str], Saver] = {
    ("random", "Random"): (_python.save, _python.put),
    ("numpy", "RandomState"): (_numpy.save, _numpy.put),
    ("numpy", "Generator"): (save_bits, put_bits),
    ("torch", "Generator"): (save_state, put_state),
    ("numpy", "ndarray"): (save_array, put_array),
}
