"""Families of models: the source of a `Net` with `$o` outputs, and of the inputs `x` it takes. Kinds of targets made from such inputs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Family:
    inputs: str
    source: str


VECTORS = "x = torch.randn($n, $d)"

FAMILIES = {
    "mlp": Family(
        VECTORS,
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear($d, $h), nn.ReLU(), nn.Linear($h, $h), nn.ReLU())
        self.head = nn.Linear($h, $o)

    def forward(self, x):
        return self.head(self.body(x))
""",
    ),
    "residual": Family(
        VECTORS,
        """
class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.fc1, self.fc2 = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, h):
        return h + self.fc2(F.gelu(self.fc1(self.norm(h))))


class Net(nn.Module):
    def __init__(self, depth=2):
        super().__init__()
        self.stem = nn.Linear($d, $h)
        self.blocks = nn.ModuleList(Block($h) for _ in range(depth))
        self.head = nn.Linear($h, $o)

    def forward(self, x):
        h = self.stem(x)
        for block in self.blocks:
            h = block(h)
        return self.head(h)
""",
    ),
    "conv": Family(
        "x = torch.rand($n, 1, $s, $s)",
        """
def conv_block(inside, outside):
    return nn.Sequential(nn.Conv2d(inside, outside, 3, padding=1), nn.BatchNorm2d(outside), nn.ReLU(), nn.MaxPool2d(2))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(conv_block(1, 8), conv_block(8, 16))
        self.classifier = nn.Linear(16, $o)

    def forward(self, x):
        return self.classifier(self.features(x).mean((2, 3)))
""",
    ),
    "recurrent": Family(
        "x = torch.randn($n, $t, $d)",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU($d, $h, batch_first=True)
        self.out = nn.Linear($h, $o)

    def forward(self, x):
        states, last = self.rnn(x)
        return self.out(last[0])
""",
    ),
    "lstm": Family(
        "x = torch.randn($n, $t, $d).cumsum(1) * 0.3",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.LSTMCell($d, $h)
        self.fc = nn.Linear($h, $o)

    def forward(self, x):
        h = c = x.new_zeros(x.shape[0], $h)
        for frame in x.unbind(1):
            h, c = self.cell(frame, (h, c))
        return self.fc(h)
""",
    ),
    "transformer": Family(
        "x = torch.randint(1, $v, ($n, $t))",
        """
class SelfAttention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, h):
        q, k, v = self.qkv(h).chunk(3, dim=-1)
        scores = q @ k.transpose(1, 2) / q.shape[-1] ** 0.5
        future = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        return self.proj(scores.masked_fill(future, float("-inf")).softmax(-1) @ v)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.pos = nn.Embedding($v, $e), nn.Parameter(torch.zeros($t, $e))
        self.norm1, self.norm2 = nn.LayerNorm($e), nn.LayerNorm($e)
        self.attn = SelfAttention($e)
        self.mlp = nn.Sequential(nn.Linear($e, 2 * $e), nn.GELU(), nn.Linear(2 * $e, $e))
        self.head = nn.Linear($e, $o)

    def forward(self, tokens):
        h = self.embed(tokens) + self.pos
        h = h + self.attn(self.norm1(h))
        h = h + self.mlp(self.norm2(h))
        return self.head(h.mean(1))
""",
    ),
    "experts": Family(
        VECTORS,
        """
class Net(nn.Module):
    def __init__(self, experts=3):
        super().__init__()
        self.gate = nn.Linear($d, experts)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear($d, $h), nn.SiLU(), nn.Linear($h, $o)) for _ in range(experts))

    def forward(self, x):
        weights = self.gate(x).softmax(-1)
        return torch.stack([expert(x) for expert in self.experts], -1).mul(weights[:, None]).sum(-1)
""",
    ),
    "graph": Family(
        "x = torch.randn($n, $k + 3, $d)",
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.w1, self.w2, self.readout = nn.Linear($d, $h), nn.Linear($h, $h), nn.Linear($h, $o)

    def forward(self, nodes):
        near = (torch.cdist(nodes, nodes) < 3.0).float()
        adjacency = near / near.sum(-1, keepdim=True)
        h = torch.relu(self.w1(adjacency @ nodes))
        h = torch.relu(self.w2(adjacency @ h))
        return self.readout(h.mean(1))
""",
    ),
}

GROUPS = {
    "any": tuple(FAMILIES),
    "vectors": ("mlp", "residual", "experts"),
    "dense": ("mlp", "residual", "conv", "recurrent", "experts", "graph"),
}

FEATURES = "feats = x.flatten(1).float()\nfeats = feats / feats.std()\n"
TARGETS = {
    "classes": FEATURES + "y = (feats @ torch.randn(feats.shape[1], $c)).argmax(1)",
    "binary": FEATURES + "y = (feats @ torch.randn(feats.shape[1]) > 0).float()",
    "real": FEATURES + "y = torch.tanh(feats @ torch.randn(feats.shape[1], $o) / feats.shape[1] ** 0.5)",
    "positive": FEATURES + "y = F.softplus(feats @ torch.randn(feats.shape[1], $o) / feats.shape[1] ** 0.5) + 0.1",
    "counts": FEATURES + "y = torch.poisson(2 + 2 * torch.sigmoid(feats @ torch.randn(feats.shape[1], $o) / feats.shape[1] ** 0.5))",
}
