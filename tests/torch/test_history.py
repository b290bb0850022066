"""The steps that led to an incident are made again in a child: as they were, and with one thing changed."""

from __future__ import annotations

from typing import Any

import pytest

from tests.torch.forks import Forks

START = """
import torch
from torch import nn
torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Dropout({dropout}), nn.Linear(32, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9)
weights = torch.randn(12, 4)
data = [torch.randn(8, 12) for _ in range(200)]
"""
STEP = """
    loss = ((model(x) - x @ weights) ** 2).sum(1).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
LOOPS = {
    "a loop over batches": "for x in data:" + STEP,
    "an iterator of the user's": "batches = iter(data)\nfor step in range(200):\n    x = next(batches)" + STEP,
    "data drawn in the body": "for step in range(200):\n    x = torch.randn(8, 12)" + STEP,
    "a function that makes one step": "def train(x):" + STEP + "for x in data:\n    train(x)\n",
    "a step of a trainer": "class Trainer:\n    def step(self, x):\n" + STEP.replace("\n", "\n    ") + "\ntrainer = Trainer()\nfor x in data:\n    trainer.step(x)\n",
    "a loader in epochs": "loader = torch.utils.data.DataLoader(torch.stack(data[:20]).flatten(0, 1), batch_size=8, shuffle=True)\n"
    "for epoch in range(20):\n    for x in loader:" + STEP.replace("\n", "\n    "),
    "a schedule": "scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.1 ** step)\nfor x in data:" + STEP + "    scheduler.step()\n",
    "a state that is carried along": "mean = torch.zeros(12)\nfor x in data:\n    mean = 0.9 * mean + 0.1 * x.mean(0)\n    x = x - mean" + STEP,
    "counted by hand": "count = 0\nfor x in data:\n    count += 1\n    optimizer.param_groups[0]['lr'] = 0.3 * (1 + 0.01 * count)" + STEP,
}
PROBE = """
import json
def install(path):
    from whynan.torch import experiments
    make = experiments.Experiments.make
    def watched(self, replay, found, session, *rest):
        make(self, replay, found, session, *rest)
        outcomes = {name: [type(one).__name__, *[getattr(one, key, None) for key in ("step", "steps", "reason")]] for name, one in session.trials.items()}
        earlier = session.earlier
        open(path, "w").write(json.dumps({"outcomes": outcomes, "course": [one.step for one in session.course],
            "earlier": earlier and [earlier.step, len(earlier.operations), [[c.name, c.weight, c.norm, c.cosine] for c in earlier.components]]}))
    experiments.Experiments.make = watched
"""


def made_again(forks: Forks, source: str, *options: str) -> tuple[Any, dict[str, Any]]:
    ran = forks.watched(source, probe=PROBE, options=options)
    assert ran.status == 3, ran.stderr
    return ran, ran.left


@pytest.mark.parametrize("dropout", [0, 0.2])
@pytest.mark.parametrize("shape", LOOPS)
def test_a_diverging_run_diverges_again_and_not_at_a_tenth_of_its_rate(forks: Forks, shape: str, dropout: float) -> None:
    ran, left = made_again(forks, START.format(dropout=dropout) + LOOPS[shape])
    step = ran.report["incidents"][0]["step"]
    assert left["outcomes"]["as-it-was"][:2] == ["Failed", step]
    assert left["outcomes"]["lower-rate"][0] == "Survived"
    assert left["earlier"][0] == left["course"][0] < step
    assert left["earlier"][1] > 10


def test_what_any_rate_would_meet_is_met_again(forks: Forks) -> None:
    source = START.format(dropout=0) + LOOPS["a loop over batches"].replace(".mean()", ".mean() + (x * 0 + (float('inf') if x is data[3] else 0)).sum()")
    _, left = made_again(forks, source.replace("lr=0.3", "lr=0.001"))
    assert left["outcomes"]["as-it-was"][:2] == ["Failed", 3]


def test_components_of_a_loss_are_told_apart(forks: Forks) -> None:
    source = START.format(dropout=0) + LOOPS["a loop over batches"].replace(
        "    optimizer.zero_grad()", "    decay = sum(p.pow(2).sum() for p in model.parameters())\n    loss = loss + 0.25 * decay - 1e-3 * model(x).mean()\n    optimizer.zero_grad()"
    )
    _, left = made_again(forks, source)
    components = left["earlier"][2]
    assert [round(weight, 6) for _, weight, _, _ in components] == [1.0, 0.25, -0.001]
    assert all(norm > 0 and -1 <= cosine <= 1 for _, _, norm, cosine in components)
    assert components[0][2] > 100 * components[2][2]


def test_nothing_is_kept_where_that_is_asked_for(forks: Forks) -> None:
    _, left = made_again(forks, START.format(dropout=0) + LOOPS["a loop over batches"], "--history", "off")
    assert left["earlier"] is None
    assert left["outcomes"]["lower-rate"][0] == "Untried"


def test_neither_output_nor_files_nor_exit_handlers_of_the_child_are_seen(forks: Forks) -> None:
    source = START.format(dropout=0) + "import atexit\natexit.register(print, 'bye')\n" + LOOPS["a loop over batches"]
    source += "    print(loss.item())\n    open('log', 'a').write('x')\n    torch.save(model.state_dict(), f'{len(open(\"log\").read())}.pt')\n"
    ran, left = made_again(forks, source)
    step = ran.report["incidents"][0]["step"]
    folder = forks.base / str(forks.number - 1)
    assert left["outcomes"]["as-it-was"][0] == "Failed"
    assert ran.stdout.count("\n") == step
    assert (folder / "log").read_text() == "x" * step
    assert len(list(folder.glob("*.pt"))) == step
    assert ran.stderr.count("bye") == 1
