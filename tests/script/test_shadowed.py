"""Modules that only we have imported are out of the way of a script that has its own of that name."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from whynan.script.shadowed import set_aside


@pytest.mark.parametrize("package", [False, True])
def test_ours_are_aside_inside_and_back_after(tmp_path: Path, package: bool) -> None:
    import msgspec
    import msgspec.json

    file = tmp_path / ("msgspec/__init__.py" if package else "msgspec.py")
    file.parent.mkdir(exist_ok=True)
    file.write_text("")
    with set_aside(str(tmp_path)):
        assert not {"msgspec", "msgspec.json"} & set(sys.modules)
        sys.modules["msgspec"] = sys  # what the script imports
    assert sys.modules["msgspec"] is msgspec
    assert sys.modules["msgspec.json"] is msgspec.json


@pytest.mark.parametrize("name", ["sys", "os", "site", "encodings", "whynan", "no_such_module"])
def test_what_plain_python_has_already_stays(tmp_path: Path, name: str) -> None:
    (tmp_path / f"{name}.py").write_text("")
    before = dict(sys.modules)
    with set_aside(str(tmp_path)):
        assert dict(sys.modules) == before
