"""Numbers of Python among the operands are read like tensors: a divisor of 0 is one however it came in."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from tests.causes.builders import adam, bad, born, course, op, ranked, value, verdict
from whynan.core.operands import is_number, numbers, operands

INF = math.inf


def divided(dividend: float, by: float, name: str = "div", **rest):
    role = "dividend" if name == "div" else "input"
    nan = dividend == 0 or name in ("remainder", "fmod")
    given = value(role, dividend, low=min(dividend, 0), high=max(dividend, 1))
    return born(op(0, name, given, out=bad(nan=1) if nan else bad(posinf=1), scalars={"other": by}), **rest)


@pytest.mark.parametrize(
    ("name", "scalars", "roles"),
    [
        ("div", {"other": 0}, ["divisor"]),
        ("div", {"other": False}, ["divisor"]),
        ("remainder", {"self": 5}, ["dividend"]),
        ("pow", {"self": 0.0}, ["base"]),
        ("pow", {"exponent": -1}, ["exponent"]),
        ("xlogy", {"other": 0.0}, ["other"]),
        ("mul", {"other": 10**400}, ["other"]),
        ("sum", {"dim": [0], "keepdim": True}, []),
        ("add", {"other": "text", "alpha": 1}, []),
    ],
)
def test_which_arguments_are_operands(name: str, scalars: dict[str, object], roles: list[str]) -> None:
    operation = op(0, name, value("input"), scalars=scalars)
    assert [operand.role for operand in numbers(operation)] == roles
    assert operands(operation)[0] is operation.inputs[0]
    assert all(map(is_number, numbers(operation)))


@pytest.mark.parametrize("by", [0, 0.0, -0.0, False])
def test_a_number_divided_by_a_zero(by: float) -> None:
    assert ranked(divided(3.0, by))[0] == "div-by-zero"
    found = verdict("div-by-zero", divided(3.0, by))
    assert found is not None
    assert "the divisor is the number 0" in found.evidence
    assert "div-by-zero" not in ranked(divided(3.0, 2.0))


def test_zero_divided_by_a_zero() -> None:
    assert ranked(divided(0.0, 0.0))[:2] == ["div-zero-by-zero", "empty-reduction"]
    assert ranked(divided(0.0, 0))[:2] == ["empty-reduction", "div-zero-by-zero"]


def test_a_zero_that_divides_other_things_too_is_no_count() -> None:
    operation = op(0, "div", value("dividend", 0.0, 3.0, low=0, high=3), out=bad(nan=1, posinf=1), scalars={"other": 0})
    assert verdict("empty-reduction", born(operation)) is None
    assert set(ranked(born(operation))) == {"div-by-zero", "div-zero-by-zero"}


@pytest.mark.parametrize("name", ["floor_divide", "remainder", "fmod"])
def test_other_divisions_by_zero(name: str) -> None:
    assert ranked(divided(3.0, 0, name))[0] == "div-by-zero"
    by_tensor = op(0, name, value("input", 3.0, low=0, high=3), value("other", 0.0, low=0, high=2, zero=1))
    by_tensor = replace(by_tensor, outputs=(bad(nan=1) if name != "floor_divide" else bad(posinf=1),))
    assert ranked(born(by_tensor))[0] == "div-by-zero"
    assert ranked(born(replace(by_tensor, inputs=(by_tensor.inputs[0], value("other", 2.0, low=1, high=2))))) == []


def test_a_base_of_zero_and_a_negative_base() -> None:
    exponent = value("exponent", -0.5, low=-0.5, high=1.0)
    assert ranked(born(op(0, "pow", exponent, out=bad(posinf=1), scalars={"self": 0.0})))[0] == "div-by-zero"
    assert ranked(born(op(0, "pow", exponent, out=bad(nan=1), scalars={"self": -2.0})))[0] == "pow-of-negative"
    positive = value("exponent", 0.5, low=0.5, high=1.0)
    assert "div-by-zero" not in ranked(born(op(0, "pow", positive, out=bad(posinf=1), scalars={"self": 0.0})))


@pytest.mark.parametrize(("name", "pole"), [("xlogy", 0.0), ("special_xlog1py", -1.0)])
def test_a_logarithm_of_a_number(name: str, pole: float) -> None:
    factor = value("input", 2.0, low=1, high=2)
    assert ranked(born(op(0, name, factor, out=bad(neginf=1), scalars={"other": pole})))[0] == "log-of-zero"
    assert ranked(born(op(0, name, factor, out=bad(nan=1), scalars={"other": pole - 1})))[0] == "log-of-negative"


def test_a_number_too_small_to_divide_by() -> None:
    assert ranked(divided(3.0, 1e-40))[0] == "div-by-tiny"
    assert verdict("div-by-tiny", divided(3.0, 1e-3)) is None


def test_a_number_too_large_to_multiply_by() -> None:
    operation = op(0, "mul", value("input", 20.0, low=0, high=20), out=bad(posinf=1), scalars={"other": 1e38})
    found = verdict("fp32-overflow", born(operation))
    assert found is not None
    assert "the other operand is the number 1e+38" in found.evidence


def test_an_infinite_number_times_zero_or_less_infinity() -> None:
    zero = value("input", 0.0, low=0, high=1, zero=1)
    assert ranked(born(op(0, "mul", zero, out=bad(nan=1), scalars={"other": INF})))[0] == "zero-times-inf"
    infinite = value("input", INF, stats=bad(posinf=1))
    assert ranked(born(op(0, "sub", infinite, out=bad(nan=1), scalars={"other": INF})))[0] == "inf-minus-inf"
    assert "inf-minus-inf" not in ranked(born(op(0, "sub", infinite, out=bad(posinf=1), scalars={"other": 2.0})))


def test_the_smallest_number_added_to_a_mask() -> None:
    low = -3.4028234663852886e38
    both = op(0, "add", value("input", low, low=low, high=0.0), out=bad(neginf=2), scalars={"other": low})
    assert ranked(born(both))[0] == "mask-sum-overflow"


def test_an_optimizer_of_the_users_own_that_divides_by_a_number() -> None:
    update = op(0, "div", value("dividend", 0.0, low=0, high=0), out=bad(nan=1), direction="optimizer", scalars={"other": 0.0})
    assert ranked(born(update))[0] == "optimizer-div-zero"


def test_a_division_by_zero_is_no_overflow_of_the_training() -> None:
    """Large updates make large numbers, not a 0."""
    trend = course([1.0, 1.1, 1.2, 1.1], ratio=[0.9, 0.9, 0.9, 0.9])
    by = value("divisor", 0.0, low=0, high=0, shape=(), zero=1, source="parameter")
    assert ranked(born(op(0, "reciprocal", by, out=bad((), posinf=1)), trend=trend, optimizers=(adam(),)))[0] == "div-by-zero"
    large = value("input", 3e38, low=0, high=3e38)
    assert ranked(born(op(0, "mul", large, out=bad(posinf=1)), trend=trend, optimizers=(adam(),)))[0] == "lr-too-high"


def test_a_number_written_into_a_half_precision_quotient_keeps_its_format() -> None:
    given = value("dividend", 100.0, low=0, high=100, dtype="float16")
    small = op(0, "div", given, out=bad(dtype="float16", posinf=1), scalars={"other": 1e-4})
    assert ranked(born(small))[0] == "div-by-tiny"
