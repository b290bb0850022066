"""The catalogue's text about one cause, on a terminal."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterator
from typing import TextIO

from rich.text import Text

from whynan.report.terminal import console_for, encodable, paragraph

INDENT = "  "
VERBATIM = ("References",)  # sections of which each line is a paragraph


def render(name: str, document: str, file: TextIO) -> None:
    """Paragraphs are filled to the terminal's width, headings stand out, blocks that are indented further stay as they are."""
    console = console_for(file)
    for line in [Text(name, "bold cyan"), *lines(document, console.width)]:
        console.print(encodable(line, console), soft_wrap=True)


def lines(document: str, width: int) -> Iterator[Text]:
    heading = ""
    for block in inspect.cleandoc(document).split("\n\n"):
        yield Text("")
        first, *rest = block.split("\n")
        if rest and not first[:1].isspace() and all(line[:1].isspace() for line in rest if line):
            heading = first
            yield paragraph(heading, "bold")
            yield from body(rest, width, heading in VERBATIM)
        else:
            yield from body([first, *rest], width, heading in VERBATIM)


def body(block: list[str], width: int, verbatim: bool) -> Iterator[Text]:
    """One paragraph; lines that stand deeper than four columns are code."""
    prose: list[str] = []
    for line in block:
        if line.startswith(" " * 5) or verbatim:
            yield from filled(prose, width)
            prose = []
            yield paragraph(INDENT + line[4:] if line.startswith(" " * 4) else INDENT + line, "" if verbatim else "green")
        else:
            prose.append(line)
    yield from filled(prose, width)


def filled(prose: list[str], width: int) -> Iterator[Text]:
    indent = INDENT if prose and prose[0][:1].isspace() else ""
    for item in items(prose):
        deeper = indent + (INDENT if item.startswith(("- ", "* ")) else "")
        for line in textwrap.wrap(
            item, width, initial_indent=indent, subsequent_indent=deeper, break_long_words=False, break_on_hyphens=False
        ):
            yield paragraph(line)


def items(prose: list[str]) -> list[str]:
    """The lines of a paragraph, joined; of a list, joined item by item."""
    found: list[str] = []
    for line in map(str.strip, prose):
        if found and not line.startswith(("- ", "* ")):
            found[-1] += " " + line
        else:
            found.append(line)
    return found
