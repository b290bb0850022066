"""`whynan explain` shows the catalogue's text."""

from __future__ import annotations

import pytest

from whynan.causes import catalogue
from whynan.cli.main import status_of


def test_every_cause_can_be_explained_and_listed(capfd: pytest.CaptureFixture[str]) -> None:
    assert status_of(["explain", "--list"]) == 0
    listed = [line.split()[0] for line in capfd.readouterr().out.splitlines()]
    assert listed == [entry.cause.name for entry in catalogue()]
    for name in listed:
        assert status_of(["explain", name]) == 0
        out = capfd.readouterr().out
        assert out.startswith(f"{name}\n")
        assert "\nHow to fix it\n  " in out


def test_prose_is_filled_and_references_keep_their_lines(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert status_of(["explain", "log-of-zero"]) == 0
    prose, references = capfd.readouterr().out.split("\nReferences\n")
    assert max(map(len, prose.splitlines())) <= 60
    assert all(line.startswith("  ") for line in references.splitlines())


def test_an_unknown_name_is_one_sentence_with_the_nearest(capfd: pytest.CaptureFixture[str]) -> None:
    assert status_of(["explain", "log-of-zer"]) == 2
    assert capfd.readouterr().err == "whynan: no cause 'log-of-zer' in the catalogue; did you mean log-of-zero?\n"
    assert status_of(["explain", "\x1b[31m"]) == 2
    assert capfd.readouterr().err == "whynan: no cause '\\x1b[31m' in the catalogue; see whynan explain --list\n"
    assert status_of(["explain"]) == 2
