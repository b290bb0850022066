"""Builds the one document from what is known at the end. It holds no NaN and no text that JSON or SQLite could refuse."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from whynan.core.incident import Diagnosis, Incident, Remedy, Run
from whynan.core.operands import operands
from whynan.core.records import Operand, Operation, Site, TensorStats, Trend
from whynan.core.session import Birth, Kind, NotReproduced, Session
from whynan.report.model import (
    SCHEMA,
    CausePart,
    Document,
    Extent,
    FirstSeen,
    IncidentPart,
    Input,
    Line,
    Link,
    Number,
    Origin,
    Output,
    RemedyPart,
    ReplayPart,
    RunPart,
    TrendPart,
    Warned,
)


def document(run: Run, incidents: Iterable[Incident], warnings: Sequence[Warned] = ()) -> Document:
    return Document(SCHEMA, run_part(run), list(warnings), [incident_part(run, incident) for incident in incidents])


def run_part(run: Run) -> RunPart:
    return RunPart(
        script=text(run.script),
        argv=texts(run.argv),
        backend=text(run.backend),
        backend_version=text(run.backend_version),
        steps=run.steps,
        status=run.status,
        exit_code=run.exit_code,
        overhead=number(run.overhead),
        limits=texts(run.limits),
    )


def incident_part(run: Run, incident: Incident) -> IncidentPart:
    session, birth = incident.session, incident.birth
    return IncidentPart(
        step=session.step,
        kind=kind_of(session, birth),
        phase=birth.phase if birth else None,
        first_seen=first_seen(session),
        origin=born(birth) if birth else unplaced(session),
        chain=[link(session.operations[index]) for index in birth.chain if index < len(session.operations)] if birth else [],
        causes=[cause(diagnosis, fallback(run, session, birth)) for diagnosis in incident.diagnoses],
        remedies=[remedy(one) for one in incident.remedies],
        replay=replay(session),
        trend=trend(session.trend),
        folder=optional(incident.folder),
        course=[Extent(one.step, number(one.min), number(one.max)) for one in session.course],
    )


def kind_of(session: Session, birth: Birth | None) -> Kind:
    if birth is not None:
        return birth.kind
    if session.kind is not None:
        return session.kind
    seen = [seed.stats for seed in session.seeds if seed.stats is not None]
    return "inf" if seen and not any(stats.nan for stats in seen) and any(stats.inf for stats in seen) else "nan"


def first_seen(session: Session) -> FirstSeen:
    names = session.names or ((session.exception,) if session.exception else ())
    return FirstSeen(session.what, texts(names))


def born(birth: Birth) -> Origin:
    operation, site = birth.operation, birth.site
    return Origin(
        direction=birth.direction,
        op=text(birth.op),
        call=optional(site.call) if site else None,
        autograd_node=optional(operation.node),
        file=text(site.file) if site else None,
        line=site.line if site else None,
        column=site.column if site else None,
        function=text(site.function) if site else None,
        source=text(site.source) if site else None,
        expression=optional(site.expression) if site else None,
        module=optional(operation.module),
        samples=integers(birth.samples),
        dataset_indices=integers(birth.dataset_indices),
        parameters=None if birth.parameters is None else texts(birth.parameters),
        inputs=[read(operand) for operand in operands(operation)],
        output=output(operation),
        since_made=optional(birth.origin_name) if birth.since_made else None,
    )


def read(operand: Operand) -> Input:
    return Input(text(operand.role), *statistics(operand.stats), integers(operand.lowest), integers(operand.highest))


def unplaced(session: Session) -> Origin:
    parameters = None if session.parameters is None else texts(session.parameters)
    return Origin(None, None, None, None, None, None, None, None, None, None, None, None, None, parameters, [], None)


def output(operation: Operation) -> Output | None:
    """The first result that is not finite: a fused optimizer step has many."""
    sick = next((stats for stats in operation.outputs if not stats.finite), None)
    shown = sick or next(iter(operation.outputs), None)
    return Output(*statistics(shown)) if shown else None


Statistics = tuple[list[int], str, Number | None, Number | None, Number | None, int, int, int, int | None]


def statistics(stats: TensorStats) -> Statistics:
    least, most, absmax = measured(stats.min), measured(stats.max), measured(stats.absmax)
    return list(stats.shape), text(stats.dtype), least, most, absmax, stats.nan, stats.posinf, stats.neginf, stats.zero


def link(operation: Operation) -> Link:
    site = operation.site
    return Link(
        op=text(operation.op),
        call=optional(site.call) if site else None,
        autograd_node=optional(operation.node),
        file=text(site.file) if site else None,
        line=site.line if site else None,
        function=text(site.function) if site else None,
        module=optional(operation.module),
    )


def fallback(run: Run, session: Session, birth: Birth | None) -> Line:
    site = (birth.site if birth else None) or session.site
    return line(site) if site else Line(text(run.script), None)


def cause(diagnosis: Diagnosis, elsewhere: Line) -> CausePart:
    return CausePart(
        name=text(diagnosis.cause),
        confidence=number(diagnosis.confidence),
        summary=text(diagnosis.summary),
        evidence=texts(diagnosis.evidence),
        line=line(diagnosis.site) if diagnosis.site else elsewhere,
        why=text(diagnosis.why),
        doubt=text(diagnosis.doubt),
    )


def line(site: Site) -> Line:
    return Line(text(site.file), site.line)


def remedy(one: Remedy) -> RemedyPart:
    return RemedyPart(
        name=text(one.name),
        cause=text(one.cause),
        change=text(one.change),
        patch=optional(one.patch),
        status=one.status,
        reason=optional(one.reason),
        proof=None,
    )


def replay(session: Session) -> ReplayPart:
    result = session.replay
    if isinstance(result, NotReproduced):
        return ReplayPart(False, text(result.reason), number(result.seconds), optional(result.command))
    return ReplayPart(True, None, number(result.seconds), None)


def trend(course: Trend) -> TrendPart:
    return TrendPart(
        steps=list(course.steps),
        loss=numbers(course.loss),
        grad_norm=numbers(course.grad_norm),
        update_ratio=numbers(course.update_ratio),
        lr=numbers(course.lr),
    )


def number(value: float) -> Number:
    """JSON has no NaN and no infinity; a number is never lost."""
    if isinstance(value, int) or math.isfinite(value):
        return value
    if math.isnan(value):
        return "nan"
    return "inf" if value > 0 else "-inf"


def measured(value: float | None) -> Number | None:
    return None if value is None else number(value)


def numbers(values: Iterable[float | None]) -> list[Number | None]:
    return [measured(value) for value in values]


def integers(values: Iterable[int] | None) -> list[int] | None:
    return None if values is None else [int(value) for value in values]


def text(value: str) -> str:
    """File names that are no UTF-8 arrive with lone surrogates, which neither JSON nor SQLite can hold."""
    return value.encode("utf-8", "backslashreplace").decode("utf-8")


def optional(value: str | None) -> str | None:
    return None if value is None else text(value)


def texts(values: Iterable[str]) -> list[str]:
    return [text(value) for value in values]
