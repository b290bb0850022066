"""The folder of one incident: what is needed to see it again without the training."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

REPORT = "report.json"
REPRO = "repro.py"


def folder_of(run: Path, number: int) -> Path:
    return run / f"incident-{number}"


def create(run: Path, number: int, write_artifacts: Callable[[Path], None] | None) -> str | None:
    """Make the folder and let the backend put its files there. -> what went wrong, in words, or None.

    The backend's part may fail without the rest: a report without `repro.py` is worth keeping.
    """
    folder = folder_of(run, number)
    folder.mkdir(exist_ok=True)  # what was expected may have made it
    if write_artifacts is None:
        return None
    try:
        write_artifacts(folder)
    except Exception as error:
        return f"the files that repeat incident {number} could not be written: {type(error).__name__}: {error}"
    return None
