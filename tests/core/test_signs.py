"""Each early sign speaks on a course that goes wrong, well before its end, and is silent on noisy courses that do not."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from whynan.core.signs import (
    DeadLayer,
    GradientNormGrowing,
    HeadroomShrinking,
    LossComponentDominates,
    LossGrowing,
    LossUnbounded,
    OneClassBatches,
    ParameterRunningAway,
    ParameterWithoutGradient,
    RateRising,
    ScalerSkipping,
    UpdateRatioHigh,
)
from whynan.core.signs.rising import KEPT, Rise

Course = Callable[[int], float]
SEEDS = range(20)
GROWING = (LossGrowing, GradientNormGrowing)


def noisy(course: Course, seed: int, spread: float = 0.3) -> Course:
    rng = random.Random(seed)
    return lambda step: course(step) * math.exp(rng.gauss(0, spread))


def told(sign: LossGrowing | LossUnbounded | GradientNormGrowing, course: Course, steps: int) -> int | None:
    for step in range(steps):
        sign.add(step, course(step))
        if sign.text is not None:
            return step
    return None


HEALTHY: dict[str, Course] = {
    "falls by orders of magnitude": lambda step: 1e6 * 0.97**step + 1e-4,
    "constant": lambda step: 2.3,
    "oscillates": lambda step: 3 + 2.5 * math.sin(step / 9),
    "oscillates slowly": lambda step: math.exp(2 * math.sin(step / 60)),
    "spikes that recover": lambda step: 1.0 + (1e5 if step % 70 in range(3) else 0),
    "rises once, as a new phase begins": lambda step: 0.05 if step < 200 else 40.0,
    "huge first steps": lambda step: 1e8 if step < 4 else 1.0,
    "rises and stays": lambda step: 0.1 + 30 * (1 - math.exp(-step / 80)),
    "grows ever slower": lambda step: 1.0 + 0.2 * step,
    "tiny": lambda step: 1e-9 * 1.02**step if step < 600 else 1e-4,
}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("course", HEALTHY)
@pytest.mark.parametrize("sign", [*GROWING, LossUnbounded])
def test_silent_on_healthy_courses(sign: type[LossGrowing], course: str, seed: int) -> None:
    turn = -1 if sign is LossUnbounded and course != "falls by orders of magnitude" else 1
    values = noisy(HEALTHY[course], seed)
    assert told(sign(), lambda step: turn * values(step), 1000) is None


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("pace", [1.03, 1.06, 1.2])
@pytest.mark.parametrize("sign", [*GROWING, LossUnbounded])
def test_growth_by_a_factor_is_told_long_before_its_end(sign: type[LossGrowing], pace: float, seed: int) -> None:
    begin, turn = 150, -1 if sign is LossUnbounded else 1
    end = begin + int(math.log(3e38) / math.log(pace))
    values = noisy(lambda step: pace ** max(step - begin, 0), seed, 0.2)
    step = told(sign(), lambda step: turn * values(step), end)
    assert step is not None
    assert begin < step <= begin + 0.4 * (end - begin) + 60
    assert step <= end - 20


def test_a_text_gives_the_numbers_and_what_to_do() -> None:
    sign = LossGrowing()
    told(sign, lambda step: 2.0 * 1.1**step, 400)
    assert sign.text is not None
    assert "from 2" in sign.text
    assert "learning rate" in sign.text
    before = sign.step, sign.text
    told(sign, lambda step: 1e30 * 1.1**step, 50)
    assert (sign.step, sign.text) == before


def test_what_is_measured_seldom_is_told_too() -> None:
    sign = GradientNormGrowing()
    for step in range(0, 3000, 50):
        sign.add(step, 1.01**step)
    assert sign.text is not None


def test_what_is_not_finite_says_nothing() -> None:
    for kind in GROWING:
        sign = kind()
        for step in range(100):
            sign.add(step, math.nan if step % 2 else math.inf)
        assert sign.text is None


def test_a_fall_ends_a_rise() -> None:
    rise = Rise()
    for step in range(200):
        rise.add(step, float(step if step < 100 else step - 100))
    assert rise.highest == pytest.approx(95, abs=8)
    assert rise.points[0][0] > 100
    assert rise.amount == pytest.approx(90, abs=8)


def test_a_rise_is_remembered_in_bounded_memory() -> None:
    rise = Rise()
    for step in range(20_000):
        rise.add(step, step)
    assert len(rise.points) <= KEPT
    assert rise.points[0][0] < 10
    assert rise.is_steady(5)


# ---- rates and updates ----


def rated(rates: Iterator[float] | list[float], ratio: float | None = None) -> RateRising:
    sign = RateRising()
    for step, rate in enumerate(rates):
        sign.add(step, rate)
        sign.judge(step, ratio)
    return sign


RATES: dict[str, list[float]] = {
    "constant": [0.1] * 800,
    "linear warm-up": [1e-3 * min(1.0, (step + 1) / 400) for step in range(800)],
    "one cycle": [0.04 + 0.96 * (1 - math.cos(math.pi * min(step, 300) / 300)) / 2 for step in range(800)],
    "restarts": [0.5 * (1 + math.cos(math.pi * (step % 100) / 100)) for step in range(800)],
    "cyclic": [0.01 + 0.1 * abs(step % 200 - 100) / 100 for step in range(800)],
    "decay": [0.1 * 0.99**step for step in range(800)],
    "warm-up by a factor that ends": [1e-3 * 1.05 ** min(step, 60) for step in range(800)],
}


@pytest.mark.parametrize("rates", RATES)
def test_silent_on_usual_schedules(rates: str) -> None:
    assert rated(RATES[rates], 0.003).text is None


@pytest.mark.parametrize("rates", [[1e-3 * 1.03**step for step in range(300)], [1e-3 * 1.7 ** (step // 25) for step in range(300)]])
def test_a_rate_that_grows_by_a_factor_is_told(rates: list[float]) -> None:
    sign = rated(rates)
    assert sign.text is not None
    assert sign.step < 250


def test_a_linear_rise_is_told_once_its_updates_are_large() -> None:
    rates = [0.01 * (1 + step / 25) for step in range(300)]
    assert rated(rates, 0.004).text is None
    assert rated(rates, 0.2).text is not None


def updated(course: Course, steps: int = 400) -> UpdateRatioHigh:
    sign = UpdateRatioHigh()
    for step in range(steps):
        sign.add(step, course(step))
    return sign


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("course", [lambda s: 1e-3, lambda s: 3 * 0.9**s + 0.01, lambda s: 0.15, lambda s: 2.0 if s < 30 else 0.05])
def test_healthy_updates(course: Course, seed: int) -> None:
    assert updated(noisy(course, seed)).text is None


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("course", [lambda s: 0.9, lambda s: min(2.0, 0.002 * 1.05**s)])
def test_updates_as_large_as_the_parameters(course: Course, seed: int) -> None:
    assert updated(noisy(course, seed, 0.1)).text is not None


# ---- precision ----


@pytest.mark.parametrize("most", [100.0, 3000.0, 20000.0])
def test_values_that_settle_below_the_limit(most: float) -> None:
    sign = HeadroomShrinking("activations", "float16", 65504.0)
    for step in range(1000):
        sign.add(step, most * (1 - 0.98 * math.exp(-step / 50)))
    assert sign.text is None


def test_values_on_their_way_to_the_limit() -> None:
    sign = HeadroomShrinking("activations", "float16", 65504.0)
    end = next(step for step in range(1000) if 2 * 1.04**step >= 65504)
    for step in range(end):
        sign.add(step, 2 * 1.04**step)
    assert sign.text is not None
    assert sign.step <= end - 20
    assert "float16" in sign.text


def scaled(skips: list[bool], scale: float = 65536.0) -> ScalerSkipping:
    sign = ScalerSkipping()
    for step, skipped in enumerate(skips):
        scale = scale / 2 if skipped else scale
        sign.add(step, skipped, lambda scale=scale: scale)  # type: ignore[misc]
    return sign


@pytest.mark.parametrize("skips", [[True] * 12 + [False] * 300, ([True] + [False] * 9) * 60, [False] * 300 + [True] * 6 + [False] * 50])
def test_a_scale_that_is_being_found(skips: list[bool]) -> None:
    assert scaled(skips).text is None


def test_a_scale_that_began_much_too_high() -> None:
    assert scaled([True] * 40 + [False] * 300, 2.0**44).text is None


@pytest.mark.parametrize("skips", [[True] * 16, [False] * 100 + [True] * 10, [False] * 50 + [True, False] * 40])
def test_a_scaler_that_skips_and_skips(skips: list[bool]) -> None:
    assert scaled(skips, 1024.0).text is not None


# ---- parameters ----


def test_a_parameter_that_runs_away_while_the_loss_falls_below_zero() -> None:
    sign = ParameterRunningAway(0.5)
    found = [step for step in range(400) if sign.add(step, 1 + 0.2 * step, -0.2 * step)]
    assert found
    assert found[0] < 200


def test_a_parameter_on_its_way_to_where_it_belongs() -> None:
    sign = ParameterRunningAway(0.5)
    assert not any(sign.add(step, 1 + 0.2 * step, 2e4 * (1 - step / 500) ** 2) for step in range(400))


def test_parameters_without_a_gradient() -> None:
    sign = ParameterWithoutGradient()
    told = [step for step in range(300) if sign.add(step, [2, 5] if step else [1, 2, 5])]
    assert told[0] == 150
    sign.name_them(150, ["a", "b"], 2)
    assert sign.text is not None
    assert sign.text.startswith("a, b have never had a gradient in 151 steps")


def test_a_parameter_that_waits_for_its_phase() -> None:
    sign = ParameterWithoutGradient()
    assert not any(sign.add(step, [2] if step < 140 else []) for step in range(1000))
    assert not sign.at_the_end


def test_short_runs_are_told_at_the_end() -> None:
    sign = ParameterWithoutGradient()
    for step in range(30):
        assert not sign.add(step, [0])
    assert sign.at_the_end


def dead(course: Callable[[int], list[float]], steps: int) -> int | None:
    sign = DeadLayer()
    for step in range(steps):
        number = sign.add(step, list(enumerate(course(step))))
        if number is not None:
            sign.name_it(step, number, "fc.weight")
            assert "fc.weight" in str(sign.text)
            return step
    return None


def test_a_layer_that_dies() -> None:
    assert dead(lambda step: [1.0, 0.0 if step > 50 else 1.0], 200) == 51 + 40
    assert dead(lambda step: [1.0, 0.0], 200) == 100


@pytest.mark.parametrize(
    "course",
    [lambda s: [0.0, 0.0], lambda s: [1.0, 0.0 if s % 30 else 1.0], lambda s: [1.0, 0.0 if s < 90 else 1.0], lambda s: [1e-30, 1e-30]],
    ids=["nothing left to learn", "seldom used", "a late phase", "tiny"],
)
def test_layers_that_are_not_dead(course: Callable[[int], list[float]]) -> None:
    assert dead(course, 500) is None


# ---- labels and terms ----


def labelled(batch: Callable[[int], list[int]], loss: Course = lambda step: 1.0, steps: int = 120) -> OneClassBatches:
    sign = OneClassBatches()
    for step in range(steps):
        sign.add(step, Counter(map(float, batch(step))), loss(step))
    return sign


@pytest.mark.parametrize(
    ("batch", "loss"),
    [
        (lambda s: [0] * 31 + [s % 40 == 0], lambda s: 1.0),
        (lambda s: [s // 10 % 3] * 32, lambda s: 1.0),
        (lambda s: [0] * 32, lambda s: 0.9**s),
    ],
    ids=["almost all of one class", "sorted", "nothing else to learn"],
)
def test_batches_of_one_class(batch: Callable[[int], list[int]], loss: Course) -> None:
    assert labelled(batch, loss).text is not None


@pytest.mark.parametrize(
    "batch",
    [lambda s: [0] * 32, lambda s: [s % 2], lambda s: list(range(8)), lambda s: [1] * 32 if s % 2 else [0] * 16 + [1] * 16, lambda s: [0] * 30 + [1, 1]],
    ids=["meant so", "batches of one", "balanced", "a GAN", "imbalanced"],
)
def test_labels_that_are_healthy(batch: Callable[[int], list[int]]) -> None:
    assert labelled(batch).text is None


@pytest.mark.parametrize(
    ("values", "weight", "speaks"),
    [((1e4, 1.0), 1.0, True), ((1e4, 0.0), 1.0, False), ((1e4, 1.0), 1e-5, False), ((500.0, 1.0), 1.0, False)],
    ids=["dwarfs", "the other is off", "meant to be small", "larger"],
)
def test_a_term_that_dwarfs_the_others(values: tuple[float, float], weight: float, speaks: bool) -> None:
    sign = LossComponentDominates()
    for step in range(100):
        sign.add(step, [("box", values[0], 1.0), ("cls", values[1], weight)])
    assert (sign.text is not None) is speaks


def test_a_term_that_dwarfs_the_others_only_at_first() -> None:
    sign = LossComponentDominates()
    for step in range(200):
        sign.add(step, [("recon", 1e4, 1.0), ("kl", 0.5 * step + 0.1, 1.0)])
    assert sign.text is None
