"""What the user compiles is compiled as ever: the same graphs, sizes and breaks; and it is watched all the same."""

from __future__ import annotations

import re

import pytest

from tests.torch.forks import Forks, Ran

HEAD = """
import torch
import torch._dynamo
from torch import nn

SIZES = []


def backend(graph, inputs):
    SIZES.append(len(graph.graph.nodes))
    return torch._dynamo.lookup_backend("aot_eager")(graph, inputs)


torch._dynamo.reset()
torch._dynamo.utils.counters.clear()
torch.manual_seed(0)
"""
TAIL = """
from torch._dynamo.utils import counters

print("graphs", SIZES, sorted(counters["stats"].items()))
print("breaks", sorted((reason.split("\\n")[0], count) for reason, count in counters["graph_break"].items()))
print("again", sorted(counters["recompiles"].items()))
"""
LOOP = """
optimizer = torch.optim.SGD(parameters, lr=0.1)
for step in range(4):
    loss = loss_of(torch.rand(8, 3) + 1)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item().hex())
"""
PROGRAMS = {
    "a model": """
model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 1))
net, parameters = torch.compile(model, backend=backend), list(model.parameters())


def loss_of(x):
    return net(x).square().mean()
"""
    + LOOP,
    "a model in place": """
model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
model.compile(backend=backend)
parameters = list(model.parameters())


def loss_of(x):
    return model(x).square().mean()
"""
    + LOOP,
    "a decorated loss with a loop": """
model = nn.Linear(3, 3)
parameters = list(model.parameters())


@torch.compile(backend=backend, fullgraph=True)
def loss_of(x):
    for _ in range(2):
        x = torch.tanh(model(x))
    return x.square().mean()
"""
    + LOOP,
    "a model that differentiates": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(3, 1)

    def forward(self, x):
        energy = self.body(x).square().sum()
        force = torch.autograd.grad(energy, [self.body.weight], retain_graph=True)[0]
        return energy + force.detach().sum()


loss_of = torch.compile(Net(), backend=backend)
parameters = list(loss_of.parameters())
"""
    + LOOP,
    "shapes that change": """
weight = nn.Parameter(torch.randn(3, 3))
parameters = [weight]
factor = 0


@torch.compile(backend=backend)
def compiled(x, factor):
    return (x @ weight * factor).square().mean()


def loss_of(x):
    global factor
    factor += 1
    return compiled(x[:factor], factor)
"""
    + LOOP,
    "a whole step": """
model = nn.Linear(3, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def train_step(x):
    loss = (model(x) - x).square().mean()
    loss.backward()
    return loss.detach()


compiled = torch.compile(train_step, backend=backend)
for step in range(4):
    print(step, compiled(torch.randn(8, 3)).item().hex())
    optimizer.step()
    optimizer.zero_grad()
""",
    "a decorated step with its optimizer": """
model = nn.Linear(3, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


@torch.compile(backend=backend)
def train_step(x):
    loss = (model(x) - x).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss.detach()


for step in range(4):
    print(step, train_step(torch.randn(8, 3)).item().hex())
""",
    "a method": """
class Trainer:
    def __init__(self):
        self.model = nn.Linear(3, 3)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.fast = torch.compile(self.step, backend=backend)

    def loss(self, x):
        return (self.model(x) - x).square().mean()

    def step(self, x):
        loss = self.loss(x)
        loss.backward()
        return loss.detach()


trainer = Trainer()
for step in range(4):
    print(step, trainer.fast(torch.randn(8, 3)).item().hex())
    trainer.optimizer.step()
    trainer.optimizer.zero_grad()
""",
    "a function that calls one with a loop": """
model = nn.Linear(3, 3)


def inner(x):
    total = 0
    for _ in range(3):
        loss = (model(x) - x).square().mean()
        loss.backward()
        total = total + loss.detach()
    return total


@torch.compile(backend=backend)
def outer(x):
    return inner(x * 2) + 1


for step in range(4):
    print(step, outer(torch.randn(8, 3)).item().hex(), model.weight.grad.sum().item().hex())
    model.zero_grad()
""",
    "an optimizer": """
model = nn.Linear(3, 3)
optimizer = torch.optim.Adam(model.parameters(), lr=0.1, foreach=True)


@torch.compile(backend=backend)
def update():
    optimizer.step()


for step in range(4):
    loss = model(torch.randn(8, 3)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    update()
    print(step, loss.item().hex())
""",
}
FILES = {f"program_{i}.py": HEAD + source + TAIL for i, source in enumerate(PROGRAMS.values())}
ALL = "".join(f"print('---')\nimport program_{i}\n" for i in range(len(PROGRAMS)))


@pytest.fixture(scope="module")
def both(forks: Forks) -> tuple[Ran, Ran]:
    """All programs one after the other, plain and watched; each begins with an empty compiler."""
    plain, watched = forks.plain(ALL, files=FILES), forks.watched(ALL, files=FILES)
    assert (plain.status, watched.status) == (0, 0), plain.stderr + watched.stderr
    return plain, watched


@pytest.mark.parametrize("name", PROGRAMS)
def test_graphs_and_breaks_are_unchanged(both: tuple[Ran, Ran], name: str) -> None:
    plain, watched = (ran.stdout.split("---\n")[1 + list(PROGRAMS).index(name)] for ran in both)
    assert re.search(r"^graphs \[\d+", plain, re.MULTILINE) or "in place" in name
    assert watched == plain


def test_compiled_programs_are_watched(both: tuple[Ran, Ran]) -> None:
    plain, watched = both
    assert watched.report["run"]["steps"] == 4 * len(PROGRAMS)
    assert not any("ended" in limit for limit in watched.report["run"]["limits"])
    assert without_numbers(watched.stderr) == without_numbers(plain.stderr)


def without_numbers(stderr: str) -> str:
    """A warning of the compiler's begins with the time, and has the number of the frame."""
    return re.sub(r"W\d{4} [\d:.]+ \d+ |\[\d+/\d+\]", "", stderr)


LOSS = """
late = []


@torch.compile(backend=backend)
def loss_of(x):
    shifted = x - float(len(late) == 2) * 5
    return shifted.log().mean()


weight = nn.Parameter(torch.ones(3))
for step in range(4):
    loss = loss_of(torch.rand(8, 3) * weight + 1)
    loss.backward()
    print(step, loss.item().hex())
    late.append(step)
"""
STEP = """
model = nn.Linear(3, 3)


def train_step(x):
    loss = (model(x) - x).square().mean()
    root = (loss - x.amax() // 2 * 99).sqrt()
    root.backward()
    return loss.detach()


compiled = torch.compile(train_step, backend=backend)
for step in range(4):
    print(step, compiled(torch.rand(8, 3) + 2 * (step == 2)).item().hex())
"""


@pytest.mark.parametrize(("source", "op"), [(LOSS, "log"), (STEP, "sqrt")], ids=["in a compiled loss", "in a compiled step"])
def test_a_birth_in_compiled_code_is_placed(forks: Forks, source: str, op: str) -> None:
    plain, ran = forks.plain(HEAD + source), forks.watched(HEAD + source)
    assert plain.status == 0, plain.stderr
    assert ran.status == 3, ran.stderr
    assert plain.stdout.startswith(ran.stdout)
    assert len(ran.stdout.splitlines()) == 2
    (incident,) = ran.report["incidents"]
    line = 1 + next(i for i, text in enumerate((HEAD + source).splitlines()) if f".{op}()" in text)
    assert (incident["step"], incident["origin"]["op"], incident["origin"]["line"]) == (2, op, line)
