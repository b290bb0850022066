"""Logarithms, divisions, reductions: which of them a record of literals supports, and which it does not."""

from __future__ import annotations

import math

import pytest

from tests.causes.builders import adam, bad, born, op, ranked, site, stats, value, verdict

INF = math.inf
NEGATIVE_INF = bad(neginf=1)


def log_born(argument: float, *, name: str = "log", out=NEGATIVE_INF, **rest):
    low = rest.pop("low", argument)
    return born(op(0, name, value("input", argument, low=low, high=1.0, zero=int(argument == 0)), out=out), **rest)


@pytest.mark.parametrize(("name", "pole"), [("log", 0.0), ("log2", 0.0), ("log10", 0.0), ("log1p", -1.0)])
def test_log_at_its_pole_is_log_of_zero(name: str, pole: float) -> None:
    assert ranked(log_born(pole, name=name))[0] == "log-of-zero"


def test_log_of_zero_tells_number_rows_and_maker() -> None:
    made = site(7, "torch.softmax(z, 1)", "torch.softmax")
    softmax = op(0, "softmax", value("logits", low=-300, high=2), out=stats(low=0, high=1, zero=3), site=made)
    log = op(1, "log", value("input", 0.0, 0.0, of=0, low=0.0, high=0.98, zero=2), out=NEGATIVE_INF)
    found = verdict("log-of-zero", born(log, softmax, samples=(17, 40, 41)))
    assert found is not None
    assert found.summary == "torch.log was given 0 at rows 17, 40 and 41 of the batch; log(0) is -inf"
    assert any("softmax on line 7" in fact for fact in found.evidence)
    assert any("from 0 to 0.98" in fact for fact in found.evidence)


def test_xlogy_looks_at_the_argument_of_its_logarithm() -> None:
    case = born(op(0, "xlogy", value("input", 1.0, low=1, high=1), value("other", 0.0, low=0, high=1), out=NEGATIVE_INF))
    assert ranked(case)[0] == "log-of-zero"
    healthy = born(op(0, "xlogy", value("input", 0.0, low=0, high=1), value("other", 0.5, low=0.5, high=1), out=NEGATIVE_INF))
    assert verdict("log-of-zero", healthy) is None


@pytest.mark.parametrize("argument", [-0.3, -1e-9])
def test_log_of_negative(argument: float) -> None:
    case = log_born(argument, out=bad(nan=1))
    assert ranked(case)[0] == "log-of-negative"
    assert verdict("log-of-zero", case) is None


def test_log1p_is_fine_down_to_minus_one() -> None:
    assert verdict("log-of-negative", log_born(-0.5, name="log1p")) is None
    assert verdict("log-of-negative", log_born(-1.5, name="log1p", out=bad(nan=1))) is not None


def test_log_whose_infinity_became_nan_in_a_product() -> None:
    log = op(0, "log", value("input", 0.0, low=0, high=1, zero=1), out=NEGATIVE_INF)
    weight = value("other", 0.0, low=0, high=1, zero=1)
    product = op(1, "mul", value("input", -INF, of=0, stats=NEGATIVE_INF), weight, out=bad())
    assert ranked(born(product, log, from_infinity=True))[:2] == ["log-of-zero", "zero-times-inf"]


def test_log_of_a_determinant_is_a_singular_matrix() -> None:
    det = op(0, "linalg_det", value("input", shape=(3, 3), low=0, high=1), out=stats((), low=0.0, high=0.0, zero=1))
    log = op(1, "log", value("input", 0.0, of=0, shape=(), low=0.0, high=0.0, zero=1), out=bad((), neginf=1))
    assert ranked(born(log, det))[0] == "singular-matrix"


def div(numerator: float, denominator: float, *before, dtype: str = "float32", out=None, of: int | None = None, **rest):
    given = value("dividend", numerator, low=min(numerator, 0), high=max(numerator, 1))
    by = value("divisor", denominator, of=of, dtype=dtype, low=denominator, high=1.0, zero=int(denominator == 0))
    made = bad(nan=1) if numerator == denominator == 0 else bad(posinf=1)
    return born(op(len(before), "div", given, by, out=out or made), *before, **rest)


def test_zero_by_zero_and_number_by_zero() -> None:
    assert ranked(div(0.0, 0.0))[0] == "div-zero-by-zero"
    assert ranked(div(3.0, 0.0))[0] == "div-by-zero"


def test_a_divisor_that_is_not_zero_is_neither() -> None:
    case = div(1e38, 1e-3)
    assert verdict("div-by-zero", case) is None
    assert verdict("div-zero-by-zero", case) is None
    assert verdict("div-by-tiny", case) is None


@pytest.mark.parametrize("name", ["reciprocal", "rsqrt"])
def test_reciprocal_of_zero(name: str) -> None:
    role = "divisor" if name == "reciprocal" else "input"
    assert ranked(born(op(0, name, value(role, 0.0, low=0, high=3, zero=1), out=bad(posinf=1))))[0] == "div-by-zero"


def test_zero_to_a_negative_power() -> None:
    base = value("base", 0.0, low=0, high=3, zero=1)
    assert ranked(born(op(0, "pow", base, out=bad(posinf=1), scalars={"exponent": -0.5})))[0] == "div-by-zero"
    assert "div-by-zero" not in ranked(born(op(0, "pow", base, out=bad(posinf=1), scalars={"exponent": 0.5})))


def test_tiny_divisor() -> None:
    case = div(3.0, 2e-40)
    assert ranked(case)[0] == "div-by-tiny"
    found = verdict("div-by-tiny", case)
    assert found is not None
    assert "2e-40" in found.summary


def test_a_whole_number_divisor_is_a_count() -> None:
    assert ranked(div(0.0, 0.0, dtype="int64"))[:2] == ["empty-reduction", "div-zero-by-zero"]


def test_a_count_per_row_of_a_mask_is_zero_by_zero_first() -> None:
    cast = op(0, "_to_copy", value("input", dtype="bool", low=0, high=1), out=stats(low=0, high=1))
    count = op(1, "sum", value("input", of=0, low=0, high=1), out=stats(low=0, high=3, zero=1))
    assert ranked(div(0.0, 0.0, cast, count, of=1))[:2] == ["div-zero-by-zero", "empty-reduction"]


def test_mean_of_nothing() -> None:
    case = born(op(0, "mean", value("input", shape=(0,)), out=bad((), nan=1)))
    assert ranked(case)[0] == "empty-reduction"


def test_all_labels_ignored() -> None:
    target = value("target", dtype="int64", low=-100, high=-100)
    outputs = (bad((), nan=1), stats((), low=0.0, high=0.0))
    loss = op(0, "nll_loss", value("log_probabilities", low=-3, high=-1), target, out=outputs, scalars={"ignore_index": -100})
    assert ranked(born(loss))[:2] == ["empty-reduction", "div-zero-by-zero"]


@pytest.mark.parametrize(("zero", "expected"), [(1, ["div-zero-by-zero"]), (0, [])])
def test_a_row_of_zeros_that_is_weight_normalised(zero: int, expected: list[str]) -> None:
    outputs = (bad((3, 4), nan=4), stats((3, 1), low=0.0, high=2.0, zero=zero))
    scaled = op(0, "_weight_norm_interface", value("v", shape=(3, 4), low=-1, high=1, zero=4), value("g", shape=(3, 1)), out=outputs)
    assert ranked(born(scaled))[:1] == expected


def test_weights_of_zero_are_no_empty_reduction() -> None:
    weight = value("weight", low=0.0, high=2.0, zero=1)
    outputs = (bad((), nan=1), stats((), low=0.0, high=0.0))
    loss = op(0, "nll_loss2d", value("log_probabilities", low=-3, high=-1), value("target", dtype="int64"), weight, out=outputs)
    case = born(loss)
    assert ranked(case)[0] == "bad-class-weight"
    assert verdict("empty-reduction", case) is None


def test_infinite_class_weight_that_a_division_made() -> None:
    by = value("divisor", 0.0, low=0, high=4, zero=1)
    weights = op(0, "reciprocal", by, out=bad(posinf=1))
    loss = op(1, "nll_loss", value("log_probabilities"), value("target"), value("weight", of=0, stats=bad(posinf=1)), out=bad((), nan=1))
    assert ranked(born(weights, after=(loss,)))[0] == "bad-class-weight"


def test_std_of_one_element() -> None:
    case = born(op(0, "std", value("input", shape=(1,), low=2, high=2), out=bad((), nan=1), degrees=0.0))
    assert ranked(case)[0] == "var-single-sample"
    unknown = born(op(0, "std", value("input", shape=(1,), low=2, high=2), out=bad((), nan=1)))
    assert ranked(unknown)[0] == "var-single-sample"
    assert verdict("var-single-sample", born(op(0, "std", value("input", shape=(9,), low=2, high=3), out=bad((), nan=1)))) is None


def test_division_by_a_standard_deviation_of_zero() -> None:
    std = op(0, "std", value("input", low=-100, high=-100), out=stats(low=0, high=1, zero=1))
    assert ranked(div(0.0, 0.0, std, of=0))[:2] == ["zero-variance-scale", "div-zero-by-zero"]


def test_division_by_a_norm_of_zero_is_no_spread() -> None:
    norm = op(0, "linalg_vector_norm", value("input", low=0, high=0), out=stats(low=0, high=1, zero=1))
    assert ranked(div(0.0, 0.0, norm, of=0))[0] == "div-zero-by-zero"


def test_spread_written_by_hand() -> None:
    mean = op(0, "mean", value("input", low=7, high=7), out=stats(low=7, high=7))
    centred = op(1, "sub", value("input", low=7, high=7), value("other", of=0, low=7, high=7), out=stats(low=0, high=0, zero=4))
    square = op(2, "pow", value("base", of=1, low=0, high=0, zero=4), out=stats(low=0, high=0, zero=4), scalars={"exponent": 2})
    variance = op(3, "mean", value("input", of=2, low=0, high=0, zero=4), out=stats(low=0, high=0, zero=4))
    root = op(4, "sqrt", value("input", of=3, low=0, high=0, zero=4), out=stats(low=0, high=0, zero=4))
    assert ranked(div(0.0, 0.0, mean, centred, square, variance, root, of=4))[0] == "zero-variance-scale"


def test_infinite_logsumexp_in_the_backward_pass() -> None:
    forward = op(0, "logsumexp", value("logits", stats=bad(neginf=4)), out=bad((), neginf=1))
    inner = op(1, "sub", value("input", -INF, stats=bad(neginf=4)), value("other", -INF, stats=bad((), neginf=1)), out=bad(nan=4))
    inner = op(1, "sub", *inner.inputs, out=bad(nan=4), direction="backward", node="LogsumexpBackward0", forward=0)
    assert ranked(born(inner, forward))[0] == "logsumexp-all-neginf"


def test_optimizer_divisions_are_their_own_causes() -> None:
    update = op(
        0,
        "addcdiv",
        value("dividend", 0.0, low=0, high=0),
        value("divisor", 0.0, low=0, high=0, zero=1),
        out=bad(),
        direction="optimizer",
    )
    assert ranked(born(update, optimizers=(adam(eps=0.0),)))[0] == "optimizer-div-zero"
    assert ranked(born(update, optimizers=(adam(dtypes=("float16",)),)))[0] == "adam-eps-underflow"
    assert ranked(born(update))[0] == "optimizer-div-zero"
