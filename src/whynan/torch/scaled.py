"""The losses that scalers have scaled since their last update, and which of them a backward runs over."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from whynan.torch import _compat

MOST = 64  # kept where a script never updates its scaler
NEAR = 64  # nodes of the graph within which the scaled loss is looked for: a mean over micro-batches, a sum of losses


@dataclass(frozen=True, slots=True)
class Scaled:
    """`loss` before it was scaled; `scale` is the scaler's own tensor."""

    loss: torch.Tensor
    scale: torch.Tensor


class ScaledLosses:
    """A scaled loss is known by itself and, once the script has dropped it, by the number of the node that made it."""

    def __init__(self) -> None:
        self._tensors: dict[int, tuple[weakref.ref[torch.Tensor], Scaled]] = {}
        self._nodes: dict[int, Scaled] = {}

    def clear(self) -> None:
        self._tensors.clear()
        self._nodes.clear()

    def note(self, losses: Any, scaled: Any, scale: torch.Tensor) -> None:
        """What a scaler was given and what it made of it: tensors, or lists of them."""
        if isinstance(losses, (list, tuple)):
            for loss, one in zip(losses, scaled, strict=False):
                self.note(loss, one, scale)
        elif isinstance(losses, torch.Tensor) and isinstance(scaled, torch.Tensor):
            if len(self._tensors) >= MOST:
                self.clear()
            noted = Scaled(losses.detach(), scale)
            self._tensors[id(scaled)] = weakref.ref(scaled), noted
            if scaled.grad_fn is not None:
                self._nodes[_compat.node_number(scaled.grad_fn)] = noted

    def of(self, root: torch.Tensor) -> Scaled | None:
        """The one that `root` is itself."""
        known = self._tensors.get(id(root))
        return known[1] if known is not None and known[0]() is root else None

    def below(self, roots: Sequence[torch.Tensor]) -> list[Scaled]:
        """Those that `roots` are or were made of; none where a root was made of none."""
        found = [[one] if (one := self.of(root)) is not None else self._near(root) for root in roots]
        return list(itertools.chain.from_iterable(found)) if all(found) else []

    def _near(self, root: torch.Tensor) -> list[Scaled]:
        found, nodes, seen = [], [root.grad_fn] if self._nodes else [], 0
        while seen < min(len(nodes), NEAR):
            node = nodes[seen]
            seen += 1
            known = self._nodes.get(_compat.node_number(node)) if node is not None else None
            if known is not None:
                found.append(known)
            elif node is not None:
                nodes += [following for following, _ in node.next_functions]
        return found
