"""What is copied at which place: learned from what a place has done so far, so that a plain loop copies nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

import torch

from whynan.core.draws import Draws
from whynan.torch import _compat
from whynan.torch.copies import TensorCopy
from whynan.torch.handwork import Handwork
from whynan.torch.noted import Noted

LEARNING_RUNS = 2
HALF = (torch.float16, torch.bfloat16)
BOUNDED = frozenset({"SGD", "Adam", "AdamW"})
ORDINARY = 1e12  # magnitude of a loss that gives no gradients near the limits of float32


def same_state(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Of a generator. A mode of the program's must not see us look."""
    return not (_compat.dispatch_modes() or _compat.function_modes()) and torch.equal(one, other)


@dataclass(slots=True)
class Policy:
    """`overwrites`: after an optimizer's step the same attempt ran another backward, so its first parameters are needed for a replay;
    `fresh_leaves`: its graphs end in leaves that no optimizer holds; `updates`: an optimizer has stepped inside it; `alike`: how many
    steps in a row went the same way."""

    runs: int = 0
    settled: bool = False
    chosen: int = 0
    overwrites: bool = False
    buffers: TensorCopy = field(default_factory=TensorCopy)
    handwork: Handwork = field(default_factory=Handwork)
    draws: Draws = field(default_factory=lambda: Draws(_compat.random_state, same_state))
    fresh_leaves: bool = False
    updates: bool = False
    alike: int = 0

    @property
    def may_be_replayed(self) -> bool:
        return self.chosen > 0 or self.updates

    def close(self, noted: Noted) -> None:
        self.runs += 1
        self.settled = self.runs >= LEARNING_RUNS
        noted.written = ()


class Policies:
    def __init__(self) -> None:
        self.known: dict[int, Policy] = {}
        self._said: set[str] = set()

    def of(self, attempt: Any) -> Policy:
        policy = self.known.get(attempt.site_id)
        if policy is None:
            policy = self.known[attempt.site_id] = Policy()
        return policy

    def replayed_for_exception(self, attempt: Any, stack: list[Any]) -> bool:
        """Whether `attempt`, just left by an exception, is the step that it ended: one that backwards have chosen before, else the
        innermost loop's body, else the outermost function."""
        if self.of(attempt).chosen:
            return True
        if any(self.of(a).chosen for a in stack):
            return False
        return attempt.site.kind == "loop" or not stack

    def say_once(self, limits: list[str], text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            limits.append(text)


def parameters_of(optimizer: Any) -> list[torch.Tensor]:
    return [p for group in optimizer.param_groups for p in group["params"]]


class Character:
    """What is known of one optimizer and changes only with its parameter groups. `tame`: the numbers of its groups, as `numbers_of` gives
    them, if they are."""

    def __init__(self, optimizer: Any) -> None:
        self.parameters = parameters_of(optimizer)
        self.ids = list(map(id, self.parameters))
        own = type(optimizer).__module__.startswith("torch.")
        plain = all(p.dtype in (torch.float32, torch.float64) for p in self.parameters)
        self.risky = not own or any(p.dtype in HALF for p in self.parameters)
        keys = [k for k in ("lr", "eps", "weight_decay", "momentum") if all(k in group for group in optimizer.param_groups)]
        self.numbers_of = itemgetter(*keys) if keys else id
        self.bounded = own and plain and type(optimizer).__name__ in BOUNDED
        self.tame: list[Any] | None = None

    def risky_now(self, optimizer: Any) -> bool:
        """Whether the next step is one of those known to make non-finite values out of finite gradients: half precision, no eps,
        numbers that are not finite, and whatever is not torch's own."""
        return self.risky or any(g.get("eps", 1.0) == 0 or not _all_finite_numbers(g) for g in optimizer.param_groups)

    def is_tame(self, optimizer: Any) -> bool:
        """Whether finite gradients of ordinary size (those of an ordinary loss) give finite parameters, by the update's formula. (In
        float32 with eps > 0 the update of Adam is at most lr / eps times a gradient, that of SGD lr times one.)"""
        if not self.bounded:
            return False
        numbers = list(map(self.numbers_of, optimizer.param_groups))
        if numbers != self.tame:
            self.tame = numbers if all(map(_is_tame, optimizer.param_groups)) else None
        return self.tame is not None


def _is_tame(group: dict[str, Any]) -> bool:
    rate = group.get("lr")
    in_bounds = isinstance(rate, (int, float)) and 0 <= rate < 1e3 and group.get("eps", 1.0) >= 1e-16
    return in_bounds and _all_finite_numbers(group)


def _all_finite_numbers(group: dict[str, Any]) -> bool:
    for key in ("lr", "eps", "weight_decay", "momentum"):
        value = group.get(key)
        if isinstance(value, float) and not -1e30 < value < 1e30:
            return False
    return True
