"""A handful of generated scripts: each variant gives two scripts that compile, and those drawn do under plain Python what is declared."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.generated import catalogue, page
from benchmarks.generated.compose import compose
from benchmarks.generated.draw import Drawn, draw, kept, plain
from benchmarks.generated.judge import Judged
from benchmarks.generated.parts import Variant, decided
from tests.grid.runner import Zygote
from whynan.causes import catalogue as causes

ALL = catalogue.variants("test")
FAILING = ("log-of-zero", "empty-reduction", "masked-softmax-row", "fp16-overflow", "target-scale")


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    started = Zygote()
    yield started
    started.close()


@pytest.mark.parametrize("seed", range(3))
def test_every_script_and_its_twin_compile_and_differ(seed: int) -> None:
    for variant in ALL:
        pair = compose(variant, random.Random(seed))
        compile(pair.failing, "train.py", "exec")
        compile(pair.healthy, "train.py", "exec")
        assert (pair.failing != pair.healthy) == bool(variant.causes)
        assert "$" not in pair.failing + pair.healthy


def test_no_script_names_its_cause() -> None:
    for variant in ALL:
        text = compose(variant, random.Random(0)).failing
        assert not [name for name in variant.causes if name in text or name.replace("-", "_") in text]


def test_the_same_seed_draws_the_same_script() -> None:
    for variant in ALL:
        assert compose(variant, random.Random("a")) == compose(variant, random.Random("a"))


def test_tuning_never_sees_what_is_held_back() -> None:
    assert not [variant for variant in catalogue.variants("tune") if variant.held_back]
    held = {variant.causes[0] for variant in ALL if variant.held_back}
    assert held == {variant.causes[0] for variant in ALL if variant.kind == "failing" and not variant.held_back}


def test_every_cause_of_the_catalogue_has_three_variants() -> None:
    counts = {cause.name: 0 for cause in (entry.cause for entry in causes())}
    for variant in ALL:
        if variant.kind == "failing" and variant.causes[0] in counts:
            counts[variant.causes[0]] += 1
    assert not {name: count for name, count in counts.items() if count < 3}


@pytest.mark.parametrize("cause", FAILING)
def test_a_drawn_script_fails_and_its_twin_does_not(cause: str, zygote: Zygote, tmp_path: Path) -> None:
    variants = [variant for variant in ALL if variant.causes[:1] == (cause,) and variant.kind == "failing"]
    drawn = draw(variants, "failing", "smoke", 0, zygote, tmp_path)
    assert drawn.bad_step is not None
    assert not kept("healthy", plain(drawn.text, zygote, tmp_path / "again"))


def test_a_healthy_one_stays_finite(zygote: Zygote, tmp_path: Path) -> None:
    variants = [variant for variant in ALL if variant.kind == "healthy"]
    drawn = draw(variants, "healthy", "smoke", 0, zygote, tmp_path)
    assert drawn.healthy
    assert drawn.bad_step is None


def test_a_repair_that_takes_a_line_takes_all_of_it() -> None:
    text = "a\n<<||    b\n>>c <<wrong||right>>\n"
    assert decided(text, faulty=True) == "a\nc wrong\n"
    assert decided(text, faulty=False) == "a\n    b\nc right\n"


def judged(**changes: object) -> Judged:
    drawn = Drawn(Variant(("log-of-zero",)), "tune-failing-000", "", 3, 0)
    fields = {"status": 3, "causes": (), "line": 1, "step": 3, "warned": (), "incidents": 1, "reported": True}
    return Judged(drawn, **{**fields, **changes})  # type: ignore[arg-type]


def test_a_miss_is_told_from_a_hit() -> None:
    assert not page.missed(judged(causes=(("log-of-zero", 0.9),)))
    assert page.missed(judged(causes=(("exp-overflow", 0.9), ("log-of-zero", 0.8)))).startswith("second or third")
    assert page.missed(judged(causes=(("exp-overflow", 0.9),))).startswith("MISSED")
    assert page.missed(judged(reported=False)).startswith("NO REPORT")
