"""Documents go where they were asked for: to files that were found writable first, or after the script's last byte."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from tests.cli.command import surroundings
from tests.report.samples import built, incident
from whynan.cli.options import ended_after_module
from whynan.cli.outputs import Output, render_json, render_markdown

LAST = """
import atexit, os, sys, threading, time
from tests.report.samples import built
from whynan.cli.outputs import Output, render_json

output = Output("--json", "-", render_json)
def late():
    time.sleep(0.2)
    print("thread")
threading.Thread(target=late).start()
atexit.register(print, "atexit")
print("script", end="")
output.write(built())
sys.stdout.flush()
if os.fork() == 0:
    sys.exit()
os.wait()
print("tail", end="")
"""


def test_standard_output_gets_the_document_once_after_the_scripts_last_byte(tmp_path: Path) -> None:
    environment = surroundings()
    environment["PYTHONPATH"] += os.pathsep + str(Path(__file__).parents[2])
    done = subprocess.run([sys.executable, "-c", LAST], env=environment, capture_output=True, text=True, check=True)
    before, document = done.stdout.split("{", 1)
    assert before.count("script") == 1
    assert "thread\n" in before
    assert "tail" in before
    assert before.endswith("atexit\n")
    assert json.loads("{" + document)["schema"] == "whynan.report/1"


def test_a_file_that_exists_is_kept_until_the_report_replaces_it(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text("old and longer " * 1000)
    output = Output("--json", str(path), render_json)
    assert path.read_text().startswith("old")
    output.write(built(incident()))
    assert json.loads(path.read_bytes())["incidents"][0]["step"] == 12


def test_asking_leaves_no_empty_file(tmp_path: Path) -> None:
    Output("--json", str(tmp_path / "r.json"), render_json)
    assert list(tmp_path.iterdir()) == []


def test_the_place_is_the_one_at_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    output = Output("--markdown", "r.md", render_markdown)
    monkeypatch.chdir(tmp_path / "elsewhere")
    output.write(built(incident()))
    assert (tmp_path / "r.md").read_text().startswith("## The loss became")


@pytest.mark.parametrize("target", ["no/such/folder/r.json", "."])
def test_a_place_that_cannot_be_written_is_refused_at_once(target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(click.UsageError, match=r"--json .* cannot be written: "):
        Output("--json", target, render_json)


def test_failing_at_the_end_is_one_warning(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    output = Output("--json", str(folder / "r.json"), render_json)
    folder.rmdir()
    output.write(built(incident()))
    assert capfd.readouterr().err == f"whynan: the report could not be written to {folder}/r.json: No such file or directory\n"


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["-m", "pkg", "--lr", "3"], ["-m", "pkg", "--", "--lr", "3"]),
        (["-mpkg", "--help"], ["-mpkg", "--", "--help"]),
        (["--json", "-", "-m", "pkg", "-m", "x"], ["--json", "-", "-m", "pkg", "--", "-m", "x"]),
        (["--json", "-m", "train.py", "-m", "x"], ["--json", "-m", "train.py", "-m", "x"]),
        (["--json=r", "train.py", "-m", "x"], ["--json=r", "train.py", "-m", "x"]),
        (["--quiet", "--", "-m", "x"], ["--quiet", "--", "-m", "x"]),
        (["-m"], ["-m"]),
        ([], []),
    ],
)
def test_everything_after_the_module_is_the_modules(args: list[str], expected: list[str]) -> None:
    assert ended_after_module(args, {"--json", "-m"}) == expected
