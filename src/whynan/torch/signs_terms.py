"""The terms of which a loss is the sum, as far as variables of the user's hold them: names, values and weights."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

import torch

MOST, DEEP = 16, 32
HELD = 32  # entries of a container that are looked at
Term = tuple[str, float, float]  # name, value as it stands in the sum, weight


def terms_of(loss: torch.Tensor, frame: FrameType | None) -> list[Term]:
    """At least two, or none."""
    if frame is None or loss.grad_fn is None or not _parts(loss.grad_fn):
        return []
    names = frame.f_locals
    held = {one.grad_fn: (name, one) for name, one in _numbers(names) if one is not loss}
    found = _terms(loss.grad_fn, 1.0, held, 0) or []
    if names is not frame.f_globals and sys.version_info < (3, 13):
        _forget(names)
    return found if 1 < len(found) <= MOST else []


def _forget(names: dict[str, Any]) -> None:
    """Before Python 3.13 the variables of a function are copied into a dictionary that the frame keeps, which would keep the graph alive.
    One that the program has asked for itself (`locals()`) stays."""
    if sys.getrefcount(names) <= 4:  # the frame, the caller's variable, our parameter and the argument of this call
        names.clear()


def _numbers(names: dict[str, Any]) -> Iterator[tuple[str, torch.Tensor]]:
    """The results of one number that variables hold, or lists and dictionaries in variables."""
    for name, value in list(names.items()):
        kind = type(value)
        if kind is torch.Tensor:
            entries: Any = ((name, value),)
        elif kind in (list, tuple) and len(value) <= HELD:
            entries = ((f"{name}[{i}]", one) for i, one in enumerate(value))
        elif kind is dict and len(value) <= HELD:
            entries = ((f"{name}[{key!r}]", one) for key, one in list(value.items()) if type(key) in (str, int))
        else:
            continue
        for own, one in entries:
            if type(one) is torch.Tensor and one.dim() == 0 and one.grad_fn is not None:
                yield own, one


def _terms(node: Any, weight: float, held: dict[Any, tuple[str, torch.Tensor]], depth: int) -> list[Term] | None:
    """Those below a node; itself where it has none that are all known; None where it is not known either."""
    found: list[Term] | None = []
    parts = _parts(node) if depth < DEEP else []
    for part, factor in parts:
        below = _terms(part, weight * factor, held, depth + 1)
        if below is None or found is None:
            found = None
            break
        found += below
    if parts and found is not None and (len(found) > 1 or node not in held):
        return found
    if node not in held:
        return None
    name, value = held[node]
    return [(name, weight * value.item(), weight)]


def _parts(node: Any) -> list[tuple[Any, float]]:
    """(node, factor) of each part, where the node adds some or multiplies one by a number."""
    kind = type(node).__name__
    following = [one for one, _ in node.next_functions if one is not None]
    if kind in ("AddBackward0", "SubBackward0"):
        factors = [1.0, (-1.0 if kind == "SubBackward0" else 1.0) * float(node._saved_alpha)]
        return [(one, factor) for (one, _), factor in zip(node.next_functions, factors, strict=False) if one is not None]
    if kind == "NegBackward0":
        return [(one, -1.0) for one in following]
    if kind in ("MulBackward0", "DivBackward0") and len(following) == 1:
        factor = _number(node)
        return [] if not factor else [(following[0], factor if kind == "MulBackward0" else 1 / factor)]
    if kind in ("SumBackward0", "MeanBackward0") and len(following) == 1 and type(following[0]).__name__ == "StackBackward0":
        parts = [one for one, _ in following[0].next_functions]
        share = 1.0 if kind == "SumBackward0" else 1 / max(len(parts), 1)
        return [(one, share) for one in parts if one is not None]
    return []


def _number(node: Any) -> float | None:
    """By which it multiplies or divides."""
    for name in ("_raw_saved_other", "_raw_saved_self"):
        saved = getattr(node, name, None)
        value = saved.data if saved is not None and saved.unpack_hook is None else None
        if isinstance(value, torch.Tensor) and value.numel() == 1 and not value.requires_grad:
            return float(value)
    return None
