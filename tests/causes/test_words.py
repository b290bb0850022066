"""How operands, zeros, rows and origins are put into words."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from tests.causes.builders import bad, born, op, site, stats, value
from whynan.causes._words import at_rows, called, extent, made_by, with_zeros, written, zeros
from whynan.core.operands import numbers
from whynan.core.records import Operand, Operation


@pytest.mark.parametrize(
    ("operand", "expected"),
    [
        (value("divisor", shape=(4, 3), low=0, high=2.5), "the divisor (float32 4x3) runs from 0 to 2.5"),
        (value("divisor", shape=(4, 3), low=0, high=0), "the divisor (float32 4x3) is 0 throughout"),
        (value("divisor", shape=(), low=7, high=7), "the divisor (float32 scalar) is 7"),
        (value("divisor", stats=stats(low=0, high=0, nan=1)), "the divisor (float32 4) runs from 0 to 0"),
        (value("divisor", stats=bad(nan=4)), "the divisor (float32 4) has no finite element"),
        (value("other", low=0, high=1), "the other operand (float32 4) runs from 0 to 1"),
        (numbers(op(0, "div", scalars={"other": 0.0}))[0], "the divisor is the number 0"),
        (numbers(op(0, "mul", scalars={"other": -math.inf}))[0], "the other operand is the number -inf"),
    ],
)
def test_extent(operand: Operand, expected: str) -> None:
    assert extent(operand) == expected


@pytest.mark.parametrize(
    ("shape", "zero", "expected"),
    [
        ((), 1, "the divisor is exactly 0"),
        ((1, 1), 1, "the divisor is exactly 0"),
        ((6,), 1, "1 of the 6 divisors is exactly 0"),
        ((6,), 2, "2 of the 6 divisors are exactly 0"),
        ((6,), 6, "all 6 divisors are exactly 0"),
    ],
)
def test_zeros(shape: tuple[int, ...], zero: int, expected: str) -> None:
    assert zeros(stats(shape, low=0, high=1, zero=zero), "divisor") == expected


def test_zeros_are_counted_only_where_the_extent_does_not_say_it() -> None:
    assert len(with_zeros(value("divisor", low=0, high=1, zero=1), "divisor")) == 2
    assert len(with_zeros(value("divisor", low=0, high=0, zero=4), "divisor")) == 1
    assert len(with_zeros(value("divisor", low=1, high=2), "divisor")) == 1


@pytest.mark.parametrize(
    ("rows", "samples", "expected"),
    [
        (None, None, ""),
        ((2,), None, " at row 2 of the result"),
        ((0, 1, 2, 3), None, ""),
        ((2,), (2,), " at row 2 of the batch"),
        ((0, 2), (0, 2), " at rows 0 and 2 of the batch"),
        ((0, 1, 2, 3), (0, 1, 2, 3), " at all 4 rows of the batch"),
    ],
)
def test_rows_are_of_the_batch_or_of_the_result(rows: tuple[int, ...] | None, samples: tuple[int, ...] | None, expected: str) -> None:
    birth, _ = born(op(0, "div", out=bad((4, 3)), rows=rows), samples=samples)
    assert at_rows(birth) == expected


def at(name: str, expression: str | None, call: str | None, source: str = "y = f(1 - p)") -> Operation:
    return op(0, name, site=replace(site(9), source=source, expression=expression, call=call))


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (at("softmax", "torch.softmax(z, 1)", "torch.softmax"), "torch.softmax"),
        (at("linalg_det", "torch.linalg.det(m)", "torch.linalg.det"), "torch.linalg.det"),
        (at("nll_loss2d", "F.nll_loss(p, y)", "F.nll_loss"), "F.nll_loss"),
        (at("log", "x.log_()", "x.log_"), "x.log_"),
        (at("rsub", "1 - p", "operator.sub"), "`1 - p`"),
        (at("addmm", "m(x)", "m"), "`m(x)`"),
        (at("log", "catalog(x)", "catalog"), "`catalog(x)`"),
        (at("copy", "x[0]", None, "x[0] = 1 - p"), "`x[0] = 1 - p`"),
        (at("index", "x[0]", None, "y = x[0] + 1"), "`x[0]`"),
        (at("index", "x[0]", None, "x[0] == y"), "`x[0]`"),
        (at("rsub", None, None), "`y = f(1 - p)`"),
        (at("rsub", None, None, ""), "rsub"),
        (at("mul", "a * " * 30 + "b", "operator.mul"), f"`{('a * ' * 30)[:57]}...`"),
        (op(0, "rsub", site=None), "rsub"),
    ],
)
def test_what_was_written_is_shown_and_no_kernel_that_was_not(operation: Operation, expected: str) -> None:
    assert written(operation) == expected


def test_where_it_was_made_is_a_line_of_its_file() -> None:
    birth, _ = born(op(1, "log"))
    made = at("rsub", "1 - p", "operator.sub")
    assert made_by(made, birth) == "`1 - p` on line 9"
    assert made.site is not None
    elsewhere = replace(made, site=replace(made.site, file="/work/models/loss.py"))
    assert made_by(elsewhere, birth) == "`1 - p` on line 9 of loss.py"
    assert made_by(replace(made, site=None), birth) == "rsub"


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (at("div", "a / b", "operator.truediv"), "the division"),
        (at("remainder", "a % b", "operator.mod"), "the remainder"),
        (at("bitwise_and", "a & b", "operator.and_"), "`a & b`"),
        (at("index", "x[m]", None), "`x[m]`"),
        (at("log", "F.poisson_nll_loss(a, b)", "F.poisson_nll_loss"), "F.poisson_nll_loss (log)"),
    ],
)
def test_what_is_called(operation: Operation, expected: str) -> None:
    assert called(born(operation)[0]) == expected
