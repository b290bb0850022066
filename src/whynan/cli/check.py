"""Runs the `repro.py` of an incident and says whether it still happens on this machine."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from whynan.record.incidents import REPRO, folder_of
from whynan.report.plain import visible

LIMIT = 600


@dataclass(frozen=True, slots=True)
class Outcome:
    """`status` is 3 where the birth happens again, as of a watched run, 0 where all stays finite, 2 where it can't be told."""

    status: Literal[0, 2, 3]
    text: str


def repeat(run: Path, number: int) -> Outcome:
    """`repro.py` prints what it found and exits with 0 where the birth happens again, with 1 where all is finite. Python itself
    exits with 1 on an exception too, but then nothing was found."""
    folder = folder_of(run, number)
    if not (folder / REPRO).is_file():
        return Outcome(2, f"incident {number}: cannot be repeated, {folder} has no {REPRO}")
    try:
        done = subprocess.run(
            [sys.executable, REPRO], cwd=folder, capture_output=True, text=True, errors="replace", timeout=LIMIT, check=False
        )
    except subprocess.TimeoutExpired:
        return Outcome(2, f"incident {number}: {REPRO} did not end within {LIMIT} s")
    if done.returncode == 0:
        return Outcome(3, f"incident {number}: it still happens here" + remark(done.stdout))
    if done.returncode == 1 and done.stdout.strip():
        return Outcome(0, f"incident {number}: it does not happen here" + remark(done.stdout))
    return Outcome(2, f"incident {number}: {REPRO} failed with exit status {done.returncode}" + remark(done.stderr))


def remark(output: str) -> str:
    last = next((line.strip() for line in reversed(output.splitlines()) if line.strip()), "")
    return f": {visible(last)}" if last else ""
