"""Each cause's failing program, run as a user would: it is diagnosed as that cause, at the line that it marks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.grid.runner import Zygote, environment_of
from whynan.causes import catalogue
from whynan.core.catalogue import Entry

INCIDENT = 3


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    started = Zygote()
    yield started
    started.close()


@pytest.mark.parametrize("entry", catalogue(), ids=lambda entry: entry.cause.name)
def test_an_example_is_diagnosed_as_its_cause_at_its_line(entry: Entry, zygote: Zygote, tmp_path: Path) -> None:
    source = entry.example.strip() + "\n"
    culprit = next(number for number, line in enumerate(source.splitlines(), 1) if "# culprit" in line)
    (tmp_path / "example.py").write_text(source)
    answer = zygote.ask(
        argv=["run", "--json", "report.json", "example.py"],
        watched=True,
        cwd=str(tmp_path),
        pythonpath=None,
        environment=environment_of(tmp_path),
        stdout=str(tmp_path / "stdout"),
        stderr=str(tmp_path / "stderr"),
        probe=None,
        events=str(tmp_path / "event.json"),
        limit=120.0,
    )
    assert answer["status"] == INCIDENT, (tmp_path / "stderr").read_text()
    incident = json.loads((tmp_path / "report.json").read_text())["incidents"][0]
    first = incident["causes"][0]
    assert first["name"] == entry.cause.name
    assert culprit in (first["line"]["line"], incident["origin"]["line"])
