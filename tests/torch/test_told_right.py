"""Whole scripts whose report once blamed the wrong thing: an own backward, a constant, an input that is differentiated by."""

from __future__ import annotations

from tests.torch.forks import Forks

OWN_BACKWARD = """
import torch

class Length(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        norm = torch.linalg.vector_norm(x, dim=1, keepdim=True)
        ctx.save_for_backward(x, norm)
        return norm

    @staticmethod
    def backward(ctx, grad):
        x, norm = ctx.saved_tensors
        return grad * x / norm

model = torch.nn.Linear(3, 2, bias=False)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    x = torch.randn(4, 3)
    x[2] *= step < 1
    loss = Length.apply(model(x)).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
CONSTANT = """
import torch

class Weighted(torch.nn.Module):
    def __init__(self):
        super().__init__()
        snr = torch.linspace(0, 1, 4)
        self.net = torch.nn.Linear(2, 1)
        {hold}

    def forward(self, x, t):
        return (self.table[t] * self.net(x)[:, 0]).mean()

model = Weighted()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    loss = model(torch.randn(2, 2), torch.tensor([3 - step, 2]))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
SALIENCY = """
import torch

model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    x = torch.rand(4, 3) + 1
    x[1] = 1.0 if step < 2 else 0.0
    x.requires_grad_()
    loss = model(x.sum(1, keepdim=True).sqrt().expand(4, 3)).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(){use}
"""
OWN_POINTS = """
import torch

model = torch.nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    xy = torch.cartesian_prod(torch.arange(3.0) + (step < 2), torch.arange(3.0)).requires_grad_()
    u = model((xy ** 2).sum(1, keepdim=True).sqrt())
    du = torch.autograd.grad(u.sum(), xy, create_graph=True)[0]
    loss = du.pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_an_own_backward_is_judged_by_its_own_operands(forks: Forks) -> None:
    incident = forks.watched(OWN_BACKWARD).report["incidents"][0]
    assert incident["causes"][0]["name"] == "div-zero-by-zero"
    assert "sqrt-grad-at-zero" not in [cause["name"] for cause in incident["causes"]]
    assert incident["origin"]["source"] == "return grad * x / norm"
    assert (incident["phase"], incident["origin"]["samples"]) == ("backward", [2])


def test_a_buffer_that_was_made_with_nan_is_no_running_statistic(forks: Forks) -> None:
    ran = forks.watched(CONSTANT.format(hold="self.register_buffer('table', snr / snr)"))
    incident = ran.report["incidents"][0]
    assert incident["step"] == 3
    assert incident["causes"] == []
    assert incident["origin"]["since_made"] == "table"
    assert "table is not finite since it was made" in ran.stderr


def test_a_table_that_a_module_holds_unregistered_is_not_the_batch(forks: Forks) -> None:
    incident = forks.watched(CONSTANT.format(hold="self.table = snr / snr")).report["incidents"][0]
    assert incident["causes"] == []
    assert incident["origin"]["op"] == "buffer"
    assert incident["origin"]["since_made"] == "table"
    assert incident["phase"] != "input"


def test_rows_of_points_that_the_step_makes_and_differentiates_by_are_samples(forks: Forks) -> None:
    incident = forks.watched(OWN_POINTS).report["incidents"][0]
    assert incident["origin"]["samples"] == [0]
    assert "xy" not in (incident["origin"]["parameters"] or [])


def test_an_input_is_no_parameter(forks: Forks) -> None:
    use = "\n    assert torch.isfinite(x.grad).all()"
    ran = forks.watched(SALIENCY.format(use=use))
    (incident,) = ran.report["incidents"]
    assert "x" not in (incident["origin"]["parameters"] or [])
