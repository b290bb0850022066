"""Masks: rows without a key, sums of masks, zero times infinity, NaN masked too late, torch.where."""

# ruff: noqa: E501  the texts are scripts as their authors would write them
from benchmarks.generated.parts import Variant

ATTENTION = """
class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, h, %s):
        q, k, v = self.qkv(h).chunk(3, dim=-1)
        scores = q @ k.transpose(1, 2) * q.shape[-1] ** -0.5
%s
        return self.out(scores.softmax(-1) @ v)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding($v, $e, padding_idx=0)
        self.norm = nn.LayerNorm($e)
        self.attn = Attention($e)
        self.head = nn.Linear($e, $c)

    def forward(self, tokens):
        h = self.embed(tokens)
%s
        return self.head(h.mean(1))
"""
TOKENS = """
x = torch.randint(1, $v, ($n, $t))
lengths = torch.randint(2, $t + 1, ($n,))
x[torch.arange($t) >= lengths[:, None]] = 0
y = torch.randint(0, $c, ($n,))
"""
CROSS_ENTROPY = """
def loss_fn(model, x, y):
    return F.cross_entropy(model(x), y)
"""

VARIANTS = [
    Variant(
        ("masked-softmax-row",),
        net=ATTENTION
        % (
            "padding",
            '        scores = scores.masked_fill(padding[:, None], float("-inf"))',
            "        padding = tokens == 0\n<<||        padding[:, 0] = False\n>>        h = h + self.attn(self.norm(h), padding)",
        ),
        data=TOKENS,
        spoil="x[$at] = 0",
        loss=CROSS_ENTROPY,
    ),
    Variant(
        ("masked-softmax-row",),
        net="""
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding($v, $e, padding_idx=0)
        self.score = nn.Linear($e, 1)
        self.head = nn.Linear($e, $c)

    def forward(self, tokens):
        h = torch.tanh(self.embed(tokens))
        bias = torch.zeros(tokens.shape).masked_fill(tokens == 0, <<-torch.inf||-1e4>>)
        alpha = F.softmax(self.score(h).squeeze(2) + bias, dim=1)
        return self.head((alpha[..., None] * h).sum(1))
""",
        data=TOKENS,
        spoil="x[$at] = 0",
        loss=CROSS_ENTROPY,
    ),
    Variant(
        ("masked-softmax-row",),
        net="""
class GraphAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.w, self.a = nn.Linear($d, $h), nn.Linear(2 * $h, 1)
        self.readout = nn.Linear($h, $c)

    def forward(self, x, adj):
        h = self.w(x)
        n = len(h)
        pairs = torch.cat([h[:, None].expand(n, n, -1), h[None].expand(n, n, -1)], dim=-1)
        e = F.leaky_relu(self.a(pairs).squeeze(-1), 0.2)
<<||        adj = adj + torch.eye(n)
>>        alpha = e.masked_fill(adj == 0, float("-inf")).softmax(dim=1)
        return self.readout(F.elu(alpha @ h))


Net = GraphAttention
""",
        sample="""
def sample(n=20):
    adj = (torch.rand(n, n) < 0.15).float()
    return torch.randn(n, $d), adj, torch.randint(0, $c, (n,))
""",
        returns="x, adj, y",
        steps=(4, 12),
        loss="""
def loss_fn(model, x, adj, y):
    return F.cross_entropy(model(x, adj), y)
""",
    ),
    Variant(
        ("mask-sum-overflow",),
        net=ATTENTION
        % (
            "mask",
            "        scores = scores + mask",
            """        low = torch.finfo(h.dtype).min
        padding = (tokens == 0).to(h.dtype) * low
        mask = padding[:, None] + padding[:, :, None]
        h = h + self.attn(self.norm(h), mask<<||.clamp(min=low)>>)""",
        ),
        data=TOKENS,
        spoil="x[$at] = 0",
        loss=CROSS_ENTROPY,
    ),
    Variant(
        ("mask-sum-overflow",),
        net="recurrent|transformer|mlp",
        out="6",
        data="y = torch.randint(0, 6, ($n,))\nlegal = torch.rand($n, 6) < 0.6\nlegal[torch.arange($n), y] = True\nseen = torch.rand($n, 6) < 0.4",
        spoil="legal[$at], seen[$at] = False, True",
        returns="x, y, legal, seen",
        loss="""
def loss_fn(model, x, y, legal, seen):
    low = torch.finfo(torch.float32).min
<<    bias = (~legal).float() * low + seen.float() * low||    bias = (~legal | seen).float() * low>>
    probs = torch.softmax(model(x) + bias, dim=1)
    return (probs - F.one_hot(y, 6)).pow(2).mean()
""",
    ),
    Variant(
        ("zero-times-inf", "log-of-zero"),
        net="any",
        out="6",
        data="y = torch.randint(0, 3, ($n,))\nmask = torch.rand($n, 6) < 0.7\nmask[:, :3] = True",
        returns="x, y, mask",
        loss="""
def loss_fn(model, x, action, mask):
    logits = model(x).masked_fill(~mask, float("-inf"))
    log_p = F.log_softmax(logits, dim=1)
    entropy = -(log_p.exp() * <<log_p||log_p.masked_fill(~mask, 0.0)>>).sum(1)
    return F.nll_loss(log_p, action) - 0.01 * entropy.mean()
""",
    ),
    Variant(
        ("zero-times-inf", "log-of-zero"),
        out="$c",
        data="y = torch.softmax(torch.randn($n, $c), 1)",
        spoil="y[$at] = F.one_hot(torch.tensor(0), $c).float()",
        loss="""
def loss_fn(model, x, target):
    log_q = F.log_softmax(model(x), dim=1)
    return (<<target * (target.log() - log_q)||torch.xlogy(target, target) - target * log_q>>).sum(1).mean()
""",
    ),
    Variant(
        ("nan-times-zero-mask",),
        out="$k",
        data="real",
        spoil="known = (torch.rand_like(y) < 0.8).float()\ny[known == 0] = float('nan')",
        returns="x, y, known",
        loss="""
def loss_fn(model, x, y, known):
<<    error = (model(x) - y).pow(2) * known||    error = (model(x) - torch.where(known > 0, y, torch.zeros_like(y))).pow(2) * known>>
    return error.sum() / known.sum()
""",
    ),
    Variant(
        ("nan-times-zero-mask",),
        net="recurrent|lstm",
        out="$c",
        data="y = torch.randint(0, $c, ($n,))\nvalid = (torch.rand($n, $t, 1) < 0.9).float()",
        spoil="x = x.masked_fill(valid == 0, float('nan'))",
        returns="x, y, valid",
        loss="""
def loss_fn(model, x, y, valid):
    frames = <<x * valid||torch.nan_to_num(x) * valid>>
    return F.cross_entropy(model(frames), y)
""",
    ),
    Variant(
        ("where-grad-trap",),
        net="dense",
        out="$k",
        data="real",
        loss="""
def signed_root(z):
<<    return torch.where(z > 0, torch.sqrt(z), z)||    return torch.where(z > 0, torch.sqrt(torch.where(z > 0, z, torch.ones_like(z))), z)>>


def loss_fn(model, x, y):
    return (signed_root(model(x)) - y).pow(2).mean()
""",
    ),
    Variant(
        ("where-grad-trap", "div-zero-by-zero"),
        net="""
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear($d, $h, bias=False), nn.Linear($h, 3, bias=False)

    def forward(self, x):
        return self.fc2(torch.tanh(self.fc1(x)))
""",
        data="x = torch.randn($n, $d)\ny = torch.randn($n, 3)",
        spoil="x[$at] = 0",
        loss="""
def rotate(omega, v):
    angle2 = omega.pow(2).sum(1, keepdim=True)
<<||    angle2 = torch.where(angle2 > 1e-12, angle2, torch.full_like(angle2, 1e-12))
>>    factor = torch.where(angle2 > 1e-12, torch.sin(angle2) / angle2, torch.ones_like(angle2))
    return v + factor * torch.linalg.cross(omega, v)


def loss_fn(model, x, y):
    omega = model(x)
    return (rotate(omega, y) - y.roll(1, 0)).pow(2).mean()
""",
    ),
]
