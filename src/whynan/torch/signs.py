"""Warnings while training goes on: what is measured at a step is shown to the early signs of `core.signs`.

Everything here happens at steps at which the trend measures, and within its budget of time. A fault of ours ends the warnings, not the run.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from time import perf_counter
from typing import Any

import torch

from whynan.core.faults import is_ours
from whynan.core.places import user_frame
from whynan.core.signs import HeadroomShrinking, LossComponentDominates, OneClassBatches, ScalerSkipping, Sign
from whynan.torch.signs_graph import GraphReader
from whynan.torch.signs_optimizer import LIMIT, OptimizerSigns
from whynan.torch.signs_terms import terms_of
from whynan.torch.trend import Row, TrendWatch

Tell = Callable[[int, str, str], None]
LOOKS, SELDOM = 40, 8  # at the terms of the loss in every measured step, then in every so many
ALARM = 30.0  # times the largest loss seen at which a step is looked at that is not measured


class SignWatch:
    """`tell(step, name, text)` is called once a kind at most. `off`: why nothing is looked at any more."""

    def __init__(self, trend: TrendWatch, tell: Tell) -> None:
        self._trend, self._tell = trend, tell
        self.off: str | None = None
        self._said: set[str] = set()
        self._of: dict[int, OptimizerSigns] = {}
        self._labels: Counter[float] = Counter()
        self._graph = GraphReader()
        self._largest: float | None = None
        self._one_class, self._scaler, self._terms = OneClassBatches(), ScalerSkipping(), LossComponentDominates()
        self._forward = HeadroomShrinking("values of the forward pass", "float16", LIMIT)
        self._measured, self._took, self._alarm = 0, 0.0, ALARM

    # ---- what the hooks call ----

    def before_backward(self, step: int, loss: torch.Tensor) -> None:
        """`loss` is one number; its graph is still there."""
        self._safely(self._read_graph, step, loss)

    def after_step(self, row: Row, optimizer: Any, *, measured: bool) -> None:
        """`row` is the one that the step has added to the trend."""
        if measured or row[1] is not None and abs(row[1]) > self._alarm:
            self._safely(self._look, row, optimizer, measured)

    def scaler_stepped(self, step: int, scaler: Any, skipped: bool) -> None:
        if self._scaler.text is None:
            self._safely(self._follow_scaler, step, scaler, skipped)

    def run_over(self, step: int) -> None:
        self._safely(self._end, step)

    def _safely(self, look: Callable[..., None], *args: Any) -> None:
        if self.off is not None:
            return
        try:
            look(*args)
        except Exception as error:
            if not is_ours(error):
                raise
            self.off = f"warnings ended at a fault of our own: {type(error).__name__}: {error}"

    # ---- what is looked at ----

    def _read_graph(self, step: int, loss: torch.Tensor) -> None:
        start = perf_counter()
        self._graph.read(loss)
        self._labels.update(self._graph.labels)
        if self._graph.largest is not None:
            self._largest = max(self._graph.largest, self._largest or 0.0)
        if self._terms.text is None and (self._terms.looks < LOOKS or self._measured % SELDOM == 0):
            self._terms.add(step, terms_of(loss, user_frame(sys._getframe(2))))
        self._took += perf_counter() - start

    def _look(self, row: Row, optimizer: Any, measured: bool) -> None:
        start = perf_counter()
        step, loss = row[:2]
        signs = self._signs_of(optimizer)
        for one in self._trend.since(signs.looked_at) if len(self._of) == 1 else [row]:
            signs.follow(one)
        if measured:
            self._measured += 1
            signs.measure(row, optimizer, self._trend)
            if self._labels:
                self._one_class.add(step, self._labels, loss)
            if self._largest is not None:
                self._forward.add(step, self._largest)
            self._labels, self._largest = Counter(), None
        if loss is not None:
            self._alarm = max(self._alarm, ALARM * abs(loss))
        for sign in (*signs.all, self._one_class, self._terms, self._forward):
            if sign.text is not None:
                self._say(sign)
        self._trend.spend(self._took + perf_counter() - start)
        self._took = 0.0

    def _signs_of(self, optimizer: Any) -> OptimizerSigns:
        known = self._of.get(id(optimizer))
        if known is None or not known.is_of(optimizer):
            known = self._of[id(optimizer)] = OptimizerSigns(optimizer)
        return known

    def _follow_scaler(self, step: int, scaler: Any, skipped: bool) -> None:
        if scaler.is_enabled():
            self._scaler.add(step, skipped, scaler.get_scale)
            self._say(self._scaler)

    def _end(self, step: int) -> None:
        for signs in self._of.values():
            signs.run_over(step)
            for sign in signs.all:
                self._say(sign)

    def _say(self, sign: Sign) -> None:
        if sign.text is not None and sign.name not in self._said:
            self._said.add(sign.name)
            self._tell(sign.step, sign.name, sign.text)
