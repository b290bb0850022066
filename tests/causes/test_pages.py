"""The pages in docs/causes are those that the catalogue and the kept reports give now, and every cause has a report of its own."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from whynan.causes import catalogue
from whynan.core.catalogue import Entry

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "make_cause_pages.py"
REPORTS = ROOT / "docs" / "causes" / "reports"
PARTS = ("what", "where", "why", "help", "next")
VOLATILE = re.compile(r"/tmp/|/home/|\b20\d{6}-\d{6}-(?!4711/)|^.*Warning: ", re.MULTILINE)

each = pytest.mark.parametrize("entry", catalogue(), ids=lambda entry: entry.cause.name)


def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_cause_pages", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def report(name: str) -> str:
    return (REPORTS / f"{name}.txt").read_text(encoding="utf-8")


def culprit(entry: Entry) -> int:
    return next(number for number, line in enumerate(entry.example.strip().splitlines(), 1) if "# culprit" in line)


def test_pages_are_up_to_date() -> None:
    make = tool()
    expected = make.pages()
    assert make.left_over() == [], "run tools/make_cause_pages.py"
    stale = [path.name for path, text in expected.items() if not path.is_file() or path.read_text(encoding="utf-8") != text]
    assert stale == [], "run tools/make_cause_pages.py"


@each
def test_a_report_names_the_cause_and_the_culprits_line(entry: Entry) -> None:
    text = report(entry.cause.name)
    assert f"[{entry.cause.name}]" in text, "run tools/make_cause_pages.py --reports"
    assert re.search(rf"example\.py:{culprit(entry)}\b", text), "run tools/make_cause_pages.py --reports"


@each
def test_a_report_is_reproducible(entry: Entry) -> None:
    assert VOLATILE.search(report(entry.cause.name)) is None


def test_the_ten_reports_say_what_where_why_and_what_to_type() -> None:
    for name in tool().TEN:
        text = report(name)
        assert [part for part in PARTS if not re.search(rf"^{part} ", text, re.MULTILINE)] == []
        assert f"whynan explain {name}" in text
