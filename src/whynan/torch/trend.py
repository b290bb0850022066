"""The course of the run: loss, gradient norm, update ratio and rate; every step at first, then now and then, within a budget of time.

What was not measured is None: a NaN was."""

from __future__ import annotations

import math
from collections.abc import Sequence
from time import perf_counter
from typing import Any

import torch

from whynan.core.records import Trend

DENSE_STEPS = 100
EARLY_STEPS, STRIDE = 500, 16  # up to the former a measurement about every so many steps: what goes wrong often shows early
SHARE = 0.002  # of the run's time that may go into norms after the dense start
KEPT = 512
SMALL_BYTES = 1 << 20
COPIED_SHARE = 0.04  # of the parameters' memory


Row = tuple[int, float | None, float | None, float | None, float | None]  # step, loss, gradient norm, update ratio, learning rate


class TrendWatch:
    """`rows`: what there is of it. `measured`: `measure` was called for the step that is being made. `due_at`: when the budget allows the
    next measurement, by `time.perf_counter`; a run that waits (for data, or stopped) saves none of it up. `trained`: the parameters that
    had a gradient then, `norms` of those; `sampled`: the parameters whose change was measured, `sizes` their norms before it."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.due_at = 0.0
        self._took = 0.0
        self._planned = 0, 0.0
        self.trained: list[torch.Tensor] = []
        self.norms: list[float] = []
        self.sampled: list[torch.Tensor] = []
        self.sizes: list[float] = []
        self._before: list[torch.Tensor] = []
        self.measured = False
        self.loss: float | None = None
        self.grad_norm: float | None = None
        self.update_ratio: float | None = None

    def due(self, steps: int) -> bool:
        """`steps` have begun, the one that is being made included."""
        return steps <= DENSE_STEPS or self.due_at < perf_counter()

    def measure(self, optimizer: torch.optim.Optimizer) -> None:
        """Norms of the gradients, right before the step."""
        start = perf_counter()
        self.trained = [p for group in optimizer.param_groups for p in group["params"] if _dense(p.grad)]
        self.norms = _norms([p.grad for p in self.trained])
        self.grad_norm = _together(self.norms)
        self.sampled = _sampled(self.trained)
        self._before = [p.detach().clone() for p in self.sampled]
        self.measured, self._took = True, 0.0
        self._spend(start)

    def after_update(self) -> None:
        """|change| / |parameter| over the parameters that were copied."""
        self.measured = False
        if not self._before:
            return
        start = perf_counter()
        change = _together(_norms(torch._foreach_sub([p.detach() for p in self.sampled], self._before)))
        self.sizes = _norms(self._before)
        size = _together(self.sizes)
        self.update_ratio = change / size if change is not None and size else None
        self._before = []
        self._spend(start)

    def _spend(self, start: float) -> None:
        now = perf_counter()
        self._took += now - start
        self.due_at = now + self._took / SHARE

    def spend(self, seconds: float) -> None:
        """So many more have gone into what is measured at this step."""
        self._spend(perf_counter() - seconds)

    @property
    def trend(self) -> Trend:
        columns: list[list[Any]] = [list(column) for column in zip(*self.rows, strict=True)]
        return Trend(*columns)

    def plan(self, step: int) -> None:
        """A measured step is over, and its parameters are let go. Among the early ones the next measurement is not far."""
        self.trained, self.sampled = [], []
        now, (before, at) = perf_counter(), self._planned
        if at and before < step < EARLY_STEPS:
            self.due_at = min(self.due_at, now + STRIDE * (now - at) / (step - before))
        self._planned = step, now

    def since(self, step: int) -> list[Row]:
        """The rows after that of `step`, as far as they are kept."""
        first = len(self.rows)
        while first and self.rows[first - 1][0] > step:
            first -= 1
        return self.rows[first:]

    def close_step(self, step: int, optimizer: torch.optim.Optimizer) -> Row:
        """Append one row and forget the oldest beyond `KEPT` (of the old ones every second is kept)."""
        rate = optimizer.param_groups[0].get("lr")
        row = (step, self.loss, self.grad_norm, self.update_ratio, rate if type(rate) is float or rate is None else float(rate))
        self.rows.append(row)
        while len(self.rows) > KEPT:
            del self.rows[: KEPT // 2 : 2]
        self.grad_norm = self.update_ratio = None
        return row


def _sampled(trained: list[torch.Tensor]) -> list[torch.Tensor]:
    """All parameters of a small model; of a large one the smallest tensors, up to a share of its memory."""
    parameters = [p for p in trained if p.is_floating_point()]
    limit = max(SMALL_BYTES, COPIED_SHARE * sum(p.nbytes for p in parameters))
    chosen, used = [], 0
    for parameter in sorted(parameters, key=lambda p: p.nbytes):
        used += parameter.nbytes
        if used > limit:
            break
        chosen.append(parameter)
    return chosen


def _dense(grad: torch.Tensor | None) -> bool:
    return grad is not None and grad.layout is torch.strided


def _norms(tensors: Sequence[Any]) -> list[float]:
    if not tensors:
        return []
    try:
        norms = torch._foreach_norm([t.detach() for t in tensors])
        return torch.stack([n.float() for n in norms]).tolist()
    except RuntimeError:  # several devices
        return [float(t.detach().float().norm()) for t in tensors]


def _together(norms: list[float]) -> float | None:
    return math.hypot(*norms) if norms else None
