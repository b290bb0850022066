"""What the parts of the backend share about the run that they watch."""

from __future__ import annotations

import os
import shlex
import sys
import weakref
from collections.abc import Callable
from time import perf_counter
from typing import Any

from whynan.core.backend import Recorder, Stopped
from whynan.core.faults import is_ours
from whynan.torch import _compat
from whynan.torch.choice import Steps
from whynan.torch.distributed import several_ranks
from whynan.torch.gate import Gate
from whynan.torch.guard import Guard
from whynan.torch.history import History
from whynan.torch.incidents import Found
from whynan.torch.loader import LoaderWatch
from whynan.torch.policy import Policies
from whynan.torch.registry import Registry
from whynan.torch.replay import Replay
from whynan.torch.scaling import Scaling
from whynan.torch.signs import SignWatch
from whynan.torch.trend import TrendWatch


class RunState:
    """`found`: the hit whose step is about to be run again, or is; `replay`: the recorder while it is, or while a step of this run is
    traced live. `finish` is raised by every hook once an incident was recorded. `spent`: seconds in the hooks. `trial`: in a child that
    only tries whether a step fails again, the descriptor of its answer. `closure_level`: while an optimizer runs a closure, how many
    attempts there were around its step. `several`: other ranks were met. `several_threads`: backwards ran in more than one thread.
    `history`: what is kept of the last steps; `steps_again`: in a child that makes them again, what does. `cruise`: steps go as those
    before did; `due`: what a backward ran over whose gradients were not looked at yet."""

    def __init__(self, recorder: Recorder, trace_step: int | None) -> None:
        self.recorder, self.trace_step = recorder, trace_step
        self.watching = False
        self.limits: list[str] = []
        self.guard = Guard(self.give_up)
        self.registry = Registry(self.guard, self.cruise_no_more)
        self.gate = Gate()
        self.counter = Steps()
        self.policies = Policies()
        self.trend = TrendWatch()
        self.signs = SignWatch(self.trend, recorder.warning)
        self.loaders = LoaderWatch(self.guard)
        self.scaling = Scaling(self.registry.met_scaler, self.guard, self._scaler_stepped)
        self.runtime: Any = None
        self.found: Found | None = None
        self.replay: Replay | None = None
        self.left_open: Replay | None = None
        self.finish: Stopped | None = None
        self.trial: int | None = None
        self.closure_level: int | None = None
        self.spent = 0.0
        self.history: History | None = None
        self.steps_again: Any = None
        self.plain_engine = _compat.engine()
        self.cruise: Any = None
        self.due: Any = None
        self.compiles = False
        self.several = False
        self.several_threads = False
        here = weakref.ref(self)
        os.register_at_fork(after_in_child=lambda: _watch_no_more(here()))

    @property
    def stack(self) -> list[Any]:
        """The attempts that a replay may choose: inside an optimizer's step only those around it."""
        attempts = self.runtime.stack if self.runtime is not None else []
        return attempts if self.closure_level is None else attempts[: self.closure_level]

    @property
    def replaying(self) -> bool:
        return self.replay is not None and not self.replay.live

    def give_up(self, doing: str, error: BaseException) -> None:
        """A fault of ours: one line, and watching ends."""
        if self.watching:
            self.watch_no_more()
            self.limits.append(f"watching ended while {doing}: {type(error).__name__}: {error}")
            print(f"whynan: a fault of its own while {doing}, watching ends: {type(error).__name__}: {error}", file=sys.__stderr__)

    def watch_no_more(self) -> None:
        self.watching = False
        self.cruise_no_more()
        self.due = None
        self.leave_open()

    def _scaler_stepped(self, scaler: Any, skipped: bool) -> None:
        if self.watching and self.replay is None:
            self.signs.scaler_stepped(max(self.counter.done - 1, 0), scaler, skipped)

    def cruise_no_more(self) -> None:
        """The next step is looked at from all sides. (While there is a cruise, everything is watched and nothing is run again.)"""
        if self.cruise is not None:
            self.cruise = None
            self.runtime.unsettle()

    def leave_open(self) -> None:
        """Record no more. What was opened deep in the user's frames is closed with the run."""
        if self.replay is not None:
            self.replay.trace.done, self.left_open, self.replay = True, self.replay, None

    def fault(self, doing: str, error: Exception) -> None:
        """What one of our hooks met: the user's own goes on its way, a fault of ours ends the watch."""
        if not is_ours(error):
            raise error
        self.give_up(doing, error)

    def unseen(self, doing: str, check: Callable[..., object], *args: Any) -> None:
        """Run a check of ours so that neither a compiler nor the recorder nor a mode of the program's sees it."""
        start = perf_counter()
        compiler = _compat.set_compiler(None) if self.compiles else None
        try:
            with self.replay.trace.pause() if self.replay is not None else _compat.no_modes():
                check(*args)
        except Exception as error:
            self.fault(doing, error)
        finally:
            if self.compiles:
                _compat.set_compiler(compiler)
            self.spent += perf_counter() - start

    def meet_others(self) -> None:
        self.several = self.several or several_ranks()

    def trace_command(self, step: int) -> str:
        """The command that traces `step` in a fresh run."""
        run = self.recorder.run
        return f"whynan run --trace-step {step} {run.script} {shlex.join(run.argv)}".rstrip()


def _watch_no_more(state: RunState | None) -> None:
    """A forked child is another process: its steps are not those of the run."""
    if state is not None:
        state.watch_no_more()
