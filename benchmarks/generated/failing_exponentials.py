"""Exponentials that overflow or underflow, and temperatures."""

from benchmarks.generated.parts import Variant

TOWERS = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.left = nn.Sequential(nn.Linear($d, $h), nn.ReLU(), nn.Linear($h, $e))
        self.right = nn.Sequential(nn.Linear($d + 2, $h), nn.ReLU(), nn.Linear($h, $e))

    def forward(self, a, b):
        return F.normalize(self.left(a), dim=1), F.normalize(self.right(b), dim=1)
"""
VIEWS = """
def load_data():
    hidden = torch.randn($n, 3)
    a = hidden @ torch.randn(3, $d) + 0.1 * torch.randn($n, $d)
    b = hidden @ torch.randn(3, $d + 2) + 0.1 * torch.randn($n, $d + 2)
    return a, b
"""

VARIANTS = [
    Variant(
        ("exp-overflow", "temperature-too-small"),
        net=TOWERS,
        data=VIEWS,
        returns="a, b",
        loss="""
def loss_fn(model, a, b):
    u, v = model(a, b)
    sim = u @ v.t() / 0.01
<<    e = torch.exp(sim)
    return -torch.log(e.diagonal() / e.sum(1) + 1e-12).mean()||    return F.cross_entropy(sim, torch.arange(len(sim)))>>
""",
        steps=20,
        sizes={"epochs": (4, 6)},
    ),
    Variant(
        ("exp-overflow",),
        out="1",
        data="binary",
        spoil="y = y[:, None] * 2 - 1",
        loss="""
def loss_fn(model, x, y):
    margin = 1000 * torch.tanh(model(x)) * y
    return <<torch.log(1 + torch.exp(-margin))||F.softplus(-margin)>>.mean() / 1000
""",
    ),
    Variant(
        ("exp-overflow",),
        net="graph|mlp|recurrent",
        out="1",
        data="y = torch.randn($n)\nenergy = torch.randn($n) * 25 - 160",
        returns="x, y, energy",
        loss="""
def loss_fn(model, x, y, energy):
    error = (model(x).squeeze(1) - y).pow(2)
<<    boltzmann = torch.exp(-energy)
    weight = boltzmann / boltzmann.sum()||    weight = torch.softmax(-energy, dim=0)>>
    return (weight * error).sum()
""",
    ),
    Variant(
        ("exp-overflow",),
        net="""
class Coupling(nn.Module):
    def __init__(self, half):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(half, $h), nn.ReLU(), nn.Linear($h, 2 * half))

    def forward(self, x):
        a, b = x.chunk(2, dim=1)
        s, t = self.net(a).chunk(2, dim=1)
<<||        s = 2 * torch.tanh(s / 2)
>>        b = b * torch.exp(s) + t
        return torch.cat([b, a], dim=1), s.sum(1)


class Net(nn.Module):
    def __init__(self, depth=6):
        super().__init__()
        self.layers = nn.ModuleList(Coupling(2) for _ in range(depth))

    def forward(self, x):
        total = 0
        for layer in self.layers:
            x, logdet = layer(x)
            total = total + logdet
        return x, total
""",
        data="x = torch.randn($n, 4)",
        returns="x, ",
        spoil="x[$at] = x[$at] * 60",
        loss="""
def loss_fn(model, x):
    z, logdet = model(x)
    return (0.5 * z.pow(2).sum(1) - logdet).clamp(max=1e6).mean()
""",
    ),
    Variant(
        ("exp-underflow", "div-zero-by-zero"),
        net="vectors",
        out="1",
        data="y = x.sum(1)",
        spoil="x[$at] = x[$at] * 30",
        returns="x, y",
        loss="""
def smooth(x, y, width=0.5):
    dist = torch.cdist(x, x).pow(2) / (2 * width ** 2)
    dist.fill_diagonal_(float("inf"))
<<    k = torch.exp(-dist)
    k = k / k.sum(1, keepdim=True)||    k = torch.softmax(-dist, dim=1)>>
    return k @ y


def loss_fn(model, x, y):
    return F.mse_loss(model(x).squeeze(1), smooth(x, y))
""",
    ),
    Variant(
        ("exp-underflow", "div-zero-by-zero"),
        net="any",
        out="2",
        data="y = torch.rand($n, 2) * 2 - 1",
        loss="""
def loss_fn(model, x, y, width=0.02):
    centres = torch.cartesian_prod(torch.linspace(-1, 1, 4), torch.linspace(-1, 1, 4))
    dist = torch.cdist(model(x), centres).pow(2) / (2 * width ** 2)
<<    assign = torch.exp(-dist)
    assign = assign / assign.sum(1, keepdim=True)||    assign = torch.softmax(-dist, dim=1)>>
    return F.mse_loss(assign @ centres, y)
""",
    ),
    Variant(
        ("exp-underflow", "div-zero-by-zero", "div-by-zero"),
        net="mlp|conv|transformer",
        out="$e",
        data="y = torch.randn($n, $e)",
        loss="""
def transport(cost, eps, rounds=5):
<<    kernel = torch.exp(-cost / eps)
    u = torch.ones(cost.shape[0])
    for _ in range(rounds):
        v = 1 / (kernel.t() @ u)
        u = 1 / (kernel @ v)
    return u[:, None] * kernel * v||    log_k = -cost / eps
    for _ in range(rounds):
        log_k = log_k - log_k.logsumexp(0, keepdim=True)
        log_k = log_k - log_k.logsumexp(1, keepdim=True)
    return log_k.exp()>>


def loss_fn(model, x, y):
    cost = torch.cdist(model(x), y).pow(2)
    plan = transport(cost, 0.01)
    return (plan * cost).sum(1).mean()
""",
    ),
    Variant(
        ("temperature-too-small", "exp-overflow", "log-of-zero"),
        net=TOWERS,
        data=VIEWS,
        returns="a, b",
        loss="""
TEMPERATURE = <<0.005||0.1>>


def loss_fn(model, a, b):
    u, v = model(a, b)
    e = torch.exp(u @ v.t() / TEMPERATURE)
    positive = e.diagonal()
    return -torch.log(positive / (positive + e.sum(1))).mean()
""",
    ),
    Variant(
        ("temperature-too-small",),
        text="""
import torch
import torch.nn.functional as F
from torch import nn


class Codes(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear($d, $h)
        self.logits = nn.Linear($h, 8)
        self.codebook = nn.Parameter(torch.randn(8, $h))
        self.decoder = nn.Linear($h, $d)

    def forward(self, x, tau):
        logits = self.logits(torch.relu(self.encoder(x)))
        noise = -torch.log(-torch.log(torch.rand_like(logits).clamp(1e-6, 1 - 1e-6)))
        weights = torch.softmax((logits + noise) / tau, dim=1)
        return self.decoder(weights @ self.codebook)


def main():
    torch.manual_seed($seed)
    data = torch.randn($n, $d)
    model = Codes()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    tau = 1.0
    for step in range($steps):
        x = data[torch.randint(0, len(data), ($b,))]
        loss = F.mse_loss(model(x, tau), x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        tau = <<tau * $decay||max(tau * $decay, 0.3)>>
        print(step, loss.item(), tau)


main()
""",
        steps=(60, 80),
        sizes={"decay": [0.1, 0.15, 0.2]},
    ),
    Variant(
        ("temperature-too-small",),
        net="""
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear($d, $h), nn.GELU(), nn.Linear($h, $e))
        self.prototypes = nn.Parameter(torch.randn($c, $e))
        self.logit_scale = nn.Parameter(torch.tensor(<<12.0||2.66>>))

    def forward(self, x):
        z = F.normalize(self.encoder(x), dim=1)
        return self.logit_scale.exp() * z.half() @ F.normalize(self.prototypes, dim=1).half().t()
""",
        data="x = torch.randn($n, $d)\ny = torch.randint(0, $c, ($n,))",
        loss="""
def loss_fn(model, x, y):
    return F.cross_entropy(model(x).float(), y)
""",
    ),
]
