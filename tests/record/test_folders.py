"""Old runs go, but never one that goes on, that has an incident nobody has seen, or that we did not make."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from tests.record.fakes import incident, recorder
from whynan.record import folders, store


def make(output: Path, name: str, *, ended: bool = True, bad: bool = False, seen: bool = False, size: int = 0, launch: str | None = None) -> Path:
    one = recorder(output, launch=launch)
    one.step((0, 1.0, 1.0, 1.0, 1.0))
    if bad:
        one.incident(incident(), None)
    if ended:
        one.finish("clean", 0, 0.0, 1)
    assert one.folder is not None
    folder = one.folder.rename(output / name)
    if seen:
        store.mark_seen(folder)
    if size:
        with open(folder / "batch", "wb") as file:
            file.truncate(size)
    return folder


def names(output: Path) -> list[str]:
    return [folder.name for folder in folders.runs(output)]


def test_runs_are_in_the_order_of_their_start(tmp_path: Path) -> None:
    for name in ("20260102-000000-7", "20260101-235959-99", "20260102-000001-rank0"):
        make(tmp_path, name)
    assert names(tmp_path) == ["20260101-235959-99", "20260102-000000-7", "20260102-000001-rank0"]
    assert folders.latest(tmp_path) == [tmp_path / "20260102-000001-rank0"]


def test_the_ranks_of_the_latest_launch_belong_together(tmp_path: Path) -> None:
    """Launches may share a name, as those of several machines do; a rank comes once in each."""
    made = [
        ("20260101-000000-rank0", "a"),
        ("20260102-000000-rank1", "a"),
        ("20260102-000001-rank0", "a"),
        ("20260102-000001-7", None),
        ("20260102-000001-rank1-2", "b"),
        ("20260102-000002-rank2", "a"),
    ]
    for name, launch in made:
        make(tmp_path, name, launch=launch)
    together = ["20260102-000002-rank2", "20260102-000001-rank0", "20260102-000000-rank1"]
    assert [folder.name for folder in folders.latest(tmp_path)] == together
    make(tmp_path, "20260103-000000-7")
    assert [folder.name for folder in folders.latest(tmp_path)] == ["20260103-000000-7"]


def test_a_run_kept_before_launches_were_noted_stands_alone(tmp_path: Path) -> None:
    folder = make(tmp_path, "20260101-000000-rank0", launch="a")
    with closing(sqlite3.connect(folder / store.FILE, isolation_level=None)) as connection:
        connection.execute("ALTER TABLE run DROP COLUMN launch")
    assert folders.latest(tmp_path) == [folder]
    assert store.read(folder).ended


def test_no_output_folder_has_no_latest(tmp_path: Path) -> None:
    assert folders.latest(tmp_path / "none") == []
    assert folders.prune(tmp_path / "none") == []


def test_two_runs_in_one_second_get_two_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "strftime", lambda _: "20260101-000000")
    assert len({folders.create(tmp_path, None) for _ in range(3)}) == 3
    assert len({folders.create(tmp_path, 0) for _ in range(3)}) == 3
    assert all(folders.NAME.fullmatch(path.name) for path in tmp_path.iterdir())


def test_the_oldest_beyond_the_number_go(tmp_path: Path) -> None:
    for day in range(1, 6):
        make(tmp_path, f"2026010{day}-000000-1")
    folders.prune(tmp_path, keep=2)
    assert names(tmp_path) == ["20260104-000000-1", "20260105-000000-1"]


def test_the_oldest_beyond_the_size_go_but_never_the_newest(tmp_path: Path) -> None:
    for day in range(1, 4):
        make(tmp_path, f"2026010{day}-000000-1", size=1 << 20)
    folders.prune(tmp_path, size=2_500_000)
    assert names(tmp_path) == ["20260102-000000-1", "20260103-000000-1"]
    folders.prune(tmp_path, size=10)
    assert names(tmp_path) == ["20260103-000000-1"]


def test_an_incident_that_nobody_has_seen_stays(tmp_path: Path) -> None:
    make(tmp_path, "20260101-000000-1", bad=True)
    make(tmp_path, "20260102-000000-1", bad=True, seen=True)
    make(tmp_path, "20260103-000000-1")
    folders.prune(tmp_path, keep=1)
    assert names(tmp_path) == ["20260101-000000-1", "20260103-000000-1"]


def test_a_run_that_goes_on_stays(tmp_path: Path) -> None:
    make(tmp_path, "20260101-000000-1", ended=False)
    make(tmp_path, "20260103-000000-1")
    folders.prune(tmp_path, keep=1)
    assert names(tmp_path) == ["20260101-000000-1", "20260103-000000-1"]


def test_a_run_that_was_killed_goes_after_a_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(pid: int, signal: int) -> None:
        raise ProcessLookupError

    make(tmp_path, "20260101-000000-1", ended=False)
    make(tmp_path, "20260103-000000-1")
    monkeypatch.setattr(os, "kill", gone)
    folders.prune(tmp_path, keep=1)
    assert len(names(tmp_path)) == 2
    later = time.time() + 25 * 3600
    monkeypatch.setattr(time, "time", lambda: later)
    folders.prune(tmp_path, keep=1)
    assert names(tmp_path) == ["20260103-000000-1"]


def test_what_we_did_not_make_is_left_alone(tmp_path: Path) -> None:
    real = make(tmp_path, "20260101-000000-1")
    (tmp_path / "20260101-000000-2").mkdir()
    (tmp_path / "20260101-000000-2" / "mine").write_text("keep")
    (tmp_path / "20260101-000001-3").symlink_to(real)
    (tmp_path / "notes").mkdir()
    broken = tmp_path / "20260101-000000-4"
    broken.mkdir()
    (broken / store.FILE).write_text("no database")
    make(tmp_path, "20260103-000000-1")
    make(tmp_path, "best-20260101-000000-1")
    assert names(tmp_path) == ["20260101-000000-1", "20260101-000000-4", "20260103-000000-1"]
    folders.prune(tmp_path, keep=1)
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {
        "20260101-000000-2",
        "20260101-000001-3",
        "notes",
        "20260101-000000-4",
        "20260103-000000-1",
        "best-20260101-000000-1",
    }
