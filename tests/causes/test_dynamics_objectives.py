"""Objectives without a minimum, targets that run ahead, recurrences: which run-level cause a record of literals supports."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from tests.causes.builders import adam, bad, born, course, op, ranked, site, stats, value, verdict

INF, NAN = math.inf, math.nan
FALLING = [0.1, -0.5, -2.0, -9.0, -80.0, -4e3, -6e7]
LOSS = site(11, "(fake - real).mean()", "mean")


def scored(losses, **rest):
    """A score out of a layer that overflowed, and the loss that is its mean."""
    layer = op(0, "addmm", value("mat1", low=-1, high=1, from_batch=True), value("mat2", source="parameter"), out=bad((8, 1), posinf=2))
    mean = op(1, "mean", value("input", of=0, stats=bad((8, 1), posinf=2)), out=bad((), posinf=1), site=LOSS)
    ones = op(2, "ones_like", value("input", of=1, stats=bad((), posinf=1)), out=stats((), low=1, high=1), site=site(13))
    return born(layer, after=(mean, ones), **{"trend": course(losses), **rest})


def test_loss_that_falls_by_orders() -> None:
    assert ranked(scored(FALLING))[0] == "unbounded-objective"
    found = verdict("unbounded-objective", scored(FALLING)) or pytest.fail("silent")
    assert found.site == LOSS
    assert "-6e+07" in found.summary


def test_objective_that_the_optimizer_maximises() -> None:
    rising = [-loss for loss in FALLING]
    assert ranked(scored(rising, optimizers=(adam(maximize=True),)))[0] == "unbounded-objective"
    assert verdict("unbounded-objective", scored(rising, optimizers=(adam(maximize=False),))) is None


def test_loss_that_falls_in_a_straight_line() -> None:
    line = [-2.0 * step - 1 for step in range(40)]
    found = verdict("unbounded-objective", scored(line)) or pytest.fail("silent")
    assert 0.6 <= found.confidence < 0.91
    flattening = [-10 * math.log1p(step) + 1 for step in range(40)]
    assert verdict("unbounded-objective", scored(flattening)) is None


@pytest.mark.parametrize(
    "losses",
    [
        [],
        [None, None, 1.0],
        [NAN, INF, -INF, NAN, NAN, NAN],
        [0.0] * 20,
        [1.0, 2.0, 9.0, 80.0, 4e3, 6e7],
        [1.0, -2.0, 30.0, -500.0, 7e3, -1e4, 9e5, -2e6, 8e8],
        [-1.0, -900.0, -1.0, -1.0, -1.1, -1.2, -1.0],
    ],
    ids=["empty", "hardly measured", "not finite", "zero", "grows", "swings", "turned round"],
)
def test_loss_that_has_a_minimum(losses) -> None:
    assert verdict("unbounded-objective", scored(losses)) is None


def test_likelihood_whose_scale_collapsed_is_no_unbounded_objective() -> None:
    exponent = value("input", 90.0, of=0, low=89, high=90)
    negated = op(0, "neg", value("input", source="parameter", name="s", low=-90, high=-89), out=stats(low=89, high=90))
    case = born(op(1, "exp", exponent, out=bad(posinf=1)), negated, trend=course(FALLING))
    assert ranked(case)[0] == "scale-collapse"
    assert verdict("unbounded-objective", case) is None


def test_missing_data_are_no_matter_of_the_objective() -> None:
    birth, session = scored(FALLING)
    assert verdict("unbounded-objective", (replace(birth, op="input"), session)) is None


GROWING = [1.0, 1.1, 0.9, 1.5] + [12.0 * 1.6**step for step in range(30)]


def regression(losses=GROWING, *, target=5e19, graded=False, frozen=(4, 1), **rest):
    """Predictions of a layer against a target that another product of weights made."""
    ahead = op(
        0,
        "mm",
        value("input", low=0, high=2, from_batch=True),
        value("mat2", stats=stats(frozen), source="parameter", name="copy.weight"),
        out=stats((8, 1), low=-target, high=target),
    )
    made = op(1, "mul", value("input", of=0, stats=ahead.outputs[0]), out=ahead.outputs[0], site=site(12))
    weight = value("mat2", stats=stats((4, 1)), source="parameter", name="weight")
    layer = op(2, "mm", value("input", low=0, high=1, from_batch=True), weight, out=stats((8, 1), low=-4e19, high=4e19))
    prediction = replace(value("input", of=2, stats=layer.outputs[0]), graded=True)
    aim = replace(value("target", of=1, stats=made.outputs[0]), graded=graded)
    return born(op(3, "mse_loss", prediction, aim, out=bad((), posinf=1)), ahead, made, layer, trend=course(losses), step=34, **rest)


def test_target_made_of_predictions() -> None:
    assert ranked(regression())[0] == "bootstrap-divergence"
    assert (verdict("bootstrap-divergence", regression()) or pytest.fail("silent")).site == site(12)


def test_target_that_is_none_of_a_growing_prediction() -> None:
    assert verdict("bootstrap-divergence", regression(graded=True)) is None
    assert verdict("bootstrap-divergence", regression(target=3.0)) is None
    assert verdict("bootstrap-divergence", regression(target=1e18)) is None
    assert verdict("bootstrap-divergence", regression(frozen=(4, 7))) is None


def test_bootstrap_that_came_apart_at_once_is_a_matter_of_the_rate() -> None:
    sudden = course([1.0] * 12 + [40.0, 4e4, 4e9], ratio=[0.2] * 12 + [0.9, 3.0, 90.0])
    birth, session = regression()
    assert ranked((birth, replace(session, trend=sudden)))[:2] == ["lr-too-high", "bootstrap-divergence"]


@pytest.mark.parametrize("losses", [[], [None] * 20, [NAN] * 20, [0.0] * 20, [1.0] * 20])
def test_loss_that_did_not_grow(losses) -> None:
    assert verdict("bootstrap-divergence", regression(losses)) is None


def unrolled(factor: float, times: int, *, shared: bool = True, fed: bool = True, **rest):
    """A state that a product with one weight makes anew at every time step; the last one overflows."""
    made = []
    for i in range(times):
        weight = replace(value("mat2", shape=(8, 8), source="parameter", name="weight_hh"), identity=5 if shared else i)
        fresh = value("input", shape=(2, 8), low=-1, high=factor**i, from_batch=True)
        state = value("input", of=i - 1, shape=(2, 8), low=-1, high=factor**i) if i and fed else fresh
        size = factor ** (i + 1)
        made.append(op(i, "mm", state, weight, out=stats((2, 8), low=-size, high=size) if i < times - 1 else bad((2, 8), posinf=3)))
    return born(made[-1], *made[:-1], **{"step": 20, **rest})


def test_state_that_grows_from_one_time_step_to_the_next() -> None:
    assert ranked(unrolled(1.5, 40))[0] == "exploding-rnn"
    assert "40 products" in (verdict("exploding-rnn", unrolled(1.5, 40)) or pytest.fail("silent")).evidence[0]


def test_growth_that_no_recurrence_makes() -> None:
    assert verdict("exploding-rnn", unrolled(1.5, 40, shared=False)) is None
    assert verdict("exploding-rnn", unrolled(1.5, 40, fed=False)) is None
    assert verdict("exploding-rnn", unrolled(1.01, 40)) is None
    assert verdict("exploding-rnn", unrolled(9.0, 6)) is None


def backward(factor: float):
    """The way back through 20 time steps that were healthy forwards."""
    _, session = unrolled(1.0, 20)
    forwards = [replace(one, outputs=(stats((2, 8), low=-1, high=1),)) for one in session.operations]
    grown = [stats((2, 8), low=0, high=factor**i) for i in range(19)]
    pair = value("input", of=19), value("mat2")
    back = [op(20 + i, "mm", *pair, out=grown[i], direction="backward", forward=19 - i) for i in range(19)]
    last = op(39, "mm", value("input", of=38), value("mat2"), out=bad((2, 8), posinf=1), direction="backward", forward=0)
    return born(last, *forwards, *back)


def test_gradients_that_grow_on_the_way_back() -> None:
    assert ranked(backward(2.0))[0] == "exploding-rnn"
    assert verdict("exploding-rnn", backward(1.0)) is None


def test_gradient_that_jumped_while_the_loss_was_moderate() -> None:
    steady = {"grad": [1.0, 1.1, 0.9, 1.0, 5e6], "ratio": [1e-3] * 4 + [90.0]}
    jump = course([1.0, 1.0, 0.9, 0.9, 0.9], **steady)
    assert ranked(unrolled(1.0, 20, trend=jump))[0] == "exploding-rnn"
    assert verdict("exploding-rnn", unrolled(1.0, 20, trend=course([1.0, 1.0, 1.0, 1.0, 9e3], **steady))) is None
    assert verdict("exploding-rnn", unrolled(1.0, 20, trend=course([None] * 5, grad=[NAN, None, INF, None, None]))) is None


def test_updates_that_were_too_large_from_the_start() -> None:
    wild = course([1.0, 5.0, 70.0, 3e3, 9e6], grad=[1, 9, 400, 1e5, 1e12], ratio=[0.5, 0.6, 0.9, 3.0, 90.0])
    assert ranked(unrolled(1.5, 40, trend=wild))[:2] == ["lr-too-high", "exploding-rnn"]


def test_gradient_that_overflowed_inside_a_kernel() -> None:
    sequence = value("input", shape=(300, 4, 8), low=-1, high=1, from_batch=True)
    weight = value("weight1", shape=(32, 8), source="parameter")
    layer = op(0, "mkldnn_rnn_layer", sequence, weight, out=stats((300, 4, 8), low=-1, high=1))
    given = value("grad_output", of=0, low=-0.1, high=0.1)
    case = born(op(1, "mkldnn_rnn_layer_backward", given, out=bad((300, 4, 8)), direction="backward", forward=0), layer)
    assert ranked(case)[0] == "exploding-rnn"
    short = replace(layer, inputs=(replace(sequence, stats=stats((4, 4, 8))), weight))
    assert verdict("exploding-rnn", born(case[0].operation, short)) is None
