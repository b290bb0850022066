"""From a finished trace to an incident: name things, locate the birth, rank the causes."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from whynan.causes import catalogue
from whynan.core.course import with_course
from whynan.core.explain import explain, trials
from whynan.core.incident import Incident
from whynan.core.locate import locate
from whynan.core.places import site_of, user_frame
from whynan.core.prescribe import prescribe
from whynan.core.records import Site
from whynan.core.session import Birth, NotReproduced, Reproduced, Seed, Session, What
from whynan.core.trials import Trial
from whynan.core.user_code import is_user_file
from whynan.torch.constants import never_finite
from whynan.torch.measure import measure
from whynan.torch.names import Names, collect
from whynan.torch.registry import Registry
from whynan.torch.trace import Trace
from whynan.torch.trained import is_trained

Wanted = Callable[[], Sequence[Trial]]
Experiment = Callable[["Found", Session, Birth, Names, Wanted], None]


@dataclass(slots=True)
class Found:
    """What the gate found: the bad tensors (losses, leaves with a bad gradient, parameters, buffers) and where the user's code stood.
    `values`: what of them is not finite; `names` are those of the tensors by their ids, as long as the variables that held them are still
    bound to them."""

    what: What
    tensors: Sequence[torch.Tensor]
    step: int
    attempt: Any = None
    site: Site | None = None
    error: BaseException | None = None
    scale_one: bool = False
    kind: Any = None
    values: list[Any] = field(default_factory=list)
    names: dict[int, str] = field(default_factory=dict)

    @property
    def bad(self) -> Sequence[torch.Tensor]:
        """What is not finite: of a gradient its values, not the leaves."""
        return self.values if self.what == "gradient" and self.values else self.tensors


def scopes() -> list[dict[str, Any]]:
    """The variables of the user's running frames, innermost first, and those of their modules."""
    found, frame = [], sys._getframe(1)
    while frame is not None:
        if is_user_file(frame.f_code.co_filename):
            found.append(dict(frame.f_locals))
            if frame.f_globals is not frame.f_locals:
                found.append(dict(frame.f_globals))
        frame = frame.f_back  # type: ignore[assignment]
    return found


def user_site(depth: int = 1) -> Site | None:
    frame = user_frame(sys._getframe(depth + 1))
    return site_of(frame) if frame is not None else None


def seeds(found: Found, trace: Trace, again: Iterable[torch.Tensor]) -> tuple[Seed, ...]:
    """What went bad in the replay, with the operation that wrote it last. `again` holds the values themselves."""
    if found.what == "exception":
        last = next((op.index for op in reversed(trace.operations) if op.failed or any(not o.stats.finite for o in op.inputs)), None)
        return (Seed("exception", "", last),)
    return tuple(Seed(found.what, "", trace.last_writer(t), measure(t)) for t in again)


def conclude(
    found: Found,
    trace: Trace | None,
    registry: Registry,
    replay: Reproduced | NotReproduced,
    seed: tuple[Seed, ...],
    extra: dict[str, Any],
    experiment: Experiment | None = None,
) -> Incident:
    """`extra`: the session's fields that the backend knows (trend, dataset indices). `experiment` makes trials and puts their outcomes into
    the session."""
    ran = {id(m) for m in trace.modules if m is not None} if trace is not None else set()
    names = collect(scopes(), ran | {id(p) for p in registry.leaves()})
    names.tensors.update({key: name for key, name in found.names.items() if key not in names.tensors})
    bad = _named(found.tensors, names, found.what)
    session = Session(
        step=found.step,
        what=found.what,
        names=bad,
        seeds=seed if isinstance(replay, Reproduced) else (),
        operations=trace.finished(names.modules, names.tensors) if trace is not None else [],
        parameters=_parameters(found, names, registry, trace) if found.what in ("gradient", "parameter") else None,
        optimizers=registry.optimizer_states(),
        made=registry.origins.named(names.tensors),
        never_finite=never_finite(names, registry, found.step),
        replay=replay,
        site=found.site,
        exception=f"{type(found.error).__name__}: {found.error}" if found.error is not None else None,
        kind=found.kind or ("nan" if any(torch.isnan(t).any() for t in found.bad) else "inf"),
        **extra,
    )
    tried = (lambda birth, wanted: experiment(found, session, birth, names, wanted)) if experiment is not None else None
    return diagnose(session, tried)


def was_spoiled_before(incident: Incident, registry: Registry) -> bool:
    """Whether the birth is a trained parameter that was bad when the step began: it was written by the step before."""
    birth = incident.birth
    if birth is None or birth.direction == "optimizer":
        return False
    carried = [o for o in birth.operation.inputs if not o.stats.finite and o.source == "state"]
    return birth.op == "param" and bool(registry.leaves()) or bool(carried)


def unplaced(incident: Incident, command: str) -> Incident:
    """The same incident without a place, with the command that finds it."""
    session, birth = incident.session, incident.birth
    name = birth.origin_name if birth is not None and birth.origin_name else "a value that the step before left behind"
    seconds = session.replay.seconds
    session.replay = NotReproduced(f"{name} was not finite already when the step began: the update before it wrote it", command, seconds)
    return Incident(session, None)


def diagnose(session: Session, experiment: Callable[[Birth, Wanted], None] | None = None) -> Incident:
    birth = locate(session)
    if birth is None:
        if isinstance(session.replay, Reproduced):
            session.replay = NotReproduced("the record of the replayed step does not lead to an operation", seconds=session.replay.seconds)
        return Incident(session, None)
    causes = catalogue()
    if experiment is not None:
        experiment(birth, functools.partial(trials, birth, session, causes))
    diagnoses = explain(birth, session, causes)
    birth = with_course(birth, diagnoses, session, causes)
    return Incident(session, birth, diagnoses, prescribe(birth, diagnoses, causes))


def _named(tensors: Sequence[torch.Tensor], names: Names, what: What) -> tuple[str, ...]:
    known = [names.of(t) for t in tensors]
    if what in ("loss", "exception"):
        return tuple(n for n in known if n)
    return tuple(sorted(n or f"tensor of shape {tuple(t.shape)}" for n, t in zip(known, tensors, strict=True)))


def _parameters(found: Found, names: Names, registry: Registry, trace: Trace | None) -> tuple[str, ...] | None:
    """Those of the bad leaves that are trained; an input may be differentiated by as well."""
    return _named([t for t in found.tensors if is_trained(t, registry, trace)], names, found.what) or None
