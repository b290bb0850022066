"""Which attempt a replay of a backward would choose, and what therefore counts as a step.

The smallest sequence number of the graph below the loss says where its forward began: the innermost attempt that had started by then.
Walking the graph costs, so the answer is learned for every place and used again; at a hit the graph is always walked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any

import torch

from whynan.torch import _compat

LEARNING_RUNS = 3
MOST_RUNS = 12  # after so many different answers the last one stands
NEVER = 1 << 62
site_of = attrgetter("site_id")


def smallest_number(roots: Iterable[torch.Tensor]) -> int:
    """The smallest sequence number of the graph below `roots`."""
    pending = [r.grad_fn for r in roots if r.grad_fn is not None]
    seen: set[Any] = set()
    smallest = NEVER
    while pending:
        node = pending.pop()
        if node in seen:
            continue
        seen.add(node)
        if "AccumulateGrad" not in node.name():
            smallest = min(smallest, _compat.node_number(node))
        pending.extend(n for n, _ in node.next_functions if n is not None)
    return smallest


def choose(stack: Sequence[Any], roots: Sequence[torch.Tensor]) -> Any | None:
    """The innermost attempt of `stack` (outermost first) that began before the graph below `roots`; None if none did."""
    if not stack:
        return None
    number = smallest_number(roots)
    return next((a for a in reversed(stack) if a.noted is not None and a.noted.sequence <= number), None)


class Steps:
    """Counts the steps: runs of the attempts that a replay would choose; attempts inside one do not count."""

    def __init__(self) -> None:
        self.done = 0
        self.last: Any = None
        self._levels: dict[tuple[int, int], list[int]] = {}
        self._sites: set[int] = set()
        self._settled: dict[tuple[int, int], int] = {}
        self._plain: dict[tuple[int, ...], tuple[int, int]] = {}

    def count(self, stack: Sequence[Any], roots: Sequence[torch.Tensor]) -> Any | None:
        """Count the step of a backward over `roots`; returns the attempt that it belongs to."""
        key = tuple(map(site_of, stack))
        level, sites = self._plain.get(key, (0, -1))
        if sites != len(self._sites):
            return self._count_afresh(key, stack, roots)
        chosen = self.last = stack[level]
        if not chosen.noted.counted:
            chosen.noted.counted = True
            self.done = chosen.noted.steps_before + 1
        return chosen

    def _count_afresh(self, key: tuple[int, ...], stack: Sequence[Any], roots: Sequence[torch.Tensor]) -> Any | None:
        """The way is remembered for stacks whose choice is settled and of which no other place is a step, until there are more such
        places."""
        chosen = self.last = self._learned(stack, roots)
        if chosen is None:
            self.done += 1
            return None
        self._sites.add(chosen.site_id)
        owner = self._owner(stack, chosen)
        if not self._inside_counted(stack, owner):
            owner.noted.counted = True
            self.done = owner.noted.steps_before + 1
        if key and self._settled.get((key[-1], len(key))) is not None and sum(site in self._sites for site in key) == 1:
            self._plain[key] = stack.index(chosen), len(self._sites)
        return chosen

    def _inside_counted(self, stack: Sequence[Any], chosen: Any) -> bool:
        for attempt in stack:
            if attempt is chosen:
                return bool(chosen.noted.counted)
            if attempt.noted is not None and attempt.noted.counted and attempt.site_id != chosen.site_id:
                return True
        return False

    def index_of(self, chosen: Any | None, stack: Sequence[Any]) -> int:
        """The number of the step, from 0, to which `chosen` belongs, counted already or not."""
        if chosen is None:
            return self.done
        return int(self._owner(stack, chosen).noted.steps_before)

    def _owner(self, stack: Sequence[Any], chosen: Any) -> Any:
        """The attempt that is the step: of those around `chosen` the outermost whose place a backward has chosen before."""
        around = stack[: stack.index(chosen) + 1] if chosen in stack else [chosen]
        own = chosen.site_id  # of a body that calls itself every level is a step
        others = (a for a in around if a.noted is not None and a.site_id != own)
        return next((a for a in others if a.noted.counted or a.site_id in self._sites), chosen)

    def _learned(self, stack: Sequence[Any], roots: Sequence[torch.Tensor]) -> Any | None:
        """The choice as a level counted from the innermost attempt; walked for the first runs of every place."""
        if not stack:
            return None
        key = (stack[-1].site_id, len(stack))
        level = self._settled.get(key)
        if level is not None:
            return stack[-1 - level] if level >= 0 else None
        chosen = choose(stack, roots)
        seen = self._levels.setdefault(key, [])
        seen.append(len(stack) - 1 - stack.index(chosen) if chosen is not None else -1)
        if len(seen) >= LEARNING_RUNS and (len(set(seen)) == 1 or len(seen) >= MOST_RUNS):
            self._settled[key] = seen[-1]
        return chosen
