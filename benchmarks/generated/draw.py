"""Draws scripts by seed, and keeps those that do under plain torch what they claim to."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.generated.compose import compose
from benchmarks.generated.parts import Variant
from tests.grid.runner import Zygote, environment_of

PROBE = Path(__file__).with_name("probe.py")
TRIES = 8
LIMIT = 60.0
SLOW = 200  # steps that a slow divergence takes at least


@dataclass(frozen=True, slots=True)
class Drawn:
    """A script, whose `variant` says what is wrong with it; `redrawn` counts those before it that did not do as planned."""

    variant: Variant
    name: str
    text: str
    bad_step: int | None
    redrawn: int

    @property
    def healthy(self) -> bool:
        return not self.variant.causes or self.bad_step is None


def draw(variants: Sequence[Variant], kind: str, split: str, number: int, zygote: Zygote, folder: Path) -> Drawn:
    """`kind`: failing, healthy (also a failing one's repaired twin) or slow. Raises where nothing drawn keeps its promise."""
    for attempt in range(TRIES):
        rng = random.Random(f"{split} {kind} {number} {attempt}")
        variant = variants[0] if attempt < TRIES // 2 else rng.choice(variants)
        pair = compose(variant, rng)
        twin = bool(variant.causes) and kind == "healthy"
        text = pair.healthy if twin else pair.failing
        place = folder / f"try{attempt}"
        seen = plain(text, zygote, place)
        if kept(kind, seen) and (kind == "healthy" or kept("healthy", plain(pair.healthy, zygote, folder / f"twin{attempt}"))):
            event = seen["event"]
            name = f"{split}-{kind}-{number:03d}"
            return Drawn(variant, name, text, event and event["step"], attempt)
    raise RuntimeError(f"{split} {kind} {number}: no script of {sorted({v.causes for v in variants})} does as it should; see {folder}")


def promise(variant: Variant, number: int, zygote: Zygote, folder: Path) -> str:
    """What a script drawn from the variant does otherwise than it should; empty where nothing."""
    pair = compose(variant, random.Random(f"check {number}"))
    seen = plain(pair.failing, zygote, folder)
    if not kept(variant.kind, seen):
        return f"{folder}: status {seen['status']}, {seen.get('event')} of {seen.get('steps')} steps"
    if variant.causes and not kept("healthy", twin := plain(pair.healthy, zygote, folder / "twin")):
        return f"{folder}/twin: status {twin['status']}, {twin.get('event')} of {twin.get('steps')} steps"
    return ""


def kept(kind: str, seen: dict[str, Any]) -> bool:
    event, steps = seen.get("event"), seen.get("steps", 0)
    if kind == "healthy":
        return event is None and seen["status"] == 0 and steps > 0
    if event is None or event["what"].startswith("exception"):
        return False
    return kind == "failing" or event["step"] >= SLOW


def plain(text: str, zygote: Zygote, folder: Path) -> dict[str, Any]:
    """The script under plain Python, with the probe."""
    status = forked(text, zygote, folder, ["train.py"], watched=False)
    path = folder / "event.json"
    return {**(json.loads(path.read_text()) if path.exists() else {}), "status": status}


def forked(text: str, zygote: Zygote, folder: Path, argv: list[str], *, watched: bool) -> int | None:
    work = folder / "work"
    work.mkdir(parents=True, exist_ok=True)
    (work / "train.py").write_text(text)
    answer = zygote.ask(
        argv=argv,
        watched=watched,
        cwd=str(work),
        pythonpath=None,
        environment=environment_of(folder),
        stdout=str(folder / "stdout"),
        stderr=str(folder / "stderr"),
        probe=None if watched else str(PROBE),
        events=str(folder / "event.json"),
        limit=LIMIT,
    )
    status: int | None = answer["status"]
    return status
