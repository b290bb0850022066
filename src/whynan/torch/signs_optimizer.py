"""The early signs that concern one optimizer and what it trains."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from math import inf, sqrt
from typing import Any

import torch

from whynan.core.signs import (
    DeadLayer,
    GradientNormGrowing,
    HeadroomShrinking,
    LossGrowing,
    LossUnbounded,
    ParameterRunningAway,
    ParameterWithoutGradient,
    RateRising,
    Sign,
    UpdateRatioHigh,
)
from whynan.torch.names import collect
from whynan.torch.policy import parameters_of
from whynan.torch.trend import Row, TrendWatch

FLOAT16, LIMIT = torch.float16, 65504.0
SHOWN = 3  # names in one line
MOVED = 2.0  # times its first size from which a parameter is followed


class OptimizerSigns:
    """`looked_at`: the last step whose row was followed."""

    def __init__(self, optimizer: Any) -> None:
        self._reference, self._ids = weakref.ref(optimizer), list(map(id, parameters_of(optimizer)))
        self._kind = type(optimizer).__name__
        self.looked_at = -1
        self._loss, self._unbounded, self._norm = LossGrowing(), LossUnbounded(), GradientNormGrowing()
        self._rate, self._ratio = RateRising(), UpdateRatioHigh()
        self._missing, self._dead = ParameterWithoutGradient(), DeadLayer()
        self._narrow = HeadroomShrinking("parameters", "float16", LIMIT), HeadroomShrinking("gradients", "float16", LIMIT)
        self._running: dict[int, ParameterRunningAway] = {}
        self._first: dict[int, float] = {}
        self._away: Sign | None = None

    def is_of(self, optimizer: Any) -> bool:
        return self._reference() is optimizer and list(map(id, parameters_of(optimizer))) == self._ids

    @property
    def all(self) -> Sequence[Sign]:
        """Those that may have something to say."""
        own = (self._loss, self._unbounded, self._norm, self._rate, self._ratio, self._missing, self._dead, *self._narrow)
        return own if self._away is None else (*own, self._away)

    def follow(self, row: Row) -> None:
        step, loss, norm, ratio, rate = row
        self.looked_at = step
        if loss is not None:
            self._loss.add(step, loss)
            self._unbounded.add(step, loss)
        if norm is not None:
            self._norm.add(step, norm)
        if ratio is not None:
            self._ratio.add(step, ratio)
        if rate is not None:
            self._rate.add(step, rate)

    def measure(self, row: Row, optimizer: Any, trend: TrendWatch) -> None:
        """What is known only at a measured step."""
        step = row[0]
        parameters = parameters_of(optimizer)
        self._rate.judge(step, self._ratio.recent)
        if self._missing.text is None and self._missing.never != set():
            self._follow_missing(step, parameters)
        if self._dead.text is None:
            self._follow_dead(step, trend)
        if self._away is None:
            self._follow_sizes(step, row[1], trend)
        self._follow_narrow(step, parameters)

    def _follow_missing(self, step: int, parameters: list[torch.Tensor]) -> None:
        if self._missing.add(step, [i for i, p in enumerate(parameters) if p.grad is None and p.requires_grad]):
            self._name_missing(step, parameters)

    def _follow_dead(self, step: int, trend: TrendWatch) -> None:
        dead = self._dead.add(step, [(id(p), norm) for p, norm in zip(trend.trained, trend.norms, strict=True) if p.dim() > 1])
        if dead is not None:
            self._dead.name_it(step, dead, _named([p for p in trend.trained if id(p) == dead], self._kind)[0])

    def _follow_narrow(self, step: int, parameters: list[torch.Tensor]) -> None:
        gradients = [p.grad for p in parameters if p.grad is not None]
        for sign, tensors in zip(self._narrow, (parameters, gradients), strict=True):
            narrow = [t.detach() for t in tensors if t.dtype is FLOAT16 and t.layout is torch.strided and t.numel()]
            if narrow:
                sign.add(step, max(map(float, torch._foreach_norm(narrow, inf))))

    def _follow_sizes(self, step: int, loss: float | None, trend: TrendWatch) -> None:
        for parameter, norm in zip(trend.sampled, trend.sizes, strict=False):
            key, size = id(parameter), norm / sqrt(max(parameter.numel(), 1))
            first = self._first.setdefault(key, max(size, 0.5))
            if size < MOVED * first or self._away is not None:
                continue
            sign = self._running.get(key)
            if sign is None:
                sign = self._running[key] = ParameterRunningAway(first)
            if sign.add(step, size, loss):
                sign.name_it(step, _named([parameter], self._kind)[0], size)
                self._away = sign

    def run_over(self, step: int) -> None:
        optimizer = self._reference()
        if optimizer is not None and self._missing.at_the_end:
            self._name_missing(step, parameters_of(optimizer))

    def _name_missing(self, step: int, parameters: list[torch.Tensor]) -> None:
        concerned = [parameters[i] for i in sorted(self._missing.never or ())]
        self._missing.name_them(step, _named(concerned[:SHOWN], self._kind), len(concerned))


def _named(parameters: list[torch.Tensor], kind: str) -> list[str]:
    """As the user knows them. (No variables of frames are read: a dictionary of them would keep the graph alive.)"""
    names = collect((), set(map(id, parameters)))
    return [names.of(p) or f"a parameter of {kind} of shape {tuple(p.shape)}" for p in parameters]
