"""Wrong use of `whynan run` is one clear sentence and exit status 2, before the script starts."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from whynan.cli.main import status_of


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "train.py"
    path.write_text("open('started', 'w')\n")
    return path


def refusal(capfd: pytest.CaptureFixture[str], *args: str) -> str:
    assert status_of(["run", *args]) == 2
    out, error = capfd.readouterr()
    assert out == ""
    assert error.count("\n") == 1
    assert error.startswith("whynan: ")
    assert not Path("started").exists()
    return error.removeprefix("whynan: ")


@pytest.mark.usefixtures("script")
@pytest.mark.parametrize(
    "args",
    [
        ("--prove",),
        ("--time-limit", "60"),
        ("--keep-going",),
        ("--fix", "x"),
        ("--html", "x.html"),
        ("--no-prove", "--prove"),
    ],
)
def test_options_whose_part_comes_later_are_refused(capfd: pytest.CaptureFixture[str], args: tuple[str, ...]) -> None:
    assert refusal(capfd, *args, "train.py").endswith(" is not in this version of whynan yet\n")


@pytest.mark.usefixtures("script")
def test_options_of_ours_are_checked(capfd: pytest.CaptureFixture[str]) -> None:
    assert "no such option" in refusal(capfd, "--nothing", "train.py").lower()
    assert "--trace-step" in refusal(capfd, "--trace-step", "-1", "train.py")
    assert "--trace-step" in refusal(capfd, "--trace-step", "x", "train.py")
    assert "neither auto, off nor a size" in refusal(capfd, "--history", "much", "train.py")
    assert "neither auto, off nor a size" in refusal(capfd, "--history", "0MB", "train.py")
    assert "both name standard output" in refusal(capfd, "--json", "-", "--markdown", "-", "train.py")
    assert "both name x: each needs its own" in refusal(capfd, "--json", "x", "--markdown", "x", "train.py")
    assert "cannot be written" in refusal(capfd, "--json", "no/such/folder.json", "train.py")
    assert "cannot be written" in refusal(capfd, "--markdown", ".", "train.py")


@pytest.mark.usefixtures("script")
def test_an_empty_name(capfd: pytest.CaptureFixture[str]) -> None:
    assert refusal(capfd, "").strip() == "the name of the script is empty"
    assert refusal(capfd, "-m", "").strip() == "the name of the module is empty"


def test_nothing_to_run(capfd: pytest.CaptureFixture[str]) -> None:
    assert "nothing to run" in refusal(capfd)
    assert "-m" in refusal(capfd, "-m")


def test_what_is_no_script(script: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert "none.py" in refusal(capfd, "none.py")
    (script.parent / "folder").mkdir()
    assert "folder" in refusal(capfd, "folder")
    script.write_text("x = 1\ndef f(:\n    pass\n")
    sentence = refusal(capfd, "train.py")
    assert "train.py" in sentence
    assert "line 2" in sentence
    assert "no_such_module" in refusal(capfd, "-m", "no_such_module")


@pytest.mark.usefixtures("script")
def test_no_framework_gives_the_pip_line(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.modules", {**__import__("sys").modules})
    __import__("sys").modules.pop("torch", None)
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "torch" else find(name, *rest))
    assert 'pip install "whynan[torch]"' in refusal(capfd, "train.py")


def test_an_unknown_command_and_help(capfd: pytest.CaptureFixture[str]) -> None:
    assert status_of(["walk"]) == 2
    assert capfd.readouterr().err == "whynan: No such command 'walk'.\n"
    for args in ([], ["--help"], ["run", "--help"], ["show", "-h"]):
        assert status_of(args) == 0
        assert capfd.readouterr().out.startswith("Usage: whynan")
