"""What is born at an operation of a real step is recorded and located there, and recording changes nothing."""

from __future__ import annotations

import pytest
import torch
from hypothesis import Phase, assume, given, settings

from tests.torch.programs import BACKWARD, FORWARD, OPERAND, Plant, Program, Run, located, nasty_programs, programs
from tests.torch.tensors import bits
from whynan.core.session import Birth

WITHOUT_EXPLANATION = (Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink)
random_programs = settings(max_examples=50, deadline=None, phases=WITHOUT_EXPLANATION, report_multiple_bugs=False)


def bad_gradients(run: Run) -> list[torch.Tensor]:
    return [p.grad for p in (run.w, run.b) if p.grad is not None and not torch.isfinite(p.grad).all()]


def assert_finds_planted_birth(program: Program) -> None:
    assert program.plant is not None
    run = Run(program)
    trace = run.traced()
    assert trace.fault is None
    if program.plant in FORWARD:
        birth = located(trace, "loss", run.loss)
        assert birth is not None
        assert (birth.op, birth.kind, birth.direction) == (program.plant.op, program.plant.kind, "forward")
    else:
        birth = located(trace, "gradient", *bad_gradients(run))
        assert birth is not None
        assert (birth.direction, birth.phase, birth.parameters) == ("backward", "backward", ("w", "b"))
        maker = birth.operation.forward
        assert maker is not None
        assert trace.operations[maker].site == birth.site
    assert birth.site is not None
    assert birth.site.line == program.line
    assert birth.site.source == program.source.splitlines()[program.line - 1]
    assert birth.samples == (program.rows if program.plant.rows else None)


def assert_is_a_birth(birth: Birth | None) -> None:
    """Nothing bad went in but what was bad before, or infinities of which it made NaN; something bad came out."""
    assert birth is not None
    operation = birth.operation
    if birth.op in ("input", "param", "buffer"):
        assert any(not operand.stats.finite and operand.producer is None for operand in operation.inputs)
        return
    assert not operation.finite
    assert all(operand.stats.finite for operand in operation.inputs) or birth.from_infinity


def assert_unchanged(program: Program) -> None:
    """Every variable, every gradient and the random state, bit for bit."""
    plain, traced = Run(program), Run(program)
    plain.plainly()
    state = torch.get_rng_state()
    traced.traced()
    assert torch.equal(torch.get_rng_state(), state)
    for name, value in plain.names.items():
        if isinstance(value, torch.Tensor):
            assert bits(traced.names[name]) == bits(value), name
            assert traced.names[name].stride() == value.stride(), name
            assert traced.names[name]._version == value._version, name
    for theirs, ours in ((plain.w, traced.w), (plain.b, traced.b)):
        assert (theirs.grad is None) == (ours.grad is None)
        assert theirs.grad is None or ours.grad is None or bits(theirs.grad) == bits(ours.grad)


def single(plant: Plant) -> Program:
    """The planted line alone, in the middle two rows."""
    lines = [line.format(special=plant.special, a="x") for line in OPERAND] + [plant.line.format(n="v"), "loss = v.sum()"]
    return Program("\n".join(lines) + "\n", (1, 2), 3, plant, torch.linspace(-1, 1, 12).reshape(4, 3))


@pytest.mark.parametrize("plant", FORWARD + BACKWARD, ids=lambda plant: f"{plant.line.format(n='v')} of {plant.special}")
def test_every_planted_birth_is_located(plant: Plant) -> None:
    assert_finds_planted_birth(single(plant))


@pytest.mark.parametrize("plant", FORWARD + BACKWARD, ids=lambda plant: f"{plant.line.format(n='v')} of {plant.special}")
def test_recording_a_planted_birth_changes_nothing(plant: Plant) -> None:
    assert_unchanged(single(plant))


@random_programs
@given(programs(FORWARD))
def test_a_birth_in_the_forward_pass_is_located_in_any_program(program: Program) -> None:
    plain = Run(program).plainly()
    assume(not torch.isfinite(plain.loss) and Run(program).finite_before(program.line))
    assert_finds_planted_birth(program)


@random_programs
@given(programs(BACKWARD))
def test_a_birth_in_the_backward_pass_is_located_in_any_program(program: Program) -> None:
    plain = Run(program).plainly()
    assume(torch.isfinite(plain.loss) and bad_gradients(plain))
    assert_finds_planted_birth(program)


@random_programs
@given(programs(FORWARD + BACKWARD))
def test_recording_changes_nothing_in_any_program(program: Program) -> None:
    assert_unchanged(program)


@random_programs
@given(nasty_programs())
def test_whatever_the_tensors_a_birth_is_found_where_the_loss_is_bad(program: Program) -> None:
    run = Run(program)
    trace = run.traced()
    assert trace.fault is None
    if not torch.isfinite(run.loss):
        assert_is_a_birth(located(trace, "loss", run.loss))
    elif bad_gradients(run):
        assert_is_a_birth(located(trace, "gradient", *bad_gradients(run)))


@random_programs
@given(nasty_programs())
def test_recording_changes_nothing_whatever_the_tensors(program: Program) -> None:
    assert_unchanged(program)
