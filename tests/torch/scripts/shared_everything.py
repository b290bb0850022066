"""A run that passes through every hook: buffers, two optimizers, groups, a scaler, a loader, clipping, iterators, if asked a compiled function."""
import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Source:
    def __init__(self):
        self.turn = 0

    def __next__(self):
        self.turn += 1
        return self.turn / 10

    def __iter__(self):
        return self


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.norm, self.head = nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1)
        nn.init.normal_(self.head.weight)
        self.register_buffer("seen", torch.zeros(1))

    def forward(self, x):
        self.seen += len(x)
        return self.head(torch.relu(self.norm(self.body(x))))


def double(value):
    return value * 2


def train(bad=lambda step, out: out, after=lambda step, model: None, compiled=False):
    torch.manual_seed(1)
    np.random.seed(2)
    random.seed(3)
    model, free = Net(), torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.Adam(model.body.parameters(), lr=1e-2)
    optimizer.add_param_group({"params": model.norm.parameters(), "lr": 1e-3})
    second = torch.optim.SGD(model.head.parameters(), lr=1e-2)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    scale = torch.compile(double, backend="eager") if compiled else double
    loader = DataLoader(TensorDataset(torch.randn(24, 3), torch.randn(24, 1)), 4, shuffle=True)
    source, step = Source(), 0
    for epoch in range(2):
        for x, y in loader:
            out = bad(step, model(x + next(source) * random.random()) * scale(1 + free))
            loss = nn.functional.mse_loss(out, y + float(np.random.normal()))
            optimizer.zero_grad()
            second.zero_grad()
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.body.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.step(second)
            scaler.update()
            (slope,) = torch.autograd.grad((free * 3).sum(), free)
            with torch.no_grad():
                free -= 0.01 * slope
                free.grad = None
            after(step, model)
            print(step, loss.item().hex())
            step += 1
    for parameter in [*model.parameters(), free]:
        print(parameter.detach().flatten()[:2].tolist())
    print(torch.rand(1).item(), np.random.rand(), random.random())
