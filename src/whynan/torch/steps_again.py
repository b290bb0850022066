"""In a child: the steps that led to an incident are made again, from a snapshot, in the frame of the attempt that failed.

The frame's loop calls `prepare` before each run of the body and `over` after it; in between, `_courses` decides what comes next.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from whynan.core.backend import Rerun
from whynan.core.records import Operation
from whynan.core.session import Birth, Earlier, Extent, Session
from whynan.core.trials import AS_IT_WAS, Failed, Outcome, Survived, Trial, Untried
from whynan.record.wire import Message, encode
from whynan.torch import _compat
from whynan.torch.incidents import Found, Wanted
from whynan.torch.names import Names
from whynan.torch.replay import Replay
from whynan.torch.snapshot import Snapshot
from whynan.torch.trial_watch import TrialWatch

RECORDED = 6  # steps whose record tells how the culprit operand went
RECORDING = 30.0  # times that a recorded step may take as long as another
NEAR = 2  # steps: a run that fails this near to the incident has failed as it did


@dataclass(frozen=True, slots=True)
class Turn:
    """One run of the body. `given`: None for the first of a course, which begins from the snapshot."""

    step: int
    given: Any
    recorded: bool = False


@dataclass(frozen=True, slots=True)
class Known:
    """About the incident: `everything`: the names of all there is, `names`: those of what ran, as the report gives them."""

    birth: Birth
    everything: Names | None
    names: Names


class StepsAgain:
    """`given`: what the steps between the snapshot and the failing one were given, `answers` what iterators gave, by the step. `writer`:
    the descriptor that leads to the parent. `patience`: seconds for recording steps."""

    def __init__(
        self,
        state: Any,
        found: Found,
        known: Known,
        snapshot: Snapshot,
        given: Sequence[Any],
        answers: dict[int, list[Any]],
        writer: int,
        patience: float,
    ) -> None:
        self._state, self._known, self._snapshot, self._writer = state, known, snapshot, writer
        attempt = found.attempt
        self._names, self._undo = attempt.names, attempt.undo
        self._kept = state.history.names(attempt)
        own = found.step, tuple(map(self._names.get, self._kept)), attempt.random, attempt.noted.random
        self._given = [*given, own]
        self._answers = {**answers, found.step: attempt.answers()}
        self._failed_at = found.step
        snapshot.memory.answers = answers.get(snapshot.step, ())
        self._watch = TrialWatch(state)
        self._turn = Turn(snapshot.step, None)
        self._plan: Generator[Turn, bool, None] = iter(())  # type: ignore[assignment]
        self._seconds = (attempt.started - snapshot.at) / max(found.step - snapshot.step, 1)
        self._patience = patience
        self._stack = contextlib.ExitStack()  # for good: the process ends with the trials

    def begin(self, session: Session, wanted: Wanted) -> None:
        """Raises `Rerun`: the body runs again."""
        self._state.runtime.hear_nothing((self._writer,))
        self._stack.enter_context(_compat.eager())
        self._stack.enter_context(_compat.saving_nowhere())
        self._state.steps_again = self
        self._state.finish = None
        self._watch.install()
        self._session = session
        self._plan = self._courses(wanted)
        self._go_on(None)

    # ---- what is made, and in which order ----

    def _courses(self, wanted: Wanted) -> Generator[Turn, bool, None]:
        outcome = yield from self._course(AS_IT_WAS)
        self._tell((AS_IT_WAS.name, outcome))
        if not isinstance(outcome, Failed) or abs(outcome.step - self._failed_at) > NEAR:
            reason = "made again from an earlier state, the steps did not fail as they had"
            for trial in wanted():
                self._tell((trial.name, Untried(reason)))
            return
        for trial in wanted():
            self._tell((trial.name, (yield from self._course(trial))))

    def _course(self, trial: Trial) -> Generator[Turn, bool, Outcome]:
        watch = self._watch
        watch.start(trial)
        recorded = self._recorded() if trial is AS_IT_WAS else frozenset()
        for given in (None, *self._given):
            step = self._snapshot.step if given is None else given[0]
            if not (yield Turn(step, given, step in recorded)):
                return Failed(step, watch.first_loss)
        return Survived(len(self._given) + 1, watch.first_loss, watch.loss)

    def _recorded(self) -> frozenset[int]:
        """Which steps are recorded: as many as there is time for, spread over all up to the incident."""
        first, last = self._snapshot.step, self._failed_at - 1
        most = min(RECORDED, last - first + 1, int(self._patience / max(RECORDING * self._seconds, 1e-9)))
        if most < 2:
            return frozenset({first} if most else ())
        return frozenset(first + round(i * (last - first) / (most - 1)) for i in range(most))

    # ---- the turns of the frame's loop ----

    def prepare(self, attempt: Any) -> None:
        """The body is about to run."""
        state, turn = self._state, self._turn
        if turn.given is None:
            self._snapshot.restore(state.registry)
        else:
            torch.set_rng_state(turn.given[3])
        if turn.recorded:
            state.replay = Replay(state.registry, names=self._known.everything)
            state.replay.open(attempt.batch, ())
        self._watch.begin(turn.step, state.replay)

    def over(self, attempt: Any, error: BaseException | None) -> None:
        """It has run. Raises `Rerun`, or ends the process."""
        fine = self._watch.fine and error is None
        replay, self._state.replay = self._state.replay, None
        if replay is not None and fine:
            self._tell_record(replay)
        self._go_on(fine)

    def _go_on(self, answer: bool | None) -> None:
        try:
            self._turn = next(self._plan) if answer is None else self._plan.send(answer)
        except StopIteration:
            os.kill(os.getpid(), signal.SIGKILL)  # nothing of the user's runs in this process any more, not even an exit handler
        self._hand(self._state.found.attempt)
        raise Rerun

    def _hand(self, attempt: Any) -> None:
        given = self._turn.given
        if given is None:
            self._snapshot.memory.recall(attempt, self._undo, self._names)
        else:
            step, values, random, _ = given
            attempt.go_on(dict(zip(self._kept, values, strict=True)), random, self._answers.get(step, ()))

    # ---- what is told ----

    def _tell(self, message: Message) -> None:
        data = encode(message)
        while data:
            data = data[os.write(self._writer, data) :]

    def _tell_record(self, replay: Replay) -> None:
        trace = replay.trace
        if self._turn.given is None:
            operations = trace.finished(self._known.names.modules, self._known.names.tensors)
            self._session.earlier = Earlier(self._turn.step, operations, self._watch.components)
            self._tell(self._session.earlier)
        extent = _extent(trace.operations, self._known.birth, self._turn.step)
        if extent is not None:
            self._tell(extent)


def _extent(operations: Sequence[Operation], birth: Birth, step: int) -> Extent | None:
    """Of the culprit's first operand, in the operation that stands where the birth's stood."""
    index, culprit = birth.operation.index, birth.operation
    same = [op for op in operations if op.op == culprit.op and op.site == culprit.site and op.direction == culprit.direction]
    operation = next((op for op in same if op.index == index), same[0] if len(same) == 1 else None)
    stats = operation.inputs[0].stats if operation is not None and operation.inputs else None
    if stats is None or stats.min is None or stats.max is None:
        return None
    return Extent(step, stats.min, stats.max)
