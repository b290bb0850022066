"""Runs a drawn script under `whynan run` and compares the report with what is known of it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from benchmarks.generated.draw import Drawn, forked
from tests.grid.runner import Zygote


@dataclass(frozen=True, slots=True)
class Judged:
    """`causes` are the report's, with their confidences; `warned` the steps of its warnings; None for both where there is no report."""

    drawn: Drawn
    status: int | None
    causes: tuple[tuple[str, float], ...]
    line: int | None
    step: int | None
    warned: tuple[tuple[int, str], ...]
    incidents: int
    reported: bool

    def right(self, first: int) -> bool:
        return any(name in self.drawn.variant.causes for name, _ in self.causes[:first])

    @property
    def ahead(self) -> int | None:
        """How many steps before the non-finite value the first warning came."""
        steps = [step for step, _ in self.warned]
        return self.drawn.bad_step - min(steps) if steps and self.drawn.bad_step is not None else None


def judge(drawn: Drawn, zygote: Zygote, folder: Path, options: tuple[str, ...]) -> Judged:
    status = forked(drawn.text, zygote, folder, ["run", *options, "--json", "../report.json", "train.py"], watched=True)
    path = folder / "report.json"
    if not path.exists():
        return Judged(drawn, status, (), None, None, (), 0, False)
    report = json.loads(path.read_text())
    incident = next(iter(report["incidents"]), None)
    causes = tuple((cause["name"], float(cause["confidence"])) for cause in incident["causes"]) if incident else ()
    return Judged(
        drawn,
        status,
        causes,
        incident["origin"] and incident["origin"]["line"] if incident else None,
        incident["step"] if incident else None,
        tuple((warning["step"], warning["name"]) for warning in report["warnings"]),
        len(report["incidents"]),
        True,
    )
