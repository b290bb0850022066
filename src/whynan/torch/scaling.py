"""Loss scaling: what belongs to the scale is no incident.

A gradient that overflows because the scale is too high is healthy: the step is skipped and the scale falls. Whether it is the scale's
fault is tried with a scale of 1; a loss that is not finite before it is scaled never is. Where it can't be tried, many skips in a row
count, but only once the scale has fallen to 1: a high scale takes that many to fall.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch

from whynan.torch.gate import finite
from whynan.torch.guard import UNGUARDED, Guard
from whynan.torch.scaled import ScaledLosses

SKIPS = 20  # steps in a row without an update, skipped by a scaler or left out by the script, that count as an incident


class Scaling:
    """Follows every GradScaler. `tried` tells that the overflow of this step was already found to be the scale's."""

    def __init__(
        self, met: Callable[[Any], None], guard: Guard = UNGUARDED, stepped: Callable[[Any, bool], None] = lambda scaler, skipped: None
    ) -> None:
        """`stepped(scaler, skipped)` is called after each step of a scaler."""
        self._met, self._guard, self._told = met, guard, stepped
        self.force_one = False
        self._losses = ScaledLosses()
        self._undo: list[Callable[[], None]] = []
        self.skipped = 0
        self.tried = False
        self._inside_step = False
        self._stepped = False

    def install(self) -> None:
        kind = torch.amp.GradScaler
        self._patch(kind, "scale", self._watch_scale)
        self._patch(kind, "step", self._watch_step)
        self._patch(kind, "update", self._watch_update)

    def uninstall(self) -> None:
        while self._undo:
            self._undo.pop()()

    def _patch(self, owner: Any, name: str, wrap: Callable[[Any], Any]) -> None:
        original = owner.__dict__[name]
        setattr(owner, name, functools.wraps(original)(wrap(original)))
        self._undo.append(lambda: setattr(owner, name, original))

    def _watch_scale(self, original: Any) -> Any:
        def scale(scaler: Any, outputs: Any) -> Any:
            scaled = original(scaler, outputs)
            if self.force_one and scaler.is_enabled():  # the scale is made at the first call only
                scaler._scale = torch.ones_like(scaler._scale)
                scaled = original(scaler, outputs)
            self._guard("following a scaler", self._note, scaler, outputs, scaled)
            return scaled

        return scale

    def _note(self, scaler: Any, outputs: Any, scaled: Any) -> None:
        self._met(scaler)
        if scaler.is_enabled():
            self._losses.note(outputs, scaled, scaler._scale)

    def _watch_step(self, original: Any) -> Any:
        def step(scaler: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            self._inside_step, self._stepped = True, False
            try:
                result = original(scaler, optimizer, *args, **kwargs)
            finally:
                self._inside_step = False
                self.skipped = 0 if self._stepped else self.skipped + 1
            self._guard("following a scaler", self._told, scaler, not self._stepped)
            return result

        return step

    def _watch_update(self, original: Any) -> Any:
        def update(scaler: Any, *args: Any, **kwargs: Any) -> Any:
            self.tried = False
            self._losses.clear()
            return original(scaler, *args, **kwargs)

        return update

    def optimizer_stepped(self, optimizer: Any) -> None:
        """Called before every optimizer step; a fused optimizer skips inside its own step."""
        found = getattr(optimizer, "found_inf", None)
        self._stepped = not (isinstance(found, torch.Tensor) and bool(found.item()))

    def unscaled(self, root: torch.Tensor) -> torch.Tensor | None:
        """The loss of which `root` is the scaled one."""
        known = self._losses.of(root)
        return known.loss if known is not None else None

    @property
    def trial_due(self) -> bool:
        """A trial costs about a step: one is made after 0, 1, 2, 4, 8 ... skipped steps in a row."""
        return self.skipped & (self.skipped - 1) == 0

    def is_scaled(self, roots: Sequence[torch.Tensor]) -> bool:
        """Whether these are, or were made of, scaled losses that were finite before."""
        below = self._losses.below(roots)
        return bool(below) and all(finite(one.loss) for one in below)

    def exhausted(self, roots: Sequence[torch.Tensor]) -> bool:
        """Whether lowering the scale has not helped: many steps in a row were skipped, and these were scaled by 1 or less."""
        return self.skipped >= SKIPS and all(one.scale.item() <= 1.0 for one in self._losses.below(roots))


def scales(scalers: Any) -> list[tuple[Any, torch.Tensor]]:
    return [(s, s._scale) for s in list(scalers) if getattr(s, "_scale", None) is not None]


def put_back(noted: Sequence[tuple[Any, torch.Tensor]], *, one: bool) -> None:
    """Set every scaler to the scale it had on entry, or to 1."""
    for scaler, scale in noted:
        scaler._per_optimizer_states.clear()
        with torch.no_grad():
            scaler._scale = torch.full_like(scaler._scale, 1.0) if one else scale.clone()
