"""Healthy runs that look bad: spikes, huge numbers, oscillation, skipped steps, masks of -inf."""

# ruff: noqa: E501  the texts are scripts as their authors would write them
from benchmarks.generated.parts import Variant


def whole(text: str, steps: tuple[int, int] = (60, 200), **sizes: object) -> Variant:
    return Variant(text="import math\n\nimport torch\nimport torch.nn.functional as F\nfrom torch import nn\n\n" + text.lstrip("\n"), steps=steps, sizes=sizes, kind="healthy")


MLP = "nn.Sequential(nn.Linear($d, $h), nn.ReLU(), nn.Linear($h, $c))"

VARIANTS = [
    whole(f"""
torch.manual_seed($seed)
model = {MLP}
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-2)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=3e-2, total_steps=$steps)
centres = torch.randn($c, $d)
for step in range($steps):
    y = torch.randint(0, $c, ($b,))
    loss = F.cross_entropy(model(centres[y] + torch.randn($b, $d)), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    print(step, loss.item())
"""),
    whole("""
def batches(count):
    for step in range(count):
        x = torch.randn($b, $d)
        if step % 25 == 24:
            x[0] = x[0] * 30
        yield x, x.sum(1, keepdim=True)


def main():
    torch.manual_seed($seed)
    model = nn.Sequential(nn.Linear($d, $h), nn.Tanh(), nn.Linear($h, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for i, (x, y) in enumerate(batches($steps)):
        loss = F.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        print(f"{i} {loss.item():.4f}")


main()
"""),
    whole(f"""
torch.manual_seed($seed)
model = {MLP}
optimizer = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9)
scheduler = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=25)
teacher = torch.randn($d, $c)
data = torch.randn(256, $d)
labels = (data @ teacher + torch.randn(256, $c)).argmax(1)
for step in range($steps):
    i = torch.randint(0, 256, ($b,))
    loss = F.cross_entropy(model(data[i]), labels[i])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    print(step, loss.item(), optimizer.param_groups[0]["lr"])
"""),
    whole("""
class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, $h), nn.ReLU(), nn.Linear($h, 2))

    def forward(self, n):
        return self.net(torch.randn(n, 4))


torch.manual_seed($seed)
G = Generator()
D = nn.Sequential(nn.Linear(2, $h), nn.LeakyReLU(0.2), nn.Linear($h, 1))
opt_g = torch.optim.Adam(G.parameters(), lr=2e-3, betas=(0.5, 0.999))
opt_d = torch.optim.Adam(D.parameters(), lr=2e-3, betas=(0.5, 0.999))
bce = F.binary_cross_entropy_with_logits
for step in range($steps):
    angle = torch.rand($b) * 2 * math.pi
    real = torch.stack([angle.cos(), angle.sin()], 1) * 2
    fake = G($b)
    d_loss = bce(D(real), torch.ones($b, 1)) + bce(D(fake.detach()), torch.zeros($b, 1))
    opt_d.zero_grad()
    d_loss.backward()
    opt_d.step()
    g_loss = bce(D(fake), torch.ones($b, 1))
    opt_g.zero_grad()
    g_loss.backward()
    opt_g.step()
    print(step, d_loss.item(), g_loss.item())
"""),
    whole("""
class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, $h), nn.Tanh(), nn.Linear($h, 2))

    def forward(self, state):
        return torch.distributions.Categorical(logits=self.body(state))


def rollout(policy, horizon):
    state, log_probs, rewards = torch.randn(4), [], []
    for _ in range(horizon):
        dist = policy(state)
        action = dist.sample()
        log_probs.append(dist.log_prob(action))
        rewards.append(float(10 * state[0] * (2 * action - 1)))
        state = 0.8 * state + 0.6 * torch.randn(4)
    return torch.stack(log_probs), rewards


def main():
    torch.manual_seed($seed)
    policy = Policy()
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
    for episode in range($steps):
        log_probs, rewards = rollout(policy, 8)
        returns = torch.tensor(rewards).flip(0).cumsum(0).flip(0)
        loss = -(log_probs * returns).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(episode, sum(rewards))


main()
""", steps=(60, 90)),
    whole("""
class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.pos = nn.Embedding($v, $e), nn.Parameter(torch.zeros($t, $e))
        self.qkv, self.out = nn.Linear($e, 3 * $e), nn.Linear($e, $v)
        self.register_buffer("mask", torch.full(($t, $t), float("-inf")).triu(1))

    def forward(self, tokens):
        h = self.embed(tokens) + self.pos
        q, k, v = self.qkv(h).chunk(3, -1)
        weights = torch.softmax(q @ k.mT / math.sqrt($e) + self.mask, dim=-1)
        return self.out(h + weights @ v)


torch.manual_seed($seed)
model = Decoder()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
warm = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=1e-3, total_iters=20)
for step in range($steps):
    tokens = (torch.randint(0, $v, ($b, 1)) + torch.arange($t + 1)) % $v
    loss = F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    warm.step()
    print(step, loss.item())
"""),
    whole("""
torch.manual_seed($seed)
model = nn.Sequential(nn.Linear($d, $h), nn.ReLU(), nn.Linear($h, 400))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
basis = torch.randn($d, 400)
for step in range($steps):
    x = torch.randn(32, $d)
    loss = (model(x) - 20 * (x @ basis)).pow(2).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.1f}")
"""),
    whole("""
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(32, 32) for _ in range(6))
        for layer in self.layers:
            nn.init.kaiming_normal_(layer.weight)
            layer.weight.data.mul_(1.6)
        self.head = nn.Linear(32, 3)

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x))
        return self.head(x)


torch.manual_seed($seed)
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range($steps):
    x = torch.randn($b, 32)
    loss = F.cross_entropy(model(x), x[:, :3].argmax(1))
    optimizer.zero_grad()
    loss.backward()
    total = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    print(step, loss.item(), total.item())
"""),
    whole("""
class FraudNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.BatchNorm1d($d), nn.Linear($d, $h), nn.ReLU(), nn.Dropout(0.2), nn.Linear($h, 1))

    def forward(self, x):
        return self.net(x).squeeze(1)


torch.manual_seed($seed)
x = torch.randn(1000, $d)
y = (x[:, 0] + 0.3 * torch.randn(1000) > 2.1).float()
model = FraudNet()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
criterion = nn.BCEWithLogitsLoss(pos_weight=torch.tensor(40.0))
for step in range($steps):
    i = torch.randint(0, 1000, (16,))
    loss = criterion(model(x[i]), y[i])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
"""),
    whole("""
def phase(model, params, lr, steps):
    optimizer = torch.optim.SGD(params, lr=lr, momentum=0.9)
    for step in range(steps):
        x = torch.randn($b, $d)
        loss = F.cross_entropy(model(x), (x[:, 0] > 0).long())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(step, loss.item())


torch.manual_seed($seed)
backbone, head, unused = nn.Sequential(nn.Linear($d, $h), nn.ReLU()), nn.Linear($h, 2), nn.Linear(3, 3)
model = nn.Sequential(backbone, head)
model.register_module("projector", None)
for p in backbone.parameters():
    p.requires_grad_(False)
phase(model, head.parameters(), 0.1, $steps // 2)
for p in backbone.parameters():
    p.requires_grad_(True)
phase(model, model.parameters(), 0.02, $steps // 2)
"""),
    whole("""
torch.manual_seed($seed)
model = nn.Sequential(nn.Linear($d, $h), nn.ReLU(), nn.Linear($h, $c))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0 ** 24)
teacher = torch.randn($d, $c)
for step in range($steps):
    x = torch.randn($b, $d)
    y = (x @ teacher).argmax(1)
    with torch.autocast("cpu", dtype=torch.float16):
        loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    print(step, loss.item(), scaler.get_scale())
"""),
    whole(f"""
torch.manual_seed($seed)
model = {MLP}
optimizer = torch.optim.RMSprop(model.parameters(), lr=3e-3)
x = torch.randn(64, $d)
y = torch.randint(0, $c, (64,))
for epoch in range($steps // 32 + 1):
    for i in torch.randperm(64).split(2):
        loss = F.cross_entropy(model(x[i]), y[i])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(epoch, loss.item())
"""),
    whole("""
class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.dec = nn.Sequential(nn.Linear($d, $h), nn.ReLU(), nn.Linear($h, 4)), nn.Sequential(nn.Linear(2, $h), nn.ReLU(), nn.Linear($h, $d))
        self.log_scale = nn.Parameter(torch.zeros($d))

    def forward(self, x):
        mean, logvar = self.enc(x).chunk(2, 1)
        z = mean + torch.randn_like(mean) * torch.exp(0.5 * logvar)
        kl = 0.5 * (mean.pow(2) + logvar.exp() - 1 - logvar).sum(1)
        nll = (0.5 * ((x - self.dec(z)) / self.log_scale.exp()).pow(2) + self.log_scale).sum(1)
        return nll.mean(), kl.mean()


torch.manual_seed($seed)
model = VAE()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
mix = torch.randn(2, $d) * 0.2
for step in range($steps):
    x = torch.randn(32, 2) @ mix + 0.1 * torch.randn(32, $d)
    nll, kl = model(x)
    loss = nll + min(1.0, step / 60) * kl
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, nll.item(), kl.item())
"""),
    whole("""
class Q(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear($d, $h), nn.ReLU(), nn.Linear($h, 3))

    def forward(self, s):
        return self.net(s)


torch.manual_seed($seed)
online, target = Q(), Q()
target.load_state_dict(online.state_dict())
optimizer = torch.optim.Adam(online.parameters(), lr=3e-3)
for step in range($steps):
    s, a = torch.randn(32, $d), torch.randint(0, 3, (32,))
    r = 5 + torch.randn(32) * 3
    with torch.no_grad():
        goal = r + 0.9 * target(torch.roll(s, 1, 1)).max(1).values
    loss = F.smooth_l1_loss(online(s).gather(1, a[:, None]).squeeze(1), goal)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        target.load_state_dict(online.state_dict())
    print(step, loss.item())
""", steps=(120, 300)),
    whole("""
class MDN(nn.Module):
    def __init__(self, parts=3):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(1, $h), nn.Tanh())
        self.pi, self.mu, self.sigma = (nn.Linear($h, parts) for _ in range(3))

    def log_prob(self, x, y):
        h = self.body(x)
        sigma = F.softplus(self.sigma(h)) + 1e-2
        each = torch.distributions.Normal(self.mu(h), sigma).log_prob(y)
        return torch.logsumexp(F.log_softmax(self.pi(h), 1) + each, 1)


def main():
    torch.manual_seed($seed)
    model = MDN()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for step in range($steps):
        y = torch.rand(64, 1) * 2 - 1
        x = y + 0.3 * torch.sin(7 * y) + 0.02 * torch.randn(64, 1)
        loss = -model.log_prob(x, y).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(step, loss.item())


main()
"""),
    whole("""
torch.manual_seed($seed)
x = torch.rand(30, 1).sort(0).values * 6
y = torch.sin(x).squeeze(1) + 0.1 * torch.randn(30)
raw = nn.ParameterDict({name: nn.Parameter(torch.zeros(())) for name in ("length", "scale", "noise")})
optimizer = torch.optim.Adam(raw.parameters(), lr=0.05)
for step in range($steps):
    length, scale, noise = (F.softplus(raw[name]) for name in ("length", "scale", "noise"))
    kernel = scale * torch.exp(-0.5 * (torch.cdist(x, x) / length).pow(2)) + (noise + 1e-3) * torch.eye(30)
    chol = torch.linalg.cholesky(kernel)
    alpha = torch.cholesky_solve(y[:, None], chol).squeeze(1)
    loss = 0.5 * y @ alpha + chol.diagonal().log().sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
"""),
    whole("""
class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding($v, $e, padding_idx=0)
        self.lstm = nn.LSTM($e, $h, batch_first=True)
        self.out = nn.Linear($h, $c)

    def forward(self, tokens):
        return self.out(self.lstm(self.embed(tokens))[0])


torch.manual_seed($seed)
model = Tagger()
optimizer = torch.optim.SGD(model.parameters(), lr=2.0)
for step in range($steps):
    tokens = torch.randint(1, $v, ($b, $t))
    tokens[torch.arange($t) >= torch.randint(1, $t + 1, ($b, 1))] = 0
    tags = torch.where(tokens > 0, tokens % $c, -100)
    loss = F.cross_entropy(model(tokens).transpose(1, 2), tags)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.25)
    optimizer.step()
    print(step, loss.item())
"""),
    whole("""
def evaluate(model, x):
    with torch.no_grad():
        ratio = (model(x) / (x.sum(1, keepdim=True) - x.sum(1, keepdim=True).trunc()))
    return ratio[ratio.isfinite()].mean()


torch.manual_seed($seed)
model = nn.Sequential(nn.Linear($d, $h), nn.GELU(), nn.Linear($h, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.1)
best = float("inf")
for step in range($steps):
    difficulty = 1 + 10 * step / $steps
    x = torch.randn($b, $d)
    loss = F.mse_loss(model(x), difficulty * x[:, :1].sin())
    (loss / 2).backward()
    if step % 2:
        optimizer.step()
        optimizer.zero_grad()
    best = min(best, loss.item())
    print(step, loss.item(), best, evaluate(model, x).item())
"""),
    whole("""
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear($d, $h), nn.ReLU(), nn.Linear($h, $e))

    def forward(self, x):
        return F.normalize(self.enc(x), dim=1)


torch.manual_seed($seed)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9, nesterov=True)
for step in range($steps):
    x = torch.randn($b, $d)
    a, b = model(x + 0.1 * torch.randn_like(x)), model(x + 0.1 * torch.randn_like(x))
    logits = a @ b.t() / 0.07
    eye = torch.eye($b, dtype=torch.bool)
    logits = torch.cat([logits, (a @ a.t() / 0.07).masked_fill(eye, float("-inf"))], 1)
    loss = F.cross_entropy(logits, torch.arange($b))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
"""),
    whole("""
def ppo(policy, old, states, actions, advantage, clip=0.2):
    ratio = torch.exp(policy(states).log_softmax(1).gather(1, actions) - old)
    return -torch.min(ratio * advantage, ratio.clamp(1 - clip, 1 + clip) * advantage).mean()


torch.manual_seed($seed)
policy = nn.Sequential(nn.Linear($d, $h), nn.Tanh(), nn.Linear($h, 3))
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
for iteration in range($steps // 4):
    states = torch.randn(64, $d)
    with torch.no_grad():
        log_p = policy(states).log_softmax(1)
        actions = torch.multinomial(log_p.exp(), 1)
        old = log_p.gather(1, actions)
    reward = (states[:, :3].gather(1, actions) + torch.randn(64, 1)) * 3
    advantage = (reward - reward.mean()) / (reward.std() + 1e-8)
    for _ in range(4):
        loss = ppo(policy, old, states, actions, advantage)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(iteration, loss.item())
"""),
    whole("""
torch.manual_seed($seed)
model = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(32, $c))
optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
scheduler = torch.optim.lr_scheduler.CyclicLR(optimizer, base_lr=0.01, max_lr=0.5, step_size_up=15)
prototypes = torch.rand($c, 1, $s, $s)
for step in range($steps):
    y = torch.randint(0, $c, ($b,))
    flip = torch.rand($b) < 0.2
    x = prototypes[y] + 0.3 * torch.randn($b, 1, $s, $s)
    loss = F.cross_entropy(model(x), torch.where(flip, torch.randint(0, $c, ($b,)), y))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    print(step, loss.item())
"""),
    whole("""
torch.manual_seed($seed)
counts = torch.poisson(torch.full((200, 1), 4.0)) * 1000
x = torch.randn(200, $d)
model = nn.Sequential(nn.Linear($d, $h), nn.ReLU(), nn.Linear($h, 1))
with torch.no_grad():
    model[2].bias.fill_(8.0)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for step in range($steps):
    i = torch.randint(0, 200, (16,))
    loss = F.poisson_nll_loss(model(x[i]), counts[i])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
"""),
]
