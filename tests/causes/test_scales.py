"""A learned scale that vanished without being 0, in the forward pass or where its derivative overflowed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.causes.builders import bad, born, op, ranked, stats, value, verdict
from whynan.causes._words import extent

LEAST = 6e-20


def derivative(*, source: str = "parameter", maker: str = "softplus", least: float = LEAST, divided: float = 3.0, step: int = 9):
    raw = op(0, "addmm", value("mat2", source=source, from_batch=source == "input", low=-1, high=1), out=stats(low=-44, high=2))
    made = op(1, maker, value("input", of=0, low=-44, high=2), out=stats(low=least, high=0.7))
    scale = value("divisor", of=1, low=least, high=0.7)
    quotient = op(2, "div", value("dividend", low=-divided, high=divided), scale, out=stats(low=0, high=1e20))
    slope = op(3, "div", value("dividend", low=-3, high=3e19), scale, out=bad(posinf=6), direction="backward")
    return born(replace(slope, node="DivBackward0", forward=2), raw, made, quotient, step=step)


@pytest.mark.parametrize("maker", ["softplus", "exp", "sigmoid"])
def test_a_trained_scale_that_is_all_but_zero_has_collapsed(maker: str) -> None:
    case = derivative(maker=maker)
    assert ranked(case)[0] == "scale-collapse"
    found = verdict("scale-collapse", case)
    assert found is not None
    assert "ran to 6e-20" in found.summary
    assert found.summary.startswith("the derivative of ")


@pytest.mark.parametrize(
    "rest",
    [{"source": "input"}, {"maker": "relu"}, {"least": 1e-3}, {"divided": 1e-19}, {"step": 0}],
    ids=["not trained", "not positive by itself", "not small", "as small as what it divides", "before any update"],
)
def test_another_divisor_has_not(rest: dict) -> None:
    assert verdict("scale-collapse", derivative(**rest)) is None


def logged(*, divides: bool):
    raw = op(0, "addmm", value("mat2", source="parameter", low=-1, high=1), out=stats(low=-93, high=2))
    made = op(1, "softplus", value("input", of=0, low=-93, high=2), out=stats(low=3e-41, high=0.7))
    role = "divisor" if divides else "other"
    divided = op(2, "div" if divides else "mul", value("dividend", low=-3, high=3), value(role, of=1, low=3e-41, high=0.7))
    log = op(3, "log", value("input", of=1, low=3e-41, high=0.7), out=stats(low=-93, high=0))
    slope = op(4, "div", value("dividend", low=0.1, high=0.1), value("divisor", of=1, low=3e-41), out=bad(posinf=1), direction="backward")
    return born(replace(slope, node="LogBackward0", forward=3), raw, made, divided, log)


def test_the_derivative_of_its_logarithm_overflows_as_well() -> None:
    assert verdict("scale-collapse", logged(divides=True)) is not None


def test_what_divides_nothing_is_no_scale() -> None:
    assert verdict("scale-collapse", logged(divides=False)) is None


def test_matrices_go_by_the_users_words() -> None:
    assert extent(value("mat1", low=0, high=9)).startswith("the input (")
    assert extent(value("mat2", source="parameter", low=0, high=9)).startswith("the weight (")
