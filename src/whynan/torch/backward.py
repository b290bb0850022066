"""Every backward: is the loss finite before it, are the gradients after it, and to which step does it belong?"""

from __future__ import annotations

import functools
import itertools
import math
import sys
from collections.abc import Sequence
from operator import attrgetter
from threading import get_ident
from time import perf_counter
from typing import Any

import torch

from whynan.core.places import user_frame
from whynan.torch import _compat
from whynan.torch.gate import finite, gradients_of
from whynan.torch.harmful import Harmful
from whynan.torch.hits import Hits
from whynan.torch.live_trace import LiveTrace
from whynan.torch.policy import Policy
from whynan.torch.run_state import RunState

version_of = attrgetter("_version")
UNCHECKED: tuple[list[int], list[int]] = [], []
SETTLED = 3  # backwards of a place after which the attempts around it that none has chosen are taken for mere loops


class BackwardWatch:
    """`checked`: the ids and versions of the gradients that the last check found finite. (The same id with the same version is the same
    content, as long as the gradient lives.)"""

    def __init__(self, state: RunState, hits: Hits, live: LiveTrace) -> None:
        self._state, self._hits, self._live = state, hits, live
        self._harmful = Harmful(state, hits)
        self.checked = UNCHECKED
        self._original = _compat.engine()
        self._policy: Policy | None = None
        self._depth, self._thread = 0, 0
        self._abstract = False
        self.engine = self._watched()

    def are_among_checked(self, grads: list[torch.Tensor]) -> bool:
        """Whether each of `grads` is as the last check found it."""
        known = dict(zip(*self.checked, strict=True))
        return all(known.get(id(g)) == g._version for g in grads)

    def _watched(self) -> _compat.Engine:
        """What stands for the function through which every backward reaches the autograd engine. (Written out: in a step of a millisecond
        every further call counts. A plain function, since a compiler takes no method for one.)"""
        state, original, clock = self._state, self._original, perf_counter
        dispatch_modes, function_modes = _compat.dispatch_modes, _compat.function_modes

        @functools.wraps(original)
        def engine(outputs: Any, *args: Any, **kwargs: Any) -> Any:
            short = False
            try:
                short = state.cruise is not None and not (dispatch_modes() or function_modes()) and state.cruise.backward(outputs, kwargs)
            except Exception as error:
                state.fault("checking a loss", error)
            if short:
                return original(outputs, *args, **kwargs)
            plain = state.watching and state.replay is None and not state.compiles
            if not plain or dispatch_modes() or function_modes() or self._is_nested():
                return self._unusual(outputs, *args, **kwargs)
            start = clock()
            try:
                self._before(tensors_of(outputs), kwargs)
            except Exception as error:
                state.fault("checking a loss", error)
            self._depth += 1
            state.spent += clock() - start
            try:
                results = original(outputs, *args, **kwargs)
            finally:
                self._depth -= 1
            if not state.watching or state.replay is not None:  # it may have ended, or a live trace begun
                self._check_after(tensors_of(outputs), results, args, kwargs)
                return results
            start = clock()
            try:
                self._after(tensors_of(outputs), results, args, kwargs)
            except Exception as error:
                state.fault("checking gradients", error)
            state.spent += clock() - start
            return results

        return engine

    def _enter_thread(self) -> None:
        thread = get_ident()
        self._state.several_threads |= self._thread not in (0, thread)
        self._thread = thread

    def _is_nested(self) -> bool:
        """Whether this is a backward inside another one (checkpoints), not one of another thread."""
        if not self._depth and self._state.due is None:
            return False
        return bool(self._depth) and self._thread == get_ident() or _compat.current_node() is not None

    def _unusual(self, outputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Where nothing is watched, or a compiler or the recorder would see our checks."""
        state = self._state
        if not (state.watching or state.replay is not None):
            if state.finish is not None:  # something has swallowed it and trains on
                raise state.finish
            return self._original(outputs, *args, **kwargs)
        if self._is_nested() or state.compiles and _compat.compiling():
            return self._original(outputs, *args, **kwargs)
        roots = tensors_of(outputs)
        state.unseen("checking a loss", self._before, roots, kwargs)
        frames = state.replay.trace.where.engine_frames if state.replay is not None else []
        frames.append(user_frame(sys._getframe(2)))
        self._depth += 1
        try:
            results = self._original(outputs, *args, **kwargs)
        finally:
            self._depth -= 1
            if frames:
                frames.pop()
        self._check_after(roots, results, args, kwargs)
        return results

    def _check_after(self, roots: Sequence[torch.Tensor], results: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if self._state.watching or self._state.replay is not None:
            self._state.unseen("checking gradients", self._after, roots, results, args, kwargs)

    # ---- before ----

    def _before(self, roots: Sequence[torch.Tensor], kwargs: dict[str, Any]) -> None:
        """A root of `autograd.grad` that is not finite harms nothing by itself: what it gives is looked at afterwards."""
        state = self._state
        state.cruise_no_more()
        self.look()
        self._enter_thread()
        single = len(roots) == 1 and roots[0].numel() == 1 and roots[0].is_floating_point()
        try:
            loss = roots[0].item() if single else math.nan
            bad = [r for r in roots if not finite(r)] if not single else [] if math.isfinite(loss) else roots
            self._abstract = False
        except Exception:
            self._abstract = any(map(is_abstract, roots))
            if not self._abstract:
                raise
            return
        if bad and kwargs.get("accumulate_grad"):
            self._harmful.loss(roots, bad)
        if state.replaying:
            return
        stack = state.runtime.stack if state.closure_level is None else state.stack
        chosen = state.counter.count(stack, roots)
        self._counted(chosen, stack)
        if single:
            unscaled = state.scaling.unscaled(roots[0]) if state.registry.scaled else None
            state.trend.loss = loss if unscaled is None else float(unscaled)
            if state.trend.due(state.counter.done) and state.replay is None and not state.several_threads:
                state.signs.before_backward(state.counter.done - 1, roots[0])

    def _counted(self, chosen: Any, stack: Sequence[Any]) -> None:
        state = self._state
        if state.trace_step is not None:
            self._live.step_counted()
        if state.counter.done == 1:
            state.meet_others()
        if self._hits.left_out is not None and self._hits.left_out.step < state.counter.done - 1:
            self._hits.next_step()
        if chosen is None:
            self._policy = None
            return
        noted = chosen.noted
        policy = self._policy = noted.policy
        noted.backwards += 1
        policy.chosen += 1
        policy.overwrites |= noted.stepped
        if policy.handwork.by_hand is not False:
            policy.handwork.before_backward()
        if chosen.tape.entries:
            chosen.forget_before()
        if stack[0] is not chosen and policy.chosen > SETTLED:
            for attempt in stack:
                if attempt is chosen:
                    break
                if attempt.held:
                    self._let_go_around(chosen)
                    break

    def _let_go_around(self, chosen: Any) -> None:
        """What the attempts around `chosen` noted, if they will not be run again. (A script that looks for bad gradients itself may do so
        in the loop around the function that computes them.)"""
        state = self._state
        outer = list(itertools.takewhile(lambda a: a is not chosen, state.runtime.stack))
        if state.runtime.sites.checks_finite and chosen.site.kind == "function":
            loop = next((a for a in reversed(outer) if a.site.kind == "loop"), None)
            outer = [a for a in outer if a is not loop]
        for attempt in outer:
            if not state.policies.of(attempt).may_be_replayed:
                attempt.let_go()

    # ---- after ----

    def _after(self, roots: Sequence[torch.Tensor], results: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if self._abstract:
            return
        if kwargs.get("accumulate_grad"):
            self._look(roots)
        elif results and len(args) > 3:
            self._given(roots, results, args[3], create_graph=bool(args[2]))

    def look(self) -> bool:
        """At the gradients of a backward on the short way. Whether there was one."""
        roots, self._state.due = self._state.due, None
        if roots is not None:
            self._look(roots)
        return roots is not None

    def late(self) -> list[torch.Tensor]:
        """The leaves whose gradients are not finite, where an attempt ended in which nobody has looked at them."""
        self._state.cruise_no_more()
        self._state.due = None
        return [p for p in self._state.registry.leaves() if p.grad is not None and not finite(p.grad)]

    def _look(self, roots: Sequence[torch.Tensor]) -> None:
        state, policy = self._state, self._policy
        if policy is None or not policy.settled or policy.fresh_leaves:
            self._learn_leaves(roots)
        leaves = state.registry.leaves() if not state.several_threads else state.registry.leaves_below(roots)
        grads = gradients_of(leaves)
        bad = [p for p in leaves if p.grad is not None and not finite(p.grad)] if grads and state.gate.suspicious(grads) else []
        if bad:
            self._harmful.gradient(roots, bad, [p.grad for p in bad])
        self.checked = UNCHECKED if bad else (list(map(id, grads)), list(map(version_of, grads)))
        spoiled = state.registry.buffers.bad() if state.registry.buffers.some else []
        if spoiled:
            self._hits.harm("buffer", spoiled, roots)
        if policy is None or policy.handwork.by_hand is not False:
            self._note_handwork([p for p in leaves if p.grad is not None])

    def _given(self, roots: Sequence[torch.Tensor], results: Any, inputs: Any, *, create_graph: bool) -> None:
        """After `autograd.grad`, which gives the gradients of `inputs` as `results`."""
        pairs = [(i, r) for i, r in zip(inputs, results, strict=False) if isinstance(r, torch.Tensor)]
        if any(is_abstract(r) for _, r in pairs):
            return
        self._harmful.given(roots, pairs, create_graph=create_graph)
        self._note_handwork(self._state.registry.note_leaves([i for i in inputs if isinstance(i, torch.Tensor)]))

    def _learn_leaves(self, roots: Sequence[torch.Tensor]) -> None:
        """Leaves without an optimizer are looked for in a place's first steps, and always where there were some."""
        if self._state.registry.learn_leaves(roots) and self._policy is not None:
            self._policy.fresh_leaves = True

    def _note_handwork(self, leaves: list[torch.Tensor]) -> None:
        """Copy what an update that is no optimizer's step may overwrite, while it is still as the forward saw it."""
        state, chosen = self._state, self._state.counter.last
        if chosen is None or chosen.noted is None or state.replaying:
            return
        if state.policies.of(chosen).handwork.after_backward(leaves, chosen.noted):
            text = "updates without an optimizer's step: a copy of their parameters is kept for a replay"
            state.policies.say_once(state.limits, text)


def is_abstract(tensor: torch.Tensor) -> bool:
    """Without values of its own: on the meta device, or one of many inside `torch.func.vmap`."""
    return tensor.is_meta or _compat.is_batched(tensor)


def tensors_of(outputs: Sequence[Any]) -> Sequence[torch.Tensor]:
    return [o for o in outputs if isinstance(o, torch.Tensor)]
