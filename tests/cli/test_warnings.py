"""A warning is one line on standard error while training goes on, and stays in the report; it is no incident."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command import plain, whynan

pytest.importorskip("torch")

SORTED = """\
import sys
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(90):
    loss = torch.nn.functional.cross_entropy(model(torch.rand(16, 4)), torch.full((16,), step % 3))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("step", step, file=sys.stderr)
print(loss.item())
"""


def test_it_is_told_when_it_appears(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SORTED)
    done = whynan("run", "--json", "report.json", "train.py", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, plain("train.py", cwd=tmp_path).stdout)
    lines = done.stderr.decode().splitlines()
    (index,) = [i for i, line in enumerate(lines) if line.startswith("whynan:")]
    assert lines[index - 1] == "step 38"
    (warning,) = json.loads((tmp_path / "report.json").read_bytes())["warnings"]
    assert lines[index] == f"whynan: warning: step 39: {warning['text']} [one-class-batches]"
    assert (warning["step"], warning["name"]) == (39, "one-class-batches")
    shown = whynan("show", "--json", cwd=tmp_path)
    assert json.loads(shown.stdout)["warnings"] == [warning]


def test_quiet(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SORTED)
    done = whynan("run", "--quiet", "--json", "report.json", "train.py", cwd=tmp_path)
    assert "whynan" not in done.stderr.decode()
    assert [warning["name"] for warning in json.loads((tmp_path / "report.json").read_bytes())["warnings"]] == ["one-class-batches"]
