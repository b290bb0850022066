"""The short way through a step that goes as those before it did: in the same place one backward, then one step of the same optimizer.

Its gradients are looked at once, right before the optimizer uses them. Whatever is unusual about a step leads back to the long way, which
looks at everything; so does one step now and then, for what has to be done now and then.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable
from math import isfinite
from operator import itemgetter
from threading import get_ident
from time import perf_counter
from typing import Any

import torch

from whynan.torch import _compat
from whynan.torch.copies import TensorCopy
from whynan.torch.gate import SUMMED, gradient_of, gradients_of, is_given, item, traits
from whynan.torch.noted import Noted, device_generators
from whynan.torch.policy import ORDINARY, Character, Policy
from whynan.torch.run_state import RunState
from whynan.torch.trend import DENSE_STEPS

LEARNING_RUNS = 32
LONGEST = 0.25  # seconds between two steps on the long way
UNUSABLE = (AttributeError, RuntimeError, TypeError)  # what a loss of another kind than a real number's raises when it is read
clock, chain, cuda_in_use, summed = perf_counter, itertools.chain.from_iterable, _compat.cuda_in_use, torch.sum
parameters_of = itemgetter("params")


class Cruise:
    """`backward(outputs, kwargs)` tells of a call of the engine whether it takes the short way: an ordinary loss, the first backward of its
    step, which is counted then. `step(optimizer)` whether the optimizer may go on without a further look: finite gradients and buffers,
    ordinary numbers. `until`: a step that begins later takes the long way, by `time.perf_counter`. (Closures, written out: in a step of
    a millisecond every further call and every attribute counts.)"""

    until = 0.0

    def __init__(self, state: RunState, chosen: Any, optimizer: Any, character: Character) -> None:
        policy = chosen.noted.policy
        noted = Noted(policy, 0, 0, policy.draws.last, ())
        again, over = _again(state, chosen, noted, policy), _over(state, noted, chosen.tape)
        settled = self._settled = state.runtime.settle(chosen.site_id, noted, again, over)
        self.backward: Callable[..., bool] = _backward(state, chosen, settled)
        self.step: Callable[..., bool] = _step(self, state, settled, optimizer, character)
        self._untimed_backward, self._untimed_step = self.backward, self.step
        self._state, self._timed_at = state, state.counter.done

    def time_next(self) -> None:
        """The next short step is timed, for all of them since the last that was."""
        steps, self._timed_at = self._state.counter.done - self._timed_at, self._state.counter.done
        self._settled.times = steps
        self.backward = self._timed("backward", self._untimed_backward, steps)
        self.step = self._timed("step", self._untimed_step, steps)

    def _timed(self, name: str, function: Callable[..., bool], times: int) -> Callable[..., bool]:
        def timed(*args: Any) -> bool:
            start = clock()
            setattr(self, name, function)
            short = function(*args)
            self._state.spent += times * (clock() - start)
            return short

        return timed


def _again(state: RunState, chosen: Any, noted: Noted, policy: Policy) -> Callable[[Any], None]:
    counter, sequence_number, draws = state.counter, _compat.sequence_number, policy.draws
    buffers = state.registry.buffers
    copy = policy.buffers = TensorCopy()  # the run that is being made, from outside the settled ones, keeps its own

    history = state.history
    kept = history.names(chosen) if history is not None else ()

    def again(settled: Any) -> None:
        if draws.pause:
            draws.pause -= 1
        else:
            noted.random = draws.state()
        noted.sequence, noted.steps_before = sequence_number(), counter.done
        noted.counted = noted.stepped = False
        noted.backwards = 0
        if cuda_in_use():
            noted.devices = device_generators()
        if buffers.some:
            _compat.without_modes(noted.take_buffers, buffers, copy)
        if history is not None and history.off is None:
            history.steps.append((noted.steps_before, tuple(map(settled.live.get, kept)), settled.random, noted.random))
            if noted.steps_before >= history.next_at:
                _compat.without_modes(history.take, settled, noted, noted.steps_before)

    return again


def _over(state: RunState, noted: Noted, tape: Any) -> Callable[[Any], bool]:
    def over(settled: Any) -> bool:
        if tape.entries and state.history is not None:
            state.history.answered(noted.steps_before, settled.answers())
        return state.due is None and state.cruise is not None

    return over


def _backward(state: RunState, chosen: Any, settled: Any) -> Callable[[Any, dict[str, Any]], bool]:
    stack, counter, trend, tape, noted = state.runtime.stack, state.counter, state.trend, chosen.tape, settled.noted
    depth, level, thread = len(stack), stack.index(chosen), get_ident()
    innermost = stack[-1].site_id if stack[-1] is not chosen else None

    def backward(outputs: Any, kwargs: dict[str, Any]) -> bool:
        if len(stack) != depth or len(outputs) != 1 or get_ident() != thread or not kwargs.get("accumulate_grad"):
            return False
        if stack[level] is not settled or noted.backwards or innermost is not None and stack[-1].site_id != innermost:
            return False
        try:
            loss = outputs[0].item()
            if not -ORDINARY < loss < ORDINARY:
                return False
        except UNUSABLE:
            return False
        noted.backwards = 1
        noted.counted = True
        counter.last = settled
        counter.done = noted.steps_before + 1
        trend.loss = loss
        if tape.entries:
            settled.forget_before()
        state.due = outputs
        return True

    return backward


def _step(cruise: Cruise, state: RunState, settled: Any, optimizer: Any, character: Character) -> Callable[[Any], bool]:
    reference, numbers_of, is_tame = weakref.ref(optimizer), character.numbers_of, character.is_tame
    buffers, noted = state.registry.buffers, settled.noted
    trend, record, keep = state.trend, state.recorder.steps.append, state.trend.rows.append

    def step(optimizer: Any) -> bool:
        groups = optimizer.param_groups
        began = settled.started
        if began > cruise.until or began > trend.due_at or reference() is not optimizer:
            return False
        if list(map(numbers_of, groups)) != character.tame and not is_tame(optimizer):
            return False
        gradients = filter(is_given, map(gradient_of, chain(map(parameters_of, groups))))
        if not isfinite(sum(map(item, map(summed, gradients)))) or buffers.some and buffers.bad():
            return False
        state.due = None
        noted.stepped = True
        row = noted.steps_before, trend.loss, None, None, groups[0]["lr"]
        keep(row)
        record(row)
        return True

    return step


def may_cruise(state: RunState, policy: Policy, character: Character) -> bool:
    """Whether nothing of what the long way does is needed at this place but now and then."""
    registry, sites = state.registry, state.runtime.sites
    if state.counter.done <= DENSE_STEPS or state.compiles or state.several_threads or state.trace_step is not None:
        return False
    looks = sites.checks_finite or sites.touches_gradients or sites.clips
    copies = policy.overwrites or policy.handwork.by_hand is not False or not policy.settled
    more = registry.scaled or registry.orphans or policy.fresh_leaves
    if looks or copies or more or len(registry.owned) != len(character.parameters):
        return False
    return SUMMED.issuperset(map(traits, gradients_of(character.parameters)))
