"""Steps that have gone the same way for long take a short way; whatever is unusual about the next one is told as ever."""

from __future__ import annotations

import pytest

from tests.torch.forks import Forks

LATE = 150  # long after the steps have begun to take the short way
START = """
import random, threading, torch
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

class BadBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        return torch.log(grad * 0.0)

def loss_of(step, x):
    out = model(x)
    if step == 150:
        out = BadBackward.apply(out)
    return out.square().mean()
"""
PARAMETERS = ["0.bias", "0.weight", "2.bias", "2.weight"]
PROBE = """
import sys
def install(path):
    import whynan.torch.cruise as cruise
    begun = cruise.Cruise.__init__
    def noting(self, *args):
        begun(self, *args)
        print("cruise", file=sys.stderr)
    cruise.Cruise.__init__ = noting
"""
PLAIN = """
for step in range(200):
    optimizer.zero_grad()
    loss = loss_of(step, torch.rand(4, 3))
    loss.backward()
    optimizer.step()
"""
FAILING = {
    "gradient": PLAIN,
    "loss": PLAIN.replace("loss_of(step, ", "torch.tensor(1.0 - (step == 150)).log() + loss_of(-1, "),
    "in a function": """
def train_step(step, x):
    optimizer.zero_grad()
    loss_of(step, x).backward()
    optimizer.step()

for step in range(200):
    train_step(step, torch.rand(4, 3))
""",
    "backward in a function": """
def backward(step, x):
    loss = loss_of(step, x)
    loss.backward()
    return loss.item()

for step in range(200):
    optimizer.zero_grad()
    backward(step, torch.rand(4, 3))
    optimizer.step()
""",
    "two backwards, for once": PLAIN.replace(
        "    optimizer.step()", "    if step == 150:\n        loss_of(-1, x).backward()\n    optimizer.step()"
    ).replace("loss_of(step, torch.rand(4, 3))", "loss_of(step, x := torch.rand(4, 3))"),
    "no update, for once": PLAIN.replace("    optimizer.step()", "    if step != 150:\n        optimizer.step()"),
    "another optimizer": PLAIN.replace(
        "    loss.backward()", "    if step == 150:\n        optimizer = torch.optim.SGD(model.parameters())\n    loss.backward()"
    ),
    "random, for once": PLAIN.replace(
        "loss_of(step, torch.rand(4, 3))", "loss_of(150 if step == 150 and random.random() < 2 else -1, torch.rand(4, 3))"
    ),
    "random, where nothing was drawn before": PLAIN.replace(
        "loss_of(step, torch.rand(4, 3))", "loss_of(150 if step > 140 and torch.rand(()) > 0.9 else -1, X)"
    ).replace("for step", "torch.manual_seed(5)\nX = torch.rand(4, 3)\nfor step"),
    "an exchanged parameter": PLAIN.replace(
        "    optimizer.zero_grad()",
        """    if step == 149:
        model[2].bias = optimizer.param_groups[0]["params"][3] = torch.nn.Parameter(torch.zeros(1))
    optimizer.zero_grad()""",
    ),
}


@pytest.mark.parametrize("name", FAILING)
def test_a_late_failure_is_placed_as_an_early_one(forks: Forks, name: str) -> None:
    ran = forks.watched(START + FAILING[name], probe=PROBE)
    assert ("cruise" in ran.stderr) == (name != "backward in a function")  # whose step is made after the function has ended
    [incident] = ran.report["incidents"]
    early = LATE if "random, where" not in name else incident["step"]
    assert (incident["step"], incident["replay"]["reproduced"]) == (early, True)
    if name == "loss":
        assert incident["first_seen"]["what"] == "loss"
        assert incident["origin"]["op"] == "log"
    else:
        origin = incident["origin"]
        assert (origin["op"], origin["line"]) == ("log", 14)
        assert incident["first_seen"] == {"what": "gradient", "names": PARAMETERS}


BUFFERED = """
class Counting(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.tensor(0))
        self.register_buffer("mean", torch.zeros(4))
        self.register_buffer("last", torch.zeros(4))

    def forward(self, x):
        self.calls += 1
        self.last = x.detach().mean(0)
        self.mean.mul_(0.9).add_(self.last, alpha=0.1)
        BODY
        return x - self.mean

model.insert(1, Counting())
"""
LATE_IN_BUFFERS = {
    "a counter": "return BadBackward.apply(x) if self.calls == 151 else x",
    "a spoiled statistic": "self.mean.add_(torch.log(torch.tensor(float(self.calls != 151))))\n        return x",
    "one assigned anew": "self.last = self.last / float(self.calls != 151)\n        return x + self.mean",
}


@pytest.mark.parametrize("name", LATE_IN_BUFFERS)
def test_buffers_are_looked_at_and_put_back(forks: Forks, name: str) -> None:
    source = START.replace("optimizer =", BUFFERED.replace("BODY", LATE_IN_BUFFERS[name]) + "optimizer =", 1)
    bad = source.index("class BadBackward"), source.index("def loss_of")
    source = source.replace("class Counting", source[slice(*bad)] + "class Counting", 1)
    ran = forks.watched(source + PLAIN.replace("step, torch", "-1, torch"), probe=PROBE)
    assert "cruise" in ran.stderr
    [incident] = ran.report["incidents"]
    assert (incident["step"], incident["replay"]["reproduced"]) == (LATE, True)
    assert incident["first_seen"]["what"] == ("gradient" if name == "a counter" else "buffer")
    assert incident["origin"]["op"] == ("div" if name == "one assigned anew" else "log")


HEALTHY = {
    "an inner backward": PLAIN.replace(
        "loss_of(step, torch.rand(4, 3))",
        """(
        torch.utils.checkpoint.checkpoint(model, torch.rand(4, 3).requires_grad_(), use_reentrant=True).square().mean()
        if step > 150 else loss_of(-1, torch.rand(4, 3))
    )""",
    ),
    "another thread": PLAIN.replace("step, torch", "-1, torch").replace(
        "    optimizer.step()",
        """    if step == 150:
        other = torch.nn.Linear(3, 1)
        thread = threading.Thread(target=lambda: other(torch.ones(3)).sum().backward())
        thread.start()
        thread.join()
    optimizer.step()""",
    ),
    "a step within a step": """
def train_step(x, depth=0):
    loss = loss_of(-1, x)
    optimizer.zero_grad()
    loss.backward()
    if depth:
        train_step(x, depth - 1)
    optimizer.step()

for step in range(200):
    train_step(torch.rand(4, 3), 2 * (step > 150))
""",
    "names that hold other things": """
held = 1
for step in range(200):
    held = {149: [step], 150: {1: 2}, 151: model}.get(step, step) if held is not None else 0
    optimizer.zero_grad()
    loss_of(-1, torch.rand(4, 3)).backward()
    optimizer.step()
""",
    "two updates": PLAIN.replace("step, torch", "-1, torch").replace(
        "    optimizer.step()", "    optimizer.step()\n    if step > 150:\n        optimizer.step()"
    ),
    "an exception between backward and update": PLAIN.replace("step, torch", "-1, torch").replace(
        "    optimizer.step()",
        """    try:
        if step % 50 == 49:
            raise ValueError(random.random())
        optimizer.step()
    except ValueError as error:
        print(error)""",
    ),
    "gradients that are thrown away": PLAIN.replace("step, torch", "-1, torch").replace(
        "    optimizer.step()", "    if step % 50 == 49:\n        optimizer.zero_grad()\n        continue\n    optimizer.step()"
    ),
    "gradients that are given": PLAIN.replace("step, torch", "-1, torch").replace(
        "    optimizer.step()",
        "    if step > 150:\n        print(vars(torch.autograd)['grad'](model(torch.ones(3)).sum(), model[0].weight)[0].sum())\n    optimizer.step()",
    ),
    "a closure": PLAIN.replace("step, torch", "-1, torch").replace(
        "    optimizer.step()", "    optimizer.step((lambda: model(torch.ones(3)).sum()) if step > 150 else None)"
    ),
}


@pytest.mark.parametrize("name", HEALTHY)
def test_whatever_comes_late_changes_nothing(forks: Forks, name: str) -> None:
    source = START.replace("random, threading", "random, threading, torch.utils.checkpoint") + "random.seed(1)\n" + HEALTHY[name]
    source += "print(*(p.double().sum().item() for p in model.parameters()), torch.rand(()), random.random())"
    plain, watched = forks.plain(source), forks.watched(source, probe=PROBE)
    assert (watched.status, watched.stdout) == (plain.status, plain.stdout)
    assert watched.report["incidents"] == []
    assert "cruise" in watched.stderr


def test_a_rate_that_runs_away_is_noticed(forks: Forks) -> None:
    """A schedule gives every step another rate; one that is not finite makes parameters that are not."""
    schedule = "    optimizer.param_groups[0]['lr'] = float('inf') if step == 150 else 0.01 / (1 + step)\n    optimizer.step()"
    ran = forks.watched(START + PLAIN.replace("step, torch", "-1, torch").replace("    optimizer.step()", schedule), probe=PROBE)
    assert "cruise" in ran.stderr
    [incident] = ran.report["incidents"]
    assert (incident["step"], incident["first_seen"]["what"]) == (150, "parameter")


def test_every_step_is_recorded(forks: Forks) -> None:
    ran = forks.watched(START + PLAIN, probe=PROBE)
    [incident] = ran.report["incidents"]
    assert incident["trend"]["steps"] == list(range(150))
    assert None not in incident["trend"]["loss"] + incident["trend"]["lr"]
