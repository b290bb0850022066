"""What the autograd graph of a loss tells before its backward frees it: the labels, and the largest value kept in float16.

Saved tensors are read as they lie there; one that a hook of the program's has packed is left alone: unpacking runs the program's code.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import torch

from whynan.torch.gate import PLAIN

NEAR, FAR = 40, 400  # nodes within which labels, and values of float16, are looked for
TRIES = 3  # walks without a value of float16 after which there is none
LABELS = 512
CLASSES = frozenset({"NllLossBackward0"})
BINARY = frozenset({"BinaryCrossEntropyWithLogitsBackward0", "BinaryCrossEntropyBackward0"})


class GraphReader:
    """`labels`: how often each occurs (at most `LABELS` of a loss are counted); `largest`: magnitude among values in float16."""

    def __init__(self) -> None:
        self.labels: Counter[float] = Counter()
        self.largest: float | None = None
        self._names: dict[type, tuple[str, ...]] = {}
        self._left = TRIES

    def read(self, loss: torch.Tensor) -> None:
        self.labels, self.largest = Counter(), None
        found = 0.0
        for i, node in enumerate(_nodes(loss, FAR if self._left else NEAR)):
            kind = type(node).__name__
            if i < NEAR and (kind in CLASSES or kind in BINARY):
                self.labels.update(_counted(node, binary=kind in BINARY))
            if self._left:
                found = max(found, self._largest_half(node))
        if found:
            self.largest, self._left = found, TRIES
        elif self._left:
            self._left -= 1

    def _largest_half(self, node: Any) -> float:
        kind = type(node)
        names = self._names.get(kind)
        if names is None:
            names = self._names[kind] = tuple(name for name in dir(kind) if name.startswith("_raw_saved_"))
        halves = [t for name in names for t in _saved(node, name) if t.dtype is torch.float16 and t.numel()]
        return max((float(t.detach().abs().nan_to_num(0.0, 0.0, 0.0).max()) for t in halves), default=0.0)


def _nodes(loss: torch.Tensor, most: int) -> Iterator[Any]:
    """The nearest first."""
    found, seen = [loss.grad_fn] if loss.grad_fn is not None else [], {loss.grad_fn}
    for node in found:
        yield node
        if len(found) >= most:
            continue
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                found.append(following)


def _saved(node: Any, name: str) -> list[torch.Tensor]:
    try:
        raw = getattr(node, name, ())
    except RuntimeError:  # freed already
        return []
    if raw is None:
        return []
    kept = [one.data for one in (raw if isinstance(raw, (tuple, list)) else (raw,)) if getattr(one, "unpack_hook", True) is None]
    return [t for t in kept if type(t) in PLAIN and t.layout is torch.strided and not t.is_meta]


def _counted(node: Any, *, binary: bool) -> Counter[float]:
    """Of labels of which each row has one."""
    target = next(iter(_saved(node, "_raw_saved_target")), None)
    if target is None or target.dim() == 0 or target.numel() != target.shape[0]:
        return Counter()
    values = target.detach().reshape(-1)[:: max(1, target.numel() // LABELS)].tolist()
    if binary:
        return Counter(values) if {0.0, 1.0}.issuperset(values) else Counter()
    ignored = node._saved_ignore_index
    return Counter(value for value in values if value != ignored and value != ignored - 2**64)
