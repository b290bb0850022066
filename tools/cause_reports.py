"""The terminal report of each cause's failing program, as `whynan run example.py` prints it: kept in docs/causes/reports, one file a cause.

Numbers in a report may differ between machines, so the pages are made from these files and not from a new run.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from tests.grid.runner import Zygote
from whynan.core.catalogue import Catalogue, Entry

SCRIPT = "example.py"
INCIDENT = 3
LIMIT = 120.0
SURROUNDINGS = {"WHYNAN_OUTPUT": "whynan-runs", "NO_COLOR": "1", "COLUMNS": "80"}
RUN = re.compile(r"\d{8}-\d{6}-\d+(?=/incident)")
SAMPLE_RUN = "20260101-120000-4711"  # stands for the time and the process of the run
HEAD = re.compile(r"^-+ whynan: ", re.MULTILINE)


def write(entries: Catalogue, folder: Path) -> None:
    """A file a cause in `folder`, and none beside them."""
    folder.mkdir(parents=True, exist_ok=True)
    zygote = Zygote()
    try:
        for entry in entries:
            (folder / f"{entry.cause.name}.txt").write_text(report(entry, zygote), encoding="utf-8")
    finally:
        zygote.close()


def report(entry: Entry, zygote: Zygote) -> str:
    with tempfile.TemporaryDirectory() as folder:
        base, work = Path(folder), Path(folder, "work")
        work.mkdir()
        (work / SCRIPT).write_text(entry.example.strip() + "\n", encoding="utf-8")
        answer = zygote.ask(
            argv=["run", SCRIPT],
            watched=True,
            cwd=str(work),
            pythonpath=None,
            environment=SURROUNDINGS,
            stdout=str(base / "stdout"),
            stderr=str(base / "stderr"),
            probe=None,
            events=str(base / "event.json"),
            limit=LIMIT,
        )
        printed = (base / "stderr").read_text(encoding="utf-8")
        if answer["status"] != INCIDENT:
            raise SystemExit(f"the example of {entry.cause.name} ended with exit status {answer['status']}:\n{printed}")
        return reproducible(printed, work)


def reproducible(printed: str, work: Path) -> str:
    """The report alone, without the warnings before it, and without what another run or another machine would print otherwise."""
    head = HEAD.search(printed)
    if head is None:
        raise SystemExit(f"no report:\n{printed}")
    text = printed[head.start() :].replace(f"{work.resolve()}/", "").replace(f"{work}/", "")
    return RUN.sub(SAMPLE_RUN, text)
