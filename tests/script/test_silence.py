"""Inside a silence nothing is printed, written, removed or renamed; after it everything is as before."""

from __future__ import annotations

import builtins
import io
import logging
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.script.harness import SOURCES
from whynan.script import silence
from whynan.script.silence import Silence

PROGRAM = f"""
import sys; sys.path.insert(0, {str(SOURCES)!r})
from whynan.script.silence import Silence
import os, subprocess
sys.stdout.write("before without a newline ")
sys.stderr.write("[before]")
with Silence():
    print("inside")
    print("inside", file=sys.stderr, flush=True)
    os.write(1, b"inside")
    os.system("echo inside")
    subprocess.run(["echo", "inside"])
    sys.stdout.buffer.write(b"inside")
print("after")
sys.stderr.write("[after]")
"""


def buffered(program: str) -> Any:
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return subprocess.run([sys.executable, "-c", program], env=kept, capture_output=True, text=True, check=True)


def test_standard_streams() -> None:
    done = buffered(PROGRAM)
    assert (done.stdout, done.stderr) == ("before without a newline after\n", "[before][after]")


def test_standard_streams_where_the_system_does_not_tell() -> None:
    program = PROGRAM.replace("import os, subprocess", "import os, subprocess, whynan.script.silence as s; s.FILES = '/nowhere'")
    done = buffered(program)
    assert (done.stdout, done.stderr) == ("before without a newline after\n", "[before][after]")


def test_closed_standard_output() -> None:
    program = PROGRAM.replace("sys.stdout.write(", "os.close(2); sys.stderr = None; sys.stdout.write(", 1).replace(
        "sys.stderr.write", "str"
    )
    done = buffered(program)
    assert done.stdout == "before without a newline after\n"


def test_open_files(tmp_path: Path) -> None:
    text, raw = open(tmp_path / "text", "w"), open(tmp_path / "raw", "wb", buffering=0)  # noqa: SIM115
    appended = open(tmp_path / "appended", "a")  # noqa: SIM115
    handler = logging.FileHandler(tmp_path / "log")
    both = open(tmp_path / "both", "w+")  # noqa: SIM115
    kept = os.open(tmp_path / "kept", os.O_WRONLY | os.O_CREAT)
    record = logging.LogRecord("n", 10, "p", 1, "message", None, None)
    text.write("before "), appended.write("before "), handler.emit(record)
    with Silence(keep=[kept]):
        text.write("inside "), raw.write(b"inside"), appended.write("inside "), handler.emit(record)
        os.write(kept, b"inside")
    text.write("after"), raw.write(b"after"), appended.write("after"), handler.emit(record), both.write("after")
    for file in (text, raw, appended, handler, both):
        file.close()
    os.close(kept)
    assert (tmp_path / "text").read_text() == "before after"
    assert (tmp_path / "raw").read_text() == "after"
    assert (tmp_path / "appended").read_text() == "before after"
    assert (tmp_path / "log").read_text() == "message\nmessage\n"
    assert (tmp_path / "kept").read_text() == "inside"


def test_new_files_and_changes_to_the_disk(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("old")
    (tmp_path / "folder").mkdir()
    with Silence():
        with open(tmp_path / "new", "w", encoding="utf-8", newline="\n") as file:
            print("text", file=file)
        (tmp_path / "path").write_text("text")
        (tmp_path / "bytes").write_bytes(b"text")
        with open(tmp_path / "old", "r+b") as file2:
            file2.write(b"text")
        with io.open(tmp_path / "exclusive", "x"):  # noqa: UP020
            pass
        os.close(os.open(tmp_path / "low", os.O_CREAT | os.O_WRONLY))
        os.remove(tmp_path / "old"), (tmp_path / "old").unlink(), os.rename(tmp_path / "old", tmp_path / "else")
        (tmp_path / "old").replace(tmp_path / "else"), (tmp_path / "made").mkdir(), os.makedirs(tmp_path / "deep/er", exist_ok=True)
        shutil.rmtree(tmp_path / "folder"), shutil.copy(tmp_path / "old", tmp_path / "copy")
        assert (tmp_path / "old").read_text() == "old"
    assert {path.name: path.is_dir() or path.read_text() for path in tmp_path.iterdir()} == {"old": "old", "folder": True}


def fail_after(expected: bool) -> None:
    assert expected
    raise ZeroDivisionError


def test_functions_are_put_back_even_after_an_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    before = builtins.open, io.open, os.open, os.remove, os.mkdir, shutil.rmtree
    descriptors = set(os.listdir("/proc/self/fd"))
    with pytest.raises(ZeroDivisionError), Silence():
        fail_after(builtins.open is not before[0])
    assert (builtins.open, io.open, os.open, os.remove, os.mkdir, shutil.rmtree) == before
    monkeypatch.setattr(silence.Silence, "_functions", lambda self: 1 / 0)
    with pytest.raises(ZeroDivisionError), Silence():
        pass
    assert set(os.listdir("/proc/self/fd")) == descriptors


def test_stream_that_the_user_put_in_place_of_standard_output_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = io.StringIO()
    monkeypatch.setattr(sys, "stdout", mine)
    with Silence():
        assert sys.stdout is mine
    assert sys.stdout is mine


def test_functions_are_replaced_for_one_thread_only(tmp_path: Path) -> None:
    def other() -> None:
        (tmp_path / "written").write_text("by another thread")
        (tmp_path / "folder").mkdir()

    with Silence():
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        (tmp_path / "left out").write_text("by this one")
    assert (tmp_path / "written").read_text() == "by another thread"
    assert (tmp_path / "folder").is_dir()
    assert not (tmp_path / "left out").exists()


def test_standard_input_is_empty_inside() -> None:
    program = f"""
import sys; sys.path.insert(0, {str(SOURCES)!r})
from whynan.script.silence import Silence
with Silence():
    try:
        input()
    except EOFError:
        ended = True
print(ended, input())
"""
    done = subprocess.run([sys.executable, "-c", program], input="one\ntwo\n", capture_output=True, text=True, check=True)
    assert done.stdout == "True one\n"


def test_the_process_can_not_be_left() -> None:
    with pytest.raises(SystemExit, match="5"), Silence():
        os._exit(5)


def test_a_forked_child_can_be_left() -> None:
    with Silence():
        child = os.fork()
        if child == 0:
            os._exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
