"""The course of the run: loss, gradient norm, update ratio and rate; every step at first, then within a budget of time.

What was not measured is None: a NaN was."""

from __future__ import annotations

import math
from collections.abc import Sequence
from time import perf_counter
from typing import Any

import torch

from whynan.core.records import Trend

DENSE_STEPS = 100
SHARE = 0.002  # of the run's time that may go into norms after the dense start
KEPT = 512
SMALL_BYTES = 1 << 20
COPIED_SHARE = 0.04  # of the parameters' memory


Row = tuple[int, float | None, float | None, float | None, float | None]  # step, loss, gradient norm, update ratio, learning rate


class TrendWatch:
    """`rows`: what there is of it. `measured`: `measure` was called for the step that is being made. `due_at`: when the budget allows the
    next measurement, by `time.perf_counter`; a run that waits (for data, or stopped) saves none of it up."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.due_at = 0.0
        self._took = 0.0
        self._watched: list[torch.Tensor] = []
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
        grads = [p.grad for group in optimizer.param_groups for p in group["params"] if _dense(p.grad)]
        self.grad_norm = _norm(grads)
        self._watched = _sampled(optimizer)
        self._before = [p.detach().clone() for p in self._watched]
        self.measured, self._took = True, 0.0
        self._spend(start)

    def after_update(self) -> None:
        """|change| / |parameter| over the parameters that were copied."""
        self.measured = False
        if not self._before:
            return
        start = perf_counter()
        change = _norm(torch._foreach_sub([p.detach() for p in self._watched], self._before))
        size = _norm(self._before)
        self.update_ratio = change / size if change is not None and size else None
        self._watched, self._before = [], []
        self._spend(start)

    def _spend(self, start: float) -> None:
        now = perf_counter()
        self._took += now - start
        self.due_at = now + self._took / SHARE

    @property
    def trend(self) -> Trend:
        columns: list[list[Any]] = [list(column) for column in zip(*self.rows, strict=True)]
        return Trend(*columns)

    def close_step(self, step: int, optimizer: torch.optim.Optimizer) -> Row:
        """Append one row and forget the oldest beyond `KEPT` (of the old ones every second is kept)."""
        rate = optimizer.param_groups[0].get("lr")
        row = (step, self.loss, self.grad_norm, self.update_ratio, rate if type(rate) is float or rate is None else float(rate))
        self.rows.append(row)
        while len(self.rows) > KEPT:
            del self.rows[: KEPT // 2 : 2]
        self.grad_norm = self.update_ratio = None
        return row


def _sampled(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    """All parameters of a small model; of a large one the smallest tensors, up to a share of its memory."""
    parameters = [p for group in optimizer.param_groups for p in group["params"] if _dense(p.grad) and p.is_floating_point()]
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


def _norm(tensors: Sequence[Any]) -> float | None:
    if not tensors:
        return None
    try:
        norms = torch._foreach_norm([t.detach() for t in tensors])
        return float(torch.stack([n.float() for n in norms]).norm())
    except RuntimeError:  # several devices
        return math.sqrt(sum(float(t.detach().float().norm()) ** 2 for t in tensors))
