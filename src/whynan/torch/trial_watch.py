"""What a child that makes steps again sees of them: losses, whether all stays finite, and the one thing that a trial changes."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from whynan.core.backend import Replayed
from whynan.core.components import Component, components
from whynan.core.trials import AS_IT_WAS, Trial
from whynan.torch import _compat
from whynan.torch.gate import finite
from whynan.torch.loss_terms import Path, follow, terms
from whynan.torch.replay import Replay
from whynan.torch.stats import ComponentGradient, component_gradients
from whynan.torch.trained import is_trained

SOME = 1 << 26  # elements of parameters up to which components are told apart


class TrialWatch:
    """`fine`: nothing of the running step was found not finite. `loss`: the last one, `first_loss` that of the course's first step.
    `components`: those of the last recorded step."""

    def __init__(self, state: Any) -> None:
        self._state, self._registry = state, state.registry
        self._trial = AS_IT_WAS
        self._replay: Replay | None = None
        self._rates: list[Any] = []
        self._step, self._seen = 0, -1
        self._recorded = {row[0]: row[4] for row in state.trend.rows}
        self._largest: Path | None = None
        self._original, self._plain = _compat.engine(), state.plain_engine
        self.fine = True
        self.loss: float | None = None
        self.first_loss: float | None = None
        self.components: list[Component] = []

    def install(self) -> None:
        """For good: the process ends with the trials."""
        _compat.set_engine(self._engine)
        register_optimizer_step_pre_hook(self._before_step)
        register_optimizer_step_post_hook(self._after_step)

    def start(self, trial: Trial) -> None:
        self._trial, self.loss, self.first_loss, self._seen = trial, None, None, -1

    def begin(self, step: int, replay: Replay | None) -> None:
        self._step, self._replay, self.fine = step, replay, True

    # ---- what every backward and every update passes ----

    def _engine(self, outputs: Any, *args: Any, **kwargs: Any) -> Any:
        if not kwargs.get("accumulate_grad") or _compat.current_node() is not None:
            return self._original(outputs, *args, **kwargs)
        roots = [one for one in outputs if isinstance(one, torch.Tensor)]
        self._look_at_loss(roots)
        if self._replay is not None and len(roots) == 1:
            self._tell_components_apart(roots[0], self._replay)
        handle = self._switch_off(roots) if self._trial.without_largest else None
        results = self._original(outputs, *args, **kwargs)
        if handle is not None:
            handle.remove()
        if not self._registry.scaled:
            self._require(p.grad for p in self._registry.leaves())
        return results

    def _look_at_loss(self, roots: Sequence[torch.Tensor]) -> None:
        with _compat.no_modes():
            losses = [self._state.scaling.unscaled(root) if self._registry.scaled else root for root in roots]
            known = [float(loss) for loss in losses if loss is not None and loss.numel() == 1 and not loss.is_complex()]
        if known and self._seen != self._step:  # of several losses in one step, the first
            self._seen, self.loss = self._step, known[-1]
            self.first_loss = self.loss if self.first_loss is None else self.first_loss
        if not all(map(math.isfinite, known)):
            self._fail()

    def _require(self, tensors: Any) -> None:
        with _compat.no_modes():
            bad = any(one is not None and not finite(one) for one in tensors)
        if bad:
            self._fail()

    def _fail(self) -> None:
        self.fine = False
        raise Replayed("trial")

    def _before_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if self._trial.norm is not None and not self._registry.scaled:
            with _compat.no_modes():
                torch.nn.utils.clip_grad_norm_([p for group in optimizer.param_groups for p in group["params"]], self._trial.norm)
        self._rates = [group.get("lr") for group in optimizer.param_groups]
        factor = self._trial.rate * self._as_scheduled(self._rates[0])
        if factor != 1.0:
            for group, rate in zip(optimizer.param_groups, self._rates, strict=True):
                group["lr"] = rate * factor

    def _as_scheduled(self, rate: Any) -> float:
        """A schedule that lies outside what the step captured has moved on: by what its rate was then."""
        then = self._recorded.get(self._step) if len(self._registry.optimizers) == 1 else None
        if then is None or not isinstance(rate, float) or not (math.isfinite(rate) and rate and math.isfinite(then)):
            return 1.0
        return float(then / rate)

    def _after_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        for group, rate in zip(optimizer.param_groups, self._rates, strict=False):
            group["lr"] = rate
        self._require(p for group in optimizer.param_groups for p in group["params"])

    # ---- components ----

    def _tell_components_apart(self, root: torch.Tensor, replay: Replay) -> None:
        """With their gradients, where that does not take long."""
        with replay.trace.pause(), self._plain_engine():
            found = components(replay.trace.operations, replay.trace.last_writer(root))
            leaves = [p for p in self._registry.leaves() if is_trained(p, self._registry, replay.trace)]
            known = terms(root, [one.operation for one in found], replay.trace.where.makers)
            if len(known) > 1 and sum(p.numel() for p in leaves) <= SOME:
                taken: dict[str, ComponentGradient] = {}
                weights = {str(one.operation): one.weight for one in found if one.operation in known}
                with contextlib.suppress(RuntimeError):  # a graph that can be walked only once
                    taken = component_gradients({str(key): edge for key, (edge, _) in known.items()}, leaves, weights)
                found = [_with_gradient(one, taken.get(str(one.operation))) for one in found]
                largest = max(found, key=lambda one: one.norm if one.norm is not None and math.isfinite(one.norm) else -1.0)
                self._largest = known[largest.operation][1]
        self.components = found

    @contextlib.contextmanager
    def _plain_engine(self) -> Iterator[None]:
        ours = _compat.engine()
        _compat.set_engine(self._plain)
        try:
            yield
        finally:
            _compat.set_engine(ours)

    def _switch_off(self, roots: Sequence[torch.Tensor]) -> Any:
        """The largest component gives no gradient in this backward."""
        node = follow(roots[0], self._largest) if self._largest is not None and len(roots) == 1 else None
        if node is None:
            raise Replayed("the loss has no such component")
        return node.register_prehook(lambda gradients: tuple(g if g is None else torch.zeros_like(g) for g in gradients))


def _with_gradient(component: Component, gradient: ComponentGradient | None) -> Component:
    if gradient is None:
        return component
    return replace(component, norm=gradient.norm, shared=gradient.shared, cosine=gradient.cosine)
