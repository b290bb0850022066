"""What is being trained: optimizers, leaves without an optimizer, modules with buffers, gradient scalers."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import nn

from whynan.core.places import site_of, user_frame
from whynan.core.records import OptimizerState, Site
from whynan.torch.buffers import Buffers
from whynan.torch.gate import finite
from whynan.torch.guard import UNGUARDED, Guard
from whynan.torch.origins import Origins
from whynan.torch.policy import Character, parameters_of

WALKED_NODES = 20_000


class Registry:
    """`changed` is called whenever something new is met, or something is no longer as it was."""

    def __init__(self, guard: Guard = UNGUARDED, changed: Callable[[], None] = lambda: None) -> None:
        self._optimizers: dict[int, tuple[weakref.ref[torch.optim.Optimizer], Site | None]] = {}
        self.buffers = Buffers()
        self.scalers: weakref.WeakSet[Any] = weakref.WeakSet()
        self.scaled = False
        self.orphans: dict[int, weakref.ref[torch.Tensor]] = {}
        self._guard, self._changed = guard, changed
        self.origins = Origins(guard)
        self._characters: dict[int, Character] = {}
        self._owned: list[torch.Tensor] | None = None
        self._owned_ids: set[int] = set()
        self._first_seen: dict[int, tuple[weakref.ref[torch.Tensor], bool]] = {}

    def met_module(self, module: nn.Module) -> None:
        """It has buffers. (A script that assigns one in every step says so in every step.)"""
        self.buffers.met(module)

    def met_scaler(self, scaler: Any) -> None:
        self.scalers.add(scaler)
        self.scaled = True
        self._changed()

    def made_optimizer(self, optimizer: torch.optim.Optimizer) -> None:
        frame = user_frame(sys._getframe(1))
        self._optimizers[id(optimizer)] = weakref.ref(optimizer), site_of(frame) if frame is not None else None
        self._characters.pop(id(optimizer), None)
        self._new_optimizer(optimizer)

    def met_optimizer(self, optimizer: torch.optim.Optimizer) -> None:
        known = self._optimizers.get(id(optimizer))
        if known is None or known[0]() is not optimizer:
            self._optimizers[id(optimizer)] = weakref.ref(optimizer), None
            self._new_optimizer(optimizer)

    def _new_optimizer(self, optimizer: torch.optim.Optimizer) -> None:
        """What is remembered of its parameters must not keep them alive once it is gone."""
        self._owned = None
        self._changed()
        weakref.finalize(optimizer, self._guard, "forgetting an optimizer", self.forget_groups).atexit = False

    @property
    def optimizers(self) -> list[torch.optim.Optimizer]:
        """Those that are alive. (By their ids: a class of the user's may compare or hash them as it likes.)"""
        return [o for reference, _ in list(self._optimizers.values()) if (o := reference()) is not None]

    def forget_groups(self) -> None:
        """Parameter groups may have changed."""
        self._owned = None
        self._characters.clear()
        self._changed()

    def character(self, optimizer: torch.optim.Optimizer) -> Character:
        known = self._characters.get(id(optimizer))
        if known is None or list(map(id, parameters_of(optimizer))) != known.ids:  # a script may exchange a parameter in its group
            known = self._characters[id(optimizer)] = Character(optimizer)
            self._owned = None
            self._changed()
            self.met_optimizer(optimizer)
            self._note_bad_from_start(known.parameters)
        return known

    def _note_bad_from_start(self, parameters: list[torch.Tensor]) -> None:
        """A bias of -inf that switches a class off, rows that are never looked up: harmful only where they reach the loss."""
        for parameter in parameters:
            if id(parameter) not in self._first_seen or self._first_seen[id(parameter)][0]() is not parameter:
                self._first_seen[id(parameter)] = weakref.ref(parameter), finite(parameter)

    def started_finite(self, parameter: torch.Tensor) -> bool:
        """Whether it was finite before its first update."""
        known = self._first_seen.get(id(parameter))
        return known is None or known[0]() is not parameter or known[1]

    @property
    def owned(self) -> list[torch.Tensor]:
        """The parameters of all optimizers."""
        if self._owned is None:
            found = {id(p): p for o in self.optimizers for group in o.param_groups for p in group["params"]}
            self._owned, self._owned_ids = list(found.values()), set(found)
        return self._owned

    def leaves(self) -> list[torch.Tensor]:
        """Everything that collects gradients, as far as it is known."""
        owned = self._owned if self._owned is not None else self.owned
        return [*owned, *self.orphan_leaves()] if self.orphans else owned

    def leaves_below(self, roots: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Those that the backward of `roots` reached. Where several threads train, another one may free its gradients at any moment."""
        return list({id(leaf): leaf for leaf in _leaves_below(roots)}.values())

    def orphan_leaves(self) -> list[torch.Tensor]:
        found = []
        for key, reference in list(self.orphans.items()):
            tensor = reference()
            if tensor is None or key in self._owned_ids:
                del self.orphans[key]
            else:
                found.append(tensor)
        return found

    def learn_leaves(self, roots: Sequence[torch.Tensor]) -> bool:
        """Find the leaves below `roots` that no optimizer holds (hand-written updates, inputs that need a gradient)."""
        found = False
        self.owned  # noqa: B018  refreshes the ids
        for leaf in _leaves_below(roots):
            if id(leaf) not in self._owned_ids and isinstance(leaf, nn.Parameter | torch.Tensor):
                self._met_orphan(leaf)
                found = True
        return found

    def owns(self, tensor: torch.Tensor) -> bool:
        self.owned  # noqa: B018  refreshes the ids
        return id(tensor) in self._owned_ids

    def note_leaves(self, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
        """Those of `autograd.grad`'s inputs that are leaves; they are watched from now on."""
        self.owned  # noqa: B018  refreshes the ids
        leaves = [t for t in inputs if t.is_leaf and t.requires_grad]
        for leaf in leaves:
            if id(leaf) not in self._owned_ids:
                self._met_orphan(leaf)
        return leaves

    def _met_orphan(self, leaf: torch.Tensor) -> None:
        self.orphans[id(leaf)] = weakref.ref(leaf)
        self._changed()
        self._note_bad_from_start([leaf])

    def optimizer_states(self) -> tuple[OptimizerState, ...]:
        return tuple(_described(o, self._optimizers[id(o)][1]) for o in self.optimizers)


def _leaves_below(roots: Sequence[torch.Tensor]) -> Iterator[torch.Tensor]:
    pending = [r.grad_fn for r in roots if r.grad_fn is not None]
    seen: set[Any] = set()
    while pending and len(seen) < WALKED_NODES:
        node = pending.pop()
        if node in seen:
            continue
        seen.add(node)
        leaf = getattr(node, "variable", None) if "AccumulateGrad" in node.name() else None
        if leaf is not None:
            yield leaf
        pending.extend(n for n, _ in node.next_functions if n is not None)


def _described(optimizer: torch.optim.Optimizer, site: Site | None) -> OptimizerState:
    groups = tuple(
        {k: _number(v) for k, v in group.items() if k != "params" and _number(v) is not None} for group in optimizer.param_groups
    )
    dtypes = {str(p.dtype).removeprefix("torch.") for group in optimizer.param_groups for p in group["params"]}
    return OptimizerState(type(optimizer).__name__, groups, site, tuple(sorted(dtypes)))


def _number(value: Any) -> object:
    if isinstance(value, torch.Tensor):
        return float(value) if value.numel() == 1 else None
    if isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (tuple, list)) and all(isinstance(v, (int, float)) for v in value):
        return tuple(value)
    return None
