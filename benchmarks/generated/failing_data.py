"""Mistakes that come with the data: NaN, inf, labels, class weights, scales; optimizers and state."""

from benchmarks.generated.parts import Variant

CROSS_ENTROPY = """
def loss_fn(model, x, y):
    return F.cross_entropy(model(x), y)
"""
SQUARES = """
def loss_fn(model, x, y):
    return F.mse_loss(model(x), y)
"""

VARIANTS = [
    Variant(("nan-in-data",), net="vectors|conv|recurrent|lstm", spoil="x[$at].view(-1)[<<2||0:0>>] = float('nan')", loss=CROSS_ENTROPY),
    Variant(
        ("nan-in-data",),
        net="vectors",
        out="1",
        data="prices = torch.rand($n) * 50 + 1\ny = x.sum(1, keepdim=True)",
        spoil="""
x[$at, 0] = float("nan")
<<||x = torch.nan_to_num(x)
>>x = (x - x.nanmean(0)) / 1.5
""",
        loss=SQUARES,
    ),
    Variant(
        ("nan-in-data",),
        net="any",
        out="$k",
        data="real",
        spoil="y[$at, 0] = float('nan')<<||\nkeep = y.isfinite().all(1)\nx, y = x[keep], y[keep]>>",
        loss="""
def loss_fn(model, x, y):
    return F.smooth_l1_loss(model(x), y)
""",
    ),
    Variant(
        ("inf-in-data",),
        net="vectors",
        spoil="amount = torch.poisson(torch.full(($n,), 5.0))\namount[$at] = 0\nx[:, 0] = <<torch.log(amount)||torch.log1p(amount)>>",
        loss=CROSS_ENTROPY,
    ),
    Variant(
        ("inf-in-data",),
        net="recurrent|lstm",
        spoil="x[$at, 2, 1] = float('inf')<<||\nx = x.clamp(-5, 5)>>",
        loss=CROSS_ENTROPY,
    ),
    Variant(
        ("bad-label", "log-of-zero", "div-by-zero", "div-zero-by-zero"),
        net="any",
        out="4",
        data="y = torch.rand($n, 4) + 0.2",
        spoil="y[$at, 2] = 0.0<<||\nkeep = (y[:, 2:] > 0).all(1)\nx, y = x[keep], y[keep]>>",
        loss="""
def loss_fn(model, x, boxes):
    anchors = torch.tensor([0.5, 0.5, 0.4, 0.4])
    out = model(x)
    target_xy = (boxes[:, :2] - anchors[:2]) / anchors[2:]
    target_wh = torch.log(boxes[:, 2:] / anchors[2:])
    return F.smooth_l1_loss(out[:, :2], target_xy) + F.smooth_l1_loss(out[:, 2:], target_wh)
""",
    ),
    Variant(
        ("bad-label", "div-by-zero", "div-zero-by-zero"),
        net="any",
        out="3",
        data="y = torch.randn($n, 3)",
        spoil="y[$at] = 0.0<<||\nx, y = x[y.norm(dim=1) > 0], y[y.norm(dim=1) > 0]>>",
        loss="""
def loss_fn(model, x, normals):
    pred = F.normalize(model(x), dim=1)
    truth = normals / normals.norm(dim=1, keepdim=True)
    return (1 - (pred * truth).sum(1)).mean()
""",
    ),
    Variant(
        ("bad-class-weight", "div-by-zero"),
        net="any",
        spoil="y[y == 0] = 1",
        sizes={"c": (3, 4)},
        loss="""
def loss_fn(model, x, y):
    counts = torch.bincount(y, minlength=$c).float()
    weight = len(y) / ($c * <<counts||counts.clamp(min=1)>>)
    return F.cross_entropy(model(x), y, weight=weight, label_smoothing=0.1)
""",
    ),
    Variant(
        ("bad-class-weight", "empty-reduction"),
        net="any",
        sizes={"c": 4},
        spoil="y[$b:2 * $b] = 0",
        shuffle=False,
        loss="""
CLASS_WEIGHTS = [<<0.0||0.2>>, 1.0, 2.0, 1.5]


def loss_fn(model, x, y):
    return F.cross_entropy(model(x), y, weight=torch.tensor(CLASS_WEIGHTS))
""",
    ),
    Variant(
        ("ctc-infeasible",),
        net="""
class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM($d, $h, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * $h, $c + 1)

    def forward(self, frames):
        return self.head(self.rnn(frames)[0]).log_softmax(-1).transpose(0, 1)


Net = Reader
""",
        data="x = torch.randn($n, 12, $d)\nlengths = torch.randint(2, 6, ($n,))\ny = torch.randint(1, $c + 1, ($n, 14))",
        spoil="lengths[$at] = 14",
        returns="x, y, lengths",
        loss="""
def loss_fn(model, x, y, lengths):
    log_probs = model(x)
    frames = torch.full((len(x),), log_probs.shape[0])
    return F.ctc_loss(log_probs, y, frames, lengths<<||, zero_infinity=True>>)
""",
    ),
    Variant(
        ("ctc-infeasible",),
        net="""
class SpeechNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.subsample = nn.Conv1d($d, $h, 3, stride=<<4||1>>, padding=1)
        self.out = nn.Linear($h, $c + 1)
        self.ctc = nn.CTCLoss()

    def forward(self, x, y, lengths):
        h = F.relu(self.subsample(x)).transpose(1, 2)
        log_probs = self.out(h).log_softmax(-1).transpose(0, 1)
        frames = torch.full((len(x),), len(log_probs), dtype=torch.long)
        return self.ctc(log_probs, y, frames, lengths)


Net = SpeechNet
""",
        data="x = torch.randn($n, $d, 32)\nlengths = torch.randint(7, 10, ($n,))\ny = torch.randint(1, $c + 1, ($n, 10))",
        returns="x, y, lengths",
        loss="""
def loss_fn(model, x, y, lengths):
    return model(x, y, lengths)
""",
    ),
    Variant(
        ("target-scale",),
        net="vectors",
        out="1",
        data="y = (x.sum(1, keepdim=True) * 80000 + $price)<<|| / 500000>>",
        sizes={"price": (200000, 600000), "lr": (0.02, 0.06), "epochs": (20, 40)},
        opt="torch.optim.SGD(model.parameters(), lr=$lr)",
        extras=False,
        loss=SQUARES,
    ),
    Variant(
        ("target-scale",),
        net="recurrent|mlp",
        out="1",
        data="y = (torch.rand($n, 1) * 4e6 + 1e6)<<|| / 1e6>>",
        sizes={"lr": (0.01, 0.03), "epochs": (20, 40)},
        opt="torch.optim.SGD(model.parameters(), lr=$lr, momentum=0.9)",
        extras=False,
        loss=SQUARES,
    ),
    Variant(
        ("input-scale",),
        net="mlp|experts",
        out="1",
        data="income = torch.rand($n) * 90000 + 10000\nx[:, 0] = income<<|| / 50000>>\ny = torch.randn($n, 1)",
        sizes={"lr": (0.01, 0.05), "epochs": (20, 40)},
        opt="torch.optim.SGD(model.parameters(), lr=$lr)",
        extras=False,
        loss=SQUARES,
    ),
    Variant(
        ("input-scale",),
        net="mlp",
        out="2",
        data="x = torch.randint(0, 4096, ($n, $d)).float()<<|| / 4096>>\ny = (x[:, :2] / (x.amax() + 1))",
        sizes={"lr": (0.01, 0.05), "epochs": (20, 40)},
        opt="torch.optim.SGD(model.parameters(), lr=$lr, momentum=0.9)",
        extras=False,
        loss=SQUARES,
    ),
]
