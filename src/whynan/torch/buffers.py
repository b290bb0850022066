"""The buffers of all modules: looked at in every step, and copied before it."""

from __future__ import annotations

import weakref
from operator import is_

import torch
from torch import nn

from whynan.torch.flat import Flat, is_flat
from whynan.torch.gate import Gate, finite

SMALL = 1 << 14  # elements; larger ones are not copied together to be looked at


class Buffers:
    """`all` there are, of every dtype; `watched`: those of floating point that were finite when first seen, of which a NaN is one that
    the run has made. Both as `refresh` found them. `some`: there have ever been any."""

    def __init__(self) -> None:
        self._gate = Gate()
        self.some = False
        self._modules: weakref.WeakKeyDictionary[nn.Module, dict[str, bool]] = weakref.WeakKeyDictionary()
        self.all: list[torch.Tensor] = []
        self.watched: list[torch.Tensor] = []
        self._count = -1
        self._places: tuple[list[dict[str, torch.Tensor | None]], list[str]] = [], []
        self._found: list[torch.Tensor | None] = []
        self._small = Flat(())
        self._large: list[torch.Tensor] = []

    def met(self, module: nn.Module) -> None:
        """It has buffers, or is about to; or one of them is assigned anew."""
        self._modules.setdefault(module, {})
        self._count, self.some = -1, True

    def refresh(self) -> None:
        """Modules come and go, and a script may assign a buffer anew."""
        if len(self._modules) != self._count or not all(map(is_, map(dict.get, *self._places), self._found)):
            self._look_up()
        elif not self._small.stands():
            self._arrange()

    def bad(self) -> list[torch.Tensor]:
        """Those of the watched that are not finite."""
        self.refresh()
        if not self._gate.suspicious(self._small.joined() + self._large):
            return []
        return [b for b in self.watched if not finite(b)]

    def _look_up(self) -> None:
        modules = list(self._modules.items())
        self._count = len(modules)
        found = [(module._buffers, name, buffer, seen) for module, seen in modules for name, buffer in module._buffers.items()]
        self._places = [held for held, *_ in found], [name for _, name, *_ in found]
        self._found = [buffer for _, _, buffer, _ in found]
        self.all = [b for b in self._found if b is not None]
        self.watched = [b for _, name, b, seen in found if b is not None and b.is_floating_point() and _counts(seen, name, b)]
        self._arrange()

    def _arrange(self) -> None:
        small = [b for b in self.watched if b.numel() <= SMALL and is_flat(b)]
        ids = set(map(id, small))
        self._small, self._large = Flat(small), [b for b in self.watched if id(b) not in ids]


def _counts(seen: dict[str, bool], name: str, buffer: torch.Tensor) -> bool:
    if name not in seen:
        seen[name] = finite(buffer)
    return seen[name]
