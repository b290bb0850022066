"""Where the code is while an operation runs: the user's line, the innermost module, forward, backward or optimizer."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import torch
from torch import nn

from whynan.core.places import site_of, user_frame
from whynan.core.records import Direction, Site
from whynan.torch import _compat


@dataclass(frozen=True, slots=True)
class Where:
    """`forward` is the index of the operation that made the running autograd node; `by_hand`: the user's own line runs in that node."""

    site: Site | None
    module: nn.Module | None
    direction: Direction
    node: str | None = None
    forward: int | None = None
    by_hand: bool = False


@dataclass(slots=True)
class Whereabouts:
    """The state that hooks keep up to date while a trace is on.

    `engine_frames` are the user's frames that called the autograd engine, outermost first; `makers` tells by an autograd node's sequence
    number where it was made and by which recorded operation.
    """

    modules: list[nn.Module] = field(default_factory=list)
    engine_frames: list[FrameType | None] = field(default_factory=list)
    optimizer_depth: int = 0
    makers: dict[int, Where] = field(default_factory=dict)
    _handles: list[Any] = field(default_factory=list)

    def __enter__(self) -> Whereabouts:
        hooks = nn.modules.module
        self._handles = [
            hooks.register_module_forward_pre_hook(self._entered),
            hooks.register_module_forward_hook(self._left, always_call=True),
        ]
        return self

    def __exit__(self, *_: object) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        self.modules.clear()

    def now(self, depth: int) -> Where:
        """`depth`: how many frames of ours to pass over."""
        frame = user_frame(sys._getframe(depth))
        node = _compat.current_node()
        module = self.modules[-1] if self.modules else None
        if node is None:
            direction: Direction = "optimizer" if self.optimizer_depth and not torch.is_grad_enabled() else "forward"
            return Where(site_of(frame) if frame else None, module, direction)
        return self._in_backward(node, frame, module)

    def made(self, where: Where, index: int | None) -> None:
        """Note where the autograd node of the operation that is about to run was made (nodes take their number before the kernel)."""
        self.makers.setdefault(_compat.sequence_number() - 1, Where(where.site, where.module, where.direction, where.node, index))

    def _in_backward(self, node: Any, frame: FrameType | None, module: nn.Module | None) -> Where:
        maker = self.makers.get(_compat.node_number(node))
        engine_frame = self.engine_frames[-1] if self.engine_frames else None
        if frame is not None and frame is not engine_frame:
            direction: Direction = "forward" if torch.is_grad_enabled() and _recomputed(frame) else "backward"
            module = module or (maker.module if maker else None)
            backward, forward = direction == "backward", maker.forward if maker else None
            by_hand = backward and engine_frame is not None
            return Where(site_of(frame), module, direction, node.name() if backward else None, forward, by_hand)
        if maker is None:
            return Where(site_of(frame) if frame else None, None, "backward", node.name())
        return Where(maker.site, maker.module, "backward", node.name(), maker.forward)

    def _entered(self, module: nn.Module, _: Any) -> None:
        self.modules.append(module)

    def _left(self, module: nn.Module, _args: Any, _result: Any) -> None:
        while self.modules and self.modules.pop() is not module:
            pass


def _recomputed(frame: FrameType | None) -> bool:
    """Whether activation checkpointing runs the forward again here."""
    while frame is not None:
        if frame.f_code.co_filename.endswith(("torch/utils/checkpoint.py", "torch\\utils\\checkpoint.py")):
            return True
        frame = frame.f_back
    return False
