"""`--trace-step`: a step of this run is recorded from its start as it runs, instead of being run again."""

from __future__ import annotations

from whynan.torch.replay import Replay
from whynan.torch.run_state import RunState


class LiveTrace:
    def __init__(self, state: RunState) -> None:
        self._state = state

    def begin(self) -> None:
        """The run begins; the first step begins with it."""
        if self._state.trace_step == 0:
            self._open()

    def step_counted(self) -> None:
        state = self._state
        if state.replay is not None:
            state.replay.marks.append((len(state.replay.trace.operations), state.counter.done))
        elif state.counter.done == state.trace_step:
            self._open()

    def _open(self) -> None:
        replay = self._state.replay = Replay(self._state.registry, live=True)
        replay.marks.append((0, self._state.counter.done))
        if self._state.closure_level is not None:  # inside an optimizer's step
            replay.trace.where.optimizer_depth = 1
        replay.open(())
