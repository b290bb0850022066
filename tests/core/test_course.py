"""The phase `dynamics`: only what training itself has moved, over many steps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.core.steps import Step
from whynan.core.catalogue import Cause, Entry
from whynan.core.course import with_course
from whynan.core.incident import Diagnosis
from whynan.core.records import Operand, TensorStats
from whynan.core.session import Session

ZERO = TensorStats((4, 3), "float32", 0.0, 0.0, 0.0, zero=12)


def phase(step: Step, born: Operand, diagnosed: str = "", at: int = 11, **session: Any) -> str:
    """The phase of a birth in the operation that made `born`."""
    found = step.found(born, **session)
    cause = Cause("drift", "a title", "run", "Why.", "Doubt.", no_remedy="None.", course=True)
    diagnoses = (Diagnosis(diagnosed, 0.9, "It happened", (), None),) if diagnosed else ()
    entry = Entry(cause, "family", "", lambda birth, session: None, "", "")
    return with_course(found, diagnoses, Session(at, "loss", operations=step.operations), (entry,)).phase


def zeroed(step: Step, value: Operand) -> Operand:
    """The operation's result is all 0."""
    assert value.producer is not None
    step.operations[value.producer] = replace(step.operations[value.producer], outputs=(ZERO,))
    return replace(value, stats=ZERO)


def weight(step: Step) -> Operand:
    return step.outside("parameter")


def test_a_parameter_that_training_moved_out_of_a_domain_is_a_course() -> None:
    step = Step()
    rest = step.op("rsub", step.op("mul", weight(step), scalars={"other": 2.0}), scalars={"other": 1})
    born = step.op("log", rest, nan=1)
    assert phase(step, born) == "dynamics"
    assert phase(step, born, at=1) == "loss"


def test_a_cause_that_is_a_course_is_one() -> None:
    step = Step()
    born = step.op("exp", step.op("mul", step.outside(), weight(step)), posinf=1)
    assert phase(step, born, "drift") == "dynamics"
    assert phase(step, born, "log-of-zero") == "loss"


@pytest.mark.parametrize(
    ("name", "scalars", "dead"),
    [("mul", {"other": 0}, True), ("sub", {}, True), ("zeros_like", {}, True), ("mul", {"other": 2}, False)],
)
def test_a_zero_that_the_program_wrote_is_none(name: str, scalars: dict[str, object], dead: bool) -> None:
    step = Step()
    one = weight(step)
    made = step.op(name, one, *([one] if name == "sub" else []), scalars=scalars)
    made = zeroed(step, made) if dead else made
    born = step.op("div", made, made, nan=1)
    assert phase(step, born) == ("loss" if dead else "dynamics")


def test_a_division_by_the_number_zero_is_none() -> None:
    step = Step()
    assert phase(step, step.op("div", weight(step), posinf=1, scalars={"other": 0.0})) == "loss"
    assert phase(step, step.op("div", weight(step), posinf=1, scalars={"other": 1e-30})) == "dynamics"


def test_zeros_of_a_parameter_itself_are_a_course() -> None:
    step = Step()
    vanished = zeroed(step, step.op("softplus", weight(step)))
    assert phase(step, step.op("reciprocal", vanished, posinf=1)) == "dynamics"


def test_what_is_input_stays_input_whatever_the_course() -> None:
    step = Step()
    born = step.op("log", step.outside(), nan=1)
    loss = step.op("mm", born, weight(step), nan=1)
    assert phase(step, loss, "drift") == "input"
