"""Every optimizer step: are the gradients finite before it, the parameters after it, and what has to be copied in between?"""

from __future__ import annotations

from time import perf_counter
from typing import Any

import torch

from whynan.core.session import NotReproduced, Reproduced
from whynan.torch import _compat
from whynan.torch.backward import UNCHECKED, BackwardWatch, version_of
from whynan.torch.conclusion import Conclusion
from whynan.torch.copies import OptimizerCopy
from whynan.torch.cruise import LEARNING_RUNS, LONGEST, Cruise, may_cruise
from whynan.torch.gate import all_finite, finite, gradients_of
from whynan.torch.hits import Hits
from whynan.torch.incidents import Found, user_site
from whynan.torch.policy import ORDINARY, Character, Policy
from whynan.torch.replay import Replay
from whynan.torch.rerun import run_step_again
from whynan.torch.run_state import RunState

dispatch_modes, function_modes = _compat.dispatch_modes, _compat.function_modes
BEFORE, AFTER = "checking gradients before a step", "checking parameters after a step"


class UpdateWatch:
    def __init__(self, state: RunState, hits: Hits, conclusion: Conclusion, backward: BackwardWatch) -> None:
        self._state, self._hits, self._conclusion, self._backward = state, hits, conclusion, backward
        self._copy: OptimizerCopy | None = None
        self._over: Any = None  # the optimizer whose step needs no look afterwards, as was told before it
        self._seen = False  # by modes of the program's

    def before_step(self, optimizer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        state = self._state
        if state.due is not None and state.cruise is not None and not (kwargs or len(args) > 1 or dispatch_modes() or function_modes()):
            try:
                if state.cruise.step(optimizer):
                    self._over = optimizer
                    return
            except Exception as error:
                state.fault(BEFORE, error)
                return
        self._seen = bool(dispatch_modes() or function_modes())
        if self._seen or state.replay is not None or state.compiles or state.finish is not None:
            self._sheltered_before(optimizer, args, kwargs)
        elif state.watching:
            start = perf_counter()
            try:
                self._before(optimizer, bool(kwargs or len(args) > 1) and _closure(args, kwargs))
            except Exception as error:
                state.fault(BEFORE, error)
            state.spent += perf_counter() - start

    def after_step(self, optimizer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        state = self._state
        if self._over is optimizer and state.replay is None:
            return
        if state.replay is not None or state.compiles or self._seen:
            self._sheltered_after(optimizer)
        elif state.watching:
            start = perf_counter()
            try:
                self._after(optimizer)
            except Exception as error:
                state.fault(AFTER, error)
            state.spent += perf_counter() - start

    def _sheltered_before(self, optimizer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """The same where a compiler or the recorder would see our checks."""
        state = self._state
        if state.finish is not None:  # something has swallowed it and trains on
            raise state.finish
        if state.replay is not None:
            state.replay.trace.where.optimizer_depth += 1
        if state.watching or state.replaying:
            state.unseen(BEFORE, self._before, optimizer, _closure(args, kwargs))

    def _sheltered_after(self, optimizer: Any) -> None:
        state = self._state
        if state.replay is not None:
            state.replay.trace.where.optimizer_depth -= 1
        if state.watching or state.replaying:
            state.unseen(AFTER, self._after, optimizer)

    # ---- before ----

    def _before(self, optimizer: Any, closure: bool) -> None:
        state = self._state
        if state.registry.scaled:
            state.scaling.optimizer_stepped(optimizer)
        if closure and not state.replaying:
            state.closure_level = len(state.runtime.stack)
        character = state.registry.character(optimizer)
        self._backward.look()
        untouched = not closure and self._check_gradients(optimizer, character.parameters)
        if state.replay is not None and state.replaying:
            return
        state.trend.measured = False
        if state.trend.due(state.counter.done) and not state.several_threads:
            state.trend.measure(optimizer)
        tame = character.is_tame(optimizer)
        loss = state.trend.loss
        unspoilt = tame and not closure and loss is not None and -ORDINARY < loss < ORDINARY
        chosen = state.counter.last
        policy = chosen.noted.policy if chosen is not None else None
        needed_again = closure or policy is None or policy.overwrites or not policy.settled
        self._copy = OptimizerCopy(optimizer) if needed_again or not tame and character.risky_now(optimizer) else None
        if self._copy is not None:
            self._keep(self._copy, closure, policy)
        plain = unspoilt and self._copy is None
        self._learn_course(chosen, optimizer, character, alike=plain and untouched)
        self._over = optimizer if plain and not state.trend.measured else None
        if self._over is not None:
            self._close(optimizer)

    def _learn_course(self, chosen: Any, optimizer: Any, character: Character, *, alike: bool) -> None:
        """After many steps in a row in which nothing but this was to be seen the next ones take the short way."""
        state = self._state
        if not alike or chosen is None or chosen not in state.stack or chosen.noted.backwards != 1 or chosen.noted.stepped:
            state.cruise_no_more()
            if chosen is not None and chosen.noted is not None:
                chosen.noted.policy.alike = 0
            return
        policy = chosen.noted.policy
        policy.alike += 1
        if state.cruise is None and policy.alike % LEARNING_RUNS == 0 and may_cruise(state, policy, character):
            state.cruise = Cruise(state, chosen, optimizer, character)
        if state.cruise is not None:
            self._backward.checked = UNCHECKED
            state.cruise.until = perf_counter() + LONGEST
            state.cruise.time_next()

    def _check_gradients(self, optimizer: Any, parameters: list[torch.Tensor]) -> bool:
        """Those that changed since the last backward were clipped, scaled or written by the script itself. Whether none did."""
        grads = gradients_of(parameters)
        ids, versions = self._backward.checked
        same = list(map(id, grads)) == ids and list(map(version_of, grads)) == versions
        if (same or self._backward.are_among_checked(grads)) and not self._state.runtime.sites.touches_gradients:
            return same
        if self._skips_inside(optimizer):
            return False
        bad = [p for p in parameters if p.grad is not None and not finite(p.grad)] if self._state.gate.suspicious(grads) else []
        if bad and self._state.replaying:
            self._hits.again("gradient", [p.grad for p in bad])
        elif not self._state.replaying:
            self._hits.used(parameters, bad)
        return False

    def _skips_inside(self, optimizer: Any) -> bool:
        """A fused optimizer is called for a skipped step too and looks at the scaler's flag itself."""
        flag = getattr(optimizer, "found_inf", None)
        return isinstance(flag, torch.Tensor) and bool(flag.item())

    def _keep(self, copy: OptimizerCopy, closure: bool, policy: Policy | None) -> None:
        """For the replay of the attempt that runs."""
        state, chosen = self._state, self._state.counter.last
        running = chosen if chosen in state.stack and not closure else self._innermost()
        if running is not None and running.noted is not None:
            running.noted.written += (copy,)
        if policy is not None and policy.settled:
            text = f"{type(copy.optimizer()).__name__}: a copy of its parameters and state is kept for a replay"
            state.policies.say_once(state.limits, text)

    def _innermost(self) -> Any:
        """The attempt that a closure's backward will choose, as far as can be told before it has run."""
        stack = self._state.stack
        known = (a for a in reversed(stack) if self._state.policies.of(a).chosen)
        return next(known, stack[-1] if stack else None)

    # ---- after ----

    def _after(self, optimizer: Any) -> None:
        state = self._state
        state.closure_level = None
        if self._over is not optimizer:
            self._check_written(optimizer)
            self._close(optimizer)
        self._copy = None

    def _close(self, optimizer: Any) -> None:
        """The step of the optimizer is one more update of the run."""
        state = self._state
        chosen = state.counter.last
        if chosen is not None and chosen.noted is not None:
            chosen.noted.stepped = chosen.noted.policy.handwork.stepped = True
        if state.runtime.sites.checks_finite:
            for attempt in state.stack:
                state.policies.of(attempt).updates = True
        if state.replay is None or not state.replaying:
            measured = state.trend.measured
            if measured:
                state.trend.after_update()
            row = state.trend.close_step(max(state.counter.done - 1, 0), optimizer)
            state.recorder.step(row)
            if state.replay is None:
                state.signs.after_step(row, optimizer, measured=measured)
            if measured:
                state.trend.plan(row[0])
                if state.cruise is not None:
                    self._read_next_graph(state.cruise)

    def _read_next_graph(self, cruise: Cruise) -> None:
        """On the short way the graph of the next loss is shown to the early signs: that of this step is gone."""
        state, short = self._state, cruise.backward

        def backward(outputs: Any, kwargs: dict[str, Any]) -> bool:
            start = perf_counter()
            cruise.backward = short
            if len(outputs) == 1 and isinstance(outputs[0], torch.Tensor) and outputs[0].numel() == 1:
                state.signs.before_backward(state.counter.done, outputs[0])
            state.spent += perf_counter() - start
            return short(outputs, kwargs)

        cruise.backward = backward

    def _check_written(self, optimizer: Any) -> None:
        registry = self._state.registry
        parameters = registry.character(optimizer).parameters
        bad = [p for p in parameters if not finite(p) and registry.started_finite(p)] if self._spoiled(parameters) else []
        if bad and self._state.replaying:
            self._hits.again("parameter", bad)
        elif bad:
            self._written(optimizer, bad)

    def _spoiled(self, parameters: list[torch.Tensor]) -> bool:
        """Read-only where other processes may write the same memory."""
        if any(p.is_shared() for p in parameters):  # type: ignore[no-untyped-call]
            return not all_finite(parameters)
        return self._state.gate.suspicious([p.detach() for p in parameters])

    def _written(self, optimizer: Any, bad: list[torch.Tensor]) -> None:
        """The update itself made the bad values: undo it and run it again under the recorder, right here."""
        state = self._state
        found = Found("parameter", bad, max(state.counter.done - 1, 0), None, user_site())
        self._conclusion.finish_live(found, bad)
        self._conclusion.expect(found)
        replay, seed = run_step_again(state.registry, optimizer, self._copy, found)
        self._conclusion.conclude(found, replay, self._result(replay, seed, found.step), seed)

    def _result(self, replay: Replay, seed: Any, step: int) -> Reproduced | NotReproduced:
        if seed:
            return Reproduced(replay.seconds)
        return NotReproduced("run again, the optimizer's step wrote finite values", self._state.trace_command(step), replay.seconds)


def _closure(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether the step was given a closure; the hook's arguments begin with the optimizer itself."""
    return any(a is not None for a in args[1:]) or kwargs.get("closure") is not None
