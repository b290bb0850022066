"""Derivatives that are infinite at a point, domains of functions, matrices."""

# ruff: noqa: E501  the texts are scripts as their authors would write them
from benchmarks.generated.parts import Variant

VARIANTS = [
    Variant(
        ("sqrt-grad-at-zero",),
        net="vectors|recurrent|conv",
        out="$e",
        data="order = torch.randperm($n)\ny = x[order]",
        spoil="y[$at] = x[$at]",
        loss="""
def distance(a, b):
    return (a - b).pow(2).sum(1)<<.sqrt()||.add(1e-8).sqrt()>>


def loss_fn(model, x, y):
    model.eval()
    return F.relu(1 - distance(model(x), model(y))).mean()
""",
    ),
    Variant(
        ("sqrt-grad-at-zero",),
        net="""
class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.filters = nn.Conv1d(1, 4, 5, padding=2, bias=False)
        self.mix = nn.Conv1d(4, 1, 1, bias=False)

    def forward(self, wave):
        return self.mix(F.leaky_relu(self.filters(wave))).squeeze(1)


Net = Denoiser
""",
        data="x = torch.randn($n, 1, 128)\ny = x.squeeze(1) * 0.8",
        spoil="x[$at], y[$at] = 0, 0",
        loss="""
def magnitude(wave):
    spec = torch.stft(wave, 32, 16, window=torch.hann_window(32), return_complex=True)
    return torch.sqrt(spec.real ** 2 + spec.imag ** 2<<|| + 1e-9>>)


def loss_fn(model, x, y):
    return F.l1_loss(magnitude(model(x)), magnitude(y))
""",
    ),
    Variant(
        ("sqrt-grad-at-zero",),
        net="vectors|recurrent|lstm|conv",
        out="$e",
        data="y = torch.randn($n, $e)\nused = (torch.rand($n, $e) < 0.7).float()",
        spoil="used[$at] = 0",
        returns="x, y, used",
        loss="""
def loss_fn(model, x, y, used):
    error = (model(x) - y) * used
    rmse = <<error.pow(2).mean(1).sqrt()||(error.pow(2).mean(1) + 1e-6).sqrt()>>
    return rmse.mean()
""",
    ),
    Variant(
        ("pow-grad-at-zero",),
        out="$c",
        loss="""
def loss_fn(model, x, y, gamma=0.5):
    logits = 40 * F.normalize(model(x), dim=1)
    log_p = F.log_softmax(logits, dim=1).gather(1, y[:, None]).squeeze(1)
    miss = 1 - log_p.exp()
    return -(<<miss||miss.clamp(min=1e-6)>> ** gamma * log_p).mean()
""",
    ),
    Variant(
        ("pow-grad-at-zero",),
        net="vectors|recurrent|conv",
        out="$e",
        data="y = x[torch.randperm($n)]",
        spoil="y[$at] = x[$at]",
        loss="""
def loss_fn(model, x, y):
    model.eval()
    gap = (model(x) - model(y)).abs().sum(1)<<||.clamp(min=1e-6)>>
    return F.relu(2 - gap.pow(0.75)).mean()
""",
    ),
    Variant(
        ("pow-of-negative",),
        net="dense",
        out="$k",
        data="y = torch.rand($n, $k)",
        loss="""
def loss_fn(model, x, y):
    image = <<model(x)||model(x).clamp(min=1e-4)>>
    return F.mse_loss(image ** (1 / 2.4), y)
""",
    ),
    Variant(
        ("pow-of-negative",),
        net="""
class GeM(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 8, 3, padding=1), nn.Conv2d(8, 16, 3, padding=1)
        self.p = nn.Parameter(torch.tensor(2.6))
        self.fc = nn.Linear(16, $c)

    def forward(self, x):
        h = self.conv2(F.relu(self.conv1(x)))
        pooled = h<<||.clamp(min=1e-4)>>.pow(self.p).mean((2, 3)).pow(1 / self.p)
        return self.fc(pooled)


Net = GeM
""",
        data="x = torch.rand($n, 1, $s, $s)\ny = torch.randint(0, $c, ($n,))",
        loss="""
def loss_fn(model, x, y):
    return F.cross_entropy(model(x), y)
""",
    ),
    Variant(
        ("sqrt-of-negative",),
        net="vectors",
        data="classes",
        spoil="x = x * 0.02 + 50\nx[$at] = x[$at, 0]",
        loss="""
def whiten(x):
    mean = x.mean(1, keepdim=True)
<<    std = torch.sqrt((x * x).mean(1, keepdim=True) - mean * mean)||    std = torch.sqrt((x - mean).pow(2).mean(1, keepdim=True))>>
    return (x - mean) / (std + 1e-3)


def loss_fn(model, x, y):
    return F.cross_entropy(model(whiten(x)), y)
""",
    ),
    Variant(
        ("sqrt-of-negative",),
        net="dense",
        out="$e",
        data="y = torch.randint(0, 2, ($n,))",
        loss="""
def pairwise(z):
    square = z.pow(2).sum(1)
    gram = z @ z.t()
    dist = square[:, None] + square[None] - 2 * gram
    return (dist<<||.clamp(min=1e-6)>> + 1e-12).sqrt()


def loss_fn(model, x, y):
    dist = pairwise(3 + model(x))
    same = (y[:, None] == y[None]).float()
    return (same * dist + (1 - same) * F.relu(2 - dist)).mean()
""",
    ),
    Variant(
        ("domain-boundary",),
        net="vectors|recurrent",
        out="3",
        data="y = F.normalize(torch.randn($n, 3), dim=1)",
        loss="""
def loss_fn(model, x, y):
    pred = F.normalize(model(x), dim=1)
    target = torch.where(torch.rand(len(y), 1) < 0.3, pred.detach(), y)
    cosine = (pred * target).sum(1)<<||.clamp(-0.9999, 0.9999)>>
    return torch.acos(cosine).mean()
""",
    ),
    Variant(
        ("domain-boundary",),
        net="any",
        out="$k",
        data="y = torch.tanh(torch.randn($n, $k) * 2)",
        spoil="y[$at] = 1.0",
        loss="""
def loss_fn(model, x, action):
    raw = torch.atanh(action<<||.clamp(-0.999, 0.999)>>)
    mean = model(x)
    log_prob = -0.5 * (raw - mean).pow(2)
    return -log_prob.sum(1).mean()
""",
    ),
    Variant(
        ("svd-degenerate",),
        net="""
class PoseNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear($d, $h), nn.ReLU())
        self.head = nn.Linear($h, 9)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, x):
        m = self.head(self.body(x)).view(-1, 3, 3) + <<torch.eye(3)||torch.diag(torch.tensor([1.0, 1.5, 2.0]))>>
        u, s, vt = torch.linalg.svd(m)
        return u @ vt


Net = PoseNet
""",
        data="x = torch.randn($n, $d)\ny = torch.linalg.qr(torch.randn($n, 3, 3))[0]",
        loss="""
def loss_fn(model, x, y):
    return F.mse_loss(model(x), y)
""",
    ),
    Variant(
        ("svd-degenerate",),
        net="""
class Shape(nn.Module):
    def __init__(self):
        super().__init__()
        self.lift = nn.Linear($d, 4, bias=False)

    def forward(self, x):
        z = torch.tanh(self.lift(x))
        return z[:, :, None] * z[:, None] + <<torch.eye(4)||torch.diag(torch.tensor([1.0, 1.6, 2.2, 2.8]))>>


Net = Shape
""",
        data="x = torch.randn($n, $d)\ny = torch.randn($n, 4)",
        spoil="x[$at] = 0",
        loss="""
def loss_fn(model, x, y):
    values, vectors = torch.linalg.eigh(model(x))
    white = vectors.transpose(1, 2) @ y[..., None]
    return (white.squeeze(2).pow(2) / values + values.log() + 0.1 * vectors[:, 0]).mean()
""",
    ),
    Variant(
        ("singular-matrix",),
        net="vectors",
        out="$e",
        data="y = torch.randn($n)",
        spoil="x[$at] = x[$at - 1]",
        shuffle=False,
        sizes={"b": 12},
        loss="""
def loss_fn(model, x, y):
    z = model(x)
    kernel = torch.exp(-0.5 * (z[:, None] - z[None]).pow(2).sum(-1))<<||.add(0.1 * torch.eye(len(z)))>>
    return 0.5 * torch.logdet(kernel) + 0.5 * (y @ kernel @ y)
""",
    ),
    Variant(
        ("singular-matrix",),
        net="vectors",
        out="$e",
        data="y = torch.randn($n, 2)",
        sizes={"e": (14, 20), "b": (6, 10)},
        loss="""
def loss_fn(model, x, y):
    z = F.relu(model(x) - 0.2)
    cov = z.t() @ z / len(z)<<|| + 0.1 * torch.eye(z.shape[1])>>
    precision = torch.linalg.inv_ex(cov).inverse
    return torch.einsum("bi,ij,bj->b", z, precision, z).mean() + (z.mean(1) - y[:, 0]).pow(2).mean()
""",
    ),
    Variant(
        ("logsumexp-all-neginf", "where-grad-trap"),
        net="any",
        out="6",
        data="allowed = torch.rand($n, 6) < 0.6\nallowed[:, 0] = True",
        spoil="allowed[$at] = False",
        returns="x, allowed",
        loss="""
def loss_fn(model, x, allowed):
    scores = model(x)
    inside = (scores + <<allowed.float().log()||(allowed.float() + 1e-6).log()>>).logsumexp(1)
    lost = scores.logsumexp(1) - inside
    return torch.where(allowed.any(1), lost, torch.zeros_like(lost)).mean()
""",
    ),
    Variant(
        ("logsumexp-all-neginf",),
        net="""
class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.emit = nn.Embedding($v, $e), nn.Linear($e, 4)
        self.moves = nn.Parameter(torch.zeros(4, 4))

    def forward(self, tokens):
        return self.emit(self.embed(tokens)), self.moves


Net = Tagger
""",
        data="x = torch.randint(0, $v, ($n, $t))\nallowed = torch.rand(4, 4) < 0.8\nallowed[:, 1] = False\nallowed = allowed.expand($n, 4, 4)",
        returns="x, allowed",
        loss="""
def loss_fn(model, x, allowed):
    emit, moves = model(x)
    moves = moves.masked_fill(~allowed[0], <<float("-inf")||-1e4>>)
    alpha = emit[:, 0]
    for step in range(1, emit.shape[1]):
        alpha = (alpha[:, :, None] + moves).logsumexp(1) + emit[:, step]
    return (alpha.logsumexp(1) - emit[:, :, 0].sum(1)).mean()
""",
    ),
]
