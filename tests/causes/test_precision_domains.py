"""Formats, domains, derivatives and matrices: which cause a record of literals supports."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from tests.causes.builders import adam, bad, born, op, ranked, stats, value, verdict

INF = math.inf


def backward(index: int, name: str, *inputs, node: str, forward: int = 0, out=None, **rest):
    return replace(op(index, name, *inputs, out=out or bad(posinf=1), direction="backward", **rest), node=node, forward=forward)


def protected(constant: float, dtype: str, absorbed: int = 4):
    added = op(0, "add", value("input", low=0, high=1, dtype=dtype, zero=1), out=stats(dtype=dtype, low=0, high=1, zero=1))
    return replace(added, scalars={"other": constant}, absorbed=absorbed)


@pytest.mark.parametrize("name", ["log", "div", "rsqrt"])
def test_epsilon_that_is_zero_in_its_format(name: str) -> None:
    role = "divisor" if name == "div" else "input"
    operand = value(role, 0.0, of=0, dtype="float16", low=0, high=1, zero=1)
    others = (value("dividend", 0.0, low=0, high=1),) if name == "div" else ()
    case = born(op(1, name, *others, operand, out=bad(dtype="float16")), protected(1e-8, "float16"))
    assert ranked(case)[0] == "eps-underflow"
    found = verdict("eps-underflow", case)
    assert found is not None
    assert found.evidence[0] == "the constant 1e-08 on line 7 is 0 in float16"


def test_epsilon_that_the_format_holds_is_not_blamed() -> None:
    log = op(1, "log", value("input", 0.0, of=0, low=0, high=1, zero=1), out=bad(neginf=1))
    assert verdict("eps-underflow", born(log, protected(1e-8, "float32", absorbed=3))) is None


def test_epsilon_next_to_one() -> None:
    less = op(0, "rsub", value("input", low=0, high=1), out=stats(low=0, high=1, zero=1), scalars={"other": 1 + 1e-10}, absorbed=1)
    log = op(1, "log", value("input", 0.0, of=0, low=0, high=1, zero=1), out=bad(neginf=1))
    assert ranked(born(log, less))[0] == "eps-underflow"
    plain = replace(less, scalars={"other": 1}, absorbed=0)
    assert ranked(born(log, plain))[0] == "log-of-zero"


def test_bound_that_rounds_to_one() -> None:
    clamp = op(0, "clamp", value("input", low=0, high=1), out=stats(low=1e-8, high=1, zero=0), scalars={"min": 1e-8, "max": 1 - 1e-8})
    less = op(1, "rsub", value("input", of=0, low=1e-8, high=1), out=stats(low=0, high=1, zero=1), scalars={"other": 1})
    log = op(2, "log", value("input", 0.0, of=1, low=0, high=1, zero=1), out=bad(neginf=1))
    assert ranked(born(log, replace(clamp, absorbed=1), less))[0] == "eps-underflow"


def test_epsilon_that_rounds_away_beside_the_zero_is_not_blamed() -> None:
    rest = op(0, "add", value("input", low=0.2, high=1), out=stats(low=0.2, high=1, zero=0), scalars={"other": 1e-10}, absorbed=4)
    weight = op(1, "mul", value("input", low=0, high=1, zero=1), value("other", of=0, low=0.2, high=1), out=stats(low=0, high=1, zero=1))
    log = op(2, "log", value("input", 0.0, of=1, low=0, high=1, zero=1), out=bad(neginf=1))
    assert ranked(born(log, rest, weight)) == ["log-of-zero"]


def test_epsilon_subtracted_from_one_that_is_then_subtracted() -> None:
    less = op(0, "sub", value("input", low=0, high=1), out=stats(low=0.2, high=1, zero=0), scalars={"other": 1e-9}, absorbed=4)
    rest = op(1, "rsub", value("input", of=0, low=0.2, high=1), out=stats(low=0, high=0.8, zero=1), scalars={"other": 1})
    log = op(2, "log", value("input", 0.0, of=1, low=0, high=0.8, zero=1), out=bad(neginf=1))
    assert ranked(born(log, less, rest))[:2] == ["eps-underflow", "log-of-zero"]


def test_epsilon_of_a_root_in_the_backward_pass() -> None:
    root = op(1, "sqrt", value("input", of=0, dtype="float16", low=0, high=1, zero=1), out=stats(dtype="float16", low=0, high=1, zero=1))
    inner = backward(
        2,
        "div",
        value("dividend", 1.0, low=0, high=1),
        value("divisor", 0.0, low=0, high=2, zero=1),
        node="SqrtBackward0",
        forward=1,
    )
    assert ranked(born(inner, protected(1e-12, "float16"), root))[:2] == ["eps-underflow", "sqrt-grad-at-zero"]


def test_constant_beyond_half_precision() -> None:
    copy = op(0, "_to_copy", value("input", shape=(), low=-1e10, high=-1e10), out=bad((), "float16", neginf=1))
    assert ranked(born(copy))[0] == "fp16-constant-overflow"
    data = op(0, "_to_copy", value("input", low=-1e10, high=3.0), out=bad((4,), "float16", neginf=1))
    assert ranked(born(data))[0] == "fp16-overflow"


def test_constant_that_became_nan_in_a_product() -> None:
    copy = op(0, "_to_copy", value("input", shape=(), low=-1e10, high=-1e10), out=bad((), "float16", neginf=1))
    mask = value("other", -INF, of=0, stats=bad((), "float16", neginf=1))
    product = op(1, "mul", value("input", 0.0, dtype="float16", low=0, high=1, zero=2), mask, out=bad(dtype="float16"))
    assert ranked(born(product, copy, from_infinity=True))[0] == "fp16-constant-overflow"


def test_product_beyond_half_precision() -> None:
    inputs = (value("input", dtype="float16", low=-900, high=900), value("other", dtype="float16", low=-80, high=90))
    case = born(op(0, "mm", *inputs, out=bad(dtype="float16", posinf=2), float64_finite=True))
    assert ranked(case) == ["fp16-overflow"]
    assert ranked(born(op(0, "mm", *inputs, out=bad(dtype="float16", nan=2)))) == []


def test_gradient_beyond_half_precision() -> None:
    inner = backward(0, "mul", value("input", dtype="float16", low=-900, high=900), node="MulBackward0", out=bad(dtype="float16", posinf=1))
    case = born(inner, scale=65536.0)
    assert ranked(case)[0] == "fp16-grad-overflow"
    assert "with a loss scale of 6.554e+04" in (verdict("fp16-grad-overflow", case) or pytest.fail("silent")).summary


def test_square_beyond_single_precision() -> None:
    case = born(op(0, "pow", value("base", 1e20, low=0, high=1e20), out=bad(posinf=1), scalars={"exponent": 2}))
    assert ranked(case)[:2] == ["sentinel-overflow", "fp32-overflow"]
    plain = born(op(0, "pow", value("base", 3.7e19, low=0, high=3.7e19), out=bad(posinf=1), scalars={"exponent": 2}))
    assert ranked(plain) == ["fp32-overflow"]


def test_root_and_power_of_negative_numbers() -> None:
    root = born(op(0, "sqrt", value("input", -1e-7, low=-1e-7, high=1), out=bad()))
    assert ranked(root)[0] == "sqrt-of-negative"
    assert "negative by rounding" in (verdict("sqrt-of-negative", root) or pytest.fail("silent")).summary
    power = op(0, "pow", value("base", -2.0, low=-2, high=1, zero=1), out=bad(), scalars={"exponent": -0.5})
    assert ranked(born(power))[0] == "pow-of-negative"
    assert verdict("pow-of-negative", born(replace(power, scalars={"exponent": -1.0}))) is None


@pytest.mark.parametrize(
    ("name", "argument"),
    [
        ("acos", 1.0000001),
        ("asin", -1.1),
        ("atanh", 1.0),
        ("acosh", 0.9),
        ("erfinv", 1.0),
        ("logit", 1.0),
        ("lgamma", 0.0),
        ("digamma", 0.0),
    ],
)
def test_argument_at_the_edge_of_its_domain(name: str, argument: float) -> None:
    case = born(op(0, name, value("input", argument, low=min(argument, 0.5), high=max(argument, 0.5)), out=bad(nan=1)))
    assert ranked(case)[0] == "domain-boundary"


def test_argument_inside_its_domain_is_not_blamed() -> None:
    assert verdict("domain-boundary", born(op(0, "acos", value("input", 0.3, low=0.3, high=0.9), out=bad()))) is None


def test_derivative_at_the_edge_of_a_domain() -> None:
    forward = op(0, "acos", value("input", low=-0.3, high=1.0), out=stats(low=0, high=1.8, zero=1))
    inner = backward(1, "rsqrt", value("input", 0.0, low=0, high=1, zero=1), node="AcosBackward0")
    assert ranked(born(inner, forward))[0] == "domain-boundary"


@pytest.mark.parametrize(
    ("name", "node"),
    [("sqrt", "SqrtBackward0"), ("std", "StdBackward0"), ("hypot", "HypotBackward0"), ("cdist", "CdistBackward0")],
)
def test_derivative_of_a_root_at_zero(name: str, node: str) -> None:
    forward = op(0, name, value("input", low=0, high=3, zero=1), out=stats(low=0, high=3, zero=1))
    inner = backward(1, "div", value("dividend", 1.0, low=0, high=1), value("divisor", 0.0, low=0, high=6, zero=1), node=node)
    assert ranked(born(inner, forward))[0] == "sqrt-grad-at-zero"


def test_derivative_of_a_root_away_from_zero_is_not_blamed() -> None:
    forward = op(0, "sqrt", value("input", low=0.1, high=3), out=stats(low=0.3, high=1.7, zero=0))
    inner = backward(1, "div", value("dividend", INF, low=0, high=1), value("divisor", 0.6, low=0.6, high=6), node="SqrtBackward0")
    assert verdict("sqrt-grad-at-zero", born(inner, forward)) is None


def test_derivative_of_a_power_at_zero() -> None:
    forward = op(0, "pow", value("base", low=0, high=1, zero=1), out=stats(low=0, high=1, zero=1), scalars={"exponent": 0.5})
    inner = backward(1, "pow", value("base", 0.0, low=0, high=1, zero=1), node="PowBackward0", scalars={"exponent": -0.5})
    assert ranked(born(inner, forward))[0] == "pow-grad-at-zero"
    square = replace(forward, scalars={"exponent": 2.0})
    assert verdict("pow-grad-at-zero", born(inner, square)) is None


def test_equal_singular_values() -> None:
    forward = op(
        0,
        "linalg_svd",
        value("input", shape=(3, 3), low=0, high=1),
        out=(stats((3, 3)), stats((3,), low=1, high=1), stats((3, 3))),
    )
    inner = backward(
        1, "div", value("dividend", 0.0, low=0, high=1), value("divisor", 0.0, low=0, high=1, zero=6), node="LinalgSvdBackward0"
    )
    case = born(inner, forward)
    assert ranked(case)[0] == "svd-degenerate"
    found = verdict("svd-degenerate", case)
    assert found is not None
    assert found.evidence[0] == "the singular values run from 1 to 1"


def test_log_determinant_of_a_singular_matrix() -> None:
    outputs = (stats((), low=0, high=0, zero=1), bad((), neginf=1), stats((6, 6), low=-1, high=1, zero=1), stats((6,), "int32"))
    assert ranked(born(op(0, "linalg_slogdet", value("input", shape=(6, 6), low=0, high=1), out=outputs)))[0] == "singular-matrix"


def test_epsilon_of_adam_in_single_precision_is_not_blamed() -> None:
    update = op(
        0,
        "addcdiv",
        value("dividend", 1.0, low=0, high=1),
        value("divisor", 0.0, low=0, high=1, zero=1),
        out=bad(),
        direction="optimizer",
    )
    assert verdict("adam-eps-underflow", born(update, optimizers=(adam(),))) is None


def test_what_no_cause_explains_stays_without_a_name() -> None:
    assert ranked(born(op(0, "some_custom_kernel", value("input", 0.5, low=0, high=1), out=bad()))) == []
