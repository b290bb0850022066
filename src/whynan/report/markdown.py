"""The report as Markdown, for a bug report. Text from the user's run stays text: no markup, no HTML, no mention of anybody."""

from __future__ import annotations

import re
from collections.abc import Iterator

from whynan.report import words
from whynan.report.model import Document, IncidentPart
from whynan.report.plain import excerpt, visible

WIDEST = 120
SPECIAL = re.compile(r"[\\`*_{}\[\]()<>#+!|~&@$:-]")
ENTITIES = {"<": "&lt;", ">": "&gt;", "&": "&amp;", "@": "&#64;", "|": "&#124;"}


def render(document: Document) -> str:
    blocks = [block for incident in document.incidents for block in incident_blocks(document, incident)]
    return "\n\n".join([*(blocks or [clean_line(document)]), environment(document)]) + "\n"


def incident_blocks(document: Document, incident: IncidentPart) -> Iterator[str]:
    yield f"## {escaped(words.what(incident))}"
    yield "### Where"
    yield from where(incident)
    yield "### Evidence"
    yield bullets(words.evidence(incident))
    if incident.causes and incident.causes[0].why:
        yield "### Why"
        yield escaped(incident.causes[0].why)
    if incident.remedies:
        yield "### Help"
        yield from remedies(incident)
    if notes := words.notes(document, incident):
        yield "### Note"
        yield bullets(notes)
    if commands := words.commands(document, incident):
        yield "### Next"
        yield fenced("\n".join(commands), "sh")


def where(incident: IncidentPart) -> Iterator[str]:
    origin = incident.origin
    if origin.op is None:
        yield f"No place was found; {escaped(words.circumstances(incident))}."
        return
    if origin.file is not None:
        yield code(f"{origin.file}:{origin.line}") + (f" in {code(origin.function)}" if origin.function else "")
    if origin.source:
        shown = excerpt(origin.source, origin.column, origin.expression, WIDEST)
        underline = "\n" + " " * shown.start + "^" * shown.width if shown.width else ""
        yield fenced(shown.line + underline, "python")
    yield escaped(words.circumstances(incident)) + "; " + escaped(words.born_by(incident) or "")


def remedies(incident: IncidentPart) -> Iterator[str]:
    for remedy in incident.remedies[:3]:
        yield f"{code(remedy.name)} (for {code(remedy.cause)}):"
        yield fenced(remedy.change, "diff") if remedy.change.startswith(("- ", "+ ")) else escaped(remedy.change)
        yield escaped(words.trial(remedy))


def clean_line(document: Document) -> str:
    run = document.run
    return (
        f"{code(run.script)}: "
        + escaped(words.end_of_clean(run))
        + f" in {run.steps} steps."
    )


def environment(document: Document) -> str:
    run = document.run
    command = code(" ".join([run.script, *run.argv]))
    return f"Script {command}, {escaped(run.backend)} {escaped(run.backend_version)}, {run.steps} steps."


def bullets(lines: list[str]) -> str:
    return "\n".join(f"- {escaped(line)}" for line in lines) or "- nothing was recorded"


def escaped(text: str) -> str:
    """One line of plain text in which nothing acts."""
    flat = " ".join(visible(text.replace("\n", " ")).split())
    return SPECIAL.sub(lambda found: ENTITIES.get(found[0], "\\" + found[0]), flat)


def code(text: str) -> str:
    """Inline code, in more backticks than the text has in a row."""
    flat = " ".join(visible(text.replace("\n", " ")).split())
    ticks = "`" * (longest_run(flat) + 1)
    pad = " " if flat.startswith("`") or flat.endswith("`") else ""
    return f"{ticks}{pad}{flat}{pad}{ticks}" if flat else ""


def fenced(text: str, language: str) -> str:
    ticks = "`" * max(3, longest_run(text) + 1)
    return f"{ticks}{language}\n{visible(text, lines=True)}\n{ticks}"


def longest_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)
