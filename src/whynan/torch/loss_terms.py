"""The terms of a loss in its autograd graph."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.autograd.graph import GradientEdge

from whynan.torch import _compat
from whynan.torch.whereabouts import Where

Path = tuple[int, ...]  # which input of each node leads to the next, from that of the loss on
WALKED = 200  # nodes: the terms stand near the loss


def terms(loss: torch.Tensor, operations: Sequence[int], makers: Mapping[int, Where]) -> dict[int, tuple[GradientEdge, Path]]:
    """By the recorded operation that made each: its edge in the graph and the way to it. `makers`: of the nodes, by their numbers."""
    wanted, found = set(operations), dict[int, tuple[GradientEdge, Path]]()
    pending, walked = deque([(loss.grad_fn, loss.output_nr, Path())]), 0
    while pending and walked < WALKED and len(found) < len(wanted):
        node, output, path = pending.popleft()
        walked += 1
        if node is None:
            continue
        maker = makers.get(_compat.node_number(node))
        if maker is not None and maker.forward in wanted:
            found.setdefault(maker.forward, (GradientEdge(node, output), path))
            continue
        pending.extend((inner, number, (*path, i)) for i, (inner, number) in enumerate(node.next_functions))
    return found


def follow(loss: torch.Tensor, path: Path) -> Any | None:
    """The node at the end of the way, in the graph of another loss that was made alike."""
    node: Any = loss.grad_fn
    for i in path:
        if node is None or i >= len(node.next_functions):
            return None
        node = node.next_functions[i][0]
    return node
