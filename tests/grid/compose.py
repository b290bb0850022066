"""A shape and a birth become the files of one script. Markers of culprit lines are taken out before anything runs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tests.grid.births import DATA, Birth
from tests.grid.shapes import Shape

SCRIPTS = Path(__file__).parent / "scripts"
MARKER = re.compile(r" *#@([\w-]+)")


@dataclass(frozen=True, slots=True)
class Script:
    """`lines` maps a marker to the places (file, line) that carried it."""

    files: dict[str, str]
    lines: dict[str, frozenset[tuple[str, int]]]

    def source(self, file: str, line: int) -> str:
        return self.files[file].splitlines()[line - 1]


def compose(shape: Shape, birth: Birth, *, faulty: bool) -> Script:
    files: dict[str, str] = {}
    lines: dict[str, set[tuple[str, int]]] = {}
    for name, template in templates(shape).items():
        text = []
        for number, line in enumerate(filled(template, shape, birth, faulty).splitlines(), 1):
            for marker in MARKER.findall(line):
                lines.setdefault(marker, set()).add((name, number))
            text.append(MARKER.sub("", line))
        files[name] = "\n".join(text) + "\n"
    return Script(files, {marker: frozenset(places) for marker, places in lines.items()})


def templates(shape: Shape) -> dict[str, str]:
    folder = SCRIPTS / (shape.template or shape.name)
    if folder.is_dir():
        return {str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob("*.py"))}
    return {"train.py": folder.with_suffix(".py").read_text()}


def filled(template: str, shape: Shape, birth: Birth, faulty: bool) -> str:
    parts = {"NET": birth.net, "DATA": DATA + planted(shape, birth, faulty), "LOSS": birth.loss, **fills(shape, birth, faulty)}
    lines = []
    for line in template.splitlines():
        indent, text = line[: len(line) - len(line.lstrip())], line.strip()
        if text in parts:
            lines.extend(indent + part if part else "" for part in parts[text].strip("\n").splitlines())
        elif text.startswith("RATE("):
            lines.extend(indent + part for part in rate(text, birth, faulty))
        else:
            lines.append(substituted(line, parts, birth, faulty))
    return "\n".join(lines)


def planted(shape: Shape, birth: Birth, faulty: bool) -> str:
    return shape.faulty.get(birth.name, birth.faulty) if faulty else birth.harmless


def fills(shape: Shape, birth: Birth, faulty: bool) -> dict[str, str]:
    """The shape's own placeholders; `-` before the name of a birth is the harmless text where the data do not make the difference."""
    chosen = {}
    for name, texts in shape.fills.items():
        keys = [birth.name, "*"] if faulty else ["-" + birth.name, birth.name, "*"]
        key = next((key for key in keys if key in texts), None)
        if key is not None:
            chosen[name] = texts[key]
    return chosen


def substituted(line: str, parts: dict[str, str], birth: Birth, faulty: bool) -> str:
    line = re.sub(r"\bUPDATE\(((?:[^()]|\([^()]*\))*)\)", lambda m: birth.update.format(m[1]), line)
    optimizer = birth.optimizer if faulty or birth.harmless_optimizer is None else birth.harmless_optimizer
    line = re.sub(r"\bOPTIMIZER\(((?:[^()]|\([^()]*\))*)\)", lambda m: optimizer.format(m[1]), line)
    for name, text in parts.items():
        line = re.sub(rf"\b{name}\b", lambda _, text=text: text, line)
    return line


def rate(text: str, birth: Birth, faulty: bool) -> list[str]:
    if birth.rate is None:
        return []
    optimizer, step = text.removeprefix("RATE(").removesuffix(")").split(", ")
    return [birth.rate.format(optimizer, f"({step})" if " " in step else step, birth.ends[0 if faulty else 1])]
