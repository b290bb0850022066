"""Exponentials, masks and selections: which cause a record of literals supports."""

from __future__ import annotations

import math
from dataclasses import replace

from tests.causes.builders import adam, bad, born, course, op, ranked, site, stats, value, verdict

INF = math.inf


def exp(argument: float, *before, dtype: str = "float32", of: int | None = None, **rest):
    operand = value("input", argument, of=of, dtype=dtype, low=-1.0, high=argument, **rest.pop("operand", {}))
    return born(op(len(before), "exp", operand, out=bad(dtype=dtype, posinf=1)), *before, **rest)


def test_exp_beyond_its_range() -> None:
    found = verdict("exp-overflow", exp(95.0))
    assert found is not None
    assert found.summary == "torch.log (exp) was given up to 95; float32 holds its result only up to 88.72"
    assert ranked(exp(95.0))[0] == "exp-overflow"


def test_exp_within_its_range_is_no_overflow() -> None:
    assert verdict("exp-overflow", exp(80.0)) is None


def test_range_of_exp_depends_on_the_format() -> None:
    assert verdict("exp-overflow", exp(12.0, dtype="float16")) is not None
    assert verdict("exp-overflow", exp(12.0)) is None
    assert verdict("exp-overflow", exp(95.0, dtype="float64")) is None


def test_cosh_overflows_on_both_sides() -> None:
    operand = value("input", -95.0, low=-95.0, high=1.0)
    assert verdict("exp-overflow", born(op(0, "cosh", operand, out=bad(posinf=1)))) is not None


def test_power_of_a_constant_base_is_an_exponential() -> None:
    exponent = value("exponent", 200.0, low=0.0, high=200.0)
    assert ranked(born(op(0, "pow", exponent, out=bad(posinf=1), scalars={"self": 2.0})))[0] == "exp-overflow"


def test_divisor_of_exponentials_that_underflowed() -> None:
    exponentials = op(0, "exp", value("input", low=-900.0, high=-800.0), out=stats(low=0, high=0, zero=4))
    total = op(1, "mv", value("input", of=0, low=0, high=0, zero=4), value("vec", low=1, high=1), out=stats(low=0, high=0, zero=1))
    by = value("divisor", 0.0, of=1, low=0, high=0, zero=1)
    case = born(op(2, "div", value("dividend", 0.2, low=0.2, high=0.2), by, out=bad(posinf=1)), exponentials, total)
    assert ranked(case)[:2] == ["exp-underflow", "div-by-zero"]


def test_learned_temperature() -> None:
    cast = op(
        0,
        "_to_copy",
        value("input", shape=(), low=12.0, high=12.0, source="parameter", name="logit_scale"),
        out=stats((), "float16"),
    )
    found = exp(12.0, cast, dtype="float16", of=0, optimizers=(adam(),))
    assert ranked(found)[0] == "temperature-too-small"
    told = verdict("temperature-too-small", found)
    assert told is not None
    assert told.site == site(3, "torch.optim.Adam(p, lr=1e-3)", "torch.optim.Adam")


def test_written_temperature_needs_bounded_similarities() -> None:
    scaled = op(0, "div", value("dividend", low=-1.0, high=1.0), out=stats(low=-200, high=200), scalars={"other": 0.005})
    assert ranked(exp(200.0, scaled, of=0))[0] == "temperature-too-small"
    loose = op(0, "div", value("dividend", low=-30.0, high=40.0), out=stats(low=-600, high=800), scalars={"other": 0.05})
    assert ranked(exp(800.0, loose, of=0))[0] == "exp-overflow"


def test_negated_parameter_is_a_collapsed_scale() -> None:
    negated = op(0, "neg", value("input", low=-90.0, high=-1.0, source="parameter", name="s"), out=stats(low=1, high=90))
    assert ranked(exp(90.0, negated, of=0))[0] == "scale-collapse"
    twice = op(1, "neg", value("input", of=0, low=1, high=90), out=stats(low=-90, high=-1))
    assert verdict("scale-collapse", exp(90.0, negated, twice, of=1)) is None


def test_softplus_that_underflowed_is_a_collapsed_scale() -> None:
    scale = op(0, "softplus", value("input", low=-150.0, high=1.0), out=stats(low=0, high=1.3, zero=1))
    by = value("divisor", 0.0, of=0, low=0, high=1.3, zero=1)
    assert ranked(born(op(1, "div", value("dividend", 3.0, low=1, high=3), by, out=bad(posinf=1)), scale))[0] == "scale-collapse"


def test_row_without_a_visible_element() -> None:
    masked = value("logits", -INF, stats=stats((2, 3), low=-1, high=2, neginf=4))
    case = born(op(0, "softmax", masked, out=bad((2, 3), nan=3)), from_infinity=True, samples=(1,))
    assert ranked(case)[0] == "masked-softmax-row"
    found = verdict("masked-softmax-row", case)
    assert found is not None
    assert "1 of 2 rows (of 3 elements each) became NaN" in found.evidence


def test_softmax_of_positive_infinity_is_no_mask() -> None:
    logits = value("logits", INF, stats=stats((2, 3), low=-1, high=2, posinf=1))
    case = born(op(0, "softmax", logits, out=bad((2, 3), nan=3)))
    assert verdict("masked-softmax-row", case) is None
    assert ranked(case)[0] == "inf-minus-inf"


def test_softmax_by_hand_over_a_masked_row() -> None:
    masked = stats((2, 3), low=-1, high=2, neginf=4)
    top = op(0, "amax", value("input", stats=masked), out=bad((2, 1), neginf=1))
    less = op(1, "sub", value("input", -INF, stats=masked), value("other", -INF, of=0, stats=bad((2, 1), neginf=1)), out=bad((2, 3)))
    assert ranked(born(less, top))[0] == "masked-softmax-row"


def test_two_masks_of_the_smallest_number() -> None:
    low = -3.4028234663852886e38
    both = (value("input", low, low=low, high=0.0), value("other", low, low=low, high=0.0))
    assert ranked(born(op(0, "add", *both, out=bad(neginf=2))))[:2] == ["mask-sum-overflow", "fp32-overflow"]


def test_largest_number_as_a_sentinel() -> None:
    top = 3.4028234663852886e38
    both = (value("input", top, low=0.5, high=top), value("other", top, low=2.5, high=top))
    case = born(op(0, "add", *both, out=bad(posinf=1)))
    assert ranked(case)[0] == "sentinel-overflow"
    assert verdict("mask-sum-overflow", case) is None


def test_zero_times_infinity() -> None:
    case = born(op(0, "mul", value("input", 0.0, low=0, high=1, zero=1), value("other", -INF, stats=bad(neginf=1)), out=bad()))
    assert ranked(case)[0] == "zero-times-inf"


def test_mask_multiplied_onto_missing_data() -> None:
    missing = value("input", math.nan, stats=stats(low=-1, high=1, nan=1), from_batch=True)
    first = op(0, "mul", missing, value("other", 0.0, low=0, high=1, zero=1), out=bad())
    assert ranked(born(first, op="input", phase="input"))[:2] == ["nan-times-zero-mask", "nan-in-data"]
    unmasked = op(0, "mul", missing, value("other", 0.7, low=0.1, high=1), out=bad())
    assert ranked(born(unmasked, op="input", phase="input")) == ["nan-in-data"]


def test_missing_data_selected_after_the_loss() -> None:
    missing = value("target", math.nan, stats=stats(low=-1, high=1, nan=1), from_batch=True)
    loss = op(0, "mse_loss", value("input", low=-1, high=1), missing, out=bad())
    select = op(1, "index", value("input", of=0, stats=bad()), out=stats(low=0, high=1))
    inner = op(2, "mul", value("input", 0.0, low=0, high=1), value("other", math.nan, stats=bad()), out=bad(), direction="backward")
    inner = replace(inner, node="MseLossBackward0", forward=0)
    assert ranked(born(inner, loss, select))[0] == "nan-times-zero-mask"


def hidden(gradient: float, selection: str = "where"):
    """A root outside its domain whose result a selection drops; `gradient` is what arrives in the backward pass."""
    root = op(0, "sqrt", value("input", -2.0, low=-2.0, high=3.0), out=bad())
    select = op(1, selection, value("condition", dtype="bool"), value("input", of=0, stats=bad()), out=stats(low=0, high=2))
    arrived = value("dividend", gradient, low=min(gradient, 0), high=1.0)
    inner = op(2, "div", arrived, value("divisor", math.nan, stats=bad()), out=bad(), direction="backward")
    return root, select, replace(inner, node="SqrtBackward0", forward=0)


def test_gradient_of_zero_into_a_hidden_branch() -> None:
    root, select, inner = hidden(0.0)
    assert ranked(born(inner, root, select))[0] == "where-grad-trap"


def test_birth_in_the_forward_pass_that_only_the_gradient_shows() -> None:
    root, select, _ = hidden(0.0)
    assert ranked(born(root, after=(select,), what="gradient"))[:2] == ["where-grad-trap", "sqrt-of-negative"]


def test_branch_in_use_is_no_trap() -> None:
    root, select, inner = hidden(0.5)
    assert verdict("where-grad-trap", born(inner, root, select)) is None


def test_relu_is_no_selection() -> None:
    root, relu, inner = hidden(0.0, "relu")
    assert verdict("where-grad-trap", born(inner, root, relu)) is None


def test_infinity_less_infinity() -> None:
    both = (value("input", INF, stats=bad(posinf=1)), value("other", INF, stats=bad(posinf=1)))
    assert ranked(born(op(0, "sub", *both, out=bad())))[0] == "inf-minus-inf"
    one = (value("input", INF, stats=bad(posinf=1)), value("other", 2.0, low=0, high=3))
    assert "inf-minus-inf" not in ranked(born(op(0, "sub", *one, out=bad(posinf=1))))


def test_exploded_course_stands_before_the_exponential() -> None:
    trend = course([1.0, 1.1, 40.0, 3e6], ratio=[0.3, 0.4, 0.5, 0.9])
    assert ranked(exp(300.0, trend=trend, optimizers=(adam(),)))[:2] == ["lr-too-high", "exp-overflow"]
