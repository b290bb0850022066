"""A script imports its own modules as under plain Python, whatever of that name we have imported ourselves."""

from __future__ import annotations

import pytest

from tests.torch.forks import Forks

SCRIPT = "import {name}\nprint({name}.MINE)\nimport torch\nleaf = torch.ones(1, requires_grad=True)\n(leaf - 1).log().sum().backward()\n"


@pytest.mark.parametrize("name", ["click", "msgspec", "rich", "sqlite3", "statistics", "executing", "safetensors"])
def test_a_script_finds_its_own_and_is_reported(forks: Forks, name: str) -> None:
    ran = forks.watched(SCRIPT.format(name=name), files={f"{name}.py": "MINE = 'mine'\n"})
    assert ran.stdout == "mine\n", ran.stderr
    assert ran.status == 3, ran.stderr
    assert ran.report["incidents"][0]["first_seen"]["what"] == "loss"
    assert "what      The loss became" in ran.stderr
    assert "report failed" not in ran.stderr
