"""Every change that is shown runs, and mends what it is shown for: on tensors of each format and on numbers of Python."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch

from tests.causes.builders import born, op, site, stats, value
from whynan.causes import catalogue
from whynan.core.catalogue import Edit
from whynan.core.incident import Diagnosis
from whynan.core.prescribe import prescribe

FORMATS = {"float32": torch.float32, "float64": torch.float64, "float16": torch.float16, "bfloat16": torch.bfloat16}
DIVISION, ROOT_ZERO = ("div", "divisor"), ("sqrt", "input")


@dataclass(frozen=True)
class Line:
    """An expression that goes bad where `x` is `bad`; `kernel` is the operation and the role in which it reads `x`."""

    cause: str
    expression: str
    kernel: tuple[str, str]
    bad: float = 0.0
    number: str = ""  # the name among the operation's numbers under which a plain number x goes
    backward: bool = False
    formats: tuple[str, ...] = tuple(FORMATS)


LINES = [
    Line("div-by-zero", "a / x", DIVISION, number="other"),
    Line("div-by-zero", "a.div(x)", DIVISION, number="other"),
    Line("div-by-zero", "torch.div(a, x)", DIVISION, number="other"),
    Line("div-by-zero", "torch.rsqrt(x)", ("rsqrt", "input")),
    Line("div-by-zero", "x.reciprocal()", ("reciprocal", "divisor")),
    Line("div-by-zero", "x ** -a", ("pow", "base"), number="self"),
    Line("div-zero-by-zero", "(a - a) / x", DIVISION, number="other"),
    Line("div-by-tiny", "a / x", DIVISION, 1e-45, number="other", formats=("float32",)),
    Line("div-by-tiny", "a / x", DIVISION, 1e-7, formats=("float16",)),
    Line("zero-variance-scale", "(a - a) / x", DIVISION, number="other"),
    Line("zero-variance-scale", "torch.rsqrt(x)", ("rsqrt", "input")),
    Line("empty-reduction", "(a - a) / x", DIVISION, number="other"),
    Line("log-of-zero", "torch.log(x)", ("log", "input")),
    Line("log-of-zero", "torch.log10(x * a)", ("log10", "input")),
    Line("log-of-zero", "torch.log(torch.softmax(z, 0))", ("log", "input")),
    Line("log-of-zero", "z.softmax(0).log()", ("log", "input")),
    Line("log-of-zero", "torch.log(F.softmax(z))", ("log", "input")),
    Line("log-of-zero", "torch.log(torch.sigmoid(z))", ("log", "input")),
    Line("log-of-zero", "torch.log((z - 1e4).exp())", ("log", "input")),
    Line("log-of-negative", "torch.log(x)", ("log", "input"), -1.0),
    Line("sqrt-of-negative", "torch.sqrt(x)", ("sqrt", "input"), -1e-5),
    Line("sqrt-of-negative", "torch.rsqrt(x)", ("rsqrt", "input"), -1e-5),
    Line("pow-of-negative", "x ** 0.5", ("pow", "base"), -1.0),
    Line("pow-of-negative", "x ** (a / 4)", ("pow", "base"), -1.0, number="self"),
    Line("domain-boundary", "torch.acos(x)", ("acos", "input"), 1.0, backward=True),
    Line("domain-boundary", "torch.atanh(x)", ("atanh", "input"), -1.0),
    Line("domain-boundary", "torch.logit(x)", ("logit", "input"), 1.0),
    Line("domain-boundary", "torch.acosh(x)", ("acosh", "input"), 0.9),
    Line("domain-boundary", "torch.lgamma(x)", ("lgamma", "input")),
    Line("sqrt-grad-at-zero", "torch.sqrt(x)", ROOT_ZERO, backward=True),
    Line("sqrt-grad-at-zero", "x.sqrt()", ROOT_ZERO, backward=True),
    Line("pow-grad-at-zero", "x ** 0.5", ("pow", "base"), backward=True),
    Line("exp-overflow", "torch.exp(x)", ("exp", "input"), 1e3),
    Line("mask-sum-overflow", "x + x", ("add", "input"), -3e38, formats=("float32",)),
    Line("optimizer-div-zero", "a / x", DIVISION),
]
each = pytest.mark.parametrize("line", LINES, ids=lambda line: f"{line.cause}: {line.expression}")


def changes(line: Line, format_: str) -> list[str]:
    """The expressions that are shown in place of the line's."""
    kernel, role = line.kernel
    place = site(source=f"y = {line.expression}", expression=line.expression)
    if format_ == "int":
        operation = op(0, kernel, value("dividend"), scalars={line.number: 0}, site=place)
    else:
        others = (value("dividend", dtype=format_),) if role == "divisor" and kernel == "div" else ()
        operation = op(0, kernel, *others, value(role, dtype=format_), out=stats(dtype=format_), site=place)
    birth, _ = born(operation)
    diagnosis = Diagnosis(line.cause, 0.9, "It happened", ("a fact",), place, operation=operation)
    remedies = prescribe(birth, (diagnosis,), catalogue())
    return [remedy.change.splitlines()[1].removeprefix("+ y = ") for remedy in remedies if remedy.change.startswith("- ")]


def assert_mended(line: Line, expression: str, x: Any, dtype: torch.dtype) -> None:
    names = {"torch": torch, "F": torch.nn.functional, "x": x, "a": torch.full((4,), 2.0, dtype=dtype)}
    names["z"] = torch.tensor([-1e4, 0.0, 1e4, 1.0], dtype=dtype)
    before = eval(line.expression, dict(names))
    if not line.backward:
        assert not torch.isfinite(before).all(), "the line is healthy as it stands"
    after = eval(expression, dict(names))
    assert torch.isfinite(after).all(), expression
    if isinstance(x, torch.Tensor) and line.backward:
        after.sum().backward()
        assert x.grad is not None
        assert torch.isfinite(x.grad).all(), expression


@each
@pytest.mark.filterwarnings("ignore:Implicit dimension")
def test_a_change_mends_its_line_in_every_format(line: Line) -> None:
    for format_ in line.formats:
        found = changes(line, format_)
        assert found
        dtype = FORMATS[format_]
        for expression in found:
            x = torch.full((4,), line.bad, dtype=dtype, requires_grad=line.backward)
            assert_mended(line, expression, x, dtype)


@each
def test_a_number_of_python_gets_pythons_own_functions(line: Line) -> None:
    if not line.number:
        return
    found = changes(line, "int")
    assert found
    for expression in found:
        assert "x." not in expression
        x = line.bad if line.bad else 0
        eval(expression, {"torch": torch, "x": x, "a": torch.full((4,), 2.0)})


def test_every_edit_of_the_catalogue_is_tried_here() -> None:
    shown = {one for line in LINES for format_ in (*line.formats, *(["int"] if line.number else [])) for one in changes(line, format_)}
    missing = [(entry.cause.name, template) for entry in catalogue() for template in templates(entry) if not _is_shown(template, shown)]
    assert missing == []


def templates(entry: Any) -> list[str]:
    edits: list[Edit] = [edit for advice in entry.cause.remedies for edit in advice.edits if edit.part != "keyword"]
    return [template for edit in edits for template in (edit.template, edit.half, edit.number) if template]


def _is_shown(template: str, shown: set[str]) -> bool:
    around = [part for part in template.strip("()").split("{}") if part.strip("()")]
    return any(all(part.strip("(") in expression for part in around) for expression in shown)


@pytest.mark.parametrize("dtype", ["bool", "complex64"])
def test_what_has_no_bounds_is_not_bounded(dtype: str) -> None:
    line = Line("div-by-zero", "a / x", DIVISION)
    assert changes(line, dtype) == []


def test_a_number_that_is_written_there_is_left_to_the_user() -> None:
    place = site(source="y = a / 0", expression="a / 0")
    operation = op(0, "div", value("dividend"), scalars={"other": 0}, site=place)
    diagnosis = Diagnosis("div-by-zero", 0.9, "It happened", (), place, operation=operation)
    assert not any(remedy.change.startswith("- ") for remedy in prescribe(born(operation)[0], (diagnosis,), catalogue()))


@pytest.mark.parametrize(("imported", "shown"), [("torch", True), ("torch as th", False), ("torch.nn as nn", False), ("torch.nn", True)])
def test_no_name_is_used_that_the_file_does_not_have(imported: str, shown: bool, tmp_path: Any) -> None:
    file = tmp_path / "train.py"
    file.write_text(f"import {imported}\ny = log(x)\n")
    place = replace(site(source="y = log(x)", expression="log(x)"), file=str(file))
    operation = op(0, "log", value("input", -1.0), site=place)
    diagnosis = Diagnosis("log-of-negative", 0.9, "It happened", (), place, operation=operation, ruled_out=("clip-data",))
    told = [remedy.change for remedy in prescribe(born(operation)[0], (diagnosis,), catalogue())]
    assert any("torch.nn.functional.softplus" in change for change in told) == shown
