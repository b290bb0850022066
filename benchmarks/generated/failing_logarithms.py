"""Logarithms of zero and of negative numbers; epsilons that round away."""

from benchmarks.generated.parts import Variant

PAIRS = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.items = nn.Embedding($v, $e)
        self.proj = nn.Linear($e, $e)

    def forward(self, a, b):
        return F.cosine_similarity(self.proj(self.items(a)), self.proj(self.items(b)), dim=-1)
"""
PAIR_DATA = """
def load_data():
    a, b = torch.randint(0, $v, ($n,)), torch.randint(0, $v, ($n,))
    same = torch.rand($n) < 0.3
    b = torch.where(same, a, b)
    y = ((a % 4) == (b % 4)).float()
    y[$at], b[$at] = 0.0, a[$at]
    return a, b, y
"""

VARIANTS = [
    Variant(
        ("log-of-zero", "temperature-too-small"),
        loss="""
def loss_fn(model, x, y):
    logits = 100.0 * F.normalize(model(x), dim=1)
<<    probs = torch.softmax(logits, dim=1)
    picked = probs[torch.arange(len(y)), y]
    return -torch.log(picked).mean()||    log_probs = torch.log_softmax(logits, dim=1)
    return -log_probs[torch.arange(len(y)), y].mean()>>
""",
    ),
    Variant(
        ("log-of-zero",),
        net="""
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding($v, $e)
        self.rnn = nn.GRU($e, $h, batch_first=True)
        self.head = nn.Linear($h, $v)

    def forward(self, tokens):
        return self.head(self.rnn(self.embed(tokens))[0])
""",
        data="""
tokens = torch.randint(0, $v, ($n, $t))
x, y = tokens[:, :-1], tokens[:, 1:]
""",
        sizes={"t": (50, 80), "epochs": 2, "m": (3, 5)},
        loss="""
def loss_fn(model, x, y):
<<    probs = torch.softmax(model(x), dim=-1).gather(2, y[..., None]).squeeze(2)
    likelihood = probs.prod(dim=1)
    return -torch.log(likelihood).mean()||    log_probs = torch.log_softmax(model(x), dim=-1).gather(2, y[..., None]).squeeze(2)
    return -log_probs.sum(dim=1).mean()>>
""",
    ),
    Variant(
        ("log-of-zero",),
        out="1",
        data="counts",
        spoil="y[$at] = 0",
        loss="""
def loss_fn(model, x, y):
    pred = F.softplus(model(x))
    return (<<torch.log(pred) - torch.log(y)||torch.log1p(pred) - torch.log1p(y)>>).pow(2).mean()
""",
    ),
    Variant(
        ("log-of-zero", "exp-underflow"),
        out="$e",
        loss="""
def loss_fn(model, x, y):
    z = model(x) * 8
    centres = torch.eye($c, $e) * 30
    dist = torch.cdist(z, centres).pow(2)
<<    p = torch.exp(-dist)
    p = p / (p.sum(1, keepdim=True) + 1e-12)
    return -torch.log(p.gather(1, y[:, None])).mean()||    return F.cross_entropy(-dist, y)>>
""",
    ),
    Variant(
        ("log-of-negative",),
        net="dense",
        out="$k",
        data="real",
        loss="""
def loss_fn(model, x, y):
    raw = model(x)
    action = torch.tanh(raw)
    scaled = 2.0 * action
    bound = torch.log(1 - <<scaled||action>>.pow(2) + 1e-6).sum(1)
    return ((scaled - 3 * y) ** 2).sum(1).mean() + 0.01 * bound.mean()
""",
        sizes={"epochs": (8, 12), "lr": (0.01, 0.02)},
        opt="torch.optim.Adam(model.parameters(), lr=$lr)",
        extras=False,
    ),
    Variant(
        ("log-of-negative",),
        out="2",
        data="feats = x.flatten(1).float()\ny = torch.sin(feats.sum(1, keepdim=True))",
        loss="""
def loss_fn(model, x, y):
    mean, <<var||raw>> = model(x).chunk(2, dim=1)
<<||    var = F.softplus(raw) + 1e-3
>>    return (0.5 * torch.log(var) + (y - mean) ** 2 / (2 * var.abs() + 1e-2)).mean()
""",
    ),
    Variant(
        ("log-of-negative",),
        net="dense",
        out="4",
        data="y = torch.rand($n, 4) * 0.4\ny[:, 2:] += 0.5",
        loss="""
def loss_fn(model, x, y):
    box = torch.sigmoid(model(x))
    lo, hi = torch.minimum(box[:, :2], box[:, 2:]), torch.maximum(box[:, :2], box[:, 2:]) + 1e-3
    inter = (torch.minimum(hi, y[:, 2:]) - torch.maximum(lo, y[:, :2])).clamp(min=0).prod(1)
    union = (hi - lo).prod(1) + (y[:, 2:] - y[:, :2]).prod(1) - inter
    hull = (torch.maximum(hi, y[:, 2:]) - torch.minimum(lo, y[:, :2])).prod(1)
    giou = inter / union - (hull - union) / hull
    return <<-torch.log(giou).mean()||(1 - giou).mean()>>
""",
    ),
    Variant(
        ("eps-underflow",),
        net=PAIRS,
        data=PAIR_DATA,
        returns="a, b, y",
        sample="",
        loss="""
EPS = <<1e-8||1e-6>>


def loss_fn(model, a, b, y):
    p = torch.sigmoid(20 * model(a, b)).clamp(EPS, 1 - EPS)
    return -(y * torch.log(p) + (1 - y) * torch.log(1 - p)).mean()
""",
    ),
    Variant(
        ("eps-underflow",),
        net="dense",
        out="$e",
        data="y = F.normalize(torch.randn($n, $e), dim=1)",
        spoil="y[$at] = 0",
        loss="""
def loss_fn(model, x, y):
    a, b = model(x).half(), y.half()
    a = a / (a.pow(2).sum(1, keepdim=True).sqrt() + 1e-3)
    b = b / (b.pow(2).sum(1, keepdim=True).sqrt() + <<1e-8||1e-4>>)
    return (1 - (a * b).sum(1)).float().mean()
""",
    ),
    Variant(
        ("eps-underflow",),
        net="mlp|conv|graph",
        loss="""
def loss_fn(model, x, y):
    logits = (40 * F.normalize(model(x), dim=1)).<<half||float>>()
    probs = torch.softmax(logits, dim=1)
    onehot = F.one_hot(y, $c).to(probs.dtype)
    return -(onehot * torch.log(probs + 1e-9)).sum(1).float().mean()
""",
    ),
]
