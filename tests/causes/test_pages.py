"""The pages in docs/causes are those that the catalogue gives now."""

from __future__ import annotations

import importlib.util
from pathlib import Path

TOOL = Path(__file__).resolve().parents[2] / "tools" / "make_cause_pages.py"


def test_pages_are_up_to_date() -> None:
    spec = importlib.util.spec_from_file_location("make_cause_pages", TOOL)
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    expected = tool.pages()
    assert set(tool.FOLDER.glob("*.md")) == set(expected), "run tools/make_cause_pages.py"
    assert all(path.read_text() == text for path, text in expected.items()), "run tools/make_cause_pages.py"
