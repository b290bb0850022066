"""A run is kept as it goes on, is readable at any moment, and recording never stops the run."""

from __future__ import annotations

import contextlib
import json
import math
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.record.fakes import Describe, incident, recorder
from whynan.record import folders, store
from whynan.record.incidents import folder_of

NAN, INF = float("nan"), float("inf")
ROOT = Path(__file__).parents[2]


def only_run(output: Path) -> Path:
    (folder,) = folders.runs(output)
    return folder


def test_every_number_survives(tmp_path: Path) -> None:
    one = recorder(tmp_path)
    rows = [(0, 2.5, NAN, INF, -INF), (1, NAN, 1e-320, -0.0, 1e308), (2, INF, 0.1 + 0.2, NAN, 0.1), (3, None, None, NAN, None)]
    for row in rows:
        one.step(row)
    one.finish("clean", 0, 0.0, 4)
    trend = store.read_trend(only_run(tmp_path))
    found = list(zip(trend.steps, trend.loss, trend.grad_norm, trend.update_ratio, trend.lr, strict=True))
    assert [repr(row) for row in found] == [repr(row) for row in rows]


def test_a_finished_run_is_read_back(tmp_path: Path) -> None:
    one = recorder(tmp_path)
    one.step((0, 1.0, 1.0, 1.0, 1.0))
    one.warning(0, "loss-growing", "the loss grows")
    one.limit("could not rewrite helper.py")
    one.limit("could not rewrite helper.py")
    one.finish("clean", 0, 0.01, 1)
    run = store.read(only_run(tmp_path))
    assert json.loads(run.run) == {"script": "train.py", "status": "clean", "steps": 1, "limits": ["could not rewrite helper.py"]}
    assert run.warnings == [(0, "loss-growing", "the loss grows")]
    assert run.ended
    assert run.steps == 1


def test_an_incident_is_on_disk_when_the_call_returns(tmp_path: Path) -> None:
    one = recorder(tmp_path)
    one.step((2, 1.0, 1.0, 1.0, 1.0))
    found = incident(3)
    one.incident(found, lambda folder: (folder / "repro.py").write_text("1"))
    run = only_run(tmp_path)
    assert store.read(run).incidents == [json.dumps({"step": 3, "folder": found.folder})]
    assert store.read(run).unseen == 1
    assert (folder_of(run, 1) / "repro.py").read_text() == "1"
    assert json.loads((folder_of(run, 1) / "report.json").read_bytes())[2][0]["step"] == 3
    assert found.folder == str(run / "incident-1")
    assert one.run.status == "incident"
    store.mark_seen(run)
    assert store.read(run).unseen == 0


def test_what_is_expected_is_on_disk_until_the_whole_takes_its_place(tmp_path: Path) -> None:
    one = recorder(tmp_path)
    one.expected(incident(3))
    run = only_run(tmp_path)
    assert len(store.read(run).incidents) == len(one.incidents) == 1
    assert one.run.status == "incident"
    one.incident(incident(4), lambda folder: (folder / "repro.py").write_text("1"))
    assert [json.loads(text)["step"] for text in store.read(run).incidents] == [4]
    assert len(one.incidents) == 1
    assert (folder_of(run, 1) / "repro.py").read_text() == "1"


def test_what_was_expected_may_turn_out_to_be_none(tmp_path: Path) -> None:
    one = recorder(tmp_path)
    one.expected(incident(3))
    one.withdraw()
    assert store.read(only_run(tmp_path)).incidents == one.incidents == []
    assert not folder_of(only_run(tmp_path), 1).exists()
    assert one.run.status == "running"
    one.finish("clean", 0, 0.0, 4)
    assert store.read(only_run(tmp_path)).unseen == 0


def test_artifacts_that_fail_cost_only_themselves(tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        raise ValueError("no such tensor")

    one = recorder(tmp_path)
    one.incident(incident(), fail)
    one.finish("incident", None, 0.0, 4)
    assert one.run.limits == ["the files that repeat incident 1 could not be written: ValueError: no such tensor"]
    assert len(store.read(only_run(tmp_path)).incidents) == 1


def test_nothing_recorded_leaves_no_folder(tmp_path: Path) -> None:
    recorder(tmp_path / "runs").finish("clean", 0, 0.0, 0)
    assert not (tmp_path / "runs").exists()


def test_what_comes_after_the_end_is_dropped(tmp_path: Path) -> None:
    one = recorder(tmp_path)
    one.step((0, 1.0, 1.0, 1.0, 1.0))
    one.finish("clean", 0, 0.0, 1)
    one._due = 0.0
    one.step((1, 1.0, 1.0, 1.0, 1.0))
    assert store.read(only_run(tmp_path)).steps == 1
    assert one.steps == []


def test_a_rank_has_a_folder_named_after_it(tmp_path: Path) -> None:
    one = recorder(tmp_path, rank=3)
    one.step((0, 1.0, 1.0, 1.0, 1.0))
    assert only_run(tmp_path).name.endswith("-rank3")


def test_a_forked_child_writes_nothing(tmp_path: Path) -> None:
    one = recorder(tmp_path)
    one.step((0, 1.0, 1.0, 1.0, 1.0))
    one._pid = -1
    one._due = 0.0
    one.step((1, 1.0, 1.0, 1.0, 1.0))
    one.incident(incident(), None)
    one.finish("clean", 0, 0.0, 2)
    run = store.read(only_run(tmp_path))
    assert (run.steps, run.incidents, run.ended) == (1, [], False)


def test_a_step_costs_microseconds(tmp_path: Path) -> None:
    one = recorder(tmp_path)
    one.step((0, 1.0, 1.0, 1.0, 1.0))
    best = math.inf
    for _ in range(5):
        start = time.perf_counter()
        for step in range(10_000):
            one.step((step, 1.0, 1.0, 1.0, 1.0))
        best = min(best, time.perf_counter() - start)
    assert best / 10_000 < 2e-6


WRITER = """
import sys
from pathlib import Path
from tests.record.fakes import incident, recorder
from whynan.record import recorder as module
module.EVERY = 0.002
one = recorder(Path(sys.argv[1]))
for step in range(10**9):
    one.step((step, float(step), float("nan"), 0.0, 0.1))
    if step == 1000:
        one.incident(incident(step), lambda folder: None)
        print("ready", flush=True)
"""


@pytest.mark.parametrize("wait", [0.0, 0.05, 0.13, 0.2])
def test_a_run_killed_at_any_moment_is_readable(tmp_path: Path, wait: float) -> None:
    process = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], cwd=ROOT, env=environment(), stdout=subprocess.PIPE)
    assert process.stdout is not None
    with process, process.stdout:
        try:
            assert process.stdout.readline() == b"ready\n"
            time.sleep(wait)
            alive = store.read(only_run(tmp_path))
            assert (only_run(tmp_path) / f"{store.FILE}-wal").exists()
        finally:
            process.send_signal(signal.SIGKILL)
    for _ in range(2):
        run = store.read(only_run(tmp_path))
        assert not run.ended
        assert run.steps >= max(alive.steps, 1000)
        assert len(run.incidents) == 1
        trend = store.read_trend(only_run(tmp_path))
        assert trend.loss == [float(step) for step in trend.steps]
        assert trend.steps == list(range(run.steps))


@contextlib.contextmanager
def as_somebody_else() -> Iterator[None]:
    """Root may write anywhere, so it has to be somebody else for a while."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(user)


def test_a_run_is_readable_where_nothing_can_be_written() -> None:
    """SQLite's helper files cannot be made there."""
    with tempfile.TemporaryDirectory() as folder:
        one = recorder(Path(folder))
        one.step((0, 1.0, 1.0, 1.0, 1.0))
        one.finish("clean", 0, 0.0, 1)
        run = only_run(Path(folder))
        os.chmod(folder, 0o755)
        run.chmod(0o555)
        with as_somebody_else():
            assert store.read(run).steps == 1
        run.chmod(0o755)


def test_another_programs_database_is_told_as_such(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / store.FILE) as connection:
        connection.executescript(store.SCHEMA)
    connection.close()
    with pytest.raises(store.UnreadableRun, match="was not written by whynan"):
        store.read(tmp_path)


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}


def test_an_output_folder_that_cannot_be_made_gives_one_warning(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    said: list[str] = []
    one = recorder(tmp_path / "file" / "runs", said.append)
    for step in range(3):
        one._due = 0.0
        one.step((step, 1.0, 1.0, 1.0, 1.0))
    found = incident()
    one.incident(found, lambda folder: None)
    one.finish("incident", None, 0.0, 4)
    assert len(said) == 1
    assert "cannot be recorded" in said[0]
    assert "Not a directory" in said[0]
    assert one.incidents == [found]
    assert found.folder is None
    assert one.run.status == "incident"


@pytest.mark.parametrize("when", ["from the start", "later", "at the incident"])
def test_a_full_disk_gives_one_warning(tmp_path: Path, when: str) -> None:
    said: list[str] = []
    one = recorder(tmp_path, said.append)
    if when != "from the start":
        one.step((0, 1.0, 1.0, 1.0, 1.0))
    found = incident()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        if when != "at the incident":
            for step in range(2000):
                one._due = 0.0 if step % 100 == 0 else INF
                one.step((step, 1.0, 1.0, 1.0, 1.0))
        one.incident(found, lambda folder: (folder / "batch").write_bytes(b"x" * 5000))
        one.finish("incident", None, 0.0, 4)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert len(said) == 1
    assert "cannot be recorded" in said[0]
    assert one.incidents == [found]
    assert found.folder is None


def test_a_description_that_fails_gives_one_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> str:
        raise RuntimeError("broken")

    said: list[str] = []
    monkeypatch.setattr(Describe, "encode_incident", fail)
    one = recorder(tmp_path, said.append)
    one.incident(incident(), None)
    one.finish("incident", None, 0.0, 4)
    assert len(said) == 1
    assert "RuntimeError: broken" in said[0]


@pytest.mark.parametrize("content", [b"", b"no database", b"SQLite format 3\x00" + b"\xff" * 2000])
def test_a_broken_file_is_one_sentence(tmp_path: Path, content: bytes) -> None:
    (tmp_path / store.FILE).write_bytes(content)
    with pytest.raises(store.UnreadableRun, match=r"^the run in .* is broken: [^\n]+$"):
        store.read(tmp_path)


def test_a_file_cut_short_is_one_sentence(tmp_path: Path) -> None:
    one = recorder(tmp_path)
    for step in range(5000):
        one.step((step, 1.0, 1.0, 1.0, 1.0))
    one.finish("clean", 0, 0.0, 5000)
    file = only_run(tmp_path) / store.FILE
    file.write_bytes(file.read_bytes()[:9000])
    with pytest.raises(store.UnreadableRun, match="is broken"):
        store.read(file.parent)


def test_a_folder_without_a_run_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(store.UnreadableRun, match="no run in"):
        store.read(tmp_path)


def test_a_newer_format_is_refused_with_what_to_do(tmp_path: Path) -> None:
    one = recorder(tmp_path)
    one.step((0, 1.0, 1.0, 1.0, 1.0))
    one.finish("clean", 0, 0.0, 1)
    run = only_run(tmp_path)
    with sqlite3.connect(run / store.FILE) as connection:
        connection.execute(f"PRAGMA user_version = {store.VERSION + 1}")
    connection.close()
    with pytest.raises(store.UnreadableRun, match=r"newer whynan .*: upgrade whynan"):
        store.read(run)
