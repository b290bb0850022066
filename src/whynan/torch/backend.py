"""The PyTorch backend: watches every step, and at a hit has the right attempt run again under the recorder."""

from __future__ import annotations

import contextlib
import os
import signal
from operator import attrgetter
from time import perf_counter
from types import CodeType, FunctionType
from typing import Any

import torch

from whynan.core.backend import Passing, Recorder
from whynan.torch import _compat
from whynan.torch.backward import BackwardWatch, tensors_of
from whynan.torch.conclusion import Conclusion
from whynan.torch.copies import TensorCopy
from whynan.torch.gate import finite
from whynan.torch.history import kept
from whynan.torch.hits import Hits
from whynan.torch.live_trace import LiveTrace
from whynan.torch.noted import Noted, device_generators
from whynan.torch.replay import Replay, put_back_state
from whynan.torch.run_state import RunState
from whynan.torch.scaling import scales
from whynan.torch.updates import UpdateWatch
from whynan.torch.watch import Hooks


class TorchBackend:
    """`trace_step`: record that step of this run from its start instead of replaying. `history`: bytes that may be kept of the last steps,
    to make them again with something changed; None: as many as are to spare. Nothing is watched before `install`.

    Implements `core.backend.StepBackend` for the script runner and `watch.Watcher` for the hooks.
    """

    def __init__(self, recorder: Recorder, trace_step: int | None = None, history: int | None = None) -> None:
        state = self.state = RunState(recorder, trace_step)
        state.history = kept(history, state.registry)
        self._conclusion = Conclusion(state)
        self._hits = Hits(state, self._conclusion)
        self._live = LiveTrace(state)
        backward = BackwardWatch(state, self._hits, self._live)
        update = UpdateWatch(state, self._hits, self._conclusion, backward)
        self._backward = backward
        self.engine, self.before_step, self.after_step = backward.engine, update.before_step, update.after_step
        self.give_up = state.give_up
        self._hooks = Hooks(self, state.registry, state.scaling, state.loaders, state.guard)
        self._installed = perf_counter()
        self._grads: list[tuple[torch.Tensor, torch.Tensor | None]] = []
        self._random = _compat.random_state()

    # ---- life ----

    def install(self, runtime: Any) -> None:
        """`runtime` is what the rewritten code calls."""
        self.state.runtime = runtime
        self._hooks.install()
        self.state.watching = True
        self._installed = perf_counter()
        self._live.begin()

    def close(self, in_order: bool = True) -> None:
        """`in_order`: the script did not end with an exception or an exit status of its own."""
        state = self.state
        with contextlib.suppress(Passing):
            self._hits.run_ended(in_order)
        if in_order and state.watching and state.replay is None:
            state.signs.run_over(max(state.counter.done - 1, 0))
        state.watching = False
        if state.signs.off is not None:
            state.limits.append(state.signs.off)
        for replay in (state.replay, state.left_open):
            if replay is not None:
                replay.trace.paused = True
                replay.close()
        state.replay = state.left_open = None
        self._hooks.uninstall()
        if (limit := self._hooks.children.limit) is not None:
            state.limits.append(limit)

    watching = property(attrgetter("state.watching"))

    @property
    def limits(self) -> list[str]:
        history = self.state.history
        return [*self.state.limits, history.off] if history is not None and history.off else self.state.limits

    @property
    def steps(self) -> int:
        return self.state.counter.done

    @property
    def unwatched(self) -> str | None:
        """Why not a step was seen, where processes of the program's own may have made them."""
        return self._hooks.children.limit if self.steps == 0 else None

    @property
    def together(self) -> bool:
        """Whether this process trained together with other ranks."""
        return self.state.several

    @property
    def overhead(self) -> float:
        spent = self.state.spent + (self.state.runtime.spent if self.state.runtime is not None else 0.0)
        return spent / max(perf_counter() - self._installed, 1e-9)

    def compiles(self) -> None:
        """The program is about to compile something for the first time."""
        self.state.cruise_no_more()
        self.state.compiles = True
        ours = [f for part in (BackwardWatch, UpdateWatch, RunState) for f in vars(part).values() if isinstance(f, FunctionType)]
        _compat.never_compile(_compat.compiling, _compat.set_compiler, _compat.current_node, tensors_of, *ours)

    def original_code(self, code: CodeType) -> CodeType | None:
        """The user's code as it was before it was rewritten."""
        return self.state.runtime.sites.original_code(code) if self.state.runtime is not None else None

    # ---- attempts ----

    def enter(self, attempt: Any) -> Noted:
        state, registry = self.state, self.state.registry
        if state.replay is not None and not state.replaying:
            state.replay.trace.table.new_step()
        devices = device_generators() if _compat.cuda_in_use() else ()
        policy = state.policies.known.get(attempt.site_id) or state.policies.of(attempt)
        noted = Noted(policy, _compat.sequence_number(), state.counter.done, policy.draws.state(), devices)
        if registry.buffers.some and (policy.chosen or not policy.settled):
            into = policy.buffers if not _runs_inside_itself(attempt) else TensorCopy()
            _compat.without_modes(noted.take_buffers, registry.buffers, into)
        if registry.scaled:
            noted.scales = _compat.without_modes(scales, registry.scalers)
        history = state.history
        if history is not None and (policy.chosen or not state.counter.done) and not state.replaying:
            history.enter(attempt, noted, state.counter.done)
        return noted

    def leave(self, attempt: Any, error: BaseException | None) -> bool:
        state = self.state
        if attempt.tape.entries and state.history is not None and error is None:
            state.history.answered(attempt.noted.steps_before, attempt.answers())
        if error is None and state.cruise is not None and state.due is None or not state.watching:
            return False
        if state.found is not None:
            return state.found.attempt is attempt
        if error is not None and isinstance(error, (Passing, KeyboardInterrupt)):
            return False
        if self._hits.pending is not None and self._hits.ended(attempt, error):
            return True
        if state.due is not None and state.counter.last is attempt and error is None:
            bad = self._backward.late()
            if bad:
                return self._hits.at_end("gradient", attempt, bad)
        if error is not None:
            state.cruise_no_more()
            state.due = None
            return isinstance(error, Exception) and self._hits.by_exception(attempt, error) or self._broken_off(attempt)
        noted = attempt.noted
        if noted is None or state.replay is not None and state.replaying:
            return False
        if not noted.policy.settled or noted.written:
            noted.policy.close(noted)
        if noted.leaves is None:
            return False
        with _compat.no_modes():
            return self._is_spoiled(attempt)

    def loop_left(self) -> None:
        self._hits.loop_left()

    def _broken_off(self, attempt: Any) -> bool:
        """An exception of the user's own ended the attempt, which is not run again, and perhaps the step of an optimizer around it, which
        then has no hook after it."""
        state = self.state
        if state.closure_level is not None and len(attempt.tape.attempts) < state.closure_level:
            state.closure_level = None
        if attempt.noted is not None:
            attempt.noted.written = ()
        return False

    def _is_spoiled(self, attempt: Any) -> bool:
        """Whether leaves that no optimizer's step wrote are not finite at the end of the attempt, which then is run again."""
        noted: Noted = attempt.noted
        if noted.stepped and noted.backwards == 1:
            noted.policy.handwork.ordinary()
        pairs = noted.leaves.pairs() if noted.leaves is not None else ()
        bad = [now for now, before in pairs if not finite(now) and finite(before)]
        if bad:
            return self._hits.at_end("parameter", attempt, bad)
        if not noted.policy.handwork.by_hand and self._hits.pending is None:
            noted.leaves = None
            noted.policy.handwork.forget()
        return False

    # ---- replays ----

    def expect_replay(self) -> None:
        if self.state.found is not None and self.state.steps_again is None:
            self._conclusion.expect(self.state.found)

    def begin_replay(self, attempt: Any) -> None:
        state, found = self.state, self.state.found
        assert found is not None
        if state.steps_again is not None:
            state.steps_again.prepare(attempt)
            return
        state.cruise_no_more()
        state.due = None
        state.scaling.force_one = found.scale_one
        self._grads = [(leaf, leaf.grad) for leaf in state.registry.leaves()] if found.what == "exception" else []
        self._random = _compat.random_state()
        put_back_state(attempt.noted, state.registry, scale_one=found.scale_one)
        state.replay = Replay(state.registry)
        carried = [value for name, value in attempt.names.items() if name not in attempt.site.target]
        state.replay.open(attempt.batch, carried)

    def close_trace(self) -> None:
        if self.state.replay is not None:
            self.state.replay.close()

    def end_replay(self, attempt: Any, error: BaseException | None, reasons: list[str]) -> None:
        state = self.state
        if state.steps_again is not None:
            state.steps_again.over(attempt, error)
        if state.trial is not None:
            os.write(state.trial, b"1" if self._conclusion.would_replay(error) else b"0")
            os._exit(0)
        if isinstance(error, KeyboardInterrupt):
            self._conclusion.interrupted()
        elif not self._conclusion.replayed(error, reasons):
            self._go_on()

    def _go_on(self) -> None:
        """There was no incident: the user's exception takes its way, and training may go on."""
        state = self.state
        for leaf, grad in self._grads:
            leaf.grad = grad
        torch.set_rng_state(self._random)
        state.recorder.withdraw()
        state.found, state.replay = None, None
        state.runtime.diversion.stop()

    def replay_failed(self, attempt: Any, fault: Exception) -> None:
        if self.state.trial is not None or self.state.steps_again is not None:
            os.kill(os.getpid(), signal.SIGKILL)  # the child of a trial must not go on in the user's code
        self._conclusion.failed(fault)


def _runs_inside_itself(attempt: Any) -> bool:
    """Whether another attempt of the same place still needs the copy that they share."""
    return any(other.site_id == attempt.site_id and other is not attempt for other in attempt.tape.attempts)
