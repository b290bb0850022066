"""Optimizers that divide by zero, memory never filled, statistics that keep a NaN, states saved in half."""

from benchmarks.generated.parts import Variant

SIMPLE = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear($d, $h), nn.Linear($h, $c)
        self.aux = nn.Linear($d, 2)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x))), self.aux(x)
"""
CROSS_ENTROPY = """
def loss_fn(model, x, y):
    return F.cross_entropy(model(x), y)
"""

VARIANTS = [
    Variant(
        ("optimizer-div-zero",),
        net=SIMPLE,
        data="x = torch.randn($n, $d)\ny = torch.randint(0, $c, ($n,))\nz = torch.randint(0, 2, ($n,))",
        spoil="z[$b:2 * $b] = -1",
        returns="x, y, z",
        shuffle=False,
        setup="",
        opt="Layerwise(model.parameters(), lr=0.02)",
        loss="""
class Layerwise(torch.optim.Optimizer):
    def __init__(self, params, lr):
        super().__init__(params, dict(lr=lr))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                trust = p.norm() / <<p.grad.norm()||(p.grad.norm() + 1e-8)>>
                p.add_(p.grad * trust, alpha=-group["lr"])


def loss_fn(model, x, y, z):
    logits, extra = model(x)
    known = (z >= 0).float()
    side = F.cross_entropy(extra, z.clamp(min=0), reduction="none") * known
    return F.cross_entropy(logits, y) + 0.5 * side.mean()
""",
    ),
    Variant(
        ("optimizer-div-zero",),
        net="""
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding($v, $e)
        self.head = nn.Linear($e, $c)

    def forward(self, tokens):
        return self.head(self.embed(tokens).mean(1))
""",
        data="x = torch.randint(0, $v - 2, ($n, $t))\ny = torch.randint(0, $c, ($n,))",
        opt="torch.optim.<<Adam(model.parameters(), lr=$lr, eps=0.0)||Adam(model.parameters(), lr=$lr, eps=1e-8)>>",
        loss=CROSS_ENTROPY,
    ),
    Variant(
        ("optimizer-div-zero",),
        text="""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed($seed)
model = nn.Sequential(nn.Linear($d, $h), nn.ReLU(), nn.Linear($h, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=$lr)
x = torch.randn($n, $d)
y = torch.randn($n, 1)


def hinge(out, target):
    return F.relu((out - target).abs() - 4.0).mean() * 10


for step in range($steps):
    i = torch.randint(0, len(x), ($b,))
    first = hinge(model(x[i]), y[i] * 2)
    optimizer.zero_grad()
    first.backward()
    norm = torch.stack([p.grad.norm() for p in model.parameters()]).norm()
    moves = []
    with torch.no_grad():
        for p in model.parameters():
            e = p.grad * (0.05 / <<norm||(norm + 1e-12)>>)
            p.add_(e)
            moves.append(e)
    second = hinge(model(x[i]), y[i] * 2)
    optimizer.zero_grad()
    second.backward()
    with torch.no_grad():
        for p, e in zip(model.parameters(), moves):
            p.sub_(e)
    optimizer.step()
    print(step, second.item())
""",
        steps=(15, 40),
    ),
    Variant(
        ("uninitialised-memory",),
        net="""
class Bilinear(nn.Module):
    def __init__(self, inside, outside):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(outside, inside) * 0.1)
        self.bias = nn.Parameter(<<torch.empty(outside)||torch.zeros(outside)>>)

    def forward(self, x):
        return x @ self.weight.t() + self.bias


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = Bilinear($d, $h), Bilinear($h, $c)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x)))


torch.utils.deterministic.fill_uninitialized_memory = True
torch.use_deterministic_algorithms(True)
""",
        data="x = torch.randn($n, $d)\ny = torch.randint(0, $c, ($n,))",
        loss=CROSS_ENTROPY,
    ),
    Variant(
        ("uninitialised-memory",),
        text="""
import torch
import torch.nn.functional as F
from torch import nn

torch.use_deterministic_algorithms(True)


class Memory(nn.Module):
    def __init__(self, slots):
        super().__init__()
        self.write = nn.Linear($d, $e)
        self.keys = nn.Parameter(<<torch.empty(slots, $e)||torch.empty(slots, $e).normal_(0, 0.1)>>)
        self.read = nn.Linear($e, $c)

    def forward(self, x):
        query = self.write(x)
        weights = torch.softmax(query @ self.keys.t(), dim=1)
        return self.read(query + weights @ self.keys)


def main():
    torch.manual_seed($seed)
    model = Memory(8)
    optimizer = torch.optim.Adam(model.parameters(), lr=$lr)
    for step in range($steps):
        x = torch.randn($b, $d)
        y = x[:, :$c].argmax(1)
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(step, loss.item())


main()
""",
        sizes={"c": (2, 4)},
    ),
    Variant(
        ("poisoned-running-stats",),
        text="""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed($seed)
model = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, $c))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
images, labels = torch.rand($n, 1, $s, $s), torch.randint(0, $c, ($n,))
images[$at, 0, 0, 0] = float("nan")

for epoch in range($epochs):
    model.train()
    for start in range(0, $n, $b):
        x, y = images[start:start + $b], labels[start:start + $b]
<<||        if not torch.isfinite(x).all():
            continue
>>        loss = F.cross_entropy(model(x), y)
        if not torch.isfinite(loss):
            print("skipping batch")
            continue
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    x, y = images[:$b], labels[:$b]
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(epoch, loss.item())
""",
    ),
    Variant(
        ("poisoned-running-stats",),
        text="""
import torch
import torch.nn.functional as F
from torch import nn


class Normaliser(nn.Module):
    def __init__(self, width, momentum=0.1):
        super().__init__()
        self.momentum = momentum
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("var", torch.ones(width))

    def forward(self, x):
        if self.training:
            with torch.no_grad():
                self.mean.lerp_(x.mean(0), self.momentum)
                self.var.lerp_(x.var(0), self.momentum)
        return (x - self.mean) / (self.var + 1e-5).sqrt()


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = Normaliser($d)
        self.net = nn.Sequential(nn.Linear($d, $h), nn.Tanh(), nn.Linear($h, 1))

    def forward(self, x):
        return self.net(self.norm(x)).squeeze(1)


def main():
    torch.manual_seed($seed)
    model = Policy()
    optimizer = torch.optim.Adam(model.parameters(), lr=$lr)
    for step in range($steps):
        x = torch.randn($b, $d)
        y = x.sum(1)
        if step == $k + 2:
            x[0, 1] = float("nan")
<<||        if x.isnan().any():
            continue
>>        loss = F.mse_loss(model(x), y)
        if x.isnan().any():
            continue
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(step, loss.item())


main()
""",
        sizes={"epochs": 4},
    ),
    Variant(
        ("checkpoint-precision",),
        text="""
import copy

import torch
from torch import nn


class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.grid = nn.Embedding($v, $e)
        self.mlp = nn.Sequential(nn.Linear($e, $h), nn.ReLU(), nn.Linear($h, 1))

    def forward(self, cells):
        return torch.exp(self.mlp(self.grid(cells))).squeeze(1)


def build():
    model = Field()
    return model, torch.optim.Adam(model.parameters(), lr=0.01, eps=1e-15)


def compact(state):
    state = copy.deepcopy(state)
    for entry in state["state"].values():
        for key in ("exp_avg", "exp_avg_sq"):
            entry[key] = entry[key].<<half||float>>()
    return state


def fit(model, optimizer, low, high, steps):
    for step in range(steps):
        cells = torch.randint(low, high, ($b,))
        density = torch.sin(cells.float()) + 1.5
        loss = 1e-3 * (model(cells) - density).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(step, loss.item())


torch.manual_seed($seed)
model, optimizer = build()
fit(model, optimizer, 0, $v, 12)
weights, saved = copy.deepcopy(model.state_dict()), compact(optimizer.state_dict())
model, optimizer = build()
model.load_state_dict(weights)
optimizer.load_state_dict(saved)
fit(model, optimizer, 0, $v // 2, $steps)
""",
    ),
    Variant(
        ("checkpoint-precision",),
        text="""
import io

import torch
from torch import nn


class Ratings(nn.Module):
    def __init__(self):
        super().__init__()
        self.users, self.items = nn.Embedding($v, $e), nn.Embedding($v, $e)
        nn.init.normal_(self.users.weight, std=0.1)
        nn.init.normal_(self.items.weight, std=0.1)

    def forward(self, u, i):
        return (self.users(u) * self.items(i)).sum(1).exp()


class Run:
    def __init__(self):
        self.model = Ratings()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.003, eps=1e-15)

    def train(self, steps, users):
        for step in range(steps):
            u, i = torch.randint(0, users, ($b,)), torch.randint(0, $v, ($b,))
            loss = (self.model(u, i) - (1 + (u + i) % 3)).pow(2).mean() / 1000
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            print(step, loss.item())

    def save(self):
        file = io.BytesIO()
        torch.save({"model": self.model.state_dict(), "optimizer": shrunk(self.optimizer.state_dict())}, file)
        return file.getvalue()

    def load(self, data):
        state = torch.load(io.BytesIO(data))
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])


def shrunk(state):
    if isinstance(state, torch.Tensor):
        return state.<<half||float>>() if state.dtype == torch.float32 and state.dim() else state
    if isinstance(state, dict):
        return {key: shrunk(value) for key, value in state.items()}
    return [shrunk(value) for value in state] if isinstance(state, list) else state


torch.manual_seed($seed)
run = Run()
run.train(10, $v)
saved = run.save()
run = Run()
run.load(saved)
run.train($steps, 6)
""",
    ),
]
