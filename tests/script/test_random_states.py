"""Global random states are put back exactly, by memory where that is verified, by the generators' own functions elsewhere."""

from __future__ import annotations

import random
import subprocess
import sys
import timeit
from typing import Any

import pytest

from tests.script.harness import SOURCES, VERSIONS, interpreter
from whynan.script import random_states
from whynan.script.random_states import NumpyRandom, PythonRandom

np = pytest.importorskip("numpy")
DRAWS = 700  # more than the 624 words of one generation


def drawn(python: Any, numpy: Any) -> list[float]:
    """The Gaussians leave one in reserve."""
    return [
        *(python.random() for _ in range(DRAWS)),
        python.gauss(0, 1),
        *numpy.standard_normal(3).tolist(),
        *numpy.random_sample(DRAWS).tolist(),
        python.gauss(0, 1),
    ]


@pytest.mark.parametrize("before", [0, 1, 3, 623, 624, 625])
def test_global_states_are_put_back(before: int) -> None:
    np.random.rand()  # numpy imports its generators when they are first asked for
    for _ in range(before):
        random.random(), np.random.rand(), np.random.randn(), random.gauss(0, 1)
    state = random_states.take()
    first = drawn(random, np.random)
    random.seed(1), np.random.seed(1)
    random_states.put(state)
    assert drawn(random, np.random) == first
    random_states.put(state)
    assert drawn(random, np.random) == first


def test_memory_is_what_the_generators_say() -> None:
    for python, numpy in ((random._inst, np.random.mtrand._rand), (random.Random(3), np.random.RandomState(3))):  # type: ignore[attr-defined]
        for memory in (PythonRandom(python), NumpyRandom(numpy)):
            assert memory.take.__name__ == "_take"


@pytest.mark.parametrize("kind", ["SystemRandom-like", "PCG64", "changed"])
def test_other_layouts_fall_back(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if kind == "PCG64":
        memory: Any = NumpyRandom(np.random.RandomState(np.random.PCG64(1)))
        assert memory.take.__name__ == "get_state"
        return
    monkeypatch.setattr(random_states, "SIZE", 4 * 620 if kind == "changed" else random_states.SIZE)
    generator: Any = random.Random(2)
    if kind != "changed":
        monkeypatch.setattr(random_states.struct, "unpack", lambda *_: ())
    memory = PythonRandom(generator)
    state = memory.take()
    first = generator.random()
    memory.put(state)
    assert (memory.take.__name__, generator.random()) == ("getstate", first)


@pytest.mark.parametrize("version", VERSIONS)
def test_memory_is_verified_on_every_python(version: str) -> None:
    python = interpreter(version)
    if python is None:
        pytest.skip(f"no Python {version} here")
    program = (
        f"import sys; sys.path.insert(0, {str(SOURCES)!r}); import random; from whynan.script import random_states as r\n"
        "s = r.take(); a = random.random(), random.gauss(0, 1); r.put(s)\n"
        "assert (random.random(), random.gauss(0, 1)) == a; print(r._python.take.__name__, 'numpy' in sys.modules)"
    )
    assert subprocess.run([python, "-c", program], capture_output=True, text=True, check=True).stdout == "_take False\n"


def test_taking_both_costs_microseconds() -> None:
    best = min(timeit.repeat(random_states.take, number=2000, repeat=20)) / 2000
    assert best < 4e-6  # 0.8 us where nothing else runs; `random.getstate()` alone takes 10
    assert sys.getsizeof(random_states.take()) < 200
