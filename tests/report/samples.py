"""Incidents from literals, and renderings of them."""

from __future__ import annotations

import dataclasses
import io
from typing import Any

from whynan.core.incident import Diagnosis, Incident, Remedy, Run
from whynan.core.records import Operand, Operation, Site, TensorStats, Trend
from whynan.core.session import Birth, NotReproduced, Reproduced, Seed, Session
from whynan.report import markdown, terminal
from whynan.report.document import document
from whynan.report.model import Document

NAN, INF = float("nan"), float("inf")
HOSTILE = "</script><b>[red]x[/red] ``` `y` | @someone \x1b[31m\x07\u202e\x9b2J"


def site(**changes: Any) -> Site:
    fields: dict[str, Any] = {
        "file": "/home/me/train.py",
        "line": 42,
        "function": "PairLoss.forward",
        "source": "d = torch.log(p)",
        "column": (12, 24),
        "expression": "torch.log(p)",
        "call": "torch.log",
    }
    return Site(**(fields | changes))


def operation(place: Site | None = None, **changes: Any) -> Operation:
    fields: dict[str, Any] = {
        "index": 0,
        "op": "log",
        "kernel": "aten.log.default",
        "direction": "forward",
        "site": place or site(),
        "module": "head.loss",
        "inputs": (Operand("input", TensorStats((64,), "float32", 0.0, 0.98, 0.98, 0.01, zero=3)),),
        "outputs": (TensorStats((64,), "float32", -4.0, 0.0, 4.0, neginf=3),),
    }
    return Operation(**(fields | changes))


def birth(one: Operation, **changes: Any) -> Birth:
    fields: dict[str, Any] = {
        "operation": one,
        "op": one.op,
        "kind": "inf",
        "direction": one.direction,
        "phase": "loss",
        "site": one.site,
        "samples": (17, 40, 41),
        "chain": (0,),
    }
    return Birth(**(fields | changes))


def diagnosis(**changes: Any) -> Diagnosis:
    fields: dict[str, Any] = {
        "cause": "log-of-zero",
        "confidence": 0.97,
        "summary": "the logarithm of exactly 0 is taken",
        "evidence": ("the smallest argument is 0.0, log needs more than 0",),
        "site": None,
        "why": "log falls without bound as its argument nears 0.",
        "doubt": "It is wrong if the rows were meant to be masked.",
    }
    return Diagnosis(**(fields | changes))


def incident(one: Operation | None = None, **changes: Any) -> Incident:
    one = one or operation()
    born = changes.pop("birth", birth(one))
    diagnoses = changes.pop("diagnoses", (diagnosis(),))
    remedies = changes.pop("remedies", (Remedy("use-log-softmax", "log-of-zero", "- torch.log(p)\n+ torch.log_softmax(z, -1)"),))
    folder = changes.pop("folder", "whynan-runs/x/incident-1")
    fields: dict[str, Any] = {
        "step": 12,
        "what": "loss",
        "seeds": (Seed("loss", "loss", 0, TensorStats((), "float32", nan=1)),),
        "operations": [one],
        "trend": Trend([10, 11], [2.3, NAN], [1.0, INF], [-INF, 0.1], [0.1, 0.1]),
        "replay": Reproduced(0.25),
        "site": site(line=50),
    }
    return Incident(Session(**(fields | changes)), born, diagnoses, remedies, folder)


def unplaced(reason: str = "the script forks inside the step", command: str | None = None) -> Incident:
    return incident(birth=None, diagnoses=(), remedies=(), operations=[], replay=NotReproduced(reason, command))


def placed_at(**changes: Any) -> Incident:
    place = site(**changes)
    return incident(operation(place))


def built(*incidents: Incident, **changes: Any) -> Document:
    run = dataclasses.replace(Run("train.py", ("--lr", "3"), steps=13, status="incident"), **changes)
    return document(run, incidents)


def on_terminal(document: Document, width: int = 100, monkeypatch: Any = None) -> str:
    stream = io.StringIO()
    if monkeypatch is not None:
        monkeypatch.setenv("COLUMNS", str(width))
    terminal.render(document, stream)
    return stream.getvalue()


def as_markdown(document: Document) -> str:
    return markdown.render(document)
