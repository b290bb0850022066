"""Runs that take 200 steps and more until something is not finite."""

# ruff: noqa: E501  the texts are scripts as their authors would write them
from benchmarks.generated.parts import Variant

REGRESSION = """
import torch
from torch import nn

torch.manual_seed($seed)
x = torch.randn(%(n)s, $d)
y = x @ torch.randn($d, 1) + 0.1 * torch.randn(len(x), 1)
model = nn.Linear($d, 1)
curvature = torch.linalg.eigvalsh(2 * x.t() @ x / len(x)).max().item()
optimizer = torch.optim.SGD(model.parameters(), lr=<<%(bad)s||%(good)s>> / curvature%(more)s)
for step in range($steps):
    loss = (model(x) - y).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step %% 10 == 0:
        print(step, loss.item())
"""

VARIANTS = [
    Variant(("lr-too-high",), REGRESSION % {"n": "64", "bad": "$rate", "good": "1.0", "more": ""}, sizes={"rate": (2.03, 2.06)}, steps=500, kind="slow"),
    Variant(
        ("lr-too-high",),
        REGRESSION % {"n": "48", "bad": "$rate", "good": "1.0", "more": ", momentum=0.9"},
        sizes={"rate": (3.81, 3.84)},
        steps=500,
        kind="slow",
    ),
    Variant(
        ("lr-too-high",),
        """
import torch
from torch import nn


class Factors(nn.Module):
    def __init__(self):
        super().__init__()
        self.u, self.v = nn.Parameter(0.1 * torch.randn($v, $k)), nn.Parameter(0.1 * torch.randn($v, $k))

    def forward(self, i, j):
        return (self.u[i] * self.v[j]).sum(1)


def main():
    torch.manual_seed($seed)
    table = torch.randn($v, 3) @ torch.randn(3, $v)
    model = Factors()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range($steps):
        for group in optimizer.param_groups:
            group["lr"] = 0.01 * (1 + <<step||min(step, 50)>> / 25)
        i, j = torch.randint(0, $v, (64,)), torch.randint(0, $v, (64,))
        loss = (model(i, j) - table[i, j]).pow(2).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 25 == 0:
            print(f"step {step} loss {loss.item():.4f}")


main()
""",
        steps=2500,
        kind="slow",
    ),
    Variant(
        ("bad-lr-schedule",),
        """
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed($seed)
model = nn.Sequential(nn.Linear($d, $h), nn.LeakyReLU(0.1), nn.Linear($h, $k))
optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: <<$growth ** step||min($growth ** step, 20.0)>>)
teacher = torch.randn($d, $k)
for step in range($steps):
    x = torch.randn($b, $d)
    loss = F.mse_loss(model(x), torch.tanh(x @ teacher))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    print(step, loss.item(), scheduler.get_last_lr()[0])
""",
        sizes={"growth": (1.025, 1.035)},
        steps=900,
        kind="slow",
    ),
    Variant(
        ("unbounded-objective",),
        """
import torch
from torch import nn

torch.manual_seed($seed)
critic = nn.Sequential(nn.Linear(2, $h), nn.LeakyReLU(0.2), nn.Linear($h, $h), nn.LeakyReLU(0.2), nn.Linear($h, 1))
optimizer = torch.optim.SGD(critic.parameters(), lr=$lr)
for step in range($steps):
    real, fake = torch.randn(64, 2) * 0.5 + 1, torch.randn(64, 2)
    loss = critic(fake).mean() - critic(real).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
<<||    with torch.no_grad():
        for p in critic.parameters():
            p.clamp_(-0.2, 0.2)
>>    if step % 20 == 0:
        print(step, loss.item())
""",
        sizes={"lr": (0.004, 0.006)},
        steps=1200,
        kind="slow",
    ),
    Variant(
        ("unbounded-objective",),
        """
import torch
import torch.nn.functional as F
from torch import nn


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear($d, $h), nn.Linear($h, $c)

    def forward(self, x):
        return self.fc2(F.leaky_relu(self.fc1(x)))


def objective(model, x, y, strength=$strength):
    penalty = sum(p.pow(2).sum() for p in model.parameters())
    return F.cross_entropy(model(x), y) <<-||+>> strength * penalty


torch.manual_seed($seed)
model = Classifier()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
centres = torch.randn($c, $d)
for step in range($steps):
    y = torch.randint(0, $c, ($b,))
    x = centres[y] + torch.randn($b, $d)
    loss = objective(model, x, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        print(step, loss.item())
""",
        sizes={"strength": [0.8, 1.0, 1.2]},
        steps=800,
        kind="slow",
    ),
    Variant(
        ("bootstrap-divergence",),
        """
import torch
from torch import nn

torch.manual_seed($seed)
phi = torch.rand($c, $e)
value = nn.Linear($e, 1, bias=False)
optimizer = torch.optim.SGD(value.parameters(), lr=$lr)
for step in range($steps):
    i = torch.randint(0, $c, ($b,))
    with torch.no_grad():
        target = 0.1 + 0.95 * value(2 * phi[i])<<||.clamp(-3, 3)>>
    loss = (value(phi[i]) - target).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        print(step, loss.item())
""",
        sizes={"lr": (0.03, 0.05), "e": (3, 6)},
        steps=2500,
        kind="slow",
    ),
    Variant(
        ("scale-collapse",),
        """
import torch
from torch import nn


class Uncertainty(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear($d, $h), nn.Tanh(), nn.Linear($h, 1))
        self.log_sigma2 = nn.Parameter(torch.zeros(3))

    def forward(self, losses):
        s = self.log_sigma2<<||.clamp(min=-6.0)>>
        return (losses * torch.exp(-s) + s).sum()


torch.manual_seed($seed)
model = Uncertainty()
optimizer = torch.optim.Adam([{"params": model.net.parameters()}, {"params": [model.log_sigma2], "lr": $fast}], lr=1e-3)
for step in range($steps):
    x = torch.randn($b, $d)
    out = model.net(x)
    fit = (out - x[:, :1]).pow(2).mean()
    edge = torch.relu(out.abs() - 20).mean()
    loss = model(torch.stack([fit, edge, (out * 0.1).pow(2).mean() + 0.01]))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        print(step, loss.item())
""",
        sizes={"fast": (0.2, 0.4)},
        steps=500,
        kind="slow",
    ),
    Variant(
        ("embedding-norm-growth", "unbounded-objective"),
        """
import torch
import torch.nn.functional as F
from torch import nn


class Triples(nn.Module):
    def __init__(self):
        super().__init__()
        self.entity, self.relation = nn.Embedding($v, $e), nn.Embedding(4, $e)

    def forward(self, h, r, t):
        h, t = self.entity(h), self.entity(t)
<<||        h, t = F.normalize(h, dim=1), F.normalize(t, dim=1)
>>        return (h * torch.tanh(self.relation(r)) * t).sum(1)


torch.manual_seed($seed)
model = Triples()
optimizer = torch.optim.SGD(model.parameters(), lr=$lr)
for step in range($steps):
    h, r = torch.randint(0, $v, (32,)), torch.randint(0, 4, (32,))
    t, wrong = (h + r) % $v, torch.randint(0, $v, (32,))
    loss = (model(h, r, wrong) - model(h, r, t)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        print(step, loss.item())
""",
        sizes={"lr": (3.0, 6.0)},
        steps=2500,
        kind="slow",
    ),
    Variant(
        ("temperature-too-small", "fp16-overflow", "exp-overflow"),
        """
import torch
import torch.nn.functional as F
from torch import nn


class Towers(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear($d, $e), nn.Linear($d, $e)
        self.logit_scale = nn.Parameter(torch.tensor(2.6593))

    def forward(self, x, y):
        x, y = F.normalize(self.a(x), dim=1), F.normalize(self.b(y), dim=1)
        scale = self.logit_scale<<||.clamp(max=4.6)>>.half().exp()
        return scale * x.half() @ y.half().t()


def main():
    torch.manual_seed($seed)
    model = Towers()
    model.b.load_state_dict(model.a.state_dict())
    optimizer = torch.optim.Adam([{"params": [model.logit_scale], "lr": $fast}, {"params": [*model.a.parameters(), *model.b.parameters()]}], lr=1e-5)
    labels = torch.arange(6)
    for step in range($steps):
        x = torch.randn(6, $d)
        logits = model(x, x + 1e-3 * torch.randn_like(x)).float()
        loss = (F.cross_entropy(logits, labels) + F.cross_entropy(logits.t(), labels)) / 2
        loss = loss - 0.01 * model.logit_scale
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(step, loss.item())


main()
""",
        sizes={"fast": (0.03, 0.04), "d": 8, "e": 12},
        steps=500,
        kind="slow",
    ),
    Variant(
        ("exploding-rnn",),
        """
import torch
from torch import nn


class Leaky(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp, self.out = nn.Linear($d, $h), nn.Linear($h, 1)
        self.keep = nn.Parameter(torch.full(($h,), 0.9))

    def forward(self, x):
        h = 0.0
        for frame in self.inp(x).unbind(1):
            h = self.keep * h + frame
        return self.out(h).squeeze(1)


torch.manual_seed($seed)
model = Leaky()
optimizer = torch.optim.SGD(model.parameters(), lr=$lr)
for step in range($steps):
    x = torch.randn($b, 120, $d)
    y = x[:, :, 0].sum(1)
    loss = (model(x) - y).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
<<||    nn.utils.clip_grad_norm_(model.parameters(), 0.5)
>>    optimizer.step()
    if step % 10 == 0:
        print(step, loss.item())
""",
        sizes={"lr": (0.00001, 0.00003)},
        steps=700,
        kind="slow",
    ),
]
