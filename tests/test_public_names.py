"""The public surface is exactly `whynan.__all__`, and importing it costs nothing."""

from __future__ import annotations

import subprocess
import sys

import whynan

HEAVY = ("torch", "mindspore", "rich", "click", "numpy", "msgspec", "sqlite3", "safetensors")


def test_the_public_names_are_exactly_all() -> None:
    public = {name for name in dir(whynan) if not name.startswith("_")} - {"annotations"}
    submodules = {name.partition(".")[2] for name in sys.modules if name.startswith("whynan.")}
    assert public - submodules == set(whynan.__all__) - {"__version__"}
    assert all(hasattr(whynan, name) for name in whynan.__all__)


def test_importing_whynan_loads_nothing_heavy() -> None:
    code = f"import sys, whynan; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
