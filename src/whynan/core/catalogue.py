"""What the catalogue of causes is made of: a cause, what its probe says of one birth, and the advice that goes with it.

The catalogue itself is an argument of `explain` and `prescribe`; this module knows no cause.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from whynan.core.records import Site
from whynan.core.session import Birth, Session
from whynan.core.trials import Trial

Level = Literal["operation", "data", "run"]
Part = Literal["argument", "divisor", "base", "whole", "keyword"]
Condition = Callable[[Birth, Session], bool]


@dataclass(frozen=True, slots=True)
class Edit:
    """How an expression is rewritten: `template` takes the place of one `part` of it, whose own text goes where `{}` stands.

    `calls` restricts the edit to calls of these names (`log`, `softmax`), `inner` to those whose argument is itself such a call:
    then `{}` stands for that inner call. `keyword` is the argument that the part `keyword` means. `half` is the template for a format of
    16 bits, which may not hold the other's constants, `number` the one for a number of Python, which has no methods of tensors.
    """

    part: Part
    template: str
    calls: tuple[str, ...] = ()
    inner: tuple[str, ...] = ()
    keyword: str = ""
    half: str = ""
    number: str = ""


@dataclass(frozen=True, slots=True)
class Advice:
    """A remedy that a cause names: `text` says it in one sentence, `edits` are tried in turn on the user's own expression. `when` tells
    from the record whether it applies at all: a softmax is replaced only where there is one."""

    name: str
    text: str
    edits: tuple[Edit, ...] = ()
    when: Condition | None = None


@dataclass(frozen=True, slots=True)
class Cause:
    """One entry of the vocabulary. The causes of level `run` stand before the mechanism at the birth, because mending the
    mechanism would not mend the run. `no_remedy` is the reason why none is advised; `course` marks what goes wrong over many steps.
    `trials` are made before the probe is asked for good; it then finds their outcomes in the session."""

    name: str
    title: str
    level: Level
    why: str
    doubt: str
    remedies: tuple[Advice, ...] = ()
    no_remedy: str = ""
    course: bool = False
    trials: tuple[Trial, ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a probe says: how sure it is, one sentence, and the numbers it rests on. `site` is the line of the mistake where that
    is not the birth's; `why` and `doubt` replace those of the cause where this birth needs other words."""

    confidence: float
    summary: str
    evidence: tuple[str, ...]
    site: Site | None = None
    why: str = ""
    doubt: str = ""


Probe = Callable[[Birth, Session], Verdict | None]


@dataclass(frozen=True, slots=True)
class Entry:
    """A cause as its file states it: the text of its page, its probe, a failing program and the healthy twin."""

    cause: Cause
    family: str
    document: str
    probe: Probe
    example: str
    twin: str


Catalogue = tuple[Entry, ...]


def find(catalogue: Catalogue, name: str) -> Entry | None:
    return next((entry for entry in catalogue if entry.cause.name == name), None)
