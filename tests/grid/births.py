"""The kinds of births: the model, the data and the loss that each needs, and where it is to be found.

Every birth comes of data, or of ordinary code that goes wrong at one step. Its healthy twin has the same code and harmless data (for
`eps0` the data are harmless already: its twin has the usual eps; for `rate` the schedule is longer).
"""

from __future__ import annotations

from dataclasses import dataclass

NET = """
class Gate(nn.Module):
    def forward(self, h):
        e = torch.exp(h)  #@forward
        return e / (1 + e)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 6)
        self.gate = Gate()
        self.head = nn.Linear(6, 1)

    def forward(self, x):
        h = self.fc(x)  #@input
        return self.head(self.gate(h)).squeeze(1)
"""

NORM_NET = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 6, bias=False)
        self.head = nn.Linear(6, 3, bias=False)

    def forward(self, x):
        return self.head(torch.tanh(self.fc(x)))
"""

DATA = """
torch.manual_seed(0)
X, Y = torch.rand(48, 4) + 0.5, torch.rand(48) + 0.5
"""

RECORD = 29  # the faulty one: row 5 of batch 3 where batches of 8 come in order
ALL = ("fc.weight", "fc.bias", "head.weight", "head.bias")


@dataclass(frozen=True, slots=True)
class Birth:
    """`faulty` and `harmless` are the line of data that makes the difference, `marker` the line where the birth is to be found."""

    name: str
    marker: str
    faulty: str
    harmless: str
    loss: str
    phase: str
    direction: str
    ops: tuple[str, ...]
    module: str | None = None
    parameters: tuple[str, ...] | None = None
    has_rows: bool = True
    net: str = NET
    optimizer: str = "torch.optim.SGD({}, lr=0.05)"
    harmless_optimizer: str | None = None
    rate: str | None = None
    ends: tuple[float, float] = (2.5, 50.0)
    update: str = "{}"
    seen: tuple[str, ...] = ("loss",)


INPUT = Birth(
    "input", "input", 'X[29, 1] = float("nan")', "X[29, 1] = 0.9", "F.mse_loss(out, y)", "input", "forward", ("input",), module="fc"
)
FORWARD = Birth("forward", "forward", "X[29] = 4000.0", "X[29] = 0.9", "F.mse_loss(out, y)", "forward", "forward", ("exp",), module="gate")
LOSS = Birth("loss", "loss", "Y[29] = 0.0", "Y[29] = 0.9", "(out - y.log()).pow(2).mean()", "loss", "forward", ("log",))
BACKWARD = Birth(
    "backward",
    "loss",
    "X[29] = 0.0",
    "X[29] = 0.9",
    "(out.pow(2).sum(1).sqrt() - y).pow(2).mean()",
    "backward",
    "backward",
    ("sqrt",),
    parameters=("fc.weight", "head.weight"),
    net=NORM_NET,
    seen=("gradient",),
)
RATE = Birth(
    "rate",
    "step",
    "",
    "",
    "F.mse_loss(out, y)",
    "optimizer",
    "optimizer",
    ("add", "mul"),
    parameters=ALL,
    has_rows=False,
    rate='{}.param_groups[0]["lr"] = 0.05 * float((1 - torch.tensor({} / {})).sqrt())',
    seen=("parameter", "loss"),
)
EPS0 = Birth(
    "eps0",
    "step",
    "X[:, 1] = 0.0",
    "X[:, 1] = 0.0",
    "F.mse_loss(out, y)",
    "optimizer",
    "optimizer",
    ("addcdiv", "div"),
    parameters=("fc.weight",),
    has_rows=False,
    optimizer="torch.optim.Adam({}, lr=0.01, eps=0.0)",
    harmless_optimizer="torch.optim.Adam({}, lr=0.01, eps=1e-8)",
    seen=("parameter",),
)
OWN = Birth(
    "own",
    "own",
    "Y[24:32] = 0.0",
    "Y[24:32] = 0.9",
    "(y * (out - 1).pow(2)).mean()",
    "optimizer",
    "optimizer",
    ("div",),
    parameters=ALL,
    has_rows=False,
    update="({0} / {0}.norm())",
    seen=("parameter", "loss"),
)

BIRTHS = {birth.name: birth for birth in (INPUT, FORWARD, LOSS, BACKWARD, RATE, EPS0, OWN)}
KINDS = {
    "input": "input",
    "forward": "forward",
    "loss": "loss",
    "backward": "backward",
    "rate": "optimizer",
    "eps0": "optimizer",
    "own": "optimizer",
}
