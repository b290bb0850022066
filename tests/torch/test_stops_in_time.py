"""Whatever the user's own code does to gradients after the backward pass, nothing bad is written into the weights unseen."""

from __future__ import annotations

import pytest

from tests.torch.forks import Forks

LATE = 30  # long after the watch has learned what an ordinary step of this loop is
SCRIPT = f"""
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
optimizer = torch.optim.OPTIMIZER(model.parameters(), lr=0.01)
for step in range({LATE + 4}):
    loss = model(torch.rand(8, 3)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    factor = float("FACTOR") if step == {LATE} else 1.0
    for p in model.parameters():
        CHANGE
    optimizer.step()
    print(step)
"""
CHANGES = {
    "in place": "p.grad.mul_(factor)",
    "through data": "p.grad.data.mul_(factor)",
    "through a view": "p.grad.view(-1)[0] *= factor",
    "a new tensor": "p.grad = p.grad * factor",
    "a new tensor where the old one was": "g = p.grad.clone(); p.grad = None; p.grad = g * factor",
    "through numpy": "p.grad.numpy()[...] *= factor",
    "by a function of torch's": "torch._foreach_mul_([p.grad], factor)",
    "one parameter": "p.grad.data.mul_(factor if p.dim() == 1 else 1.0)",
}


@pytest.mark.parametrize(("optimizer", "factor"), [("SGD", "nan"), ("Adam", "inf")])
@pytest.mark.parametrize("change", CHANGES)
def test_a_gradient_spoilt_by_hand_is_not_written(forks: Forks, change: str, optimizer: str, factor: str) -> None:
    source = SCRIPT.replace("OPTIMIZER", optimizer).replace("FACTOR", factor).replace("CHANGE", CHANGES[change])
    ran = forks.watched(source)
    assert ran.status == 3, ran.stderr
    assert ran.stdout.split() == [str(step) for step in range(LATE)]
    (incident,) = ran.report["incidents"]
    assert (incident["step"], incident["first_seen"]["what"]) == (LATE, "gradient")
