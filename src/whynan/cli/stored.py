"""A run's folder as the document it was written from."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from whynan.record.store import StoredRun, UnreadableRun, read
from whynan.report.json import assemble
from whynan.report.model import Document
from whynan.report.words import CUT_OFF


def load(folder: Path) -> Document:
    """Raises a usage error with one sentence where the folder holds no run that this version can read."""
    try:
        stored = read(folder)
        document = assemble(stored.run, stored.warnings, stored.incidents)
    except UnreadableRun as error:
        raise click.UsageError(str(error)) from error
    except (ValueError, TypeError) as error:
        raise click.UsageError(f"the run in {folder} is broken: {error}") from error
    return document if stored.ended else cut_off(document, stored)


def most_telling(ranks: list[Path]) -> Path:
    """Of the runs of ranks that ran together the first with an incident, rather one whose place is known: what the others got bad
    may have come from that one."""
    return ranks[0] if len(ranks) == 1 else max(ranks, key=weight)


def weight(folder: Path) -> tuple[bool, bool]:
    try:
        incidents = load(folder).incidents
    except click.UsageError:
        return False, False
    return any(incident.replay.reproduced for incident in incidents), bool(incidents)


def cut_off(document: Document, stored: StoredRun) -> Document:
    run = document.run
    run = msgspec.structs.replace(
        run,
        status="incident" if document.incidents else "error",
        steps=max(run.steps, stored.steps),
        limits=[*run.limits, CUT_OFF],
    )
    return msgspec.structs.replace(document, run=run)
