"""What can't be run is refused in one sentence; how a program ended is told; the start is light."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.script.harness import SOURCES
from whynan.script.launch import Program, UsageError


def refused(kind: str, target: str) -> str:
    with pytest.raises(UsageError) as caught:
        Program(kind, target)  # type: ignore[arg-type]
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_scripts_that_cannot_be_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/__main__.py").write_text("")
    with zipfile.ZipFile(tmp_path / "app.pyz", "w") as archive:
        archive.writestr("__main__.py", "")
    (tmp_path / "wrong.py").write_text("x = 1\ndef f(:\n")
    (tmp_path / "also_wrong.py").write_text("return 1\n")
    (tmp_path / "null.py").write_bytes(b"x = 1\0\n")
    assert refused("script", "none.py") == "there is no script none.py"
    assert refused("script", "folder") == "folder is a folder, not a script"
    assert refused("script", "app.pyz") == "app.pyz is a zip archive, not a script"
    assert refused("script", "wrong.py").startswith(f"{tmp_path / 'wrong.py'}, line 2: SyntaxError: ")
    assert "line 1: SyntaxError: 'return' outside function" in refused("script", "also_wrong.py")
    assert "null bytes" in refused("script", "null.py")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_unreadable_script(tmp_path: Path) -> None:
    path = tmp_path / "secret.py"
    path.write_text("")
    path.chmod(0)
    assert "can't be read: Permission denied" in refused("script", str(path))


def test_modules_that_cannot_be_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bare").mkdir()
    (tmp_path / "bare/__init__.py").write_text("raise SystemExit('imported')")
    (tmp_path / "bare/wrong.py").write_text("x = (\n")
    assert refused("module", "no_such_thing") == "there is no module named no_such_thing"
    assert refused("module", "bare.nothing") == "there is no module named bare.nothing"
    assert refused("module", "bare") == "bare is a package without a __main__ module"
    assert refused("module", "./bare.py") == "'./bare.py' is not the name of a module"
    assert "wrong.py, line 1: SyntaxError" in refused("module", "bare.wrong")


def run(source: str, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    program = f"import sys; sys.path.insert(1, {str(SOURCES)!r})\n{source}"
    return subprocess.run([sys.executable, "-c", program, *arguments], cwd=cwd, capture_output=True, text=True, check=False)


START = """
from whynan.core.backend import Stopped
from whynan.script.hooks import PlainRuntime
from whynan.script.launch import Program, launch
ending = launch(Program("script", "main.py", tuple(sys.argv[1:])), lambda table: PlainRuntime())
print(ending.kind, ending.code, type(ending.error).__name__)
"""


@pytest.mark.parametrize(
    ("source", "ending"),
    [
        ("x = 1", "returned 0 NoneType"),
        ("raise SystemExit", "exit 0 SystemExit"),
        ("import sys; sys.exit(7)", "exit 7 SystemExit"),
        ("raise SystemExit(True)", "exit 1 SystemExit"),
        ("raise SystemExit('words')", "exit 1 SystemExit"),
        ("1 / 0", "raised 1 ZeroDivisionError"),
        ("raise GeneratorExit", "raised 1 GeneratorExit"),
        ("raise KeyboardInterrupt", "interrupted 130 KeyboardInterrupt"),
        ("import sys\ndef hook(*_): sys.exit(4)\nsys.excepthook = hook\n1 / 0", "raised 4 ZeroDivisionError"),
        ("from whynan.core.backend import Stopped\nraise Stopped", "stopped 0 Stopped"),
        ("from whynan.core.backend import Stopped\nraise BaseExceptionGroup('g', [Stopped()])", "stopped 0 BaseExceptionGroup"),
    ],
)
def test_ending(source: str, ending: str, tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text(source)
    done = run(START, cwd=tmp_path)
    assert done.stdout == ending + "\n"
    assert "whynan" not in done.stderr
    assert ("Traceback" in done.stderr) == (ending.startswith(("raised 1", "interrupted")))
    assert ("words" in done.stderr) == ("words" in source)


def test_stop_leaves_no_trace_on_standard_error(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text("from whynan.core.backend import Stopped\ntry:\n    1 / 0\nfinally:\n    raise Stopped('done')\n")
    assert run(START, cwd=tmp_path).stderr == ""


def test_end_is_the_end_of_the_last_thread(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text(
        "import threading, time\ndef later():\n    time.sleep(0.2)\n    print('thread')\n"
        "threading.Thread(target=later).start()\nthreading.Thread(target=time.sleep, args=(99,), daemon=True).start()\n1 / 0\n"
    )
    assert run(START, cwd=tmp_path).stdout == "thread\nraised 1 ZeroDivisionError\n"


def test_safe_path_is_respected(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text("import sys; print(sys.path[0])")
    program = f"import sys; sys.path.insert(0, {str(SOURCES)!r})\n{START}"
    done = subprocess.run([sys.executable, "-P", "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[0] == str(SOURCES)


def test_script_that_can_be_read_only_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "main.py")
    writer = subprocess.Popen(["sh", "-c", "echo 'print(__name__)' > main.py"], cwd=tmp_path)
    assert run(START, cwd=tmp_path).stdout.splitlines()[0] == "__main__"
    writer.wait()


def test_start_imports_nothing_heavy(tmp_path: Path) -> None:
    heavy = "torch numpy rich click executing msgspec asyncio logging typing_extensions"
    done = run(f"import whynan.script.launch\nprint([n for n in {heavy!r}.split() if n in sys.modules])", cwd=tmp_path)
    assert (done.stdout, done.stderr) == ("[]\n", "")
