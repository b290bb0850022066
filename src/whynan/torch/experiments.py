"""Before the causes of an incident are judged, a forked child makes the steps that led to it once more: as they were, recorded, and with
one thing changed. Whatever becomes of the child, the parent's run stays as it is."""

from __future__ import annotations

import gc
import os
import select
import signal
import warnings
from collections.abc import Sequence
from time import perf_counter
from typing import Any

import torch

from whynan.core.session import Birth, Earlier, Extent, Session
from whynan.core.trials import Trial, Untried
from whynan.record.wire import decode
from whynan.torch.distributed import several_ranks
from whynan.torch.history import History
from whynan.torch.incidents import Found, Wanted
from whynan.torch.names import Names
from whynan.torch.replay import Replay
from whynan.torch.snapshot import Snapshot
from whynan.torch.steps_again import Known, StepsAgain

LIMIT = 10.0  # seconds for everything together
STEPS, RECORDING = 4.0, 3.0  # seconds of them that are planned for making steps again, and for recording some
MORE = 1  # trials that may be wanted besides
SHORT, FEW = 0.4, 6  # where no cause wants a trial: seconds, and steps' time, for both


class Experiments:
    def __init__(self, state: Any) -> None:
        self._state = state

    @property
    def _history(self) -> History | None:
        return self._state.history  # type: ignore[no-any-return]

    def make(self, replay: Replay, found: Found, session: Session, birth: Birth, names: Names, wanted: Wanted) -> None:
        """Puts what was learned into the session. (In the child this raises `Rerun`.) `replay`: of the failing step; `names`: as the
        report gives them. `wanted`: the trials that the causes in question want, given what the session knows; once an earlier step is
        known they may be more."""
        trials = wanted()
        snapshot, reason = self._start(found, trials)
        if snapshot is None or self._history is None:
            session.trials = {trial.name: Untried(reason) for trial in trials}
            return
        given, recording = self._history.since(snapshot, found.step) or [], self._time(found, snapshot, trials)[1]
        reader, writer = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            child = os.fork()
        if child == 0:
            os.close(reader)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(int(LIMIT) + 5)  # whatever the user's code does, this process ends
            torch.set_num_threads(1)
            gc.disable()  # it would write into every object, and the pages of memory are the parent's
            known = Known(birth, replay.names, names)
            StepsAgain(self._state, found, known, snapshot, given, self._history.answers, writer, recording).begin(session, wanted)
        os.close(writer)
        try:
            _take_over(_answers(reader), session)
        finally:
            os.close(reader)
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        for trial in trials:
            session.trials.setdefault(trial.name, Untried(f"there was no time for it within {LIMIT:.0f} s"))

    def _start(self, found: Found, trials: Sequence[Trial]) -> tuple[Snapshot | None, str]:
        """The earliest snapshot from which there is time to make the steps again, or why there is none."""
        if self._history is None:
            return None, "no steps are kept (--history off)"
        if self._history.off is not None:
            return None, self._history.off
        if several_ranks():
            return None, "the other ranks would not make the steps again"
        if not hasattr(os, "fork") or torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
            return None, "steps are made again in a forked process, which can't be beside an accelerator"
        for snapshot in self._history.snapshots:
            if snapshot.site_id != found.attempt.site_id or snapshot.step >= found.step:
                continue
            seconds = (found.attempt.started - snapshot.at) * (1 + len(trials) + MORE * bool(trials))
            if seconds <= self._time(found, snapshot, trials)[0] and self._history.since(snapshot, found.step) is not None:
                return snapshot, ""
        return None, "no earlier state was kept from which there is time to make the steps again"

    def _time(self, found: Found, snapshot: Snapshot, trials: Sequence[Trial]) -> tuple[float, float]:
        """Seconds for making steps again, and for recording them."""
        if trials:
            return STEPS, RECORDING
        short = SHORT + FEW * (found.attempt.started - snapshot.at) / (found.step - snapshot.step)
        return short, short


def _answers(reader: int) -> bytes:
    """All that the child writes until it ends or time is up."""
    end, found = perf_counter() + LIMIT, b""
    while (left := end - perf_counter()) > 0:
        ready, _, _ = select.select([reader], [], [], left)
        part = os.read(reader, 1 << 16) if ready else b""
        if not part:
            break
        found += part
    return found


def _take_over(data: bytes, session: Session) -> None:
    for message in decode(data):
        if isinstance(message, Earlier):
            session.earlier = message
        elif isinstance(message, Extent):
            session.course += (message,)
        else:
            session.trials[message[0]] = message[1]
