"""The report on a terminal, in its fixed order: what, where, evidence, why, help, note, next.

Everything is built from `Text`, never from markup, so that a `[bold]` in a source line stays what it is.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TextIO

from rich.console import Console
from rich.text import Text

from whynan.report import words
from whynan.report.model import Document, IncidentPart
from whynan.report.plain import excerpt, visible

LABEL = 10
NARROWEST = 60
MOST = 3  # remedies shown
CHANGE = {"-": "red", "+": "green"}


def render(document: Document, file: TextIO) -> None:
    console = console_for(file)
    for incident in document.incidents:
        console.rule(Text(f"whynan: {incident.kind} at step {incident.step}"), style="red", characters="-")
        for line in lines(document, incident, console):
            console.print(encodable(line, console), soft_wrap=True)
    if not document.incidents:
        console.print(encodable(Text(visible(clean_line(document))), console), soft_wrap=True)


class PlainConsole(Console):
    def on_broken_pipe(self) -> None:
        """rich would end the process here, with an exit status of its own."""
        raise BrokenPipeError


def console_for(file: TextIO) -> Console:
    console = PlainConsole(file=file, highlight=False, emoji=False, markup=False)
    console.width = max(console.width, NARROWEST)
    return console


def clean_line(document: Document) -> str:
    run = document.run
    end = words.end_of_clean(run)
    code = "" if run.exit_code in (None, 0) else f" (exit status {run.exit_code})"
    return f"whynan: {run.script}: {end} in {run.steps} steps{code}"


def lines(document: Document, incident: IncidentPart, console: Console) -> Iterator[Text]:
    for label, body in sections(document, incident, console.width - LABEL):
        for index, part in enumerate(body):
            for wrapped in part.wrap(console, console.width - LABEL) if not part.no_wrap else [part]:
                wrapped.rstrip()
                yield Text.assemble((f"{label if index == 0 else '':<{LABEL}}", "bold cyan"), wrapped)
                label = ""


def sections(document: Document, incident: IncidentPart, room: int) -> Iterator[tuple[str, list[Text]]]:
    """The parts in their order; one that has nothing to say is left out."""
    yield "what", [paragraph(words.what(incident), "bold")]
    yield "where", where(incident, room)
    yield "evidence", [paragraph(line) for line in words.evidence(incident)]
    yield "why", [paragraph(incident.causes[0].why)] if incident.causes and incident.causes[0].why else []
    yield "help", remedies(incident)
    yield "note", [paragraph(line, "dim") for line in words.notes(document, incident)]
    yield "next", [verbatim(line, "bold") for line in words.commands(document, incident)]


def where(incident: IncidentPart, room: int) -> list[Text]:
    origin = incident.origin
    if origin.op is None:
        return [paragraph(f"no place was found; {words.circumstances(incident)}")]
    found = []
    if origin.file is not None:
        inside = f" in {origin.function}" if origin.function else ""
        found.append(verbatim(f"{relative(origin.file)}:{origin.line}{inside}", "cyan"))
    if origin.source:
        found += source_line(incident, room - 2)
    found.append(paragraph(words.circumstances(incident)))
    if by := words.born_by(incident):
        found.append(paragraph(by))
    cause = next(iter(incident.causes), None)
    if cause and (cause.line.file, cause.line.line) != (origin.file, origin.line) and cause.line.line:
        found.append(verbatim(f"the mistake: {relative(cause.line.file)}:{cause.line.line}"))
    return found


def source_line(incident: IncidentPart, room: int) -> list[Text]:
    origin = incident.origin
    shown = excerpt(origin.source or "", origin.column, origin.expression, room)
    underline = [verbatim("  " + " " * shown.start + "^" * shown.width, "bold red")] if shown.width else []
    return [verbatim("  " + shown.line), *underline]


def remedies(incident: IncidentPart) -> list[Text]:
    """The changes; what is said of several in a row is said once, after the last."""
    found = []
    shown = incident.remedies[:MOST]
    for remedy, following in zip(shown, [*shown[1:], None], strict=False):
        found.append(paragraph(f"{remedy.name} (for {remedy.cause})"))
        found += [change(line) for line in remedy.change.splitlines()]
        if following is None or words.trial(following) != words.trial(remedy):
            found.append(paragraph(words.trial(remedy)))
    return found


def change(line: str) -> Text:
    """A line of code to take away or to add, or a sentence of advice."""
    return verbatim("  " + line, CHANGE[line[0]]) if line[:2] in ("- ", "+ ") else paragraph(line)


def paragraph(text: str, style: str = "") -> Text:
    return Text(visible(text), style)


def verbatim(text: str, style: str = "") -> Text:
    """A line to copy or to align under: never wrapped by us."""
    return Text(visible(text), style, no_wrap=True)


def relative(file: str) -> str:
    """The path as the user would type it, where the file lies below the working folder."""
    try:
        here = os.getcwd()
    except OSError:
        return file
    return os.path.relpath(file, here) if os.path.isabs(file) and file.startswith(here.rstrip(os.sep) + os.sep) else file


def encodable(text: Text, console: Console) -> Text:
    """Characters that the stream cannot write are shown as escapes."""
    plain = text.plain.encode(console.encoding, "backslashreplace").decode(console.encoding)
    return text if plain == text.plain else Text(plain, no_wrap=True)
