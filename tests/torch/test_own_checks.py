"""A script that looks for non-finite gradients itself: an update that it leaves out is no incident, everything else is."""

from __future__ import annotations

import pytest

from tests.torch.forks import Forks

PROGRAM = """
import math, sys, torch
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
optimizer = torch.optim.{optimizer}(model.parameters(), lr=0.01)
bad = {bad}
used = 0

def backward(step, x):
    out = model(x)
    loss = {loss}
    optimizer.zero_grad()
    loss.backward()
    return loss

def usable():
    return all(torch.isfinite(p.grad).all() for p in model.parameters())

def train():
    global used
    for step in range(40):
        x = torch.rand(4, 3)
        {body}
        used += 1

train()
print("used", used)
"""
LOSS = "(out.pow(2).mean() * torch.log(torch.full((), float(step not in bad)) + 0.0) if step in bad else out.pow(2).mean())"
GRADIENT = "(torch.sqrt((out * (step not in bad)).pow(2)).sum())"
SKIP = """
        backward(step, x)
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if not torch.isfinite(norm):
            optimizer.zero_grad()
            continue
        optimizer.step()
"""
SKIP_BY_FUNCTION = "backward(step, x)\n        if not usable(): continue\n        optimizer.step()"
CLEAN = """
        backward(step, x)
        for p in model.parameters():
            torch.nan_to_num_(p.grad, 0.0, 0.0, 0.0)
        optimizer.step()
"""
BY_HAND = """
        backward(step, x)
        if not usable(): continue
        with torch.no_grad():
            for p in model.parameters():
                p -= 0.01 * p.grad
"""
HEALTHY = {"skip": SKIP, "by_function": SKIP_BY_FUNCTION, "clean": CLEAN, "by_hand": BY_HAND}


@pytest.mark.parametrize("loss", [LOSS, GRADIENT], ids=["loss", "gradient"])
@pytest.mark.parametrize("body", HEALTHY)
@pytest.mark.parametrize("bad", ["{7}", "{0}", "{12, 13, 14}", "{39}"])
def test_what_is_thrown_away_is_harmless(forks: Forks, body: str, loss: str, bad: str) -> None:
    source = PROGRAM.format(optimizer="Adam", bad=bad, loss=loss, body=HEALTHY[body].strip())
    plain, watched = forks.plain(source), forks.watched(source)
    assert (watched.status, watched.stdout) == (plain.status, plain.stdout), watched.stderr
    assert watched.report["incidents"] == []


LOOKS_ONLY = "backward(step, x)\n        if not usable(): print('oh')\n        optimizer.step()"
BREAKS = "backward(step, x)\n        if not usable(): break\n        optimizer.step()"
RETURNS = BREAKS.replace("break", "return")
RAISES = BREAKS.replace("break", "raise ArithmeticError('bad gradients')")
EXITS = BREAKS.replace("break", "sys.exit('bad gradients')")
LOOKS_ELSEWHERE = "assert math.isfinite(x.sum())\n        backward(step, x)\n        optimizer.step()"
BY_HAND_UNCHECKED = BY_HAND.replace("if not usable(): continue", "usable()").strip()
HARMFUL = {
    "looks_only": LOOKS_ONLY,
    "breaks": BREAKS,
    "returns": RETURNS,
    "raises": RAISES,
    "exits": EXITS,
    "elsewhere": LOOKS_ELSEWHERE,
    "by_hand": BY_HAND_UNCHECKED,
}


@pytest.mark.parametrize("loss", [LOSS, GRADIENT], ids=["loss", "gradient"])
@pytest.mark.parametrize("body", HARMFUL)
@pytest.mark.parametrize("bad", [12, 0])
def test_what_is_used_or_ends_the_run_is_an_incident(forks: Forks, body: str, loss: str, bad: int) -> None:
    ran = forks.watched(PROGRAM.format(optimizer="Adam", bad=f"{{{bad}}}", loss=loss, body=HARMFUL[body]))
    assert ran.status == 3, ran.stderr
    [incident] = ran.report["incidents"]
    assert incident["step"] == bad
    assert incident["replay"]["reproduced"]
    assert incident["origin"]["op"] == ("log" if loss == LOSS else "div")


def test_an_update_left_out_too_often_is_an_incident(forks: Forks) -> None:
    ran = forks.watched(PROGRAM.format(optimizer="SGD", bad="range(10, 40)", loss=LOSS, body=SKIP.strip()))
    assert ran.status == 3, ran.stderr
    [incident] = ran.report["incidents"]
    assert incident["step"] == 29
    assert incident["origin"]["op"] == "log"


def test_a_step_that_was_left_before_the_script_gave_up(forks: Forks) -> None:
    body = "loss = step_of(step, x)\n        if loss is None: break"
    source = PROGRAM.format(optimizer="SGD", bad="{12}", loss=LOSS, body=body).replace(
        "def train():",
        "def step_of(step, x):\n    loss = backward(step, x)\n    if not usable(): return None\n    optimizer.step()\n    return loss\n\ndef train():",
    )
    ran = forks.watched(source)
    assert ran.status == 3, ran.stderr
    [incident] = ran.report["incidents"]
    assert (incident["step"], incident["replay"]["reproduced"]) == (12, False)
    assert "--trace-step 12" in incident["replay"]["command"]


TWO = """
import torch
torch.manual_seed(0)
one, two = torch.nn.Linear(3, 1), torch.nn.Linear(3, 1)
first, second = torch.optim.Adam(one.parameters(), lr=0.01), torch.optim.Adam(two.parameters(), lr=0.01)
for step in range(20):
    x = torch.rand(4, 3)
    first.zero_grad(), second.zero_grad()
    (one(x).pow(2).sum() + torch.sqrt((two(x) * (step != 12)).pow(2)).sum()).backward()
    first.step()
    {between}
    second.step()
print("end")
"""


@pytest.mark.parametrize("between", ["torch.isfinite(x)", "if not torch.isfinite(two.bias.grad): continue"])
def test_another_optimizer_may_step_meanwhile(forks: Forks, between: str) -> None:
    ran = forks.watched(TWO.format(between=between))
    if "continue" in between:
        assert (ran.status, ran.stdout) == (0, "end\n"), ran.stderr
        return
    assert ran.status == 3, ran.stderr
    [incident] = ran.report["incidents"]
    assert (incident["step"], incident["origin"]["op"]) == (12, "div")
    assert incident["origin"]["parameters"] == ["two.bias", "two.weight"]

ACCUMULATED = """
import torch
torch.manual_seed(0)
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for step in range(10):
    optimizer.zero_grad()
    for part in range(4):
        out = model(torch.rand(4, 3)).pow(2).mean()
        loss = out * torch.log(torch.zeros(())) if (step, part) == ({step}, 1) else out
        (loss / 4).backward()
    {between}
    optimizer.step()
print("end")
"""


@pytest.mark.parametrize("between", ["torch.isfinite(loss)", "if not torch.isfinite(model.bias.grad).all(): continue"])
def test_gradients_that_are_accumulated(forks: Forks, between: str) -> None:
    ran = forks.watched(ACCUMULATED.format(step=5, between=between))
    if "continue" in between:
        assert (ran.status, ran.stdout) == (0, "end\n"), ran.stderr
        return
    assert ran.status == 3, ran.stderr
    [incident] = ran.report["incidents"]
    assert (incident["origin"]["op"], incident["replay"]["reproduced"]) == ("log", True)


def test_gradients_that_are_accumulated_before_any_update_was_seen(forks: Forks) -> None:
    ran = forks.watched(ACCUMULATED.format(step=0, between="torch.isfinite(loss)"))
    assert ran.status == 3, ran.stderr
    [incident] = ran.report["incidents"]
    assert incident["origin"]["op"] == "log" or "--trace-step" in incident["replay"]["command"]
