"""A way to write runs down that needs no report, as the recorder's protocol asks for."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from whynan.core.incident import Incident, Run
from whynan.core.session import Session
from whynan.record.recorder import RunRecorder


class Describe:
    def encode_run(self, run: Run) -> str:
        return json.dumps({"script": run.script, "status": run.status, "steps": run.steps, "limits": run.limits})

    def encode_incident(self, run: Run, incident: Incident) -> str:
        return json.dumps({"step": incident.session.step, "folder": incident.folder})

    def render_parts(self, run: str, warnings: Sequence[tuple[int, str, str]], incidents: Sequence[str]) -> bytes:
        return json.dumps([json.loads(run), list(warnings), [json.loads(one) for one in incidents]]).encode()


def recorder(output: Path, warn: Callable[[str], None] = print, **changes: object) -> RunRecorder:
    return RunRecorder(Run("train.py", **changes), output, Describe(), warn)  # type: ignore[arg-type]


def incident(step: int = 3) -> Incident:
    return Incident(Session(step, "loss"), None)
