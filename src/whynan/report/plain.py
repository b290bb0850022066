"""Text from the user's run made safe to print: control and direction characters are shown, never sent to the terminal."""

from __future__ import annotations

import unicodedata
from typing import NamedTuple

TAB = " " * 4
JOINERS = "\u200c\u200d"
HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}


class Excerpt(NamedTuple):
    """A source line as shown, and where in it (in terminal cells) the culprit stands."""

    line: str
    start: int
    width: int


def visible(text: str, *, lines: bool = False) -> str:
    """`text` with every character that acts on a terminal written as its escape; `lines` keeps line ends."""
    return "".join(character if lines and character == "\n" else shown(character) for character in text)


def shown(character: str) -> str:
    if character == "\t":
        return TAB
    if unicodedata.category(character) not in HIDDEN or character in JOINERS:
        return character
    return character.encode("unicode_escape").decode("ascii")


def cells(text: str) -> int:
    """The columns that `text` takes on a terminal: wide characters take two, combining ones none."""
    return sum(cell(character) for character in text)


def cell(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def excerpt(source: str, column: tuple[int, int] | None, expression: str | None, room: int) -> Excerpt:
    """`source` without its indentation in at most `room` cells, shortened around the culprit expression."""
    start, end = culprit(source, column, expression)
    before, inside, after = (visible(part) for part in (source[:start].lstrip(), source[start:end], source[end:].rstrip()))
    if cells(before + inside + after) <= room:
        return Excerpt(before + inside + after, cells(before), cells(inside))
    inside = head(inside, max(room - 2 * len("..."), 1))
    spare = room - cells(inside)
    before = tail(before, max(spare // 2, spare - cells(after), 0))
    after = head(after, max(spare - cells(before), 0))
    return Excerpt(before + inside + after, cells(before), cells(inside))


def culprit(source: str, column: tuple[int, int] | None, expression: str | None) -> tuple[int, int]:
    """Where in `source` the expression stands, (0, 0) where that can't be told.

    `column` counts from the start of the line in the file, of which `source` has lost the indentation: the text of the expression
    decides, and the column only between its equals.
    """
    expression = (expression or "").strip()
    if not expression or expression not in source:
        return 0, 0
    places = [at for at in range(len(source)) if source.startswith(expression, at)]
    at = min(places, key=lambda place: unlikely_indent(column[0] - place if column else place))
    return at, at + len(expression)


def unlikely_indent(indent: int) -> tuple[bool, bool, int]:
    return indent < 0, indent % 4 != 0, indent


def head(text: str, room: int) -> str:
    """The beginning of `text` in at most `room` cells; what was cut off shows as dots."""
    if cells(text) <= room:
        return text
    kept, used = [], min(3, room)
    for character in text:
        used += cell(character)
        if used > room:
            break
        kept.append(character)
    return "".join(kept) + "..."[: min(3, room)]


def tail(text: str, room: int) -> str:
    return text if cells(text) <= room else head("".join(reversed(text)), room)[::-1]
