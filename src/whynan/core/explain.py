"""Ranks the causes that the record supports: every probe is asked, none of them wins by coming first."""

from __future__ import annotations

from dataclasses import replace

from whynan.core.catalogue import Advice, Catalogue, Cause, Entry, Verdict
from whynan.core.incident import Diagnosis
from whynan.core.records import Operation, Site
from whynan.core.session import Birth, Session
from whynan.core.trials import Trial

LEAST = 0.2  # below it a verdict is a guess that would only take room
SUPPORTED = 0.6  # from here on a run-level cause stands before the mechanism
MOST = 6


def explain(birth: Birth, session: Session, catalogue: Catalogue) -> tuple[Diagnosis, ...]:
    """The diagnoses, the likeliest first; empty where no cause of the catalogue fits."""
    birth = _as_written(birth)
    asked = ((entry.cause, _verdict(entry, birth, session)) for entry in catalogue)
    found = [(cause, verdict) for cause, verdict in asked if verdict is not None and verdict.confidence >= LEAST]
    found.sort(key=_rank)
    return tuple(_diagnosis(cause, verdict, birth, session) for cause, verdict in found[:MOST])


def trials(birth: Birth, session: Session, catalogue: Catalogue) -> tuple[Trial, ...]:
    """Those that the causes want which are in question, each once, the likeliest cause's first."""
    birth = _as_written(birth)
    asked = [(entry.cause, _verdict(entry, birth, session)) for entry in catalogue if entry.cause.trials]
    found = [(verdict.confidence, cause.trials) for cause, verdict in asked if verdict is not None]
    found.sort(key=lambda one: -one[0])
    return tuple(dict.fromkeys(trial for _, wanted in found for trial in wanted))


def _as_written(birth: Birth) -> Birth:
    """What the user wrote into a backward pass is the derivative of nothing: it is judged by its own operands, as in a forward pass."""
    return replace(birth, direction="forward") if birth.operation.by_hand else birth


def _verdict(entry: Entry, birth: Birth, session: Session) -> Verdict | None:
    """A probe that fails costs its own cause, not the report."""
    try:
        return entry.probe(birth, session)
    except Exception as fault:
        session.faults.append(f"the cause {entry.cause.name} could not be tried: {type(fault).__name__}: {fault}")
        return None


def _rank(found: tuple[Cause, Verdict]) -> tuple[bool, float, str]:
    cause, verdict = found
    before_mechanism = cause.level == "run" and verdict.confidence >= SUPPORTED
    return not before_mechanism, -verdict.confidence, cause.name


def _diagnosis(cause: Cause, verdict: Verdict, birth: Birth, session: Session) -> Diagnosis:
    site = verdict.site or birth.site
    return Diagnosis(
        cause=cause.name,
        confidence=round(min(verdict.confidence, 0.99), 3),
        summary=verdict.summary,
        evidence=verdict.evidence,
        site=site,
        why=verdict.why or cause.why,
        doubt=verdict.doubt or cause.doubt,
        operation=_operation_at(site, birth, session),
        ruled_out=tuple(advice.name for advice in cause.remedies if not _applies(advice, birth, session)),
    )


def _operation_at(site: Site | None, birth: Birth, session: Session) -> Operation | None:
    """The operation that the line of the mistake ran: the birth's own or, of a derivative, that of the forward pass."""
    if site != birth.site:
        return next((op for op in session.operations if op.site == site), None)
    if birth.direction != "backward":
        return birth.operation
    return next((op for op in session.operations if op.index == birth.operation.forward), None)


def _applies(advice: Advice, birth: Birth, session: Session) -> bool:
    """A condition that fails costs the advice, not the report."""
    try:
        return advice.when is None or advice.when(birth, session)
    except Exception as fault:
        session.faults.append(f"the remedy {advice.name} could not be judged: {type(fault).__name__}: {fault}")
        return False
