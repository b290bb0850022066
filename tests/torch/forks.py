"""Runs small training scripts plain and watched, forked from one parent that has torch in memory."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tests.grid.runner import Zygote

HERE = Path(__file__).parent
SCRIPTS = HERE / "scripts"


@dataclass(frozen=True, slots=True)
class Ran:
    """`report` is what `--json` wrote, `left` what the probe did."""

    status: int | None
    stdout: str
    stderr: str
    report: Any
    left: Any


class Forks:
    def __init__(self, base: Path) -> None:
        self.base, self.number = base, 0
        self.zygote = Zygote()

    def plain(self, source: str, **rest: Any) -> Ran:
        return self._run(source, watched=False, **rest)

    def watched(self, source: str, **rest: Any) -> Ran:
        return self._run(source, watched=True, **rest)

    def _run(
        self,
        source: str,
        *,
        watched: bool,
        probe: str | None = None,
        files: Mapping[str, str] = MappingProxyType({}),
        options: Sequence[str] = (),
        limit: float = 120.0,
    ) -> Ran:
        """`files` lie beside the script, `options` are those of `whynan run`. `probe` is the source of a module whose `install(path)` is called in the child before the script
        starts."""
        folder = self.base / str(self.number)
        self.number += 1
        folder.mkdir(parents=True)
        for shared in SCRIPTS.glob("shared_*.py"):
            (folder / shared.name).write_text(shared.read_text())
        for name, text in {"train.py": source, **files}.items():
            (folder / name).write_text(text)
        if probe is not None:
            (folder / "probe.py").write_text(probe)
        answer = self.zygote.ask(
            argv=["run", "--no-prove", "--json", "report.json", *options, "train.py"] if watched else ["train.py"],
            watched=watched,
            cwd=str(folder),
            pythonpath=None,
            environment={"WHYNAN_OUTPUT": str(folder / "runs"), "NO_COLOR": "1", "COLUMNS": "200"},
            stdout=str(folder / "stdout"),
            stderr=str(folder / "stderr"),
            probe=str(folder / "probe.py") if probe is not None else None,
            events=str(folder / "left.json"),
            limit=limit,
        )
        stdout, stderr = ((folder / name).read_text().replace(str(folder), "") for name in ("stdout", "stderr"))
        stderr = re.sub(r'  File "<string>", line \d+, in \w+\n', "", stderr)  # the fork's own frames
        return Ran(answer["status"], stdout, stderr, _json(folder / "report.json"), _json(folder / "left.json"))


def _json(path: Path) -> Any:
    text = path.read_text() if path.exists() else ""
    return json.loads(text) if text else None
