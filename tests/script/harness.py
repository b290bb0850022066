"""Runs a script by plain Python and through `whynan.script`, on every Python of this machine that it has to run on."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
SCRIPTS = HERE / "scripts"
DRIVER = HERE / "driver.py"
SOURCES = HERE.parents[1] / "src"
VERSIONS = ("3.11", "3.12", "3.13")


@dataclass(frozen=True)
class Result:
    stdout: str
    stderr: str
    code: int


@functools.cache
def interpreter(version: str) -> str | None:
    """A Python of this version, from the PATH or pyenv; None where there is none that starts."""
    if version == "{}.{}".format(*sys.version_info):
        return sys.executable
    pyenv = sorted(Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")).glob(f"versions/{version}.*/bin/python"))
    for path in [*map(str, pyenv), shutil.which(f"python{version}") or ""]:
        if path and subprocess.run([path, "-c", ""], capture_output=True, check=False).returncode == 0:
            return path
    return None


def run(python: str, *arguments: str, cwd: Path = SCRIPTS, **environment: str) -> Result:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "WHYNAN", "PYTEST"))}
    settings = {"PYTHONDONTWRITEBYTECODE": "1", **kept, **environment}
    done = subprocess.run([python, *arguments], cwd=cwd, env=settings, capture_output=True, text=True, timeout=60, check=False)
    return Result(done.stdout, done.stderr, done.returncode)


def plainly(python: str, *arguments: str, cwd: Path = SCRIPTS, **environment: str) -> Result:
    return run(python, *arguments, cwd=cwd, **environment)


def watched(python: str, *arguments: str, cwd: Path = SCRIPTS, options: tuple[str, ...] = (), **environment: str) -> Result:
    """The sources of whynan are found by a path that the script does not see."""
    start = f"import sys; sys.path.insert(0, {str(SOURCES)!r}); import whynan.script.runtime, whynan.script.launch; del sys.path[0]"
    program = f"{start}; import pathlib; exec(compile(pathlib.Path({str(DRIVER)!r}).read_text(), {str(DRIVER)!r}, 'exec'))"
    return run(python, *options, "-c", program, *arguments, cwd=cwd, **environment)
