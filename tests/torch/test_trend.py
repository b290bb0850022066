"""The first steps are all measured; what was not measured is unknown, which is not the same as NaN."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from tests.torch.forks import Forks
from whynan.torch import trend as module
from whynan.torch.trend import DENSE_STEPS, TrendWatch

SCRIPT = """
import torch
torch.manual_seed(0)
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(300):
    loss = model(torch.rand(4, 3)).square().sum() * torch.log(torch.tensor(0.0 if step == 250 else 3.0))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
NO_TIME = "def install(path):\n    import whynan.torch.trend as trend\n    trend.SHARE, trend.EARLY_STEPS = 1e-9, 0\n"


@pytest.fixture
def parameter() -> torch.Tensor:
    parameter = torch.nn.Parameter(torch.ones(3))
    parameter.grad = torch.ones(3)
    return parameter


def optimizer_of(parameter: torch.Tensor, **group: Any) -> torch.optim.Optimizer:
    return torch.optim.SGD([{"params": [parameter], **group}], lr=0.1)


def test_the_first_hundred_steps_are_all_measured(forks: Forks) -> None:
    [incident] = forks.watched(SCRIPT, probe=NO_TIME).report["incidents"]
    trend = incident["trend"]
    assert trend["steps"] == list(range(250))
    for name in ("grad_norm", "update_ratio"):
        assert all(isinstance(value, float) for value in trend[name][:DENSE_STEPS])
        assert trend[name][DENSE_STEPS:] == [None] * (250 - DENSE_STEPS)
    assert all(isinstance(value, float) for value in (*trend["loss"], *trend["lr"]))


def test_what_was_measured_is_noted_for_one_step(parameter: torch.Tensor) -> None:
    watch, optimizer = TrendWatch(), optimizer_of(parameter)
    watch.measure(optimizer)
    optimizer.step()
    watch.after_update()
    first, second = watch.close_step(0, optimizer), watch.close_step(1, optimizer)
    assert first == (0, None, pytest.approx(math.sqrt(3)), pytest.approx(0.1), 0.1)
    assert second == (1, None, None, None, 0.1)


def test_a_nan_that_was_measured_stays_one(parameter: torch.Tensor) -> None:
    watch, optimizer = TrendWatch(), optimizer_of(parameter)
    parameter.grad = torch.full((3,), torch.nan)
    watch.loss = math.nan
    watch.measure(optimizer)
    optimizer.step()
    watch.after_update()
    assert [str(value) for value in watch.close_step(0, optimizer)] == ["0", "nan", "nan", "nan", "0.1"]


@pytest.mark.parametrize("rate", [None, 1, torch.tensor(0.5)])
def test_rates_of_any_kind(parameter: torch.Tensor, rate: Any) -> None:
    optimizer = optimizer_of(parameter)
    optimizer.param_groups[0]["lr"] = rate
    assert TrendWatch().close_step(0, optimizer)[4] == (rate if rate is None else float(rate))


def test_neither_nothing_nor_a_parameter_of_zeros_has_a_ratio(parameter: torch.Tensor) -> None:
    watch, optimizer = TrendWatch(), optimizer_of(parameter)
    with torch.no_grad():
        parameter.zero_()
    watch.measure(optimizer)
    optimizer.step()
    watch.after_update()
    assert watch.close_step(0, optimizer)[3] is None
    parameter.grad = None
    watch.measure(optimizer)
    watch.after_update()
    assert watch.close_step(1, optimizer)[2:4] == (None, None)


def test_the_next_steps_are_measured_as_time_allows(parameter: torch.Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SHARE", 1e-9)
    watch = TrendWatch()
    watch.measure(optimizer_of(parameter))
    assert [watch.due(steps) for steps in (0, 1, DENSE_STEPS, DENSE_STEPS + 1)] == [True, True, True, False]


def test_a_pause_is_not_saved_up(parameter: torch.Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SHARE", 0.5)
    watch, optimizer = TrendWatch(), optimizer_of(parameter)
    clock = iter(range(1000, 2000, 2))
    monkeypatch.setattr(module, "perf_counter", lambda: next(clock))
    watch.measure(optimizer)
    watch.after_update()
    first = watch.due_at
    for _ in range(100):
        next(clock)
    watch.measure(optimizer)
    watch.after_update()
    assert watch.due_at - first == pytest.approx(200 + 2 * 4)


def test_among_the_early_steps_the_next_measurement_is_near(parameter: torch.Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SHARE", 1e-9)
    watch, optimizer = TrendWatch(), optimizer_of(parameter)
    clock = iter(range(1000, 3000))
    monkeypatch.setattr(module, "perf_counter", lambda: next(clock))
    for step in (100, 110, module.EARLY_STEPS):
        watch.measure(optimizer)
        before, now = watch.due_at, next(clock)
        watch.plan(step)
        assert (watch.due_at < now + 10) if step == 110 else (watch.due_at == before)


def test_rows_since_a_step(parameter: torch.Tensor) -> None:
    watch, optimizer = TrendWatch(), optimizer_of(parameter)
    for step in (0, 1, 1, 2, 3):
        watch.close_step(step, optimizer)
    assert [row[0] for row in watch.since(1)] == [2, 3]
    assert len(watch.since(-1)) == 5
