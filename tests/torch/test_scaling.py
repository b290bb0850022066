"""What belongs to the scale of a GradScaler is no incident, however high the scale is and however the loss is scaled; what does not, is."""

from __future__ import annotations

import pytest

from tests.torch.forks import Forks
from whynan.torch.scaling import SKIPS

SCRIPT = """
import torch
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cpu", init_scale={scale})
{head}
    for step in range(60):
        with torch.autocast("cpu", dtype=torch.{dtype}, enabled=torch.{dtype} is not torch.float32):
            y = model(torch.randn(16, 4)).float()
            loss = y.square().mean()
            {line}
        optimizer.zero_grad()
        {backward}
        scaler.step(optimizer)
        scaler.update()
        {tail}
{end}
print(scaler.get_scale(), loss.item().hex())
"""
IN_SIGHT = {"head": "if True:", "tail": "pass", "end": ""}
OUT_OF_REACH = {"head": "def train():", "tail": "yield loss", "end": "for loss in train(): pass"}  # no step of it can be run again
PLAIN = "scaler.scale(loss).backward()"
BACKWARDS = {
    "plain": PLAIN,
    "divided": "(scaler.scale(loss) / 4).backward()",
    "summed": "(scaler.scale(loss) + scaler.scale(loss * 2)).backward()",
    "listed": "for one in scaler.scale([loss, loss * 2]): one.backward(retain_graph=True)",
    "both scaled first": "a, b = scaler.scale(loss), scaler.scale(loss * 2); a.backward(retain_graph=True); b.backward()",
}
BAD_GRADIENT = "loss = loss + torch.sqrt((0 if step >= 5 else 1) * y.square().sum())"
BAD_LOSS = "loss = loss * torch.log(torch.tensor(0.0 if step >= 5 else 3.0))"


def script(place: dict[str, str] = IN_SIGHT, scale: str = "2.0**40", dtype: str = "float16", line: str = "pass", backward: str = PLAIN) -> str:
    return SCRIPT.format(**place, scale=scale, dtype=dtype, line=line, backward=backward)


@pytest.mark.parametrize("backward", BACKWARDS)
def test_a_scale_that_is_too_high_may_take_its_time_to_fall(forks: Forks, backward: str) -> None:
    source = script(backward=BACKWARDS[backward])
    plain, ran = forks.plain(source), forks.watched(source)
    assert (ran.status, ran.stdout) == (0, plain.stdout), ran.stderr
    assert float(plain.stdout.split()[0]) < 2.0 ** (40 - SKIPS), "it skipped too few steps to be worth a test"


@pytest.mark.parametrize("place", [IN_SIGHT, OUT_OF_REACH], ids=["in sight", "out of reach"])
@pytest.mark.parametrize(("scale", "dtype"), [("2.0**40", "float16"), ("2.0**127", "float32")])
def test_whatever_overflows_by_the_scale_alone(forks: Forks, place: dict[str, str], scale: str, dtype: str) -> None:
    line = "loss = loss * 2.0**40" if dtype == "float32" else "pass"
    source = script(place, scale, dtype, line).replace("lr=0.01", "lr=0.01 * 2.0**-40" if dtype == "float32" else "lr=0.01")
    plain, ran = forks.plain(source), forks.watched(source)
    assert (ran.status, ran.stdout, ran.report["incidents"]) == (0, plain.stdout, []), ran.stderr


def test_nor_is_it_one_for_a_step_that_is_traced_as_it_runs(forks: Forks) -> None:
    ran = forks.watched(script(), options=("--trace-step", "3"))
    assert (ran.status, ran.report["incidents"]) == (0, []), ran.stderr


@pytest.mark.parametrize("backward", BACKWARDS)
@pytest.mark.parametrize(("line", "op"), [(BAD_LOSS, "log"), (BAD_GRADIENT, "div")])
def test_what_is_bad_at_any_scale_is_found(forks: Forks, line: str, op: str, backward: str) -> None:
    source = script(scale="4.0", line=line, backward=BACKWARDS[backward])
    ran = forks.watched(source)
    assert ran.status == 3, ran.stderr
    [incident] = ran.report["incidents"]
    assert (incident["step"], incident["origin"]["op"], incident["replay"]["reproduced"]) == (5, op, True)


def test_it_is_found_while_a_high_scale_falls(forks: Forks) -> None:
    ran = forks.watched(script(line=BAD_GRADIENT))
    [incident] = ran.report["incidents"]
    assert 5 <= incident["step"] <= 8
    assert (incident["origin"]["op"], incident["replay"]["reproduced"]) == ("div", True)


@pytest.mark.parametrize(("scale", "step"), [("4.0", 5 + SKIPS), ("2.0**30", 30), ("2.0**40", 40)])
def test_without_a_trial_it_is_one_when_the_scale_has_fallen_and_many_steps_were_skipped(forks: Forks, scale: str, step: int) -> None:
    ran = forks.watched(script(OUT_OF_REACH, scale, line=BAD_GRADIENT))
    assert ran.status == 3, ran.stderr
    [incident] = ran.report["incidents"]
    assert (incident["step"], incident["first_seen"]["what"]) == (step, "gradient")
