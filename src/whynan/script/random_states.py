"""The states of Python's and numpy's global random generators, taken and put back in about a microsecond.

Both are Mersenne Twisters, whose 2500 bytes are copied straight from memory: `random.getstate()` takes 10 us, numpy's `get_state`
45 us. Every address is verified once against what the generator itself says; where that differs, its own functions are used. Nothing is
copied as long as the generators' marks stay as they were: few programs draw from them in every step.
"""

from __future__ import annotations

import ctypes
import random
import struct
import sys
from collections.abc import Callable
from typing import Any

WORDS = 624
SIZE = 4 * (WORDS + 1)
MARK = 16  # bytes: a twister's index and three of its words, of which one at least changes whenever it draws or is seeded

State = tuple[Any, ...]
Take = Callable[[], Any]
Put = Callable[[Any], object]


def _memory(address: int, size: int) -> memoryview:
    return memoryview((ctypes.c_char * size).from_address(address)).cast("B")


class PythonRandom:
    """A `random.Random`: index and words follow the object's header, the pending Gaussian is an attribute."""

    def __init__(self, generator: Any) -> None:
        self.generator = generator
        self._words = _memory(id(generator) + object.__basicsize__, SIZE)
        try:
            found = self._is_there()
        except Exception:
            found = False
        self.mark: Take = self._words[:MARK].tobytes if found else object
        self.take: Take = self._take if found else generator.getstate
        self.put: Put = self._put if found else generator.setstate

    def _is_there(self) -> bool:
        basic = random.Random.__base__
        if basic is None or basic.__basicsize__ < object.__basicsize__ + SIZE:
            return False
        words = self.generator.getstate()[1]
        return struct.unpack(f"=i{WORDS}I", self._words) == (words[-1], *words[:-1])

    def _take(self) -> Any:
        return self._words.tobytes(), self.generator.gauss_next

    def _put(self, state: Any) -> None:
        self._words[:], self.generator.gauss_next = state


class NumpyRandom:
    """A numpy `RandomState`: the words are at its bit generator's address, the pending Gaussian in the object itself."""

    def __init__(self, generator: Any) -> None:
        self.generator = generator
        try:
            found = self._find()
        except Exception:
            found = False
        self.mark: Take = self._words[-MARK:].tobytes if found else object
        self.gauss_mark: Take = self._gauss.tobytes if found else object
        self.take: Take = self._take if found else generator.get_state
        self.put: Put = self._put if found else generator.set_state

    def _find(self) -> bool:
        self._bits = self.generator._bit_generator
        self._words = _memory(int(self._bits.ctypes.state_address), SIZE)
        name, words, position, _, _ = self.generator.get_state()
        if name != "MT19937" or struct.unpack(f"={WORDS}Ii", self._words) != (*words.tolist(), position):
            return False
        offset = _offset_of_gauss(type(self.generator))
        self._gauss = _memory(id(self.generator) + (offset or 0), 16)
        return offset is not None

    def _take(self) -> Any:
        if self.generator._bit_generator is not self._bits:  # exchanged by `np.random.set_bit_generator`
            self.__init__(self.generator)  # type: ignore[misc]
            return self.take()
        return self._words.tobytes(), self._gauss.tobytes()

    def _put(self, state: Any) -> None:
        if self.generator._bit_generator is self._bits:
            self._words[:], self._gauss[:] = state


def _offset_of_gauss(kind: Any) -> int | None:
    """Where a `RandomState` keeps (has_gauss, gauss), 8 bytes each: told from one of our own with a recognisable value in it."""
    sample = kind(0)
    state = list(sample.get_state())
    state[3], state[4] = 1, 0.7853981633974483
    sample.set_state(tuple(state))
    memory = _memory(id(sample), kind.__basicsize__).tobytes()
    found = [n - 8 for n in range(8, len(memory) - 7, 8) if memory[n : n + 8] == struct.pack("=d", state[4])]
    return found[0] if len(found) == 1 and memory[found[0]] == 1 else None


_python = PythonRandom(random._inst)
_numpy: NumpyRandom | None = None
_last: tuple[Any, State] = (None, ())


def take() -> State:
    """The states as they are now; numpy's only where `numpy.random` is imported."""
    global _last
    python, numpy = _python, _numpy or _find_numpy()
    marks: tuple[Any, ...]
    if numpy is None:
        marks = python.mark(), python.generator.gauss_next
    else:
        marks = python.mark(), python.generator.gauss_next, numpy.mark(), numpy.gauss_mark(), numpy.generator._bit_generator
    known, state = _last
    if marks != known:
        state = python.take(), numpy, numpy and numpy.take()
        _last = marks, state
    return state


def put(state: State) -> None:
    python, numpy, numbers = state
    _python.put(python)
    if numpy is not None:
        numpy.put(numbers)


def _find_numpy() -> NumpyRandom | None:
    global _numpy
    generator = getattr(sys.modules.get("numpy.random.mtrand"), "_rand", None)
    _numpy = NumpyRandom(generator) if generator is not None else None
    return _numpy
