"""`--trace-step` changes neither what is found nor how often; where its step never came, the run says so."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.torch.forks import Forks

SCRIPT = """
import torch
torch.manual_seed(0)
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(6):
    x, bad = torch.rand(4, 3), step == 3
    loss = model(x).sum()
    {line}
    optimizer.zero_grad()
    loss.backward()
    {update}
    print(step)
"""
STEP = "optimizer.step()"
BIRTHS = {
    "loss": ("loss = loss * torch.log(torch.zeros(()) if bad else torch.ones(()))", STEP),
    "gradient": ("loss = loss + torch.sqrt(loss * 0 if bad else loss * 0 + 1)", STEP),
    "exception": ("torch.multinomial(torch.sqrt(x - 2 if bad else x), 1)", STEP),
    "update": ("optimizer.param_groups[0]['lr'] = float('inf') if bad else 0.01", STEP),
    "update by hand": (
        "pass",
        "with torch.no_grad(): [p.sub_(p.grad * torch.log(torch.zeros(()) if bad else torch.ones(()))) for p in model.parameters()]",
    ),
}


def facts(incident: Any) -> str:
    """What does not depend on where it ran."""
    found = json.dumps([incident[key] for key in ("step", "kind", "phase", "first_seen", "origin", "chain", "causes")])
    return re.sub(r'"[^"]*/train\.py"', "train.py", found)


@pytest.mark.parametrize("traced", [2, 3, 4, 1000])
@pytest.mark.parametrize("birth", BIRTHS)
def test_it_finds_what_is_found_without_it(forks: Forks, birth: str, traced: int) -> None:
    line, update = BIRTHS[birth]
    source = SCRIPT.format(line=line, update=update)
    without = forks.watched(source)
    [expected] = without.report["incidents"]
    ran = forks.watched(source, options=("--trace-step", str(traced)))
    assert (ran.status, ran.stdout) == (3, without.stdout), ran.stderr
    [incident] = ran.report["incidents"]
    assert incident["replay"]["reproduced"]
    if traced > 3 or birth in ("exception", "update", "update by hand"):
        assert facts(incident) == facts(expected)
    assert (incident["step"], incident["origin"]["line"]) == (expected["step"], expected["origin"]["line"])
    unreached = [limit for limit in ran.report["run"]["limits"] if "never reached" in limit]
    assert unreached == ([f"step {traced}, which was to be traced, was never reached: the run had 4 steps"] if traced > 3 else [])
    assert ran.stderr.count("was never reached") == len(unreached)


@pytest.mark.parametrize(("traced", "said"), [(5, False), (6, True), (5000, True)])
def test_a_healthy_run_that_ends_before_the_step_says_so_in_one_line(forks: Forks, traced: int, said: bool) -> None:
    source = SCRIPT.format(line="pass", update=STEP)
    ran = forks.watched(source, options=("--trace-step", str(traced)))
    text = f"step {traced}, which was to be traced, was never reached: the run had 6 steps"
    assert (ran.status, ran.stdout) == (0, "0\n1\n2\n3\n4\n5\n")
    assert ran.stderr == (f"whynan: {text}\n" if said else "")
    assert ran.report["run"]["limits"] == ([text] if said else [])
    quiet = forks.watched(source, options=("--quiet", "--trace-step", str(traced)))
    assert quiet.stderr == ""


def test_a_second_run_that_goes_bad_elsewhere_is_no_second_incident(forks: Forks) -> None:
    """The loss is bad the first time; the second time it is fine, and the update is bad."""
    line = "tick.value += 1; loss = loss * torch.log(torch.zeros(()) if tick.value == 4 else torch.ones(()) * 2)"
    update = "optimizer.param_groups[0]['lr'] = float('inf') if tick.value == 5 else 0.01; optimizer.step()"
    source = "import ctypes\ntick = ctypes.c_int(0)\n" + SCRIPT.format(line=line, update=update)
    ran = forks.watched(source)
    assert ran.status == 3, ran.stderr
    [incident] = ran.report["incidents"]
    assert (incident["first_seen"]["what"], incident["replay"]["reproduced"]) == ("loss", False)
    assert "fault" not in ran.stderr


@pytest.mark.parametrize("birth", ["exception", "update by hand", "loss"])
def test_nothing_is_recorded_any_more_after_the_run(forks: Forks, birth: str) -> None:
    """A step that was traced as it ran may yet have to be run again: both recorders are closed."""
    line, update = BIRTHS[birth]
    modes = "import atexit, torch\natexit.register(lambda: print('modes', torch._C._len_torch_dispatch_stack()))\n"
    ran = forks.watched(modes + SCRIPT.format(line=line, update=update), options=("--trace-step", "2"))
    assert ran.status == 3
    assert ran.stderr.splitlines()[-1] == "modes 0"
