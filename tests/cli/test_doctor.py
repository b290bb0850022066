"""`whynan doctor` shows each finding with its cure, and its exit status tells whether any is bad."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from whynan.cli import doctor
from whynan.cli.main import status_of


@dataclass
class Finding:
    name: str
    ok: bool
    detail: str = ""
    cure: str = ""


GOOD = Finding("fused check", True, "works", "not to be shown")
BAD = Finding("hook \x1b[31m", False, "does nothing", "use another\nversion")


def examined(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], *findings: Finding) -> tuple[int, list[str]]:
    monkeypatch.setattr(doctor, "examine", lambda: list(findings))
    return status_of(["doctor"]), capfd.readouterr().out.splitlines()


def test_a_healthy_machine(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    status, lines = examined(monkeypatch, capfd, GOOD, GOOD)
    assert status == 0
    assert lines[0].startswith("whynan ")
    assert ", torch 2." in lines[0]
    assert lines[1:] == ["ok    fused check: works"] * 2 + ["2 of 2 checks passed"]


def test_a_fault_comes_with_its_cure(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    status, lines = examined(monkeypatch, capfd, GOOD, BAD)
    assert status == 1
    assert lines[2:] == ["FAIL  hook \\x1b[31m: does nothing", "      cure: use another", "version", "1 of 2 checks passed"]


def test_without_a_framework_it_gives_the_pip_line(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(doctor.importlib.util, "find_spec", lambda name: None)
    assert status_of(["doctor"]) == 1
    assert 'pip install "whynan[torch]"' in capfd.readouterr().out
