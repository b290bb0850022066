"""Variants for the test set alone: data, precision, optimizers, state and whole runs."""

# ruff: noqa: E501  the texts are scripts as their authors would write them
from benchmarks.generated.parts import Variant

CROSS_ENTROPY = """
def loss_fn(model, x, y):
    return F.cross_entropy(model(x), y)
"""
SQUARES = """
def loss_fn(model, x, y):
    return F.mse_loss(model(x), y)
"""
PLAIN_HEAD = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n\n"

VARIANTS = [
    Variant(
        ("fp16-constant-overflow",),
        net="mlp|conv|recurrent",
        out="5",
        data="y = torch.randint(0, 2, ($n,))\nblocked = torch.rand($n, 5) < 0.3\nblocked[:, :2] = False",
        returns="x, y, blocked",
        loss="""
def loss_fn(model, x, y, blocked):
    logits = model(x).half()
    low = torch.full((5,), <<-1e5||-6e4>>).to(logits.dtype)
    probs = torch.softmax(logits + blocked * low, dim=1)
    return F.nll_loss(torch.log(probs.float() + 1e-6), y)
""",
    ),
    Variant(
        ("sentinel-overflow",),
        net="vectors",
        out="1",
        data="y = torch.rand($n) * 2",
        spoil="y[$at] = torch.finfo(y.dtype).max",
        loss="""
def loss_fn(model, x, reach):
    seen = reach < 1e6
    gap = model(x).squeeze(1) - <<reach||reach.clamp(max=10.0)>>
    return (torch.where(seen, gap, gap * 2).abs().mul(1.5) * seen).mean()
""",
    ),
    Variant(
        ("fp16-overflow",),
        net="conv|mlp|graph",
        out="300",
        data="y = torch.randn($n, 300)",
        spoil="y[$at] *= 40",
        loss="""
def loss_fn(model, x, y):
    diff = (model(x) - y).<<half||float>>()
    energy = (diff * diff).sum(1)
    return torch.log1p(energy).float().mean()
""",
    ),
    Variant(
        ("fp16-grad-overflow",),
        text=PLAIN_HEAD
        + """class Half(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear($d, $h), nn.Linear($h, 1)

    def forward(self, x):
        return self.b(torch.relu(self.a(x))).squeeze(1)


def step(model, optimizer, x, y, scale):
    loss = F.mse_loss(model(x.half()).float(), y)
    optimizer.zero_grad()
    (scale * loss).backward()
    for p in model.parameters():
        p.grad /= scale
    optimizer.step()
    return loss.item()


torch.manual_seed($seed)
model = Half().half()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
for i in range($steps):
    x = torch.randn($b, $d)
    print(i, step(model, optimizer, x, 4 + x[:, 0], <<32768.0||32.0>>))
""",
    ),
    Variant(
        ("adam-eps-underflow",),
        text=PLAIN_HEAD
        + """class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.fc = nn.Conv1d(1, 6, 3, padding=1), nn.Linear(6, $c)

    def forward(self, x):
        return self.fc(F.relu(self.conv(x)).mean(2))


torch.manual_seed($seed)
net = Classifier().to(torch.float16)
opt = torch.optim.Adam(net.parameters(), lr=5e-4, weight_decay=0.0<<||, eps=1e-4>>)
signal = torch.randn($n, 1, 16).half()
label = torch.randint(0, $c, ($n,))
for epoch in range($epochs):
    for i in torch.arange($n).split($b):
        opt.zero_grad()
        loss = F.cross_entropy(net(signal[i]).float(), label[i])
        loss.backward()
        opt.step()
    print(epoch, loss.item())
""",
    ),
    Variant(
        ("optimizer-div-zero",),
        text=PLAIN_HEAD
        + """class Lamb(torch.optim.Optimizer):
    def __init__(self, params, lr=0.01, beta=0.9):
        super().__init__(params, dict(lr=lr, beta=beta))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                m = self.state[p].setdefault("m", torch.zeros_like(p))
                m.lerp_(p.grad, 1 - group["beta"])
                ratio = p.norm() / m.norm()<<||.clamp(min=1e-6)>>
                p.sub_(group["lr"] * ratio * m)


torch.manual_seed($seed)
model = nn.Sequential(nn.Linear($d, $h), nn.ReLU(), nn.Linear($h, 1))
with torch.no_grad():
    model[0].bias.fill_(-30.0)
optimizer = Lamb(model.parameters())
for step in range($steps):
    x = torch.randn($b, $d)
    loss = F.mse_loss(model(x), x[:, :1])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
""",
    ),
    Variant(
        ("nan-in-data",),
        net="recurrent|lstm",
        out="1",
        data="y = x.mean((1, 2), keepdim=False)[:, None]",
        spoil="""
gap = torch.rand($n, $t) < 0.02
gap[$at, 1] = True
x[:, :, 0] = x[:, :, 0].masked_fill(gap, float("nan"))
<<||x = x.nan_to_num(0.0)
>>""",
        loss=SQUARES,
    ),
    Variant(
        ("inf-in-data",),
        net="vectors|graph",
        out="1",
        data="price = torch.rand($n, 1) * 10 + 1",
        spoil="price[$at] = 0.0\ny = <<price.log()||price.clamp(min=0.1).log()>>",
        loss=SQUARES,
    ),
    Variant(
        ("bad-label", "div-by-zero", "div-zero-by-zero", "log-of-zero"),
        net="conv|mlp",
        out="2",
        data="y = torch.rand($n, 4)\ny[:, 2:] = y[:, :2] + 0.2 + y[:, 2:]",
        spoil="y[$at, 2] = y[$at, 0]<<||\nwide = y[:, 2] > y[:, 0]\nx, y = x[wide], y[wide]>>",
        loss="""
def loss_fn(model, x, box):
    width, height = box[:, 2] - box[:, 0], box[:, 3] - box[:, 1]
    aspect = torch.log(height / width)
    out = model(x)
    return (out[:, 0] - aspect).abs().mean() + (out[:, 1] - height).abs().mean()
""",
    ),
    Variant(
        ("bad-class-weight", "div-by-zero"),
        net="any",
        spoil="y[y == 1] = 0",
        sizes={"c": (3, 5)},
        loss="""
def loss_fn(model, x, y):
    share = torch.stack([(y == k).float().mean() for k in range($c)])
    weight = 1 / <<share||(share + 0.05)>>
    weight = weight / weight.sum()
    return F.cross_entropy(model(x), y, weight=weight)
""",
    ),
    Variant(
        ("ctc-infeasible",),
        text=PLAIN_HEAD
        + """class Ocr(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(1, 8, 3, stride=2, padding=1), nn.ReLU())
        self.head = nn.Linear(8, 11)

    def forward(self, images):
        return self.head(self.conv(images).mean(2).transpose(1, 2)).log_softmax(2).transpose(0, 1)


def sample(batch):
    lengths = torch.randint(2, 5, (batch,))
    text = torch.randint(1, 11, (batch, 8))
    if torch.rand(()) < 0.3:
        lengths[0], text[0] = 8, 3
    return torch.rand(batch, 1, 8, 16), text, lengths


def main():
    torch.manual_seed($seed)
    model = Ocr()
    criterion = nn.CTCLoss(blank=0<<||, zero_infinity=True>>)
    optimizer = torch.optim.Adam(model.parameters(), lr=$lr)
    for step in range(25):
        images, text, lengths = sample($b)
        out = model(images)
        loss = criterion(out, text, torch.full(($b,), out.shape[0]), lengths)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(step, loss.item())


main()
""",
    ),
    Variant(
        ("target-scale",),
        net="experts|residual|mlp",
        out="2",
        data="y = torch.stack([x.sum(1) * 3e4, x[:, 0] * 1e5], 1)<<|| / 1e5>>",
        opt="torch.optim.SGD(model.parameters(), lr=$lr, momentum=0.9)",
        extras=False,
        sizes={"lr": (0.005, 0.02), "epochs": (20, 30)},
        loss=SQUARES,
    ),
    Variant(
        ("input-scale",),
        net="mlp",
        out="1",
        data="x[:, -1] = 1.6e3 + 4e2 * torch.rand($n)\nx[:, 0] = 1e4 * torch.rand($n)<<||\nx = (x - x.mean(0)) / (x.std(0) + 1e-6)>>\ny = torch.rand($n, 1)",
        opt="torch.optim.SGD(model.parameters(), lr=$lr)",
        extras=False,
        sizes={"lr": (0.02, 0.1), "epochs": (20, 30)},
        loss="""
def loss_fn(model, x, y):
    return (model(x) - y).pow(2).sum()
""",
    ),
    Variant(
        ("uninitialised-memory",),
        net="""
class Prompted(nn.Module):
    def __init__(self):
        super().__init__()
        self.prompt = nn.Parameter(torch.<<empty||zeros>>(1, $d))
        self.net = nn.Sequential(nn.Linear($d, $h), nn.GELU(), nn.Linear($h, $c))

    def forward(self, x):
        return self.net(x + self.prompt)


Net = Prompted
torch.use_deterministic_algorithms(True)
""",
        data="x = torch.randn($n, $d)\ny = torch.randint(0, $c, ($n,))",
        loss=CROSS_ENTROPY,
    ),
    Variant(
        ("poisoned-running-stats",),
        text=PLAIN_HEAD
        + """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.bn = nn.BatchNorm1d($d)
        self.net = nn.Sequential(nn.Linear($d, $h), nn.ReLU(), nn.Linear($h, 1))

    def forward(self, x):
        return self.net(self.bn(x)).squeeze(1)


def main():
    torch.manual_seed($seed)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(20):
        x = torch.randn($b, $d)
        if step == $k:
            x[1] = float("inf")
<<||        if not x.isfinite().all():
            continue
>>        out = model(x)
        if not out.isfinite().all():
            continue
        loss = (out - x[:, 0]).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step == 12:
            model.bn.eval()
        print(step, loss.item())
    model.eval()
    for step in range(3):
        x = torch.randn($b, $d)
        loss = (model(x) - x[:, 0]).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main()
""",
    ),
    Variant(
        ("checkpoint-precision",),
        text=PLAIN_HEAD
        + """def to(state, dtype):
    return {i: {k: v.to(dtype) if torch.is_tensor(v) and v.dim() else v for k, v in s.items()} for i, s in state.items()}


class Rate(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.out = nn.Embedding($v, 6), nn.Linear(6, 1)

    def forward(self, i):
        return self.out(self.table(i)).squeeze(1).exp()


def run(model, optimizer, high, steps):
    for step in range(steps):
        i = torch.randint(0, high, ($b,))
        loss = (model(i) - (i % 3 + 1)).pow(2).mean() * 2e-3
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(step, loss.item())


torch.manual_seed($seed)
model = Rate()
optimizer = torch.optim.Adam(model.parameters(), lr=0.02, eps=1e-12)
run(model, optimizer, $v, 10)
state = optimizer.state_dict()
state["state"] = to(to(state["state"], torch.<<float16||float32>>), torch.float32)
optimizer = torch.optim.Adam(model.parameters(), lr=0.02, eps=1e-12)
optimizer.load_state_dict(state)
run(model, optimizer, $v // 3, $steps)
""",
    ),
    Variant(
        ("lr-too-high",),
        net="""
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear($d, $h), nn.Linear($h, $d)

    def forward(self, x):
        return self.fc2(F.elu(self.fc1(x)) + 0.1 * self.fc1(x))
""",
        data="x = torch.randn($n, $d)\ny = x.cumsum(1)",
        opt="torch.optim.SGD(model.parameters(), lr=<<$rate||0.01>>)",
        extras=False,
        sizes={"rate": (2.0, 4.0), "epochs": (12, 16)},
        loss="""
def loss_fn(model, x, y):
    return (model(x) - y).pow(2).sum(1).mean()
""",
    ),
    Variant(
        ("bad-lr-schedule",),
        text=PLAIN_HEAD
        + """class WarmUp:
    def __init__(self, optimizer, peak, steps):
        self.optimizer, self.peak, self.steps, self.count = optimizer, peak, steps, 0

    def step(self):
        self.count += 1
        factor = <<self.count / self.steps||min(self.count / self.steps, 1.0)>>
        for group in self.optimizer.param_groups:
            group["lr"] = self.peak * factor


torch.manual_seed($seed)
model = nn.Linear($d, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
warmup = WarmUp(optimizer, 0.1, 5)
true = torch.randn($d, 2)
for step in range($steps):
    warmup.step()
    x = torch.randn($b, $d)
    loss = (model(x) - x @ true).pow(2).sum(1).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
""",
        steps=(250, 350),
    ),
    Variant(
        ("bad-init",),
        net="""
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear($d, 48)
        self.mid = nn.Sequential(*[nn.Sequential(nn.Linear(48, 48), nn.LeakyReLU(0.1)) for _ in range(40)])
        self.out = nn.Linear(48, 1)
        self.apply(self.reset)

    def reset(self, module):
        if isinstance(module, nn.Linear):
            nn.init.<<uniform_(module.weight, -3, 3)||xavier_uniform_(module.weight, gain=1.4)>>

    def forward(self, x):
        return self.out(self.mid(self.inp(x)))
""",
        data="x = torch.randn($n, $d)\ny = torch.randn($n, 1)",
        opt="torch.optim.Adam(model.parameters(), lr=1e-4)",
        loss=SQUARES,
    ),
    Variant(
        ("scale-collapse",),
        text=PLAIN_HEAD
        + """class Forecast(nn.Module):
    def __init__(self):
        super().__init__()
        self.level, self.log_std = nn.Parameter(torch.zeros($d)), nn.Parameter(torch.zeros($d))

    def nll(self, x):
        s = self.log_std<<||.clamp(min=-5)>>
        return (s + 0.5 * ((x - self.level) * torch.exp(-s)).pow(2)).sum(1).mean()


torch.manual_seed($seed)
model = Forecast()
optimizer = torch.optim.Adam(model.parameters(), lr=$fast)
for step in range($steps):
    x = torch.randn($b, $d)
    x[:, 0] = 0.0
    loss = model.nll(x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
""",
        sizes={"fast": (0.7, 1.2)},
        steps=(150, 180),
    ),
    Variant(
        ("loss-weight",),
        net="graph|mlp|experts",
        out="6",
        data="y = torch.rand($n, 3)",
        opt="torch.optim.SGD(model.parameters(), lr=0.03)",
        extras=False,
        sizes={"heavy": (1000.0, 8000.0), "epochs": (10, 14)},
        loss="""
def loss_fn(model, x, y):
    mean, extra = model(x).chunk(2, 1)
    terms = {"fit": (mean - y).pow(2).mean(), "sparse": extra.pow(2).mean(), "centre": (mean.mean(0) - extra.mean(0)).pow(2).sum()}
    weights = {"fit": 1.0, "sparse": <<$heavy||0.05>>, "centre": 0.1}
    return sum(weights[name] * term for name, term in terms.items())
""",
    ),
    Variant(
        ("exploding-rnn",),
        text=PLAIN_HEAD
        + """class Filter(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.a = nn.Parameter(torch.linalg.qr(torch.randn(width, width))[0])
        self.b, self.c = nn.Linear(1, width), nn.Linear(width, 1)

    def forward(self, u):
        state, out = 0, []
        for step in range(u.shape[1]):
            state = (state @ self.a if step else 0) + self.b(u[:, step])
            out.append(self.c(state))
        return torch.cat(out, 1)


def main():
    torch.manual_seed($seed)
    model = Filter(8)
    optimizer = torch.optim.SGD(model.parameters(), lr=$lr)
    for epoch in range(50):
        u = torch.randn($b, 60, 1)
        loss = F.mse_loss(model(u), u.squeeze(2).cumsum(1))
        optimizer.zero_grad()
        loss.backward()
<<||        nn.utils.clip_grad_norm_(model.parameters(), 0.1)
>>        optimizer.step()
        print(epoch, loss.item())


main()
""",
        sizes={"lr": (0.01, 0.03)},
    ),
    Variant(
        ("bootstrap-divergence",),
        text=PLAIN_HEAD
        + """class Values(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear($d, $h), nn.LeakyReLU(0.3), nn.Linear($h, 1))

    def forward(self, s):
        return self.net(s).squeeze(1)


torch.manual_seed($seed)
critic = Values()
optimizer = torch.optim.SGD(critic.parameters(), lr=0.02)
memory = torch.rand(100, $d)
for update in range(800):
    s = memory[torch.randint(0, 100, (32,))]
    goal = 1 + 0.99 * critic(2 * s).detach()<<||.clamp(-2, 8)>>
    loss = (critic(s) - goal).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if update % 20 == 0:
        print(update, loss.item(), goal.mean().item())
""",
    ),
    Variant(
        ("unbounded-objective",),
        text=PLAIN_HEAD
        + """class Energy(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear($d, $h), nn.Linear($h, $h), nn.Linear($h, 1)

    def forward(self, x):
        return self.c(F.silu(self.b(F.silu(self.a(x))))).squeeze(1)


def main():
    torch.manual_seed($seed)
    energy = Energy()
    optimizer = torch.optim.SGD(energy.parameters(), lr=$lr)
    for step in range(300):
        data = torch.randn($b, $d) + 1
        noise = torch.randn($b, $d) * 2
        low, high = energy(data), energy(noise)
        loss = <<low.mean() - high.mean()||F.softplus(low).mean() * 0.1 + F.softplus(-high).mean() * 0.1>>
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(step, loss.item())


main()
""",
        sizes={"lr": (0.1, 0.3)},
    ),
    Variant(
        ("class-imbalance", "empty-reduction", "div-zero-by-zero"),
        net="any",
        out="1",
        data="y = (torch.rand($n) < 0.3).float()",
        spoil="y[$b:2 * $b] = 0",
        shuffle=False,
        loss="""
def loss_fn(model, x, y):
    score = model(x).squeeze(1)
    ones = (F.softplus(-score) * y).sum() / y.sum()<<||.clamp(min=1)>>
    zeros = (F.softplus(score) * (1 - y)).sum() / (1 - y).sum()<<||.clamp(min=1)>>
    return (ones + zeros) / 2
""",
    ),
    Variant(
        ("gradient-conflict", "loss-weight"),
        net="experts|mlp",
        out="2",
        data="y = torch.tanh(x[:, :2])",
        opt="torch.optim.SGD(model.parameters(), lr=0.03)",
        extras=False,
        sizes={"heavy": (800.0, 4000.0), "epochs": (10, 14)},
        loss="""
def loss_fn(model, x, y):
    out = model(x)
    accuracy = F.mse_loss(out, y)
    fairness = F.mse_loss(out, -y)
    return accuracy + <<$heavy||0.3>> * fairness
""",
    ),
    Variant(
        ("length-not-normalised",),
        net="""
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.frame, self.out = nn.Linear($d, $h), nn.Linear($h, 1)

    def forward(self, x, length):
        keep = (torch.arange(x.shape[1]) < length[:, None]).float()[..., None]
        total = (torch.relu(self.frame(x)) * keep).sum(1)
        return self.out(total<<|| / length[:, None]>>).squeeze(1)
""",
        data="x = torch.randn($n, 8000, $d)\nlength = torch.randint(4, 20, ($n,))\ny = torch.rand($n)",
        spoil="length[$at] = 8000",
        returns="x, length, y",
        sizes={"b": (3, 4), "m": 3, "epochs": 2, "d": 4, "h": 32},
        loss="""
def loss_fn(model, x, length, y):
    gain = torch.exp(model(x, length).abs())
    return (gain - y).pow(2).mean()
""",
    ),
    Variant(
        ("embedding-norm-growth", "exp-overflow", "unbounded-objective"),
        text=PLAIN_HEAD
        + """class Shop(nn.Module):
    def __init__(self):
        super().__init__()
        self.basket, self.product = nn.Embedding($v, $e), nn.Embedding($v, $e)

    def forward(self, b, p):
        left, right = self.basket(b), self.product(p)
<<||        left, right = F.normalize(left, dim=-1), F.normalize(right, dim=-1)
>>        return (left * right).sum(-1)


torch.manual_seed($seed)
model = Shop()
optimizer = torch.optim.RMSprop(model.parameters(), lr=$lr)
for step in range(150):
    b = torch.randint(0, $v, (32,))
    good, bad = model(b, b), model(b, torch.randint(0, $v, (32,)))
    loss = torch.log(1 + torch.exp(bad - good)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
""",
        sizes={"lr": (0.5, 1.0)},
    ),
]
