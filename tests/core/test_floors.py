"""A floor belongs where a divisor is made if more than one line divides by it."""

from __future__ import annotations

from pathlib import Path

import pytest

from whynan.core.catalogue import Advice, Edit
from whynan.core.floors import Making, making
from whynan.core.prescribe import _change
from whynan.core.records import Operation, Site

TWICE = "def f(x, low, high):\n    scale = (high - low) / 255\n    zero = -low / scale\n    return x / scale + zero\n"
FLOOR = Advice("floor-divisor", "Floor it.", (Edit("divisor", "{}.clamp_min(1e-6)"),))


def site(path: Path, text: str, line: int, expression: str) -> Site:
    path.write_text(text)
    return Site(str(path), line, "f", text.splitlines()[line - 1].strip(), None, expression)


def test_a_divisor_used_again_is_floored_where_it_is_made(tmp_path: Path) -> None:
    place = site(tmp_path / "twice.py", TWICE, 3, "-low / scale")
    assert making(place) == Making("scale", 2, (4,))
    told = _change(FLOOR, place, Operation(0, "div", "aten.div.Tensor", "forward"))
    assert told == "Floor it where it is made, after line 2: scale = scale.clamp_min(1e-6). It is used also on line 4."


@pytest.mark.parametrize(
    "text",
    [
        "def f(x, low, high):\n    scale = high - low\n    return -low / scale\n",
        "def f(x, low, scale):\n    low = low * 2\n    return -low / scale, x / scale\n",
        "scale = 3.0\ndef g(scale): return 1 / scale\nzero = -low / scale\n",
    ],
    ids=["used once", "an argument", "another function's"],
)
def test_elsewhere_the_line_itself_is_changed(tmp_path: Path, text: str) -> None:
    name = f"once{abs(hash(text))}.py"
    assert making(site(tmp_path / name, text, 3, "-low / scale")) is None
