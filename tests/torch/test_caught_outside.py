"""A step that raises the script's own exception, or one of torch's, because of a bad value: what a caller catches is no incident."""

from __future__ import annotations

import pytest

from tests.torch.forks import Forks

PROGRAM = """
import contextlib, copy, math, sys, torch
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
good = copy.deepcopy(model.state_dict())

class BadLoss(FloatingPointError): pass
class BadBatch(Exception): pass

def checked(step, bad):
    loss = model(torch.rand(4, 3)).pow(2).mean()
    if bad: loss = loss * torch.log(torch.zeros(()))
    optimizer.zero_grad()
    loss.backward()
    if not math.isfinite(loss.item()):
        raise BadLoss(f"the loss is nan in step {{step}}")
    optimizer.step()

def sampled(step, bad):
    mean = model(torch.rand(4, 3))
    if bad: mean = (mean - mean) / (mean - mean)
    loss = -torch.distributions.Normal(mean, 1.0).log_prob(torch.zeros(4, 1)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

def fit():
    caught = 0
    for step in range({steps}):
        {body}
    return caught

print("caught", fit())
"""
TRY = "try: {step}(step, {bad})\n        except {kind}:\n            "
ROLL_BACK = "model.load_state_dict(good)\n            caught += 1\n            print('rolled back', step)"
SKIP = "caught += 1\n            continue"
CAUGHT = {
    "own": ("checked", "BadLoss", ROLL_BACK),
    "base": ("checked", "ArithmeticError", SKIP),
    "everything": ("checked", "Exception", ROLL_BACK),
    "bare": ("checked", "", SKIP),
    "tuple": ("checked", "(KeyError, BadLoss) as error", "caught += 1\n            print(error)"),
    "distribution": ("sampled", "ValueError", SKIP),
    "conditional_break": ("checked", "BadLoss", "caught += 1\n            if caught > 5: break"),
}
ENDED = {
    "other": ("checked", "KeyError", SKIP),
    "reraised": ("checked", "BadLoss", "print('bad loss')\n            raise"),
    "reraised_by_name": ("checked", "BadLoss as error", "if step: raise error"),
    "translated": ("checked", "BadLoss as error", "raise BadBatch('no') from error"),
    "exits": ("checked", "BadLoss", "sys.exit('bad loss')"),
    "breaks": ("checked", "BadLoss", "break"),
    "distribution": ("sampled", "KeyError", SKIP),
    "distribution_reraised": ("sampled", "ValueError", "print('bad')\n            raise"),
}
FEW = "step in (0, 12, 13, 20)"


def program(step: str, kind: str, handler: str, bad: str = FEW, steps: int = 30) -> str:
    return PROGRAM.format(steps=steps, body=TRY.format(step=step, bad=bad, kind=kind) + handler)


def is_clean(forks: Forks, source: str) -> bool:
    plain, watched = forks.plain(source), forks.watched(source)
    assert (watched.status, watched.stdout) == (plain.status, plain.stdout), watched.stderr
    return bool(watched.report["incidents"] == [])


@pytest.mark.parametrize("shape", CAUGHT)
def test_what_a_caller_catches_is_harmless(forks: Forks, shape: str) -> None:
    assert is_clean(forks, program(*CAUGHT[shape]))


@pytest.mark.parametrize("shape", ENDED)
def test_what_no_caller_keeps_is_placed(forks: Forks, shape: str) -> None:
    ran = forks.watched(program(*ENDED[shape], bad="step == 12"))
    assert ran.status == 3, ran.stderr
    [incident] = ran.report["incidents"]
    assert (incident["step"], incident["replay"]["reproduced"]) == (12, True)
    assert incident["origin"]["op"] == ("log" if ENDED[shape][0] == "checked" else "div")


@pytest.mark.parametrize("step", ["checked", "sampled"])
def test_what_is_caught_too_often_is_an_incident(forks: Forks, step: str) -> None:
    ran = forks.watched(program(step, "Exception", SKIP, bad="step >= 5", steps=60))
    assert ran.status == 3, ran.stderr
    [incident] = ran.report["incidents"]
    assert incident["replay"]["reproduced"]
    assert incident["step"] == (24 if step == "checked" else 5)  # without a backward it is the same step each time


@pytest.mark.parametrize("step", ["checked", "sampled"])
def test_what_is_caught_now_and_then_is_harmless(forks: Forks, step: str) -> None:
    assert is_clean(forks, program(step, "Exception", SKIP, bad="step % 2", steps=60))


@pytest.mark.parametrize("step", ["checked", "sampled"])
def test_what_is_suppressed_is_harmless(forks: Forks, step: str) -> None:
    body = f"with contextlib.suppress(BadLoss, ValueError):\n            {step}(step, {FEW})"
    assert is_clean(forks, PROGRAM.format(steps=30, body=body))


def test_what_another_function_throws_away(forks: Forks) -> None:
    between = "def safely(step):\n    try:\n        checked(step, step == 12)\n    except BadLoss as error:\n        {handler}\n\ndef fit"
    body = "try: safely(step)\n        except BadBatch: caught += 1"
    for handler in ("return", "raise BadBatch from error"):
        source = PROGRAM.format(steps=30, body=body).replace("def fit", between.format(handler=handler))
        assert is_clean(forks, source)


@pytest.mark.parametrize("step", ["checked", "sampled"])
def test_what_ends_the_run_although_it_was_caught(forks: Forks, step: str) -> None:
    ran = forks.watched(program(step, "Exception", "stop()", bad="step == 12").replace("def fit", "def stop(): sys.exit(4)\n\ndef fit"))
    assert ran.status == 3, ran.stderr
    [incident] = ran.report["incidents"]
    assert (incident["step"], incident["replay"]["reproduced"]) == (12, False)
    assert "--trace-step 12" in incident["replay"]["command"]
    assert ran.stdout == ""


def test_a_caught_step_may_be_traced(forks: Forks) -> None:
    ran = forks.watched(program("sampled", "ValueError", SKIP, bad="step == 12"), options=("--trace-step", "12"))
    assert ran.status == 3, ran.stderr
    [incident] = ran.report["incidents"]
    assert incident["origin"]["op"] == "div"
