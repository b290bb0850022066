"""Gradients that are taken of something inside a step (`autograd.grad`, `torch.func`) harm nothing before they reach an update."""

from __future__ import annotations

import pytest

from tests.torch.forks import Forks

START = """
import torch
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

def update(loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
HEALTHY = {
    "penalty of a batch that is left out": """
for step in range(8):
    x = torch.rand(4, 3)
    if step == 3:
        x[2] = float("nan")
    x.requires_grad_()
    slope, = torch.autograd.grad(model(x).sum(), x, create_graph=True)
    loss = (slope.norm(dim=1) - 1).pow(2).mean()
    if torch.isfinite(loss):
        update(loss)
""",
    "samples that are thrown away": """
for step in range(8):
    x = torch.rand(4, 3)
    if step == 3:
        x[0] = 3e38
    for _ in range(3):
        x = x.detach().requires_grad_()
        slope, = torch.autograd.grad((model(x) + x.pow(2).sum(1)).sum(), x)
        x = x - 0.1 * slope
    x = x.detach()
    x[~torch.isfinite(x).all(1)] = 0.0
    update(model(x).pow(2).mean())
""",
    "a task without labels": """
for step in range(8):
    out = model(torch.rand(4, 3))
    optimizer.zero_grad()
    for task in range(2):
        known = torch.rand(4) > (1.0 if step == 3 and task else -1.0)
        loss = out[known].pow(2).mean()
        gradients = torch.autograd.grad(loss, list(model.parameters()), retain_graph=True)
        if not torch.isfinite(loss):
            continue
        for p, g in zip(model.parameters(), gradients):
            p.grad = g if p.grad is None else p.grad + g
    optimizer.step()
""",
    "a trial of a line search": """
def objective(x):
    x = x.detach().requires_grad_()
    slope, = torch.autograd.grad(torch.exp(model(x).pow(2)).sum(), x, create_graph=True)
    return slope.pow(2).mean()

for step in range(8):
    x, weights = torch.rand(4, 3), list(model.parameters())
    gradients = torch.autograd.grad(objective(x), weights)
    before, rate = [w.detach().clone() for w in weights], 1e4 if step == 3 else 0.01
    now = objective(x).item()
    while True:
        with torch.no_grad():
            for w, b, g in zip(weights, before, gradients):
                w.copy_(b - rate * g)
        if objective(x).item() <= now or rate < 1e-9:
            break
        rate /= 10
""",
}
BATCHED = {
    "jacrev": "torch.func.jacrev(lambda w: torch.tanh(x * w).sum(1))(model[0].weight[0].detach())",
    "hessian": "torch.func.hessian(lambda w: torch.tanh(x * w).sum())(model[0].weight[0].detach())",
    "vectorized jacobian": "torch.autograd.functional.jacobian(lambda w: torch.tanh(x * w).sum(1), torch.rand(3), vectorize=True)",
    "batched gradients": "torch.autograd.grad(model(x), x, torch.eye(4)[:, :, None], is_grads_batched=True, retain_graph=True)[0]",
}
STEPS = """
for step in range(8):
    x = torch.rand(4, 3).requires_grad_()
    inner = {inner}
    update(model(x).pow(2).mean() / (0.0 if step == 5 else 1.0) + inner.detach().sum())
    print(step)
"""


@pytest.mark.parametrize("program", HEALTHY.values(), ids=HEALTHY)
def test_what_is_thrown_away_is_no_incident(forks: Forks, program: str) -> None:
    ran = forks.watched(START + program)
    assert (ran.status, ran.stderr) == (0, "")


@pytest.mark.parametrize("inner", BATCHED.values(), ids=BATCHED)
def test_the_watch_goes_on_over_batched_gradients(forks: Forks, inner: str) -> None:
    ran = forks.watched(START + STEPS.format(inner=inner))
    assert (ran.status, ran.stdout) == (3, "0\n1\n2\n3\n4\n"), ran.stderr
    assert "fault of its own" not in ran.stderr


def test_an_inner_gradient_that_the_update_uses_is_one(forks: Forks) -> None:
    by_hand = """
for step in range(8):
    weights = list(model.parameters())
    loss = model(torch.rand(4, 3)).pow(2).sum() ** (0.5 if step != 3 else -0.5)
    loss = loss * (0.0 if step == 3 else 1.0) / (0.0 if step == 3 else 1.0)
    gradients = torch.autograd.grad(loss, weights)
    with torch.no_grad():
        for w, g in zip(weights, gradients):
            w -= 0.01 * g
    print(step)
"""
    ran = forks.watched(START + by_hand)
    assert (ran.status, ran.stdout) == (3, "0\n1\n2\n"), ran.stderr
