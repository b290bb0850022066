"""The document as JSON, whole or in the parts that a run's folder keeps, and back."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from whynan.core.incident import Incident, Run
from whynan.report.document import incident_part, run_part
from whynan.report.model import SCHEMA, Document, IncidentPart, RunPart, Warned


def render(document: Document) -> bytes:
    return msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"


def encode_run(run: Run) -> str:
    return msgspec.json.encode(run_part(run)).decode()


def encode_incident(run: Run, incident: Incident) -> str:
    return msgspec.json.encode(incident_part(run, incident)).decode()


def assemble(run: str, warnings: Sequence[tuple[int, str, str]], incidents: Sequence[str]) -> Document:
    """The document from its stored parts. Raises ValueError where they aren't what this version writes."""
    return Document(
        schema=SCHEMA,
        run=msgspec.json.decode(run, type=RunPart),
        warnings=[Warned(*warning) for warning in warnings],
        incidents=[msgspec.json.decode(incident, type=IncidentPart) for incident in incidents],
    )


def render_parts(run: str, warnings: Sequence[tuple[int, str, str]], incidents: Sequence[str]) -> bytes:
    return render(assemble(run, warnings, incidents))
