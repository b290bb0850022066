"""What a generated script is made of, and the small language of its texts.

`$name` is a size, drawn at random (`SIZES`) unless a variant sets it. `<<wrong||right>>` is the mistake and its repair; either may be empty
or several lines. A line that is left blank by it goes.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

FAULT = re.compile(r"<<(.*?)\|\|(.*?)>>", re.DOTALL)
NAME = re.compile(r"\$([a-z]\w*)")
GONE = "\0"

SIZES: dict[str, Any] = {
    "d": (4, 12),
    "h": (12, 40),
    "c": (3, 6),
    "b": (8, 20),
    "m": (4, 8),
    "epochs": (2, 4),
    "t": (6, 12),
    "v": (20, 50),
    "s": (8, 12),
    "e": (8, 16),
    "k": (2, 5),
    "seed": (0, 9999),
    "lr": (0.001, 0.01),
}


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to write a mistake (`causes` names it, more than one name where two are honestly the same) or a healthy run (no causes).

    Either `text` is the whole script, or `net`, `data` or `sample`, and `loss` are its parts and the loop is drawn. `net` is the name of a
    family, several with "|", or source; `data` the name of a kind of targets or source that makes `x` and `y`; `spoil` is put after it.
    """

    causes: tuple[str, ...] = ()
    text: str = ""
    net: str = "any"
    out: str = "$c"
    data: str = "classes"
    spoil: str = ""
    returns: str = "x, y"
    sample: str = ""
    loss: str = ""
    setup: str = ""
    opt: str = ""
    extras: bool = True
    shuffle: bool = True
    steps: int | tuple[int, int] = 0
    sizes: Mapping[str, Any] = field(default_factory=dict)
    held_back: bool = False
    kind: str = "failing"


def draw_sizes(rng: random.Random, variant: Variant) -> dict[str, str]:
    """Ranges of integers are uniform, of floats log-uniform, lists are choices, texts may name other sizes."""
    values: dict[str, Any] = {name: drawn(rng, spec) for name, spec in {**SIZES, **variant.sizes}.items()}
    values["o"] = variant.out
    values["n"] = int(values["b"]) * int(values["m"])
    values["at"] = rng.randrange(int(values["b"]), values["n"])
    values["steps"] = drawn(rng, variant.steps) or values["m"] * values["epochs"]
    return {name: filled(str(value), {key: str(other) for key, other in values.items()}) for name, value in values.items()}


def drawn(rng: random.Random, spec: Any) -> Any:
    if isinstance(spec, list):
        return rng.choice(spec)
    if not isinstance(spec, tuple):
        return spec
    low, high = spec
    if isinstance(low, int):
        return rng.randint(low, high)
    digits = 2 if high > 1.5 * low else 4
    return float(f"{low * (high / low) ** rng.random():.{digits}g}")


def filled(text: str, sizes: Mapping[str, str]) -> str:
    return NAME.sub(lambda match: sizes.get(match[1], match[0]), text)


def decided(text: str, *, faulty: bool) -> str:
    """The text with the mistake, or with its repair."""
    text = FAULT.sub(lambda match: match[1 if faulty else 2] or GONE, text)
    lines = [line for line in text.split("\n") if line.strip(" \0") or GONE not in line]
    return "\n".join(lines).replace(GONE, "")
