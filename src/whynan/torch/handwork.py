"""Updates that no optimizer's `step` makes: hand-written ones and those of optimizers with steps of their own names (SAM).

They show between two backwards: a leaf has changed and no step was seen. A place that does so needs its parameters for a replay as they
were at its first backward, so they are copied there.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field

import torch

from whynan.torch.copies import TensorCopy
from whynan.torch.noted import Noted

LOOKS = 6  # comparisons without a change after which a place is taken for an ordinary one


@dataclass(slots=True)
class Handwork:
    """One place. `by_hand`: None until it is known; `stepped`: an optimizer's step was seen since the last backward."""

    by_hand: bool | None = None
    stepped: bool = False
    copy: TensorCopy = field(default_factory=TensorCopy)
    _leaf: weakref.ref[torch.Tensor] | None = None
    _print: tuple[int, float] = (0, 0.0)
    _looks: int = 0

    def before_backward(self) -> None:
        leaf = self._leaf() if self._leaf is not None and self.by_hand is None else None
        stepped, self.stepped = self.stepped, False
        if leaf is None or stepped:
            return
        if _print_of(leaf) != self._print:
            self.by_hand = True
        else:
            self._looks += 1
            if self._looks >= LOOKS:
                self.by_hand = False

    def after_backward(self, leaves: list[torch.Tensor], noted: Noted) -> bool:
        """Copies the leaves if they may be needed; tells whether that is known to be so."""
        if self.by_hand is False or not leaves:
            return False
        if self.by_hand is None:
            smallest = min(leaves, key=lambda p: p.numel())
            self._leaf, self._print = weakref.ref(smallest), _print_of(smallest)
        if noted.leaves is None:
            self.copy.take(leaves)
            noted.leaves = self.copy
        return self.by_hand is True

    def forget(self) -> None:
        """Between the steps of a place that is not known to write by hand no copy is held."""
        self.copy = TensorCopy()

    def ordinary(self) -> None:
        """Steps are seen for everything that gets a gradient here, one after every backward."""
        self._looks += 1
        if self.by_hand is None and self._looks >= LOOKS:
            self.by_hand = False


def _print_of(leaf: torch.Tensor) -> tuple[int, float]:
    """Changes with the content, also where `.data` was written, which does not count as a version."""
    value = float(leaf.detach().double().sum()) if leaf.layout is torch.strided and not leaf.is_complex() else 0.0
    return leaf._version, value
