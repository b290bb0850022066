"""The state of a generator that a second run of a body has to find."""

from __future__ import annotations

import random
from operator import eq

from hypothesis import given
from hypothesis import strategies as st

from whynan.core.draws import CHANGES, PAUSE, STILL, Draws


class Generator:
    """Counts how often its state is copied."""

    def __init__(self) -> None:
        self.random, self.copies = random.Random(1), 0

    def take(self) -> object:
        self.copies += 1
        return self.random.getstate()


def test_what_draws_in_every_run_is_copied_before_every_run() -> None:
    generator = Generator()
    draws = Draws(generator.take, eq)
    for _ in range(3 * CHANGES):
        assert draws.state() == generator.random.getstate()
        generator.random.random()


def test_what_never_draws_is_copied_now_and_then() -> None:
    generator = Generator()
    draws = Draws(generator.take, eq)
    for _ in range(STILL + 10 * (PAUSE + 1)):
        assert draws.state() == generator.random.getstate()
    assert generator.copies <= STILL + 12


@given(st.sets(st.integers(0, 400), max_size=8))
def test_only_two_draws_close_together_are_missed(drawing: set[int]) -> None:
    generator = Generator()
    draws = Draws(generator.take, eq)
    for run in range(401):
        found = draws.state()
        if not drawing & set(range(run - PAUSE, run)):
            assert found == generator.random.getstate()
        if run in drawing:
            generator.random.random()
