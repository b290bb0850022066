"""Every loop shape with every kind of birth: placed right, or told that it can't be and placed by `--trace-step`; never a wrong place."""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Iterator

import pytest

from tests.grid import judge
from tests.grid.births import BIRTHS, KINDS, Birth
from tests.grid.compose import Script, compose
from tests.grid.runner import Ran, Runner
from tests.grid.shapes import SHAPES, Shape

CELLS = [pytest.param(shape, BIRTHS[name], id=f"{shape.name}-{name}") for shape in SHAPES for name in shape.births]
BY_COMMAND = ("train-step-loss", "package-backward", "workers-input", "outside-forward", "own-optimizer-own")


@pytest.fixture(scope="session")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    runner = Runner(tmp_path_factory.mktemp("grid"))
    yield runner
    runner.close()


def holds(complaints: list[str]) -> None:
    assert not complaints, "\n".join(complaints)


def needed(shape: Shape) -> None:
    if shape.needs is not None and importlib.util.find_spec(shape.needs) is None:
        pytest.skip(f"{shape.needs} is not installed")


@pytest.mark.parametrize(("shape", "birth"), CELLS)
def test_birth_is_placed(shape: Shape, birth: Birth, runner: Runner) -> None:
    needed(shape)
    script = compose(shape, birth, faulty=True)
    want = judge.expected(shape, birth, script)
    plain = runner.plain(shape, script, probe=True)
    holds(judge.plain_complaints(plain, want, birth, shape))
    assert_placed(runner.watched(shape, script), plain, want, shape, script, functools.partial(runner.watched, shape, script))


@pytest.mark.parametrize(("shape", "birth"), CELLS)
def test_healthy_twin_is_left_alone(shape: Shape, birth: Birth, runner: Runner) -> None:
    needed(shape)
    script = compose(shape, birth, faulty=False)
    holds(judge.quiet_complaints(runner.watched(shape, script), runner.plain(shape, script), shape))


@pytest.mark.parametrize(("shape", "birth"), [cell for cell in CELLS if cell.id in BY_COMMAND])
def test_the_command_itself_does_the_same(shape: Shape, birth: Birth, runner: Runner) -> None:
    faulty, twin = compose(shape, birth, faulty=True), compose(shape, birth, faulty=False)
    want = judge.expected(shape, birth, faulty)
    ran, plain = runner.command(shape, faulty), runner.plain(shape, faulty)
    holds(judge.stop_complaints(ran, plain, want, shape))
    holds(judge.place_complaints(ran, want, shape, faulty))
    holds(judge.quiet_complaints(runner.command(shape, twin), runner.plain(shape, twin), shape))


def test_every_shape_has_every_kind_of_birth_or_a_reason_why_not() -> None:
    for shape in SHAPES:
        missing = set(BIRTHS) - set(shape.births) - set(shape.absent)
        assert {KINDS[name] for name in shape.births} | {KINDS[name] for name in shape.absent} == set(KINDS.values()), shape.name
        assert missing <= {"rate", "eps0", "own"}, shape.name


def assert_placed(ran: Ran, plain: Ran, want: judge.Expected, shape: Shape, script: Script, again: functools.partial[Ran]) -> None:
    holds(judge.stop_complaints(ran, plain, want, shape))
    replay = ran.report["incidents"][0]["replay"]
    if replay["reproduced"]:
        holds(judge.place_complaints(ran, want, shape, script))
        return
    assert shape.impossible is not None, f"not run again: {replay['reason']}"
    origin = ran.report["incidents"][0]["origin"]
    if origin and origin.get("op") is not None:
        holds(judge.place_complaints(ran, want, shape, script))
    assert replay["reason"]
    command = judge.trace_command(ran, want)
    assert command is not None, f"no --trace-step command for step {want.steps}: {replay['reason']}"
    assert tuple(command[2:]) == shape.command
    traced = again(tuple(command[:2]))
    holds(judge.stop_complaints(traced, plain, want, shape))
    holds(judge.place_complaints(traced, want, shape, script))
