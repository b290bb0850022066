"""The end of an incident: what the replay showed becomes a record, and the run stops."""

from __future__ import annotations

import functools
from typing import Any

from whynan.core.backend import Replayed, Stopped
from whynan.core.incident import Incident
from whynan.core.session import NotReproduced, Reproduced, Session
from whynan.torch.artifacts import writer
from whynan.torch.distributed import several_ranks
from whynan.torch.experiments import Experiments
from whynan.torch.gate import finite
from whynan.torch.incidents import Found, conclude, seeds, unplaced, was_spoiled_before
from whynan.torch.replay import Replay
from whynan.torch.run_state import RunState

UNFINISHED = "the run ended while the step was being run again"


class Conclusion:
    def __init__(self, state: RunState) -> None:
        self._state = state
        self._experiments = Experiments(state)

    def expect(self, found: Found) -> None:
        """Record what is known before a step is run again: should the process end in it, this is what is left."""
        state = self._state
        if state.trial is None:
            result = NotReproduced(UNFINISHED, state.trace_command(found.step))
            state.recorder.expected(Incident(self._bare(found, result), None))

    def replayed(self, error: BaseException | None, reasons: list[str]) -> bool:
        """Judge the replay that has just ended with `error`. Raises `Stopped`, or tells that there was no incident after all."""
        found, replay = self._state.found, self._state.replay
        assert found is not None
        assert replay is not None
        if self._is_same(found, replay, error):
            seed = seeds(found, replay.trace, replay.again)
            if found.what == "exception" and not _leads_back(seed, replay):
                return False
            self.conclude(found, replay, Reproduced(replay.seconds), seed)
        reason = "; ".join(reasons) or self._how_it_ended(found, replay, error)
        self.conclude(found, replay, NotReproduced(reason, self._state.trace_command(found.step), replay.seconds), ())
        return True

    def _is_same(self, found: Found, replay: Replay, error: BaseException | None) -> bool:
        """The body may have swallowed our `Replayed`: what counts is that the values went bad again."""
        if found.what == "exception":
            return type(error) is type(found.error) and str(error) == str(found.error)
        if found.what == "parameter" and error is None:
            replay.again = [t for t in found.tensors if not finite(t)]
        return bool(replay.again)

    def would_replay(self, error: BaseException | None) -> bool:
        """In a trial: whether the step failed again."""
        found, replay = self._state.found, self._state.replay
        return found is not None and replay is not None and self._is_same(found, replay, error)

    def interrupted(self) -> None:
        """The user ended the run during the replay: what was recorded before it stands."""
        state = self._state
        state.watching, state.found, state.replay = False, None, None
        state.finish = Stopped("an incident was recorded")

    def failed(self, fault: Exception) -> None:
        """A fault of ours while a step was run again: the incident stands, without a place."""
        state, found = self._state, self._state.found
        assert found is not None
        result = NotReproduced(f"a fault of whynan's own: {type(fault).__name__}: {fault}", state.trace_command(found.step))
        state.watching, state.replay = False, None
        state.limits.append(result.reason)
        self._record(Incident(self._bare(found, result), None), None)

    def _bare(self, found: Found, result: NotReproduced) -> Session:
        return Session(found.step, found.what, site=found.site, replay=result, trend=self._state.trend.trend)

    def _how_it_ended(self, found: Found, replay: Replay, error: BaseException | None) -> str:
        if replay.trace.fault is not None:
            return f"a fault of whynan's own while recording: {replay.trace.fault}"
        if error is None and several_ranks():
            return "run again without the other ranks, the step stayed finite: the bad value came from one of them"
        if error is None or isinstance(error, Replayed):
            return f"run again, the step stayed finite: the {found.what} did not become non-finite a second time"
        return f"run again, the step ended with {type(error).__name__}: {error}"

    def conclude(self, found: Found, replay: Replay | None, result: Reproduced | NotReproduced, seed: Any) -> None:
        """Record the incident and end the run."""
        state = self._state
        trace, live = (replay.trace, replay.live) if replay is not None else (None, False)
        extra: dict[str, Any] = {"trend": state.trend.trend, "dataset_indices": state.loaders.current}
        if trace is not None and trace.fault is not None:
            state.limits.append(f"a fault of its own while recording the replay: {type(trace.fault).__name__}: {trace.fault}")
        state.watching, state.replay = False, None
        if state.runtime is not None:
            state.runtime.diversion.start()
        once_more = replay if not live and found.attempt is not None else None
        experiment = functools.partial(self._experiments.make, once_more) if once_more is not None else None
        incident = conclude(found, trace, state.registry, result, seed, extra, experiment)
        state.limits += incident.session.faults
        if not live and found.step > 0 and was_spoiled_before(incident, state.registry):
            incident = unplaced(incident, state.trace_command(found.step - 1))
        if replay is not None and live and incident.birth is not None:
            incident.session.step = replay.step_of(incident.birth.operation, found.step)
        batch = found.attempt.batch if found.attempt is not None else ()
        self._record(incident, writer(incident, trace, batch))

    def _record(self, incident: Incident, write: Any) -> None:
        state = self._state
        state.meet_others()
        state.recorder.incident(incident, write)
        state.finish = Stopped("an incident was recorded")
        raise state.finish

    def finish_live(self, found: Found, values: list[Any]) -> None:
        """Where the step was traced as it ran no replay is needed. A trace that began in the middle of it knows less than one."""
        replay, first = self._state.replay, self._state.trace_step
        self._state.leave_open()
        if replay is not None and first is not None and found.step >= first:
            self.conclude(found, replay, Reproduced(replay.seconds), seeds(found, replay.trace, values))


def _leads_back(seed: Any, replay: Replay) -> bool:
    """Whether the last operation before the exception read something non-finite."""
    index = seed[0].operation if seed else None
    return index is not None and any(not o.stats.finite for o in replay.trace.operations[index].inputs)
