"""The last steps of the run, so that they can be made again with one thing changed: snapshots now and then, and what every step since
was given."""

from __future__ import annotations

import math
from collections import deque
from time import perf_counter
from typing import Any

import torch

from whynan.torch import _compat
from whynan.torch.copies import nbytes
from whynan.torch.noted import Noted
from whynan.torch.registry import Registry
from whynan.torch.snapshot import Snapshot

DENSE, SHARE = 0.02, 0.002  # of the run's time that copies may take: in the first steps, and later
DENSE_STEPS = 100
LATEST = 3  # snapshots that are kept beside the first
STEPS = 512  # that are kept
GIVEN_SHARE = 0.5  # of the limit, for what steps were given

QUARTER, MOST = 0.25, 1 << 30  # of the memory that is free, and bytes, where nobody says how many

VALUES = frozenset({"int", "float", "bool", "str", "bytes", "NoneType", "list", "tuple", "dict"})
Given = tuple[int, tuple[Any, ...], Any, Any]  # step, values of its place's names, random states, torch's


class History:
    """`limit`: bytes that it may hold. `steps`: what the last ones were given; `answers`: what iterators gave them. `next_at`: the step
    before which the next snapshot is due. `off`: why nothing is kept (any more)."""

    def __init__(self, limit: int, registry: Registry) -> None:
        self.limit, self._registry = limit, registry
        self.steps: deque[Given] = deque(maxlen=STEPS)
        self.answers: dict[int, list[Any]] = {}
        self.next_at = 0
        self.off: str | None = None
        self._first: dict[int, Snapshot] = {}
        self._latest: deque[Snapshot] = deque(maxlen=LATEST)
        self._names: dict[int, tuple[str, ...]] = {}

    def enter(self, attempt: Any, noted: Noted, step: int) -> None:
        """An attempt begins whose runs are steps or, before the first step, may be."""
        if self.off is not None:
            return
        if noted.policy.chosen:
            self.steps.append((step, tuple(map(attempt.live.get, self.names(attempt))), attempt.random, noted.random))
        if step >= self.next_at:
            _compat.without_modes(self.take, attempt, noted, step)

    def names(self, attempt: Any) -> tuple[str, ...]:
        """Of what a place is given, those that are kept of every step: data and numbers, and no models that it is given as well."""
        names = self._names.get(attempt.site_id)
        if names is None:
            live = attempt.live
            names = self._names[attempt.site_id] = tuple(name for name in attempt.site.given if _is_value(live.get(name)))
        return names

    def take(self, attempt: Any, noted: Noted, step: int) -> None:
        if not self._registry.owned and not self._registry.orphans:  # nobody knows yet what is trained
            return
        start = perf_counter()
        self.off = self.off or _unfit(attempt, self._registry)
        if self.off is not None:
            self.forget()
            return
        snapshot = Snapshot(step, attempt, noted, self._registry, start, like=next(iter(self._first.values()), None) if not step else None)
        if step:
            self._first = {key: one for key, one in self._first.items() if key == attempt.site_id}
            self._latest.append(snapshot)
        else:
            self._first[attempt.site_id] = snapshot
        self._bound(attempt, snapshot)
        self._plan(step, start)

    def _plan(self, step: int, start: float) -> None:
        """When the next is due, from what this one cost and how long steps take."""
        cost = perf_counter() - start
        before = self.snapshots[-2] if step and len(self.snapshots) > 1 else None
        if before is None:
            self.next_at = step + (step > 0)
            return
        seconds = (start - before.at) / max(step - before.step, 1)
        share = DENSE if step <= DENSE_STEPS else SHARE
        self.next_at = step + max(1, min(step, DENSE_STEPS), math.ceil(cost / (share * max(seconds, 1e-6))))

    def _bound(self, attempt: Any, snapshot: Snapshot) -> None:
        """Keep no more than the limit allows."""
        held = sum(one.nbytes for one in self.snapshots)
        if snapshot.nbytes > self.limit * (1 - GIVEN_SHARE):
            self.off = f"a copy of the training's state takes {snapshot.nbytes / 2**20:.0f} MiB, more than the history may hold"
            self.forget()
            return
        while held > self.limit * (1 - GIVEN_SHARE) and self._latest:
            held -= self._latest.popleft().nbytes
        given = self.steps[-1][1] if self.steps else tuple(map(attempt.live.get, self.names(attempt)))
        size = nbytes(given) + sum(entry.size for entry in next(reversed(self.answers.values()), ()))
        most = max(1, min(STEPS, int(self.limit * GIVEN_SHARE / max(size, 1))))
        if most != self.steps.maxlen:
            self.steps = deque(self.steps, maxlen=most)
        oldest = self.steps[0][0] if self.steps else snapshot.step
        first = {one.step for one in self._first.values()}
        self.answers = {step: answers for step, answers in self.answers.items() if step >= oldest or step in first}

    def answered(self, step: int, answers: list[Any]) -> None:
        if self.off is None:
            self.answers[step] = answers

    @property
    def snapshots(self) -> list[Snapshot]:
        """The oldest first."""
        return [*self._first.values(), *self._latest]

    def forget(self) -> None:
        self.steps.clear()
        self.answers.clear()
        self._first.clear()
        self._latest.clear()
        self.next_at = 1 << 62

    def since(self, snapshot: Snapshot, step: int) -> list[Given] | None:
        """What the steps after that of the snapshot were given, up to the one before `step`; None if some are not kept any more."""
        found = [given for given in self.steps if snapshot.step < given[0] < step]
        return found if [given[0] for given in found] == list(range(snapshot.step + 1, step)) else None


def kept(limit: int | None, registry: Registry) -> History | None:
    """`limit`: bytes; 0 for none at all, None for as many as are to spare."""
    spare = min(MOST, int(QUARTER * free_memory())) if limit is None else limit
    return History(spare, registry) if spare else None


def _unfit(attempt: Any, registry: Registry) -> str | None:
    """Batches on an accelerator would take its memory."""
    kinds = {p.device.type for p in registry.owned[:1] + registry.orphan_leaves()[:1]}
    if kinds - {"cpu"}:
        return f"steps are not kept to be made again: training runs on {', '.join(sorted(kinds))}"
    if not attempt.held:
        return "steps are not kept to be made again: what their body binds is not captured"
    return None


def _is_value(value: Any) -> bool:
    kind = type(value)
    return isinstance(value, torch.Tensor) or kind.__module__ == "numpy" or kind.__module__ == "builtins" and kind.__name__ in VALUES


def free_memory() -> int:
    """Bytes, as far as the system tells; 0 where it does not."""
    try:
        with open("/proc/meminfo") as info:
            return next(int(line.split()[1]) << 10 for line in info if line.startswith("MemAvailable"))
    except (OSError, StopIteration, ValueError):
        return 0
