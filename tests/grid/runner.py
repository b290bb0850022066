"""Runs scripts of the grid, plain and watched: forked from one parent, or as a command of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from tests.grid.compose import Script
from tests.grid.shapes import Shape

HERE = Path(__file__).parent
SOURCE = HERE.parents[1] / "src"
MODULES = ("numpy", "torch._dynamo", "whynan.cli.main", "whynan.cli.run", "whynan.torch.backend", "whynan.report.document")
LIMIT = 120.0


@dataclass(frozen=True, slots=True)
class Ran:
    status: int | None
    stdout: str
    stderr: str
    seconds: float
    folder: Path
    report: dict[str, Any] | None = None
    event: dict[str, Any] | None = None

    def left(self, shape: Shape) -> dict[str, str]:
        """The text files that the script wrote."""
        return {path.name: path.read_text() for path in (self.folder / "work" / shape.cwd).glob("*.txt")}


class Zygote:
    def __init__(self) -> None:
        environment = {**os.environ, "PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        environment.pop("PYTHONWARNINGS", None)
        self.process = subprocess.Popen(
            [sys.executable, "-c", (HERE / "zygote.py").read_text(), *MODULES],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self.requests, self.answers = cast(IO[str], self.process.stdin), cast(IO[str], self.process.stdout)
        if self.answers.readline() != "ready\n":
            raise RuntimeError("the parent of the grid's scripts did not start")

    def ask(self, **request: Any) -> dict[str, Any]:
        self.requests.write(json.dumps(request) + "\n")
        self.requests.flush()
        answer: dict[str, Any] = json.loads(self.answers.readline())
        return answer

    def close(self) -> None:
        self.requests.close()
        self.answers.close()
        self.process.wait(10)


class Runner:
    """Every run gets a folder of its own below `base`, so that nothing is left over from another."""

    def __init__(self, base: Path) -> None:
        self.base, self.number = base, 0
        self.zygote: Zygote | None = None

    def plain(self, shape: Shape, script: Script, *, probe: bool = False) -> Ran:
        return self._forked(shape, script, list(shape.command), watched=False, probe=probe)

    def watched(self, shape: Shape, script: Script, options: tuple[str, ...] = ()) -> Ran:
        return self._forked(shape, script, ["run", "--no-prove", "--json", "../../report.json", *options, *shape.command], watched=True)

    def command(self, shape: Shape, script: Script) -> Ran:
        """Watched, through the interpreter's own start."""
        folder = self._lay_out(script)
        ours = ["-m", "whynan", "run", "--no-prove", "--json", str(folder / "report.json")]
        paths = [str(SOURCE), *([str(folder / "work" / shape.pythonpath)] if shape.pythonpath else [])]
        environment = {**os.environ, **environment_of(folder), "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(paths)}
        done = subprocess.run(
            [sys.executable, *ours, *shape.command],
            cwd=folder / "work" / shape.cwd,
            env=environment,
            capture_output=True,
            text=True,
            timeout=LIMIT,
        )
        return Ran(done.returncode, done.stdout, done.stderr, 0.0, folder, read_json(folder / "report.json"))

    def close(self) -> None:
        if self.zygote is not None:
            self.zygote.close()

    def _forked(self, shape: Shape, script: Script, argv: list[str], *, watched: bool, probe: bool = False) -> Ran:
        self.zygote = self.zygote or Zygote()
        folder = self._lay_out(script)
        argv = [str(folder / "report.json") if part == "../../report.json" else part for part in argv]
        answer = self.zygote.ask(
            argv=argv,
            watched=watched,
            cwd=str(folder / "work" / shape.cwd),
            pythonpath=str(folder / "work" / shape.pythonpath) if shape.pythonpath else None,
            environment=environment_of(folder),
            stdout=str(folder / "stdout"),
            stderr=str(folder / "stderr"),
            probe=str(HERE / "probe.py") if probe else None,
            events=str(folder / "event.json"),
            limit=LIMIT,
        )
        return Ran(
            answer["status"],
            (folder / "stdout").read_text(),
            (folder / "stderr").read_text(),
            answer["seconds"],
            folder,
            read_json(folder / "report.json"),
            read_json(folder / "event.json"),
        )

    def _lay_out(self, script: Script) -> Path:
        folder = self.base / str(self.number)
        self.number += 1
        for name, text in script.files.items():
            path = folder / "work" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return folder


def environment_of(folder: Path) -> dict[str, str]:
    return {"WHYNAN_OUTPUT": str(folder / "runs"), "NO_COLOR": "1", "COLUMNS": "200"}


def read_json(path: Path) -> Any:
    return json.loads(path.read_text()) if path.exists() else None
