"""Ranks the causes that the record supports: every probe is asked, none of them wins by coming first."""

from __future__ import annotations

from whynan.core.catalogue import Catalogue, Cause, Entry, Verdict
from whynan.core.incident import Diagnosis
from whynan.core.session import Birth, Session

LEAST = 0.2  # below it a verdict is a guess that would only take room
SUPPORTED = 0.6  # from here on a run-level cause stands before the mechanism
MOST = 6


def explain(birth: Birth, session: Session, catalogue: Catalogue) -> tuple[Diagnosis, ...]:
    """The diagnoses, the likeliest first; empty where no cause of the catalogue fits."""
    asked = ((entry.cause, _verdict(entry, birth, session)) for entry in catalogue)
    found = [(cause, verdict) for cause, verdict in asked if verdict is not None and verdict.confidence >= LEAST]
    found.sort(key=_rank)
    return tuple(_diagnosis(cause, verdict, birth) for cause, verdict in found[:MOST])


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


def _diagnosis(cause: Cause, verdict: Verdict, birth: Birth) -> Diagnosis:
    return Diagnosis(
        cause=cause.name,
        confidence=round(min(verdict.confidence, 0.99), 3),
        summary=verdict.summary,
        evidence=verdict.evidence,
        site=verdict.site or birth.site,
        why=verdict.why or cause.why,
        doubt=verdict.doubt or cause.doubt,
    )
