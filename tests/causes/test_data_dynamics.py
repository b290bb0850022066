"""Data, state and the course of the run: which cause a record of literals supports."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from tests.causes.builders import adam, bad, born, course, op, ranked, site, stats, value, verdict
from whynan.core.records import Trend

INF, NAN = math.inf, math.nan
EXPLODED = course([1.0, 1.2, 0.9, 3.0, 50.0, 4e3, 7e8], grad=[1, 1, 2, 9, 1e3, 1e6, 1e14], ratio=[0.1, 0.2, 0.3, 0.8, 3, 90, 1e4])


def entered(**counts):
    """A batch that brought these values in, read by the first layer."""
    operand = value("mat1", stats=stats((8, 4), low=-1, high=1, **counts), from_batch=True, rows=(3,))
    return born(
        op(0, "addmm", operand, value("mat2", source="parameter"), out=bad((8, 2), nan=2)),
        op="input",
        phase="input",
        samples=(3,),
    )


def test_missing_and_infinite_data() -> None:
    assert ranked(entered(nan=1)) == ["nan-in-data"]
    assert ranked(entered(posinf=1)) == ["inf-in-data"]
    assert ranked(entered(nan=1, neginf=1))[:2] == ["nan-in-data", "inf-in-data"]


def test_parameter_that_nobody_filled() -> None:
    operand = value("mat2", stats=stats((4, 3), nan=12), source="parameter", name="query")
    case = born(op(0, "mm", value("input", low=0, high=1), operand, out=bad((6, 3))), op="param", origin_name="query", step=0)
    assert ranked(case) == ["uninitialised-memory"]
    assert "query" in (verdict("uninitialised-memory", case) or pytest.fail("silent")).summary


def test_buffer_that_kept_nan() -> None:
    operand = value("running_mean", stats=bad((5,)), source="buffer", name="1.running_mean")
    case = born(op(0, "batch_norm", value("input", low=0, high=1), operand, out=bad((6, 5))), op="buffer", origin_name="1.running_mean")
    assert ranked(case)[0] == "poisoned-running-stats"


def test_label_without_an_image() -> None:
    label = value("input", 0.0, stats=stats((6, 2), low=0.0, high=50.0, zero=1), from_batch=True)
    case = born(op(0, "log", label, out=bad((6, 2), neginf=1)), samples=(4,))
    assert ranked(case)[:2] == ["log-of-zero", "bad-label"]


def label(*following):
    """A logarithm of the batch alone, and what reads it."""
    operand = value("input", 0.0, stats=stats((6, 2), low=0.0, high=50.0, zero=1), from_batch=True)
    layer = op(1, "addmm", value("mat1", low=0, high=1, from_batch=True), value("mat2", source="parameter"), out=stats((6, 2)))
    return born(op(0, "log", operand, out=bad((6, 2), neginf=1)), after=(layer, *following), samples=(4,))


def test_a_target_of_the_loss_is_a_label_and_what_enters_the_model_is_a_feature() -> None:
    target = op(2, "mse_loss", value("input", of=1), value("target", of=0, stats=bad((6, 2), neginf=1)), out=bad((), posinf=1))
    assert ranked(label(target))[:2] == ["bad-label", "log-of-zero"]
    product = op(2, "mul", value("input", of=1), value("other", of=0, stats=bad((6, 2), neginf=1)), out=bad((6, 2)))
    assert ranked(label(product))[:2] == ["log-of-zero", "bad-label"]
    entered = op(2, "addmm", value("mat1", of=0, stats=bad((6, 2), neginf=1)), value("mat2", source="parameter"), out=bad((6, 2)))
    assert ranked(label(entered)) == ["log-of-zero"]


def test_no_rate_makes_what_was_made_of_data_alone() -> None:
    rising = course([1.0] * 20 + [9.0, 700.0, 4e6], ratio=[0.2] * 20 + [0.9, 3, 90], lr=[0.01 * (i + 1) for i in range(23)])
    divided = value("dividend", 0.0, low=0, high=1, zero=1, from_batch=True)
    by = value("divisor", 0.0, low=0, high=1, zero=1, from_batch=True)
    assert ranked(born(op(0, "div", divided, by, out=bad()), trend=rising)) == ["div-zero-by-zero"]
    learned = replace(by, source="parameter")
    assert ranked(born(op(0, "div", divided, learned, out=bad()), trend=rising))[:2] == ["bad-lr-schedule", "lr-too-high"]


def test_prediction_is_no_label() -> None:
    layer = op(0, "addmm", value("mat1", low=0, high=1, from_batch=True), value("mat2", source="parameter"), out=stats((6, 2)))
    log = op(1, "log", value("input", 0.0, of=0, shape=(6, 2), low=0.0, high=1.0, zero=1), out=bad((6, 2), neginf=1))
    assert verdict("bad-label", born(log, layer, samples=(4,))) is None


def ctc(**rest):
    losses = stats((3,), low=1, high=9, posinf=1)
    lengths = {"input_lengths": [12, 3, 12], "target_lengths": [3, 5, 2]}
    return born(op(0, "ctc_loss", value("log_probabilities", low=-9, high=-1), out=(losses,), scalars=lengths), samples=(1,), **rest)


def test_target_longer_than_its_input() -> None:
    assert ranked(ctc()) == ["ctc-infeasible"]
    assert "input lengths: 12, 3 and 12" in (verdict("ctc-infeasible", ctc()) or pytest.fail("silent")).evidence


def overflow(inputs_up_to: float, rows: tuple[int, ...], **rest):
    layer = op(0, "addmm", value("mat1", shape=(10, 6), low=0, high=inputs_up_to, from_batch=True), value("mat2", source="parameter"))
    exponential = op(
        1,
        "exp",
        value("input", 900.0, of=0, shape=(10, 3), low=0, high=900.0),
        out=stats((10, 3), low=1, high=2, posinf=len(rows)),
    )
    return born(exponential, layer, samples=rows, **{"step": 0, **rest})


def test_inputs_in_the_thousands() -> None:
    assert ranked(overflow(5000.0, tuple(range(10))))[:2] == ["input-scale", "exp-overflow"]


def test_one_outlier_is_no_scale_of_inputs() -> None:
    assert ranked(overflow(5000.0, (3,)))[0] == "exp-overflow"


def test_inputs_that_training_has_borne_for_long_are_not_blamed() -> None:
    assert verdict("input-scale", overflow(5000.0, tuple(range(10)), step=40)) is None


def test_ordinary_inputs_are_not_blamed() -> None:
    assert verdict("input-scale", overflow(12.0, tuple(range(10)))) is None


def regression(target_up_to: float, **rest):
    layer = op(
        0,
        "addmm",
        value("mat1", low=0, high=1, from_batch=True),
        value("mat2", source="parameter"),
        out=stats(low=-9e19, high=9e19),
    )
    target = value("target", low=0.0, high=target_up_to, from_batch=True)
    return born(op(1, "mse_loss", value("input", of=0, low=-9e19, high=9e19), target, out=bad((), posinf=1)), layer, **rest)


def test_targets_in_the_thousands() -> None:
    assert ranked(regression(4000.0, trend=EXPLODED))[:2] == ["target-scale", "lr-too-high"]
    assert "target-scale" not in ranked(regression(3.0, trend=EXPLODED))


def test_rate_that_is_too_high() -> None:
    case = regression(3.0, trend=EXPLODED, optimizers=(adam(lr=0.3),))
    assert ranked(case)[0] == "lr-too-high"
    found = verdict("lr-too-high", case)
    assert found is not None
    assert found.site == site(3, "torch.optim.Adam(p, lr=1e-3)", "torch.optim.Adam")
    assert "learning rate: 0.3" in found.evidence


def test_steps_that_were_not_measured_do_not_count() -> None:
    def sparsely(values: list[float | None]) -> list[float | None]:
        return [part for one in values for part in (one, None, None)]

    trend = Trend(list(range(21)), *map(sparsely, (EXPLODED.loss, EXPLODED.grad_norm, EXPLODED.update_ratio, EXPLODED.lr)))
    every, sparse = (verdict("lr-too-high", regression(3.0, trend=one, optimizers=(adam(lr=0.3),))) for one in (EXPLODED, trend))
    assert every is not None
    assert sparse == every


@pytest.mark.parametrize(
    "trend",
    [
        course([1.0, 0.9, 0.8, 0.7]),
        course([1.0, 500.0, 1.0, 0.9, 0.9, 0.8, 0.8, 0.7]),
        course([5.6, -2.0, -10.0, -40.0, -88.0], ratio=[11.0, 0.17, 0.1, 0.05, 0.02]),
        course([]),
        course([NAN, INF, NAN]),
        course([0.0, 0.0, 0.0]),
        course([None, None, 1.0, None]),
    ],
    ids=["falls", "spike that was over", "objective that falls for ever", "empty", "not finite", "zero", "hardly measured"],
)
def test_course_that_is_no_explosion(trend) -> None:
    assert verdict("lr-too-high", regression(3.0, trend=trend)) is None


def test_missing_data_are_not_blamed_on_the_rate() -> None:
    birth, session = entered(nan=1)
    assert ranked((birth, replace(session, trend=EXPLODED))) == ["nan-in-data"]


def test_rate_that_never_stops_rising() -> None:
    losses = [1.0] * 20 + [9.0, 700.0, 4e6]
    rising = course(losses, ratio=[0.2] * 20 + [0.9, 3, 90], lr=[0.01 * (i + 1) for i in range(23)])
    assert ranked(regression(3.0, trend=rising))[:2] == ["bad-lr-schedule", "lr-too-high"]
    constant = course(losses, ratio=[0.2] * 20 + [0.9, 3, 90])
    assert verdict("bad-lr-schedule", regression(3.0, trend=constant)) is None


def test_rate_that_is_no_number() -> None:
    update = op(0, "add", value("input", source="parameter"), value("other"), out=bad(), direction="optimizer", scalars={"alpha": NAN})
    assert ranked(born(update))[0] == "bad-lr-schedule"
    assert ranked(born(update, optimizers=(adam(lr=NAN),)))[0] == "bad-lr-schedule"


def stack(factor: float, layers: int, shared: bool = False, **rest):
    """A tower of linear layers whose output grows by a factor each; the last one overflows."""
    made = []
    for i in range(layers):
        weight = value("mat2", source="parameter", name="w" if shared else f"w{i}")
        previous = value("mat1", of=i - 1, low=-1, high=factor**i) if i else value("mat1", low=-1, high=1, from_batch=True)
        size = factor ** (i + 1)
        made.append(op(i, "addmm", previous, weight, out=stats(low=-size, high=size) if i < layers - 1 else bad(posinf=3)))
    return born(made[-1], *made[:-1], **{"step": 0, **rest})


def test_activations_that_grow_layer_by_layer() -> None:
    assert ranked(stack(8.0, 40))[0] == "bad-init"


def test_growth_that_is_no_matter_of_initialisation() -> None:
    assert verdict("bad-init", stack(1.1, 40)) is None
    assert verdict("bad-init", stack(8.0, 4)) is None
    assert verdict("bad-init", stack(8.0, 40, step=30)) is None
    assert verdict("bad-init", stack(8.0, 40, shared=True)) is None


def test_update_larger_than_adam_can_make() -> None:
    weight = value("weight", stats=stats((12, 4), low=-95.0, high=90.0), source="parameter", name="embedding.weight")
    look_up = op(0, "embedding", weight, value("indices", dtype="int64"), out=stats(low=-95, high=90))
    exponential = op(1, "exp", value("input", 90.0, of=0, low=-95, high=90), out=bad(posinf=1))
    case = born(exponential, look_up, trend=course([6e-5], ratio=[93.0]), optimizers=(adam(lr=0.05),), step=1)
    assert ranked(case)[:2] == ["checkpoint-precision", "exp-overflow"]
    later = course([None, 6e-5, 1e-5], ratio=[None, 93.0, None])
    assert ranked(born(exponential, look_up, trend=later, optimizers=(adam(lr=0.05),), step=1))[0] == "checkpoint-precision"
    slow = born(exponential, look_up, trend=course([6e-5], ratio=[93.0]), optimizers=(adam(lr=10.0),), step=1)
    assert verdict("checkpoint-precision", slow) is None
