"""`whynan show` prints the same document again from the run's folder, checks an incident, and refuses what it can't read."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import surroundings
from tests.report.samples import incident, unplaced
from whynan.cli.main import status_of
from whynan.core.incident import Incident, Run
from whynan.record import store
from whynan.record.recorder import RunRecorder
from whynan.report import json as report_json
from whynan.report.document import document
from whynan.report.model import Warned


def keep(output: Path, *found: Incident, repro: str | None = None, end: bool = True, **run: Any) -> RunRecorder:
    one = RunRecorder(Run("train.py", ("--lr", "3"), **run), output, report_json, print)
    one.step((0, 2.3, None, 0.1, 0.1))
    one.warning(0, "loss-growing", "the loss grows")
    for each in found:
        one.incident(each, lambda folder: (folder / "repro.py").write_text(repro) if repro is not None else None)
    if end:
        one.finish("incident" if found else "clean", None if found else 0, 0.004, 13)
    return one


def shown(capfd: pytest.CaptureFixture[str], *args: str) -> str:
    assert status_of(["show", *args]) == 0
    out, error = capfd.readouterr()
    assert error == ""
    return out


def refused(capfd: pytest.CaptureFixture[str], *args: str) -> str:
    assert status_of(["show", *args]) == 2
    out, error = capfd.readouterr()
    assert out == ""
    assert error.count("\n") == 1
    return error


def test_json_is_the_same_document_byte_for_byte(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    one = keep(tmp_path, incident(), incident(step=20))
    written = report_json.render(document(one.run, one.incidents, [Warned(*each) for each in one.warnings])).decode()
    assert shown(capfd, "--json", str(one.folder)) == written


def test_the_latest_run_is_the_default_and_a_name_is_enough(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = keep(tmp_path)
    assert first.folder is not None
    first.folder.rename(tmp_path / "20200101-000000-1")
    keep(tmp_path, incident())
    assert "log-of-zero" in shown(capfd, "--output", str(tmp_path))
    assert "nothing went bad" in shown(capfd, "--output", str(tmp_path), "20200101-000000-1")
    monkeypatch.setenv("WHYNAN_OUTPUT", str(tmp_path))
    assert "log-of-zero" in shown(capfd)
    assert "# The loss became" in shown(capfd, "--markdown")


def test_of_the_ranks_of_the_latest_launch_the_one_that_knows_the_place(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    keep(tmp_path, unplaced("it came from another rank"), rank=2, launch="a")
    keep(tmp_path, incident(step=7), rank=1, launch="a")
    keep(tmp_path, rank=0, launch="a")
    assert '"step": 7' in shown(capfd, "--json", "--output", str(tmp_path))
    keep(tmp_path, rank=0, launch="b")
    assert '"incidents": []' in shown(capfd, "--json", "--output", str(tmp_path))


def test_a_rank_whose_run_is_broken_is_not_preferred(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    broken = keep(tmp_path, incident(), rank=0, launch="a")
    keep(tmp_path, incident(step=7), rank=1, launch="a")
    connection = sqlite3.connect(Path(str(broken.folder), store.FILE))
    with connection:
        other_json(connection)
    connection.close()
    assert '"step": 7' in shown(capfd, "--json", "--output", str(tmp_path))


def test_showing_marks_incidents_as_seen(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    one = keep(tmp_path, incident())
    assert one.folder is not None
    assert store.read(one.folder).unseen == 1
    shown(capfd, str(one.folder))
    assert store.read(one.folder).unseen == 0


def test_a_run_that_was_cut_off_is_told_as_such(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    one = keep(tmp_path, incident(), end=False)
    text = shown(capfd, "--json", str(one.folder))
    assert '"status": "incident"' in text
    assert "this run did not come to its end" in text
    assert '"steps": 13' in text


@pytest.mark.parametrize(
    ("repro", "status", "said"),
    [
        ("print('log gives 3 NaN')", 3, "incident 1: it still happens here: log gives 3 NaN\n"),
        ("print('log is finite here'); raise SystemExit(1)", 0, "incident 1: it does not happen here: log is finite here\n"),
        ("raise ValueError('no torch')", 2, "incident 1: repro.py failed with exit status 1: ValueError: no torch\n"),
        (None, 2, "cannot be repeated"),
    ],
)
def test_check_repeats_the_birth(tmp_path: Path, capfd: pytest.CaptureFixture[str], repro: str, status: int, said: str) -> None:
    one = keep(tmp_path, incident(), repro=repro)
    assert one.folder is not None
    for run in (one.folder, one.folder / "incident-1"):
        assert status_of(["show", "--check", str(run)]) == status
        assert said in capfd.readouterr().out


def test_wrong_use_is_one_sentence(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "no run in" in refused(capfd, "--output", str(tmp_path / "none"))
    assert "no run none" in refused(capfd, "--output", str(tmp_path), "none")
    assert "it has no run.sqlite" in refused(capfd, str(empty))
    assert "exclude one another" in refused(capfd, "--json", "--check", str(empty))
    assert "not in this version" in refused(capfd, "--html", "x.html")
    assert "has no incident" in refused(capfd, "--check", str(keep(tmp_path / "clean").folder))


def newer(connection: sqlite3.Connection) -> None:
    connection.execute(f"PRAGMA user_version = {store.VERSION + 1}")


def other_json(connection: sqlite3.Connection) -> None:
    connection.execute('UPDATE incident SET document = \'{"step": "twelve"}\'')


def no_json(connection: sqlite3.Connection) -> None:
    connection.execute("UPDATE run SET document = x'ff00'")


@pytest.mark.parametrize(
    ("harm", "said"), [(newer, "written by a newer whynan"), (other_json, "is broken"), (no_json, "is broken")]
)
def test_a_run_that_cannot_be_read_is_one_sentence(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], harm: Callable[[sqlite3.Connection], None], said: str
) -> None:
    one = keep(tmp_path, incident())
    assert one.folder is not None
    connection = sqlite3.connect(one.folder / store.FILE)
    with connection:
        harm(connection)
    connection.close()
    assert said in refused(capfd, str(one.folder))


@pytest.mark.parametrize("form", [(), ("--json",), ("--markdown",)])
def test_a_reader_that_has_had_enough(tmp_path: Path, form: tuple[str, ...]) -> None:
    """As in `whynan show | head -1`."""
    keep(tmp_path, *(incident(step=n) for n in range(40)))
    command = [sys.executable, "-m", "whynan", "show", "--output", str(tmp_path), *form]
    with subprocess.Popen(command, env=surroundings(), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1
