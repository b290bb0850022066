"""From a bad value to the attempt that is run again: `Hit` on the first way, `Replayed` on the second."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any

import torch

from whynan.core.backend import Hit, Replayed
from whynan.core.session import NotReproduced, What
from whynan.torch.choice import choose
from whynan.torch.conclusion import Conclusion
from whynan.torch.evidence import may_be_non_finite
from whynan.torch.gate import finite
from whynan.torch.incidents import Found, scopes, user_site
from whynan.torch.names import variables
from whynan.torch.run_state import RunState
from whynan.torch.scaling import SKIPS


class Hits:
    """`pending`: what a script that checks for itself has not used yet. Its `attempt` is then the one in which it may be used; the backward
    was `_chosen`'s, and `_bad_leaves` are those that got a bad gradient. `left_out`: the last step whose
    update the script threw away, which ended when `_done` steps were counted. `_caught`: the last exception that the script will catch,
    by its id (it would keep the tensors of its frames alive), and when it was told."""

    def __init__(self, state: RunState, conclusion: Conclusion) -> None:
        self._state, self._conclusion = state, conclusion
        self.pending: Found | None = None
        self._chosen: Any = None
        self._bad_leaves: set[int] = set()
        self._skipped = 0
        self.left_out: Found | None = None
        self._given_up: Found | None = None
        self._done = 0
        self._caught = (0, 0.0)

    def harm(self, what: What, tensors: Sequence[torch.Tensor], roots: Sequence[torch.Tensor], values: list[Any] | None = None) -> None:
        """`tensors` are not finite (for a gradient: the leaves whose gradients, `values`, are not)."""
        values = values if values is not None else list(tensors)
        state = self._state
        if state.replaying:
            self.again(what, values)
            return
        found = self.pending or self._found(what, tensors, roots, values)
        holder = self._holder(found.attempt) if what in ("loss", "gradient") and self._may_be_skipped() else None
        if holder is None:
            self._hit(found)
        elif self.pending is None:
            self._chosen, self._bad_leaves = found.attempt, set()
        if what == "gradient":
            self._bad_leaves.update(map(id, tensors))
        found.attempt, self.pending = holder, found

    def again(self, what: What, values: list[Any]) -> None:
        """Something is not finite in the replay: it counts if it is what was found."""
        found, replay = self._state.found, self._state.replay
        if found is None or replay is None or found.what != what:
            return
        found.site = user_site()  # the first time it may have been met later
        replay.again = replay.again or values
        replay.trace.done = True
        raise Replayed(what)

    def by_exception(self, attempt: Any, error: Exception) -> bool:
        """An exception because of a non-finite value: the step that it ended is run again."""
        state = self._state
        if state.replaying or not state.policies.replayed_for_exception(attempt, state.stack):
            return False
        if not may_be_non_finite(error, error.__traceback__) or self._is_told(attempt, error):
            return False
        step = attempt.noted.steps_before if attempt.noted is not None else state.counter.done
        found = Found("exception", [], step, attempt, user_site(), error)
        if not self._will_be_caught(attempt, error):
            return self._at_end(found)
        if self.pending is not None:
            return False  # what it was raised for is decided where that attempt ends
        return not self._leave_out(replace(found, error=None, attempt=None), whole=True) and self._at_end(found)

    def at_end(self, what: What, attempt: Any, bad: list[torch.Tensor]) -> bool:
        """Parameters, or the gradients of leaves, are not finite at the end of the attempt."""
        return self._at_end(Found(what, bad, attempt.noted.steps_before, attempt, user_site()))

    def _found(self, what: What, tensors: Sequence[torch.Tensor], roots: Sequence[torch.Tensor], values: list[Any]) -> Found:
        state = self._state
        chosen = choose(state.stack, roots) if roots else state.counter.last
        if chosen is not None and chosen not in state.stack:
            chosen = None
        step = state.counter.index_of(chosen, state.stack) if chosen is not None else max(state.counter.done - (what != "loss"), 0)
        found = Found(what, tensors, step, chosen, user_site(), values=values)
        found.scale_one = what == "gradient" and state.scaling.is_scaled(roots)
        held = variables(scopes())
        found.names = {id(t): held[id(t)] for t in tensors if id(t) in held}
        return found

    def _hit(self, found: Found) -> None:
        state = self._state
        self._conclusion.finish_live(found, found.values)
        if found.attempt is None or found.attempt not in state.stack:
            self._conclusion.conclude(found, None, NotReproduced(self._why_unplaced(), state.trace_command(found.step)), ())
        state.found = found
        state.runtime.diversion.start()
        raise Hit(found.what)

    def _at_end(self, found: Found) -> bool:
        self._state.leave_open()  # a live trace; the second run has one of its own
        self._state.found = found
        self._state.runtime.diversion.start()
        return True

    def _why_unplaced(self) -> str:
        if not self._state.stack:
            return "the loop that runs this step is not one that could be rewritten (an installed package's, or a body that yields)"
        return "the forward of this step began before any loop or function body that could be run again"

    # ---- steps that the script leaves out itself ----

    def _may_be_skipped(self) -> bool:
        """A script that looks for non-finite values itself may throw the gradients away: until they are used nothing is harmed."""
        state = self._state
        return state.runtime.sites.checks_finite and not (state.replay or state.closure_level is not None or state.registry.scaled)

    def _holder(self, chosen: Any) -> Any:
        """The attempt in which the gradients will be used or not: the innermost from `chosen` outwards in which an optimizer has stepped
        before, else the body of a loop. None if it can't be run again."""
        state, stack = self._state, self._state.stack
        around = stack[stack.index(chosen) :: -1] if chosen in stack else []
        updating = (a for a in around if state.policies.of(a).updates)
        holder = next(updating, None) or next((a for a in around if a.site.kind == "loop"), None)
        return holder if holder is not None and holder.held else None

    def used(self, parameters: list[torch.Tensor], bad: list[torch.Tensor]) -> None:
        """An optimizer is about to use the gradients of `parameters`; those of `bad` are not finite. If gradients were bad and no longer
        are, the script has mended them; those of a bad loss may be finite from the start."""
        pending = self.pending
        concerned = pending is None or not self._bad_leaves or not self._bad_leaves.isdisjoint(map(id, parameters))
        if concerned:
            self.pending, self._skipped = None, 0
        if pending is not None and (bad or concerned and not self._bad_leaves):
            self._hit(pending)
        if bad:
            self._hit(self._found("gradient", bad, (), [p.grad for p in bad]))

    def ended(self, attempt: Any, error: BaseException | None) -> bool:
        """The attempt ended with gradients that no optimizer used. Whether it is run again: not if the script left out the update and
        goes on."""
        pending = self.pending
        if pending is None or pending.attempt is not attempt:
            return False
        self.pending, self._given_up = None, None
        registry = self._state.registry
        spoiled = any(not finite(leaf) and registry.started_finite(leaf) for leaf in registry.leaves())
        ended = spoiled or attempt.leaving or error is not None and not self._will_be_caught(attempt, error)
        if ended or not self._leave_out(pending, whole=self._chosen is attempt):
            attempt.noted.leaves = self._chosen.noted.leaves
            return self._at_end(pending)
        return False

    def _leave_out(self, found: Found, whole: bool) -> bool:
        """The script goes on without the step's update, as it may some times in a row. `whole`: an update has no more than this step, so
        that one in between, which the script need not have looked at, was used."""
        self._skipped = 1 + (0 if whole and found.step > self._done else self._skipped)
        if self._skipped >= SKIPS:
            return False
        self.left_out = found
        self._done = self._state.counter.done if found.what == "exception" else found.step + 1
        return True

    def _will_be_caught(self, attempt: Any, error: BaseException) -> bool:
        """A handler of the script's throws the step away as `continue` does. In a live trace the step was asked for."""
        if self._state.replay is not None or not self._state.runtime.will_be_caught(attempt, error):
            return False
        self._caught = id(error), perf_counter()
        return True

    def _is_told(self, attempt: Any, error: BaseException) -> bool:
        """Whether `error`, or what it was raised for, has left an attempt inside this one and was told to be caught."""
        part: BaseException | None = error
        while part is not None and id(part) != self._caught[0]:
            part = part.__context__
        return part is not None and attempt.started < self._caught[1]

    def next_step(self) -> None:
        """A later step has begun: that an update was left out was not the end."""
        self.left_out = self._given_up = None
        self._chosen = self._chosen if self.pending is not None else None

    def loop_left(self) -> None:
        """The script leaves a loop. If it left out the update of the step before, that is why, and the attempt is over."""
        left_out = self.left_out
        if left_out is not None and self._state.counter.done == self._done:
            self._given_up = left_out

    def run_ended(self, in_order: bool) -> None:
        """Record the incident of a script that ended itself after a step that it left out. Raises `Stopped`."""
        found = self._given_up if in_order else self.left_out
        if found is not None and self._state.counter.done == self._done and self._state.watching:
            reason = "the script had left the step when it turned out that it ended the run because of it"
            self._conclusion.conclude(found, None, NotReproduced(reason, self._state.trace_command(found.step)), ())
