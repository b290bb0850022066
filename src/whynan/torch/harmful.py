"""Which bad losses and gradients are harmful: not those that belong to the loss scale, nor those of what a step throws away."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from whynan.torch import _compat
from whynan.torch.choice import choose
from whynan.torch.gate import finite
from whynan.torch.hits import Hits
from whynan.torch.incidents import Found
from whynan.torch.replay import tensors_in
from whynan.torch.run_state import RunState
from whynan.torch.trial import overflows_at_scale_one

Pairs = list[tuple[torch.Tensor, torch.Tensor]]  # inputs of `autograd.grad` and their gradients


class Harmful:
    """Everywhere `roots` are what the backward ran over."""

    def __init__(self, state: RunState, hits: Hits) -> None:
        self._state, self._hits = state, hits

    def loss(self, roots: Sequence[torch.Tensor], bad: Sequence[torch.Tensor]) -> None:
        scaling = self._state.scaling
        if bad and not scaling.is_scaled(bad):
            losses = [scaling.unscaled(r) for r in bad]
            self._hits.harm("loss", bad, roots, values=[v if v is not None else r for v, r in zip(losses, bad, strict=True)])

    def gradient(self, roots: Sequence[torch.Tensor], bad: list[torch.Tensor], values: list[Any]) -> None:
        """`values` are the gradients of the leaves `bad`."""
        if bad and not self._belongs_to_scale(roots, bad):
            self._hits.harm("gradient", bad, roots, values=values)

    def given(self, roots: Sequence[torch.Tensor], pairs: Pairs, *, create_graph: bool) -> None:
        """What `autograd.grad` gave. Gradients of no parameter that have a graph of their own come back in another loss; the functions of
        `torch.func` always make one. A script that looks at its losses itself may leave out one that is not finite and yet gives finite
        gradients."""
        waits = create_graph and not any(_compat.is_wrapped(r) for _, r in pairs)
        pairs = [(i, r) for i, r in pairs if not (self._is_probe(i) or waits and not self._is_parameter(i))]
        spoiled = self._state.gate.suspicious([r for _, r in pairs])
        if spoiled or pairs and not self._state.runtime.sites.checks_finite:
            self.loss(roots, [r for r in roots if not finite(r)])
        bad = [(i, r) for i, r in pairs if not finite(r)] if spoiled else []
        self.gradient(roots, [i for i, _ in bad], [r for _, r in bad])

    def _is_probe(self, tensor: torch.Tensor) -> bool:
        """A gradient taken of an input (saliency, adversarial noise): if it matters it comes back in a loss or in a `.grad`."""
        if not tensor.is_leaf or self._is_parameter(tensor):
            return False
        chosen = self._state.counter.last
        return chosen is not None and any(tensor.shape == given.shape for given in tensors_in(chosen.batch))

    def _is_parameter(self, tensor: torch.Tensor) -> bool:
        return isinstance(tensor, torch.nn.Parameter) or self._state.registry.owns(tensor)

    def _belongs_to_scale(self, roots: Sequence[torch.Tensor], bad: list[torch.Tensor]) -> bool:
        """Whether a scale of 1 gives finite gradients: then the scaler will skip the step and lower the scale, as it should."""
        state = self._state
        if state.replaying or not state.scaling.is_scaled(roots):
            return False
        if state.scaling.tried:
            return True
        state.scaling.tried = True
        if state.scaling.exhausted(roots):
            return False
        if not state.scaling.trial_due:
            return True
        chosen = choose(state.stack, roots)
        if chosen is None:
            return True
        return not overflows_at_scale_one(state, Found("gradient", bad, state.counter.done, chosen, None, None, True))
