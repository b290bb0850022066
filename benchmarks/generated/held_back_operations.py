"""Variants for the test set alone: mistakes in one operation."""

# ruff: noqa: E501  the texts are scripts as their authors would write them
from benchmarks.generated.parts import Variant

CROSS_ENTROPY = """
def loss_fn(model, x, y):
    return F.cross_entropy(model(x), y)
"""

VARIANTS = [
    Variant(
        ("log-of-zero",),
        net="any",
        out="1",
        data="binary",
        loss="""
def loss_fn(model, x, y):
    margin = 120 * torch.tanh(4 * model(x).squeeze(1)) + 60
<<    p = torch.sigmoid(margin)
    return -(y * p.log() + (1 - y) * (1 - p).log()).mean()||    return F.binary_cross_entropy_with_logits(margin, y)>>
""",
    ),
    Variant(
        ("log-of-negative",),
        net="any",
        out="1",
        data="counts",
        loss="""
def loss_fn(model, x, events):
    rate = <<model(x)||F.softplus(model(x)) + 1e-4>>
    return (rate - events * torch.log(rate)).mean()
""",
    ),
    Variant(
        ("eps-underflow",),
        net="""
class HalfNorm(nn.Module):
    def forward(self, h):
        h = h - h.mean(-1, keepdim=True)
        return h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + <<1e-12||1e-3>>)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.norm, self.fc2 = nn.Linear($d, $h, bias=False), HalfNorm(), nn.Linear($h, $c)

    def forward(self, x):
        return self.fc2(self.norm(self.fc1(x).half()).float())
""",
        data="x = torch.randn($n, $d)\ny = torch.randint(0, $c, ($n,))",
        spoil="x[$at] = 0",
        loss=CROSS_ENTROPY,
    ),
    Variant(
        ("div-zero-by-zero",),
        net="vectors",
        out="4",
        data="y = torch.randn($n, 4)",
        loss="""
def loss_fn(model, x, y):
    gates = F.relu(model(x) - 0.3)
    share = gates / gates.sum(1, keepdim=True)<<||.clamp(min=1e-6)>>
    return (share * (y - 1).pow(2)).sum(1).mean()
""",
    ),
    Variant(
        ("div-by-zero",),
        net="vectors",
        out="1",
        data="site = torch.rand($n, 2)\ny = torch.sin(3 * site).sum(1)",
        spoil="site[$at] = torch.tensor([0.5, 0.5])",
        returns="x, site, y",
        loss="""
def loss_fn(model, x, site, y):
    stations = torch.tensor([[0.5, 0.5], [0.1, 0.9], [0.8, 0.2]])
    readings = torch.tensor([1.0, 0.3, 0.7])
    weight = 1 / <<torch.cdist(site, stations)||torch.cdist(site, stations).clamp(min=1e-3)>>
    prior = (weight * readings).sum(1) / weight.sum(1)
    return (prior + model(x).squeeze(1) - y).pow(2).mean()
""",
    ),
    Variant(
        ("div-by-tiny",),
        net="any",
        out="$k",
        data="y = torch.rand($n, $k) + 0.5\nrange_ = torch.ones($n, 1)",
        spoil="range_[$at] = 3e-39",
        returns="x, y, range_",
        loss="""
def loss_fn(model, x, y, extent):
    scaled = 2 * (y / <<extent||extent.clamp(min=1e-6)>>)
    return F.smooth_l1_loss(model(x), scaled)
""",
    ),
    Variant(
        ("empty-reduction",),
        net="any",
        out="3",
        data="y = torch.randn($n, 3)\ngroup = torch.randint(0, 3, ($n,))",
        spoil="group[$b:2 * $b] = 0",
        returns="x, y, group",
        shuffle=False,
        loss="""
def loss_fn(model, x, y, group):
    error = (model(x) - y).abs().sum(1)
    worst = [error[group == g].mean() for g in range(3)<<|| if (group == g).any()>>]
    return torch.stack(worst).max()
""",
    ),
    Variant(
        ("var-single-sample",),
        net="""
class BatchStd(nn.Module):
    def __init__(self):
        super().__init__()
        self.features, self.out = nn.Linear($d, $h), nn.Linear($h + 1, 1)

    def forward(self, x):
        h = F.leaky_relu(self.features(x))
        spread = h.std(0<<||, correction=0>>).mean().expand(len(h), 1)
        return self.out(torch.cat([h, spread], 1)).squeeze(1)


Net = BatchStd
""",
        data="x = torch.randn($n - $b + 1, $d)\ny = x.mean(1)",
        loss="""
def loss_fn(model, x, y):
    return (model(x) - y).abs().mean()
""",
    ),
    Variant(
        ("zero-variance-scale", "div-zero-by-zero"),
        net="any",
        out="4",
        data="action = torch.randint(0, 4, ($n,))\nreward = torch.randint(0, 2, ($n,)).float()",
        spoil="reward[$b:2 * $b] = 1.0",
        returns="x, action, reward",
        shuffle=False,
        loss="""
def loss_fn(model, x, action, reward):
    advantage = (reward - reward.mean()) / (reward.std(unbiased=False)<<|| + 1e-4>>)
    log_p = F.log_softmax(model(x), 1).gather(1, action[:, None]).squeeze(1)
    return -(advantage * log_p).mean()
""",
    ),
    Variant(
        ("exp-overflow",),
        net="conv|recurrent|mlp",
        out="1",
        data="y = torch.rand($n) * 3",
        spoil="exposure = torch.rand($n)\nexposure[$at] = 95.0",
        returns="x, y, exposure",
        loss="""
def loss_fn(model, x, y, exposure):
    hazard = model(x).squeeze(1) + exposure
    survived = <<torch.log1p(hazard.exp())||F.softplus(hazard)>>
    return (survived - y).abs().mean()
""",
    ),
    Variant(
        ("exp-underflow", "div-zero-by-zero"),
        net="vectors",
        out="$e",
        data="y = torch.randint(0, $c, ($n,))",
        loss="""
def loss_fn(model, x, y):
    logits = 250 * F.normalize(model(x)[:, :$c], dim=1)
<<    odds = torch.exp(logits - 600)
    probs = odds / odds.sum(1, keepdim=True)||    probs = torch.softmax(logits - 600, dim=1)>>
    return (probs - F.one_hot(y, $c)).pow(2).sum(1).mean()
""",
        sizes={"c": (3, 5)},
    ),
    Variant(
        ("temperature-too-small", "exp-overflow", "log-of-zero"),
        net="any",
        out="$e",
        data="y = torch.randint(0, 3, ($n,))",
        loss="""
TAU = <<0.004||0.2>>


def loss_fn(model, x, y):
    z = F.normalize(model(x), dim=1)
    weight = (z @ z.t()).div(TAU).exp()
    same = (y[:, None] == y[None]).float()
    return -torch.log((weight * same).sum(1) / weight.sum(1)).mean()
""",
    ),
    Variant(
        ("masked-softmax-row",),
        net="vectors",
        out="6",
        data="y = torch.rand($n)\nopen_ = torch.rand($n, 6) < 0.7\nopen_[:, 2] = True",
        spoil="open_[$at] = False",
        returns="x, y, open_",
        loss="""
def loss_fn(model, x, y, free):
    blocked = ~free<<|| & free.any(1, keepdim=True)>>
    attention = model(x).masked_fill(blocked, float('-inf')).softmax(1)
    return ((attention * torch.linspace(0, 1, 6)).sum(1) - y).pow(2).mean()
""",
    ),
    Variant(
        ("mask-sum-overflow",),
        net="""
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding($v, $e)
        self.query, self.head = nn.Linear($e, 1), nn.Linear($e, $c)

    def forward(self, tokens, pad, drop):
        h = self.embed(tokens)
        score = self.query(h).squeeze(2).half()
        low = torch.finfo(torch.half).min
        score = score + pad.half() * low
        score = <<score + drop.half() * low||torch.where(drop, torch.full_like(score, low), score)>>
        return self.head((score.softmax(1).float()[..., None] * h).sum(1))
""",
        data="x = torch.randint(0, $v, ($n, $t))\npad = torch.rand($n, $t) < 0.2\ndrop = torch.rand($n, $t) < 0.2\ny = torch.randint(0, $c, ($n,))",
        spoil="pad[$at], drop[$at] = True, True",
        returns="x, pad, drop, y",
        loss="""
def loss_fn(model, x, pad, drop, y):
    return F.cross_entropy(model(x, pad, drop), y)
""",
    ),
    Variant(
        ("zero-times-inf", "log-of-zero"),
        net="any",
        out="$c",
        data="reward = torch.rand($n, $c)\nactive = (torch.rand($n, $c) < 0.7).float()\nactive[:, 0] = 1",
        returns="x, reward, active",
        loss="""
def loss_fn(model, x, reward, active):
    cost = <<reward / active||reward / active.clamp(min=0.1)>>
    chance = model(x).softmax(1)
    return (cost * active * chance).sum(1).mean()
""",
    ),
    Variant(
        ("nan-times-zero-mask",),
        net="dense",
        out="3",
        data="y = torch.randn($n, 3)",
        spoil="y[$at, 1:] = float('nan')",
        loss="""
def loss_fn(model, x, y):
    weight = (~y.isnan()).float()
<<    each = F.smooth_l1_loss(model(x), y, reduction="none")
    return (each * weight).mean()||    each = F.smooth_l1_loss(model(x), y.nan_to_num(), reduction="none")
    return (each * weight).mean()>>
""",
    ),
    Variant(
        ("where-grad-trap",),
        net="dense",
        out="$k",
        data="real",
        loss="""
def compress(z):
    big = z.abs() > 1e-3
<<    return torch.where(big, z.sign() * (z.abs() ** 0.3), z)||    return torch.where(big, z.sign() * (z.abs().clamp(min=1e-3) ** 0.3), z)>>


def loss_fn(model, x, y):
    out = model(x)
    gate = (out.detach() > 0).float()
    return (compress(out * gate) - y).pow(2).mean()
""",
    ),
    Variant(
        ("sqrt-grad-at-zero",),
        net="mlp|recurrent|conv",
        out="$e",
        data="y = torch.randint(0, 2, ($n,))",
        loss="""
def loss_fn(model, x, y):
    z = model(x)
    gap = z[:, None] - z[None]
    dist = <<gap.pow(2).sum(-1).sqrt()||(gap.pow(2).sum(-1) + 1e-8).sqrt()>>
    same = (y[:, None] == y[None]).float()
    return (same * dist + (1 - same) * F.relu(1 - dist)).mean()
""",
    ),
    Variant(
        ("pow-grad-at-zero",),
        net="dense",
        out="3",
        data="y = torch.rand($n, 3)\nvisible = (torch.rand($n, 3) < 0.8).float()",
        returns="x, y, visible",
        loss="""
def loss_fn(model, x, y, visible):
    residual = (model(x) - y).abs() * visible
    return (residual<<|| + 1e-6>>).pow(0.7).sum(1).mean()
""",
    ),
    Variant(
        ("pow-of-negative",),
        net="mlp|recurrent|graph",
        out="1",
        data="time = torch.rand($n, 1) * 3 + 0.1\ny = time.sqrt()",
        returns="x, time, y",
        loss="""
def loss_fn(model, x, time, y):
    shifted = time + 3 * <<model(x)||model(x).relu()>> - 0.05<<||
    shifted = shifted.clamp(min=0.01)>>
    return (torch.pow(shifted, 0.5 + 0.1) - y).pow(2).mean()
""",
        sizes={"epochs": 4},
    ),
    Variant(
        ("sqrt-of-negative",),
        net="mlp|conv",
        out="$e",
        data="y = torch.randn($n)",
        loss="""
def loss_fn(model, x, y):
    z = F.normalize(model(x), dim=1)
    z = torch.cat([z, z[:2]])
    cosine = (z @ z.t())
    sine = torch.sqrt(<<1 - cosine.pow(2)||(1 - cosine.pow(2)).clamp(min=1e-6)>>)
    return (sine.mean(1)[:len(y)] - y.sigmoid()).pow(2).mean()
""",
    ),
    Variant(
        ("domain-boundary",),
        net="dense",
        out="9",
        data="y = torch.linalg.qr(torch.randn($n, 3, 3))[0]",
        loss="""
def loss_fn(model, x, y):
    r = torch.linalg.qr(model(x).view(-1, 3, 3))[0]
    same = torch.arange(len(y)) % 3 == 0
    target = torch.where(same[:, None, None], r.detach(), y)
    cosine = ((r * target).sum((1, 2)) - 1) / 2
    return torch.arccos(cosine<<||.clamp(-0.999, 0.999)>>).mean()
""",
    ),
    Variant(
        ("svd-degenerate",),
        net="""
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.basis = nn.Parameter(torch.eye($k + 1)<<|| + 0.3 * torch.diag(torch.arange($k + 1.0))>>)
        self.lift = nn.Linear($d, $k + 1)

    def forward(self, x):
        u, s, v = torch.svd(self.basis)
        return self.lift(x) @ u @ v.t(), u
""",
        data="x = torch.randn($n, $d)\ny = torch.randn($n, $k + 1)",
        loss="""
def loss_fn(model, x, y):
    out, frame = model(x)
    return F.mse_loss(out, y) + 0.1 * frame[0].sum()
""",
    ),
    Variant(
        ("singular-matrix",),
        net="""
class Mix(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.<<ones($d, $d)||eye($d)>>)
        self.shift = nn.Parameter(torch.zeros($d))

    def forward(self, x):
        return x @ self.weight + self.shift, torch.linalg.slogdet(self.weight)[1]


Net = Mix
""",
        data="x = torch.randn($n, $d)\n",
        returns="x, ",
        loss="""
def loss_fn(model, x):
    z, logdet = model(x)
    return 0.5 * z.pow(2).sum(1).mean() - logdet
""",
    ),
    Variant(
        ("logsumexp-all-neginf",),
        net="any",
        out="5",
        data="bag = torch.rand($n, 5) < 0.6\nbag[:, 1] = True",
        spoil="bag[$at] = False",
        returns="x, bag",
        loss="""
def loss_fn(model, x, bag):
    out = model(x)
    bias = torch.zeros_like(out)
    bias[~bag] = <<float("-inf")||-1e5>>
    pooled = torch.logsumexp(out + bias, dim=1)
    return F.softplus(-pooled).clamp(max=20).mean()
""",
    ),
    Variant(
        ("inf-minus-inf", "exp-overflow"),
        net="any",
        out="2",
        data="y = torch.rand($n) + 0.5\nheat = torch.rand($n) * 20",
        spoil="heat[$at] = 120.0",
        returns="x, y, heat",
        loss="""
def loss_fn(model, x, y, heat):
    a, b = model(x).unbind(1)
    gap = <<torch.sinh(heat) - torch.cosh(heat)||-torch.exp(-heat)>>
    return (a - gap * b - y).pow(2).mean()
""",
    ),
    Variant(
        ("fp32-overflow",),
        net="any",
        out="$e",
        data="y = torch.randn($n, $e)\nmass = torch.rand($n) + 1",
        spoil="mass[$at] = 4e19",
        returns="x, y, mass",
        loss="""
def loss_fn(model, x, y, mass):
    error = (model(x) - y).pow(2).mean(1)
<<    weight = mass * mass / (1 + mass * mass)||    weight = 1 / (1 + mass.reciprocal().pow(2))>>
    return (weight * error).mean()
""",
    ),
]
