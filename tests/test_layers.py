"""Imports run one way, and no framework is imported outside its home."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "whynan"
LAYERS = [
    {"core"},
    {"causes", "remedies", "protect", "record", "report"},
    {"torch", "mindspore"},
    {"script", "integrations"},
    {"cli", "dashboard"},
]
HOMES = {"torch": {"torch", "integrations"}, "mindspore": {"mindspore"}, "click": {"cli"}, "rich": {"report"}, "msgspec": {"report", "record", "cli"}}
ALLOWED_IN_CORE = {"whynan", "numpy", *sys.stdlib_module_names}
FILES = sorted(SOURCE.rglob("*.py"))


def part_of(path: Path) -> str:
    """The folder below `whynan`, `` for the modules of the package itself, which may import everything lazily."""
    parts = path.relative_to(SOURCE).parts
    return parts[0] if len(parts) > 1 else ""


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno} imports relatively"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def layer(part: str) -> int:
    return next(index for index, parts in enumerate(LAYERS) if part in parts)


@pytest.mark.parametrize("path", [path for path in FILES if part_of(path)], ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_run_one_way(path: Path) -> None:
    part = part_of(path)
    for name in imports(path):
        package, *inner = name.split(".")
        if package == "whynan" and inner and (SOURCE / inner[0]).is_dir():
            assert inner[0] == part or layer(inner[0]) < layer(part), f"{part} imports {name}"
        if package in HOMES:
            assert part in HOMES[package], f"{package} is imported outside its home"
        if part == "core":
            assert package in ALLOWED_IN_CORE, f"core imports {name}"
