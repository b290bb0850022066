"""Half precision: constants, values, gradients and optimizer states; sentinels; float32's own limits."""

# ruff: noqa: E501  the texts are scripts as their authors would write them
from benchmarks.generated.parts import Variant

VARIANTS = [
    Variant(
        ("fp16-constant-overflow", "masked-softmax-row"),
        net="""
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding($v, $e, padding_idx=0)
        self.q, self.k, self.v = nn.Linear($e, $e), nn.Linear($e, $e), nn.Linear($e, $e)
        self.head = nn.Linear($e, $c)

    def forward(self, tokens):
        h = self.embed(tokens)
        q, k, v = self.q(h).half(), self.k(h).half(), self.v(h).half()
        mask = torch.zeros(len(tokens), 1, $t, dtype=torch.half)
        mask[(tokens == 0)[:, None]] = <<-1e9||-1e4>>
        weights = torch.softmax(q @ k.transpose(1, 2) / 4 + mask, dim=-1)
        return self.head((weights @ v).float().mean(1))
""",
        data="x = torch.randint(1, $v, ($n, $t))\nx[:, -2:] = 0\ny = torch.randint(0, $c, ($n,))",
        spoil="x[$at] = 0",
        loss="""
def loss_fn(model, x, y):
    return F.cross_entropy(model(x), y)
""",
    ),
    Variant(
        ("fp16-constant-overflow",),
        net="vectors",
        out="6",
        data="y = torch.randint(0, 3, ($n,))\nlegal = torch.rand($n, 6) < 0.7\nlegal[:, :3] = True",
        returns="x, y, legal",
        loss="""
def loss_fn(model, x, y, legal):
    q = model(x).half()
    penalty = torch.tensor(<<1e6||1e4>>, dtype=q.dtype)
    q = q - (~legal).half() * penalty
    return F.cross_entropy(q.float(), y)
""",
    ),
    Variant(
        ("sentinel-overflow",),
        net="any",
        out="$k",
        data="y = torch.rand($n, $k) * 3",
        spoil="y[$at] = torch.finfo(y.dtype).max",
        loss="""
def loss_fn(model, x, depth):
    hit = depth < 1e30
    error = (F.softplus(model(x)) - <<depth||torch.where(hit, depth, torch.zeros_like(depth))>>).pow(2)
    return (error * hit).sum() / hit.sum()
""",
    ),
    Variant(
        ("sentinel-overflow",),
        net="vectors",
        out="3",
        data="y = torch.randint(0, 3, ($n,))",
        returns="x, y",
        spoil="x[$at] = x[$at] * 50",
        loss="""
FAR = <<torch.finfo(torch.float32).max||100.0>>


def nearest(x, radius=6.0):
    dist = torch.cdist(x, x) + 100 * torch.eye(len(x))
    dist = torch.where(dist < radius, dist, torch.full_like(dist, FAR))
    return dist.amin(1)


def loss_fn(model, x, y):
    crowding = nearest(x)
    scale = (crowding * 4).log1p().clamp(0.1)
    return (F.cross_entropy(model(torch.tanh(x)), y, reduction="none") * scale).mean()
""",
    ),
    Variant(
        ("fp16-overflow",),
        net="""
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp, self.up, self.down = nn.Linear($d, $h), nn.Linear($h, 4 * $h), nn.Linear(4 * $h, $h)
        self.head = nn.Linear($h, 1)

    def forward(self, x):
        h = self.inp(x)
        up = F.relu(self.up(h))
        h = h + self.down(up.pow(2))
        return self.head(F.layer_norm(h.float(), ($h,)).to(h.dtype)).squeeze(1)
""",
        data="x = torch.randn($n, $d)\ny = x.mean(1)",
        spoil="x[$at] *= 400",
        loss="""
def loss_fn(model, x, y):
    with torch.autocast("cpu", dtype=torch.<<float16||bfloat16>>):
        out = model(x)
    return F.smooth_l1_loss(out.float(), y)
""",
    ),
    Variant(
        ("fp16-overflow",),
        net="dense",
        out="64",
        data="y = torch.randn($n, 64)",
        spoil="y[$at] *= 60",
        loss="""
def loss_fn(model, x, y):
    with torch.autocast("cpu", dtype=torch.float16):
        out = model(x)
        err = out<<||.float()>> - y.to(out.dtype)
        loss = (err * err).sum()
    return loss * 1e-4
""",
    ),
    Variant(
        ("fp16-overflow",),
        net="""
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.qk, self.v = nn.Linear($d, 64), nn.Linear($d, $c)
        self.gain = nn.Parameter(torch.tensor(36.0))

    def forward(self, x):
        q = (self.gain * F.layer_norm(self.qk(x), (64,))).half()
        scores = <<q @ q.t() / 64||(q / 64) @ q.t()>>
        return torch.softmax(scores.float(), dim=-1) @ self.v(x)
""",
        data="x = torch.randn($n, $d)\ny = torch.randint(0, $c, ($n,))",
        loss="""
def loss_fn(model, x, y):
    return F.cross_entropy(model(x), y)
""",
    ),
    Variant(
        ("fp16-grad-overflow",),
        text="""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed($seed)
model = nn.Sequential(nn.Linear($d, $h), nn.ReLU(), nn.Linear($h, $c)).half()
master = [p.detach().clone().float().requires_grad_() for p in model.parameters()]
optimizer = torch.optim.SGD(master, lr=0.01)
loss_scale = <<2.0 ** 20||2.0 ** 7>>
x, y = torch.randn($n, $d), torch.randint(0, $c, ($n,))

for epoch in range($epochs):
    for start in range(0, len(x), $b):
        logits = model(x[start:start + $b].half())
        loss = F.cross_entropy(logits.float(), y[start:start + $b])
        model.zero_grad()
        (loss * loss_scale).backward()
        for p, m in zip(model.parameters(), master):
            m.grad = p.grad.float() / loss_scale
        optimizer.step()
        with torch.no_grad():
            for p, m in zip(model.parameters(), master):
                p.copy_(m)
        print(epoch, loss.item())
""",
        sizes={"c": (10, 16), "b": (4, 8)},
    ),
    Variant(
        ("fp16-grad-overflow",),
        text="""
import torch
from torch import nn
import torch.nn.functional as F


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(1, 8, 3, padding=1)
        self.fc = nn.Linear(8, 1)

    def forward(self, x):
        return self.fc(F.relu(self.conv(x)).mean(2)).squeeze(1)


def main(scale=<<65536.0||64.0>>):
    torch.manual_seed($seed)
    model = Encoder()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    data = torch.randn($n, 1, 32)
    target = data.squeeze(1).std(1) + 3
    for i in range($steps):
        idx = torch.randint(0, len(data), ($b,))
        with torch.autocast("cpu", dtype=torch.float16):
            out = model(data[idx])
            loss = (out - target[idx].half()).pow(2).sum()
        optimizer.zero_grad()
        (loss.float() * scale).backward()
        for p in model.parameters():
            p.grad.div_(scale)
        optimizer.step()
        print(f"{i}: {loss.item():.4f}")


if __name__ == "__main__":
    main()
""",
    ),
    Variant(
        ("adam-eps-underflow",),
        text="""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed($seed)
model = nn.Sequential(nn.Linear($d, $h), nn.Tanh(), nn.Linear($h, $c)).half()
optimizer = torch.optim.<<Adam(model.parameters(), lr=1e-3)||Adam(model.parameters(), lr=1e-3, eps=1e-4)>>
x, y = torch.randn($n, $d).half(), torch.randint(0, $c, ($n,))

for epoch in range($epochs):
    for xb, yb in zip(x.split($b), y.split($b)):
        loss = F.cross_entropy(model(xb).float(), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())
""",
    ),
    Variant(
        ("adam-eps-underflow",),
        text="""
import torch
from torch import nn


class Recommender(nn.Module):
    def __init__(self):
        super().__init__()
        self.users, self.items = nn.Embedding($v, $e), nn.Embedding($v, $e)

    def forward(self, u, i):
        return (self.users(u) * self.items(i)).sum(1)


def train(model, optimizer, ratings, epochs):
    for epoch in range(epochs):
        for start in range(0, len(ratings[0]), $b):
            u, i, r = (column[start:start + $b] for column in ratings)
            loss = (model(u, i).float() - r).pow(2).mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            print(epoch, loss.item())


torch.manual_seed($seed)
model = Recommender().half()
optimizer = torch.optim.AdamW(model.parameters(), lr=$lr, <<betas=(0.9, 0.99)||betas=(0.9, 0.99), eps=1e-3>>)
ratings = torch.randint(0, $v, ($n,)), torch.randint(0, $v, ($n,)), torch.rand($n) * 4 + 1
train(model, optimizer, ratings, $epochs)
""",
    ),
    Variant(
        ("inf-minus-inf", "exp-overflow"),
        net="any",
        out="1",
        data="real",
        spoil="counts = torch.full(($n,), 30.0)\ncounts[$at] = 300.0",
        returns="x, y, counts",
        loss="""
def log_growth(n):
<<    up, down = torch.exp(n), torch.exp(n - 1)
    return torch.log(up - down)||    return n + torch.log1p(-torch.exp(torch.tensor(-1.0)))>>


def loss_fn(model, x, y, counts):
    return (model(x).squeeze(1) * log_growth(counts) / 30 - y.squeeze(1)).pow(2).mean()
""",
    ),
    Variant(
        ("inf-minus-inf", "exp-overflow"),
        out="$c",
        loss="""
def loss_fn(model, x, y):
    scores = 50 * model(x).cumsum(1).tanh() + 60
<<    total = scores.exp().sum(1).log()
    return (total - scores.gather(1, y[:, None]).exp().sum(1).log()).mean()||    return (scores.logsumexp(1) - scores.gather(1, y[:, None]).squeeze(1)).mean()>>
""",
    ),
    Variant(
        ("fp32-overflow",),
        net="dense",
        out="128",
        data="y = torch.randn($n, 128)",
        loss="""
def loss_fn(model, x, y):
    sigma = 2 + F.softplus(model(x))
    log_volume = <<sigma.prod(1).log()||sigma.log().sum(1)>>
    return ((y / sigma).pow(2).sum(1) / 2 + log_volume).mean()
""",
    ),
    Variant(
        ("fp32-overflow",),
        net="any",
        out="1",
        data="y = torch.randint(1, 20, ($n,)).float()",
        spoil="y[$at] = 60.0",
        loss="""
def log_factorial(n):
<<    k = torch.arange(1, 61).float()
    return torch.log(torch.where(k <= n[:, None], k, torch.ones(())).prod(1))||    return torch.lgamma(n + 1)>>


def loss_fn(model, x, y):
    log_rate = model(x).squeeze(1)
    return (torch.exp(log_rate) - y * log_rate + log_factorial(y)).mean()
""",
    ),
]
