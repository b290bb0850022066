"""The document that every report is rendered from. Fields stand in the JSON's order; unknown values are None, never left out."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

SCHEMA: Final = "whynan.report/1"

Number = int | float | Literal["nan", "inf", "-inf"]


class RunPart(msgspec.Struct, frozen=True):
    script: str
    argv: list[str]
    backend: str
    backend_version: str
    steps: int
    status: Literal["running", "clean", "incident", "error"]
    exit_code: int | None
    overhead: Number
    limits: list[str]


class Warned(msgspec.Struct, frozen=True):
    step: int
    name: str
    text: str


class FirstSeen(msgspec.Struct, frozen=True):
    what: Literal["loss", "gradient", "parameter", "buffer", "exception"]
    names: list[str]


class Output(msgspec.Struct, frozen=True):
    shape: list[int]
    dtype: str
    min: Number | None
    max: Number | None
    absmax: Number | None
    nan: int
    posinf: int
    neginf: int
    zero: int | None


class Input(msgspec.Struct, frozen=True):
    role: str
    shape: list[int]
    dtype: str
    min: Number | None
    max: Number | None
    absmax: Number | None
    nan: int
    posinf: int
    neginf: int
    zero: int | None
    argmin: list[int] | None = None
    argmax: list[int] | None = None


class Extent(msgspec.Struct, frozen=True):
    """The smallest and the largest finite element of the operation's first operand at an earlier step."""

    step: int
    min: Number
    max: Number


class Origin(msgspec.Struct, frozen=True):
    """`column` counts characters on the line as it stands in the file; `source` is that line without its indentation;
    `since_made` names the constant that was not finite when it was made."""

    direction: Literal["forward", "backward", "optimizer"] | None
    op: str | None
    call: str | None
    autograd_node: str | None
    file: str | None
    line: int | None
    column: tuple[int, int] | None
    function: str | None
    source: str | None
    expression: str | None
    module: str | None
    samples: list[int] | None
    dataset_indices: list[int] | None
    parameters: list[str] | None
    inputs: list[Input]
    output: Output | None
    since_made: str | None = None


class Link(msgspec.Struct, frozen=True):
    op: str
    call: str | None
    autograd_node: str | None
    file: str | None
    line: int | None
    function: str | None
    module: str | None


class Line(msgspec.Struct, frozen=True):
    file: str
    line: int | None


class CausePart(msgspec.Struct, frozen=True):
    name: str
    confidence: Number
    summary: str
    evidence: list[str]
    line: Line
    why: str
    doubt: str


class Proof(msgspec.Struct, frozen=True):
    kind: Literal["operation", "run"]
    steps: int
    finite: bool
    loss_first: Number | None
    loss_last: Number | None


class RemedyPart(msgspec.Struct, frozen=True):
    name: str
    cause: str
    change: str
    patch: str | None
    status: Literal["proven", "failed", "not-tried"]
    reason: str | None
    proof: Proof | None


class ReplayPart(msgspec.Struct, frozen=True):
    reproduced: bool
    reason: str | None
    seconds: Number
    command: str | None


class TrendPart(msgspec.Struct, frozen=True):
    steps: list[int]
    loss: list[Number | None]
    grad_norm: list[Number | None]
    update_ratio: list[Number | None]
    lr: list[Number | None]


class IncidentPart(msgspec.Struct, frozen=True):
    step: int
    kind: Literal["nan", "inf", "divergence", "loss-scale-collapse"]
    phase: Literal["input", "forward", "loss", "backward", "optimizer", "dynamics"] | None
    first_seen: FirstSeen
    origin: Origin
    chain: list[Link]
    causes: list[CausePart]
    remedies: list[RemedyPart]
    replay: ReplayPart
    trend: TrendPart
    folder: str | None
    course: list[Extent] = []


class Document(msgspec.Struct, frozen=True):
    schema: Literal["whynan.report/1"]
    run: RunPart
    warnings: list[Warned]
    incidents: list[IncidentPart]
