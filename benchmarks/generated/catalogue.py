"""All variants, from the modules beside this one that define `VARIANTS`; those named `held_back_*` are for the test set alone."""

from __future__ import annotations

import importlib
from dataclasses import replace
from pathlib import Path

from benchmarks.generated.parts import Variant

HERE = Path(__file__).parent
PREFIXES = ("failing_", "healthy_", "slow_", "held_back_")


def variants(split: str) -> list[Variant]:
    found: list[Variant] = []
    for path in sorted(HERE.glob("*.py")):
        if not path.stem.startswith(PREFIXES):
            continue
        held_back = path.stem.startswith("held_back_")
        if held_back and split != "test":
            continue
        module = importlib.import_module(f"benchmarks.generated.{path.stem}")
        found.extend(replace(variant, held_back=held_back) for variant in module.VARIANTS)
    return found
