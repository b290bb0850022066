"""The real command in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def whynan(*args: str, cwd: Path, timeout: float = 120, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "whynan", *args],
        cwd=cwd,
        env=surroundings(**environment),
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=timeout,
        check=False,
    )


def plain(*args: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, *args],
        cwd=cwd,
        env=surroundings(**environment),
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=120,
        check=False,
    )


def surroundings(**environment: str) -> dict[str, str]:
    """The sources by their path, not the working folder: `-m whynan` must not depend on where it is started."""
    ours = ("WHYNAN", "PYTEST", "PYTHON")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return {**kept, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1", **environment}


def error_line(done: subprocess.CompletedProcess[bytes]) -> str:
    """The one line of wrong use."""
    assert done.returncode == 2, done.stderr.decode()
    assert done.stdout == b""
    (line,) = done.stderr.decode().splitlines()
    assert line.startswith("whynan: ")
    return line.removeprefix("whynan: ")
