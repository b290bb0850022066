"""The catalogue's text about one cause, on a terminal."""

from __future__ import annotations

import inspect
import textwrap
from typing import TextIO

from rich.text import Text

from whynan.report.terminal import console_for, encodable, paragraph

UNDERLINES = set("=-~")


def render(name: str, document: str, file: TextIO) -> None:
    """Paragraphs are filled to the terminal's width, headings stand out, indented blocks stay as they are."""
    console = console_for(file)
    blocks = inspect.cleandoc(document).split("\n\n")
    lines = [Text(name, "bold cyan"), *(line for block in blocks for line in [Text(""), *shown(block, console.width)])]
    for line in lines:
        console.print(encodable(line, console), soft_wrap=True)


def shown(block: str, width: int) -> list[Text]:
    lines = block.split("\n")
    if len(lines) > 1 and lines[1] and set(lines[1]) <= UNDERLINES:
        return [paragraph(lines[0], "bold"), *(shown("\n".join(lines[2:]), width) if lines[2:] else [])]
    if lines[0][:1].isspace():
        return [paragraph(line, "green") for line in lines]
    return [paragraph(line) for item in items(lines) for line in filled(item, width)]


def items(lines: list[str]) -> list[str]:
    """The lines of a paragraph or list, one text an item."""
    found: list[str] = []
    for line in lines:
        if found and not line.startswith(("- ", "* ")):
            found[-1] += " " + line.strip()
        else:
            found.append(line)
    return found


def filled(item: str, width: int) -> list[str]:
    indent = "  " if item.startswith(("- ", "* ")) else ""
    return textwrap.wrap(item, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
