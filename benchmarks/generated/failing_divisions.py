"""Divisions by zero and by next to nothing, empty reductions, variances of one sample, constant columns."""

# ruff: noqa: E501  the texts are scripts as their authors would write them
from benchmarks.generated.parts import Variant

SEGMENT = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU())
        self.up = nn.Conv2d(8, 1, 3, padding=1)

    def forward(self, x):
        return self.up(self.down(x)).squeeze(1)
"""
TAGGER = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding($v, $e, padding_idx=0)
        self.rnn = nn.GRU($e, $h, batch_first=True)
        self.head = nn.Linear($h, $c)

    def forward(self, tokens):
        return self.head(self.rnn(self.embed(tokens))[0])
"""
TOKENS = """
x = torch.randint(1, $v, ($n, $t))
lengths = torch.randint(2, $t + 1, ($n,))
x[torch.arange($t) >= lengths[:, None]] = 0
"""

VARIANTS = [
    Variant(
        ("div-zero-by-zero",),
        net=SEGMENT,
        data="x = torch.rand($n, 1, $s, $s)\ny = (x[:, 0] > 0.6).float()",
        spoil="y[$at], x[$at] = 0, 0",
        loss="""
def loss_fn(model, x, y):
    pred = torch.relu(torch.tanh(model(x))) * (x[:, 0] > 0)
    overlap = (pred * y).sum((1, 2))
    total = pred.pow(2).sum((1, 2)) + y.pow(2).sum((1, 2))
    return (1 - 2 * overlap / <<total||(total + 1e-6)>>).mean()
""",
    ),
    Variant(
        ("div-zero-by-zero", "zero-variance-scale"),
        net="dense",
        out="$t",
        data="y = torch.randn($n, $t).cumsum(1)",
        spoil="y[$at] = 2.0",
        loss="""
def loss_fn(model, x, y):
    p = model(x)
    p, t = p - p.mean(1, keepdim=True), y - y.mean(1, keepdim=True)
    r = (p * t).sum(1) / (p.norm(dim=1) * t.norm(dim=1)<<|| + 1e-6>>)
    return (1 - r).mean()
""",
    ),
    Variant(
        ("div-zero-by-zero",),
        net="vectors",
        out="$c",
        data="y = torch.poisson(torch.rand($n, $c) * 4) + 1",
        spoil="y[$at] = 0",
        loss="""
def loss_fn(model, x, counts):
    share = counts / <<counts.sum(1, keepdim=True)||counts.sum(1, keepdim=True).clamp(min=1)>>
    return -(share * F.log_softmax(model(x), dim=1)).sum(1).mean()
""",
    ),
    Variant(
        ("div-by-zero",),
        net="""
class GCN(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin1, self.lin2 = nn.Linear($d, $h), nn.Linear($h, $c)

    def propagate(self, adj, h):
        deg = adj.sum(1)
<<        norm = deg.pow(-0.5)||        norm = torch.where(deg > 0, deg.clamp(min=1).pow(-0.5), torch.zeros_like(deg))>>
        return norm[:, None] * (adj @ (norm[:, None] * h))

    def forward(self, x, adj):
        h = torch.relu(self.propagate(adj, self.lin1(x)))
        return self.propagate(adj, self.lin2(h))


Net = GCN
""",
        sample="""
def sample(nodes=$n):
    x = torch.randn(nodes, $d)
    adj = (torch.rand(nodes, nodes) < 2.5 / nodes).float().triu(1)
    adj = adj + adj.t()
    y = torch.randint(0, $c, (nodes,))
    return x, adj, y
""",
        returns="x, adj, y",
        steps=(5, 15),
        loss="""
def loss_fn(model, x, adj, y):
    return F.cross_entropy(model(x, adj), y)
""",
    ),
    Variant(
        ("div-by-zero",),
        out="1",
        data="counts",
        spoil="y[$at] = 0",
        loss="""
def loss_fn(model, x, y):
    pred = F.softplus(model(x))
    return ((pred - y).abs() / <<y||y.clamp(min=1)>>).mean()
""",
    ),
    Variant(
        ("div-by-tiny",),
        net="recurrent|lstm",
        out="$c",
        data="y = torch.randint(0, $c, ($n,))",
        spoil="x[$at] = x[$at].sign() * 1e-40",
        loss="""
def level(wave, target=0.1):
    rms = wave.abs().mean(dim=(1, 2), keepdim=True)
    return wave * (target / <<rms||rms.clamp(min=1e-5)>>)


def loss_fn(model, x, y):
    return F.cross_entropy(model(level(x)), y)
""",
    ),
    Variant(
        ("div-by-tiny",),
        out="1",
        data="positive",
        spoil="y[$at] = 2e-40",
        loss="""
def loss_fn(model, x, y):
    relative = (model(x) - y) / <<y||y.clamp(min=1e-3)>>
    return relative.abs().mean()
""",
    ),
    Variant(
        ("empty-reduction",),
        net=TAGGER,
        data=TOKENS + "y = (x % $c).masked_fill(x == 0, -100)",
        spoil="y[$b:2 * $b] = -100",
        shuffle=False,
        loss="""
def loss_fn(model, x, y):
    logits = model(x)
<<    return F.cross_entropy(logits.flatten(0, 1), y.flatten(), ignore_index=-100)||    total = F.cross_entropy(logits.flatten(0, 1), y.flatten(), ignore_index=-100, reduction="sum")
    return total / (y != -100).sum().clamp(min=1)>>
""",
    ),
    Variant(
        ("empty-reduction",),
        net="any",
        out="5",
        data="y = torch.randint(0, 2, ($n,))\nboxes = torch.rand($n, 4)",
        spoil="y[$b:2 * $b] = 0",
        returns="x, y, boxes",
        shuffle=False,
        loss="""
def loss_fn(model, x, y, boxes):
    out = model(x)
    score = F.binary_cross_entropy_with_logits(out[:, 0], y.float())
    positive = y == 1
    error = F.smooth_l1_loss(out[positive, 1:], boxes[positive]<<||, reduction="sum">>)<<|| / positive.sum().clamp(min=1)>>
    return score + error
""",
    ),
    Variant(
        ("empty-reduction", "div-zero-by-zero"),
        net=TAGGER.replace("$c)", "1)"),
        data=TOKENS + "y = torch.randn($n)",
        spoil="x[$at] = 0",
        loss="""
def loss_fn(model, x, y):
    mask = (x != 0).float()
    scores = model(x).squeeze(2)
    pooled = (scores * mask).sum(1) / mask.sum(1)<<||.clamp(min=1)>>
    return (pooled - y).pow(2).mean()
""",
    ),
    Variant(
        ("var-single-sample",),
        net="any",
        out="2",
        data="y = torch.randint(0, 2, ($n,))\nreturns = torch.randn($n)",
        spoil="x, y, returns = x[:$n - $b + 1], y[:$n - $b + 1], returns[:$n - $b + 1]",
        returns="x, y, returns",
        loss="""
def loss_fn(model, x, action, returns):
    advantage = (returns - returns.mean()) / (returns.std(<<||unbiased=False>>) + 1e-8)
    logp = F.log_softmax(model(x), dim=1).gather(1, action[:, None]).squeeze(1)
    return -(logp * advantage).mean()
""",
    ),
    Variant(
        ("var-single-sample",),
        net="dense",
        out="$e",
        data="y = torch.randn($n, $e)",
        spoil="x, y = x[:$n - $b + 1], y[:$n - $b + 1]",
        loss="""
def loss_fn(model, x, y):
    a, b = model(x), y
    invariance = F.mse_loss(a, b)
    spread = <<torch.sqrt(a.var(dim=0) + 1e-4)||torch.sqrt(a.var(dim=0, unbiased=False) + 1e-4)>>
    return invariance + F.relu(1 - spread).mean()
""",
    ),
    Variant(
        ("zero-variance-scale", "div-zero-by-zero"),
        net="vectors",
        data="classes",
        spoil="x[:, 1] = 3.0",
        loss="""
def standardise(x):
    return (x - x.mean(0)) / <<x.std(0, unbiased=False)||x.std(0, unbiased=False).clamp(min=1e-6)>>


def loss_fn(model, x, y):
    return F.cross_entropy(model(standardise(x)), y)
""",
    ),
    Variant(
        ("zero-variance-scale", "div-zero-by-zero"),
        net="conv",
        data="classes",
        spoil="x[$at] = 0",
        loss="""
def loss_fn(model, x, y):
    mean, std = x.mean((1, 2, 3), keepdim=True), x.std((1, 2, 3), keepdim=True)
    images = (x - mean) / <<std||(std + 1e-5)>>
    return F.cross_entropy(model(images), y)
""",
    ),
]
