"""Mistakes of the whole run: rates, schedules, initialisation, weights of losses, objectives and targets that run away."""

# ruff: noqa: E501  the texts are scripts as their authors would write them
from benchmarks.generated.parts import Variant

SQUARES = """
def loss_fn(model, x, y):
    return F.mse_loss(model(x), y)
"""
CROSS_ENTROPY = """
def loss_fn(model, x, y):
    return F.cross_entropy(model(x), y)
"""
LINEAR_RNN = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp, self.out = nn.Linear($d, $h), nn.Linear($h, 1)
        self.decay = nn.Parameter(torch.full(($h,), 0.97))

    def forward(self, x):
        h = 0.0
        for frame in self.inp(x).unbind(1):
            h = self.decay * h + frame
        return self.out(h).squeeze(1)
"""

VARIANTS = [
    Variant(
        ("lr-too-high",),
        net="""
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean, self.slope = nn.Parameter(torch.zeros($k)), nn.Linear($d, $k, bias=False)

    def forward(self, x):
        return self.mean + self.slope(x)
""",
        data="x = torch.randn($n, $d)\ny = x @ torch.randn($d, $k) + 0.1 * torch.randn($n, $k)",
        opt="torch.optim.SGD(model.parameters(), lr=<<$rate||0.05>>)",
        extras=False,
        sizes={"rate": (2.0, 5.0), "epochs": (12, 18)},
        loss="""
def loss_fn(model, x, y):
    return 0.5 * (model(x) - y).pow(2).sum(1).mean()
""",
    ),
    Variant(
        ("lr-too-high",),
        net="""
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = nn.Linear($d, $h)
        self.bias = nn.Parameter(torch.zeros($d))

    def forward(self, x):
        code = F.leaky_relu(self.encode(x), 0.1)
        return code @ self.encode.weight + self.bias
""",
        data="x = torch.randn($n, $d) @ torch.randn($d, $d) / 2\ny = x.clone()",
        opt="torch.optim.SGD(model.parameters(), lr=<<$rate||0.002>>, momentum=0.9)",
        extras=False,
        sizes={"rate": (0.5, 1.0), "epochs": (10, 15)},
        loss="""
def loss_fn(model, x, y):
    noisy = x + 0.1 * torch.randn_like(x)
    return (model(noisy) - y).pow(2).sum(1).mean()
""",
    ),
    Variant(
        ("lr-too-high",),
        net="recurrent|lstm|mlp",
        out="1",
        data="y = torch.poisson(torch.exp(torch.tanh(x.flatten(1)[:, 0])) + 1)[:, None]",
        opt="torch.optim.Adam(model.parameters(), lr=<<$rate||0.003>>)",
        extras=False,
        sizes={"rate": (5.0, 20.0), "epochs": (6, 10)},
        loss="""
def loss_fn(model, x, y):
    return F.poisson_nll_loss(model(x), y)
""",
    ),
    Variant(
        ("bad-lr-schedule",),
        net="mlp|experts|recurrent",
        out="$k",
        data="real",
        extras=False,
        opt="torch.optim.SGD(model.parameters(), lr=0.01)\nscheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: <<$growth ** step||min($growth ** step, 5.0)>>)\noptimizer.register_step_post_hook(lambda *_: scheduler.step())",
        sizes={"growth": (1.15, 1.3), "epochs": (12, 20)},
        loss=SQUARES,
    ),
    Variant(
        ("bad-lr-schedule",),
        text="""
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

TOTAL = $steps // 2


def rate(step):
    progress = <<step / TOTAL||min(step / TOTAL, 1.0)>>
    return float(0.05 * np.sqrt(np.float64(1 - progress)))


torch.manual_seed($seed)
model = nn.Sequential(nn.Linear($d, $h), nn.ReLU(), nn.Linear($h, $c))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
centres = torch.randn($c, $d)
for step in range($steps):
    for group in optimizer.param_groups:
        group["lr"] = rate(step)
    y = torch.randint(0, $c, ($b,))
    x = centres[y] + 0.5 * torch.randn($b, $d)
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 5 == 0:
        print(f"{step} {loss.item():.4f}")
""",
        steps=(20, 50),
    ),
    Variant(
        ("bad-init",),
        net="""
class Net(nn.Module):
    def __init__(self, depth=$depth):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(64, 64) for _ in range(depth)])
        self.inp, self.out = nn.Linear($d, 64), nn.Linear(64, $c)
        for layer in self.layers:
            nn.init.<<normal_(layer.weight, 0.0, 1.0)||kaiming_normal_(layer.weight, nonlinearity="relu")>>

    def forward(self, x):
        h = self.inp(x)
        for layer in self.layers:
            h = torch.relu(layer(h))
        return self.out(h)
""",
        data="x = torch.randn($n, $d)\ny = torch.randint(0, $c, ($n,))",
        sizes={"depth": (50, 60), "lr": (1e-5, 1e-4)},
        opt="torch.optim.Adam(model.parameters(), lr=$lr)",
        loss=CROSS_ENTROPY,
    ),
    Variant(
        ("bad-init",),
        net="""
class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)
        nn.init.normal_(self.conv.weight, 0.0, <<1.0||0.01>>)

    def forward(self, x):
        return x + F.relu(self.conv(x))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(1, 16, 3, padding=1)
        self.blocks = nn.Sequential(*[Residual(16) for _ in range($depth)])
        self.fc = nn.Linear(16, $c)

    def forward(self, x):
        return self.fc(self.blocks(self.stem(x)).mean((2, 3)))
""",
        data="x = torch.rand($n, 1, 6, 6)\ny = torch.randint(0, $c, ($n,))",
        sizes={"depth": (46, 54), "lr": (1e-5, 1e-4), "m": 3, "b": 6},
        opt="torch.optim.Adam(model.parameters(), lr=$lr)",
        loss=CROSS_ENTROPY,
    ),
    Variant(
        ("loss-weight",),
        net="vectors",
        out="$k",
        data="real",
        opt="torch.optim.SGD(model.parameters(), lr=0.02)",
        extras=False,
        sizes={"heavy": (2000.0, 20000.0), "epochs": (8, 12)},
        loss="""
def loss_fn(model, x, y):
    out = model(x)
    fit = F.mse_loss(out, y)
    smooth = (out[1:] - out[:-1]).pow(2).mean()
    return fit + <<$heavy||0.1>> * smooth
""",
    ),
    Variant(
        ("loss-weight",),
        net="""
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear($d, $h), nn.ReLU(), nn.Linear($h, $h), nn.ReLU())
        self.cls, self.box = nn.Linear($h, $c), nn.Linear($h, 4)

    def forward(self, x):
        h = self.trunk(x)
        return self.cls(h), self.box(h)
""",
        data="x = torch.randn($n, $d)\ny = torch.randint(0, $c, ($n,))\nbox = torch.randn($n, 4)",
        returns="x, y, box",
        opt="torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)",
        extras=False,
        sizes={"heavy": (500.0, 5000.0), "epochs": (8, 12)},
        loss="""
def loss_fn(model, x, y, box):
    logits, pred = model(x)
    cls_loss = F.cross_entropy(logits, y)
    box_loss = F.mse_loss(pred, box)
    return cls_loss + <<$heavy||1.0>> * box_loss
""",
    ),
    Variant(
        ("exploding-rnn",),
        net=LINEAR_RNN,
        data="x = torch.randn($n, $long, $d)\ny = x.mean((1, 2)) * 10",
        sizes={"long": (150, 200), "epochs": (6, 10), "lr": (0.003, 0.01), "m": 4},
        opt="torch.optim.SGD(model.parameters(), lr=$lr)<<||\noptimizer.register_step_pre_hook(lambda *_: nn.utils.clip_grad_norm_(model.parameters(), 0.5) and None)>>",
        extras=False,
        loss=SQUARES,
    ),
    Variant(
        ("exploding-rnn",),
        text="""
import torch
from torch import nn


class Cell(nn.Module):
    def __init__(self, inside, width):
        super().__init__()
        self.inp = nn.Linear(inside, width)
        self.rec = nn.Parameter(torch.eye(width) + 0.02 * torch.randn(width, width))
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        h = x.new_zeros(x.shape[0], self.rec.shape[0])
        for frame in x.unbind(1):
            h = torch.relu(self.inp(frame) + h @ self.rec)
        return self.out(h).squeeze(1)


def main():
    torch.manual_seed($seed)
    model = Cell($d, $h)
    optimizer = torch.optim.SGD(model.parameters(), lr=$lr)
    for step in range($steps):
        x = torch.randn($b, $long, $d)
        y = x[:, :, 0].mean(1)
        loss = (model(x) - y).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
<<||        nn.utils.clip_grad_norm_(model.parameters(), 0.1)
>>        optimizer.step()
        print(step, loss.item())


if __name__ == "__main__":
    main()
""",
        sizes={"long": (50, 70), "lr": (0.003, 0.01), "h": (16, 24)},
        steps=(30, 60),
    ),
    Variant(
        ("bootstrap-divergence",),
        text="""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed($seed)
q = nn.Sequential(nn.Linear($d, $h), nn.ReLU(), nn.Linear($h, $c))
optimizer = torch.optim.SGD(q.parameters(), lr=0.05)
states = torch.rand($n, $d)
actions = torch.randint(0, $c, ($n,))
rewards = torch.rand($n)
following = 1.5 * states

for step in range($steps):
    i = torch.randint(0, $n, (32,))
    with torch.no_grad():
        future = q(following[i]).max(1).values
        target = rewards[i] + 0.99 * future
<<||        target = target.clamp(0, 10)
>>    value = q(states[i]).gather(1, actions[i, None]).squeeze(1)
    loss = F.mse_loss(value, target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        print(step, loss.item())
""",
        steps=(600, 600),
    ),
    Variant(
        ("bootstrap-divergence",),
        text="""
import torch
from torch import nn


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Parameter(torch.randn(7, $e))
        self.weight = nn.Parameter(torch.rand($e))

    def forward(self, table):
        return table @ self.weight


def td_step(critic, optimizer, table, now, then, gamma):
    with torch.no_grad():
        target = gamma * critic(table[then])<<||.clamp(-5, 5)>>
    loss = (critic(table[now]) - target).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def main():
    torch.manual_seed($seed)
    table = torch.rand($c, $e)
    table = torch.cat([table, table * 2])
    critic = Critic()
    optimizer = torch.optim.SGD([critic.weight], lr=$lr)
    for step in range($steps):
        now = torch.randint(0, $c, ($b,))
        value = td_step(critic, optimizer, table, now, now + $c, 0.95)
        if step % 25 == 0:
            print(f"update {step}: {value:.4g}")


main()
""",
        sizes={"lr": (0.1, 0.15), "e": (3, 5)},
        steps=(400, 400),
    ),
    Variant(
        ("unbounded-objective",),
        text="""
import torch
from torch import nn


def critic():
    return nn.Sequential(nn.Linear(2, $h), nn.LeakyReLU(0.2), nn.Linear($h, $h), nn.LeakyReLU(0.2), nn.Linear($h, 1))


torch.manual_seed($seed)
G = nn.Sequential(nn.Linear(4, $h), nn.ReLU(), nn.Linear($h, 2))
D = critic()
opt_g = torch.optim.SGD(G.parameters(), lr=1e-4)
opt_d = torch.optim.SGD(D.parameters(), lr=$lr)
for step in range($steps):
    real = torch.randn($b, 2) * 0.5 + 2
    fake = G(torch.randn($b, 4))
    loss_d = D(fake.detach()).mean() - D(real).mean()
    opt_d.zero_grad()
    loss_d.backward()
    opt_d.step()
<<||    with torch.no_grad():
        for p in D.parameters():
            p.clamp_(-0.1, 0.1)
>>    loss_g = -D(G(torch.randn($b, 4))).mean()
    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step()
    if step % 10 == 0:
        print(f"{step}: critic {loss_d.item():.3f} generator {loss_g.item():.3f}")
""",
        sizes={"lr": (0.1, 0.3)},
        steps=(120, 150),
    ),
    Variant(
        ("unbounded-objective",),
        net="mlp|experts",
        out="$e",
        data="y = x + 0.1 * torch.randn_like(x)",
        extras=False,
        opt="torch.optim.SGD(model.parameters(), lr=$lr, momentum=0.9)",
        sizes={"lr": (0.1, 0.3), "epochs": (15, 25)},
        loss="""
def loss_fn(model, x, y):
    anchor, positive = model(x), model(y)
    negative = positive.roll(1, 0)
    near, far = (anchor - positive).pow(2).sum(1), (anchor - negative).pow(2).sum(1)
    return <<(near - far).mean()||F.relu(near - far + 1.0).mean() * 0.1>>
""",
    ),
    Variant(
        ("class-imbalance", "div-by-zero", "bad-class-weight", "zero-times-inf"),
        net="any",
        out="1",
        data="y = (torch.rand($n) < 0.3).float()",
        spoil="y[$b:2 * $b] = 0",
        shuffle=False,
        loss="""
def loss_fn(model, x, y):
    positive = y.sum()
    weight = (len(y) - positive) / positive<<||.clamp(min=1)>>
    return F.binary_cross_entropy_with_logits(model(x).squeeze(1), y, pos_weight=weight)
""",
    ),
    Variant(
        ("class-imbalance", "empty-reduction"),
        net="any",
        out="2",
        data="y = (torch.rand($n) < 0.4).long()",
        spoil="y[$b:2 * $b] = 0",
        shuffle=False,
        loss="""
def loss_fn(model, x, y):
    each = F.cross_entropy(model(x), y, reduction="none")
    return 0.5 * (<<each[y == 0].mean() + each[y == 1].mean()||each[y == 0].sum() / (y == 0).sum().clamp(min=1) + each[y == 1].sum() / (y == 1).sum().clamp(min=1)>>)
""",
    ),
    Variant(
        ("gradient-conflict", "loss-weight"),
        net="mlp",
        out="$k",
        data="real",
        opt="torch.optim.SGD(model.parameters(), lr=0.02)",
        extras=False,
        sizes={"heavy": (500.0, 3000.0), "epochs": (8, 12)},
        loss="""
def loss_fn(model, x, y):
    out = model(x)
    near = F.mse_loss(out, y)
    away = <<$heavy||0.5>> * (out + y).pow(2).mean()
    return near + away
""",
    ),
    Variant(
        ("gradient-conflict", "loss-weight"),
        net="""
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.shared = nn.Sequential(nn.Linear($d, $h), nn.ReLU(), nn.Linear($h, $h))
        self.first, self.second = nn.Linear($h, 1), nn.Linear($h, 1)
        self.second.load_state_dict(self.first.state_dict())

    def forward(self, x):
        h = self.shared(x)
        return self.first(h).squeeze(1), self.second(h).squeeze(1)
""",
        data="x = torch.randn($n, $d)\nspeed = torch.tanh(x.sum(1))\ncost = -speed",
        returns="x, speed, cost",
        opt="torch.optim.SGD(model.parameters(), lr=0.05)",
        extras=False,
        sizes={"far": (100, 400), "epochs": (8, 12)},
        loss="""
def loss_fn(model, x, speed, cost):
    a, b = model(x)
    return F.mse_loss(a, speed) + <<$far||1>> * F.mse_loss(b, cost)
""",
    ),
    Variant(
        ("length-not-normalised",),
        net="""
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding($v, $e, padding_idx=0), nn.Linear($e, 1)

    def forward(self, tokens):
        return self.head(self.embed(tokens)<<.sum(1)||.sum(1) / (tokens > 0).sum(1, keepdim=True)>>).squeeze(1)
""",
        data="x = torch.zeros($n, 6000, dtype=torch.long)\nx[:, :10] = torch.randint(1, $v, ($n, 10))\ny = torch.poisson(torch.full(($n,), 3.0))",
        spoil="x[$at] = torch.randint(1, 4, (6000,))",
        sizes={"b": (4, 8), "m": (3, 4)},
        loss="""
def loss_fn(model, x, y):
    log_rate = model(x)
    return (log_rate.exp() - y * log_rate).mean()
""",
    ),
    Variant(
        ("length-not-normalised",),
        text="""
import torch
import torch.nn.functional as F
from torch import nn


class SumPool(nn.Module):
    def __init__(self):
        super().__init__()
        self.node = nn.Sequential(nn.Linear($d, $h), nn.ReLU())
        self.message, self.out = nn.Linear($h, $h), nn.Linear($h, 1)

    def forward(self, nodes):
        h = self.node(nodes)
        for _ in range(3):
            h = h + <<self.message(h).relu().sum(0)||self.message(h).relu().mean(0)>>
        return self.out(h.mean(0))


def graphs():
    for size in torch.randint(3, 8, ($n,)).tolist():
        yield torch.randn(size, $d)
    while True:
        yield torch.randn($large, $d)


torch.manual_seed($seed)
model = SumPool()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
stream = graphs()
for step in range($n + 30):
    nodes = next(stream)
    loss = F.mse_loss(model(nodes), nodes.mean(0)[:1])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, len(nodes), loss.item())
""",
        sizes={"large": (1500, 3000), "b": 5, "m": 4},
    ),
    Variant(
        ("embedding-norm-growth", "exp-overflow"),
        text="""
import torch
from torch import nn


class SkipGram(nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.centre, self.context = nn.Embedding(words, width), nn.Embedding(words, width)

    def forward(self, a, b):
        u, w = self.centre(a), self.context(b)
<<||        u, w = nn.functional.normalize(u, dim=-1), nn.functional.normalize(w, dim=-1)
>>        return u @ w.t()


torch.manual_seed($seed)
model = SkipGram($v, $e)
optimizer = torch.optim.Adam(model.parameters(), lr=$lr)
for step in range($steps):
    a = torch.randint(0, $v, ($b,))
    b = (a + 1) % $v
    sim = model(a, b)
    e = torch.exp(sim)
    loss = -torch.log(e.diagonal() / e.sum(1) + 1e-9).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
""",
        sizes={"lr": (0.5, 0.9)},
        steps=(110, 140),
    ),
    Variant(
        ("embedding-norm-growth", "unbounded-objective"),
        text="""
import torch
import torch.nn.functional as F
from torch import nn


class Retrieval(nn.Module):
    def __init__(self):
        super().__init__()
        self.user, self.item = nn.Embedding($v, $e), nn.Embedding($v, $e)

    def score(self, u, i):
        u, i = self.user(u), self.item(i)
<<||        u, i = F.normalize(u, dim=1), F.normalize(i, dim=1)
>>        return (u.half() @ i.half().t()).float()


def main():
    torch.manual_seed($seed)
    model = Retrieval()
    optimizer = torch.optim.SGD(model.parameters(), lr=$lr)
    for step in range($steps):
        u = torch.randperm($v)[:$b]
        scores = model.score(u, u)
        wrong = scores - 1e4 * torch.eye(len(u))
        loss = (wrong.amax(1) - scores.diagonal()).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"{step} {loss.item():.4f}")


if __name__ == "__main__":
    main()
""",
        sizes={"lr": (8.0, 15.0)},
        steps=(120, 150),
    ),
    Variant(
        ("scale-collapse",),
        text="""
import torch
from torch import nn


class MultiTask(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear($d, $h), nn.ReLU())
        self.a, self.b = nn.Linear($h, 1), nn.Linear($h, 1)
        self.log_var = nn.Parameter(torch.zeros(2))

    def forward(self, x):
        h = self.trunk(x)
        return self.a(h), torch.relu(self.b(h) - 3)


torch.manual_seed($seed)
model = MultiTask()
optimizer = torch.optim.Adam([
    {"params": [*model.trunk.parameters(), *model.a.parameters(), *model.b.parameters()], "lr": 1e-3},
    {"params": [model.log_var], "lr": $fast},
])
for step in range($steps):
    x = torch.randn($b, $d)
    a, b = model(x)
    losses = torch.stack([(a - x[:, :1]).pow(2).mean(), b.pow(2).mean()])
    s = model.log_var<<||.clamp(min=-8)>>
    loss = (torch.exp(-s) * losses + s).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
""",
        sizes={"fast": (0.8, 1.5)},
        steps=(130, 150),
    ),
    Variant(
        ("scale-collapse",),
        net="""
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear($d, $h), nn.ReLU())
        self.mean = nn.Linear($h, 1)
        self.raw = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        return torch.relu(self.mean(self.body(x)) - 2), F.softplus(self.raw)<<|| + 1e-3>>
""",
        data="x = torch.randn($n, $d)\ny = torch.zeros($n, 1)",
        opt="torch.optim.Adam([{'params': model.body.parameters()}, {'params': [model.raw], 'lr': $fast}], lr=1e-3)",
        extras=False,
        sizes={"fast": (1.0, 2.0), "epochs": (20, 25)},
        loss="""
def loss_fn(model, x, y):
    mean, sigma = model(x)
    return (torch.log(sigma) + 0.5 * ((y - mean) / sigma).pow(2)).mean()
""",
    ),
]
