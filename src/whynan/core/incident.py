"""What is known at the end about one incident and about the run, ready to be presented: records, diagnoses, remedies."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from whynan.core.records import Operation, Site
from whynan.core.session import Birth, Session


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One cause that the record supports. `site` is the line of the mistake, `why` explains the mechanism in one or two sentences
    and `doubt` says what would make the diagnosis wrong. `operation` is what ran at that line, where the record has it; `ruled_out` names
    the cause's remedies that do not apply."""

    cause: str
    confidence: float
    summary: str
    evidence: tuple[str, ...]
    site: Site | None
    why: str = ""
    doubt: str = ""
    operation: Operation | None = None
    ruled_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Remedy:
    """A change that is advised: `change` in the user's own words (lines that start with - and +), `patch` a unified diff or None."""

    name: str
    cause: str
    change: str
    patch: str | None = None
    status: Literal["proven", "failed", "not-tried"] = "not-tried"
    reason: str | None = None


@dataclass(slots=True)
class Incident:
    """`birth` is None where no place could be found; `session.replay` then says why. `folder` is where its files are kept."""

    session: Session
    birth: Birth | None
    diagnoses: tuple[Diagnosis, ...] = ()
    remedies: tuple[Remedy, ...] = ()
    folder: str | None = None


@dataclass(slots=True)
class Run:
    """One run of a script: `overhead` is the share of its time spent in our own hooks, `limits` says in words what could not be done.
    `launch` is the same for all ranks that were started together."""

    script: str
    argv: tuple[str, ...] = ()
    backend: str = "torch"
    backend_version: str = ""
    steps: int = 0
    status: Literal["running", "clean", "incident", "error"] = "running"
    exit_code: int | None = None
    overhead: float = 0.0
    limits: list[str] = field(default_factory=list)
    rank: int | None = None
    launch: str | None = None
