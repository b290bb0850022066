"""What the documents say is so: paths and links lead somewhere, commands and options exist, the README shows a real report."""

from __future__ import annotations

import importlib
import importlib.util
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import pytest

from whynan.causes import catalogue
from whynan.cli.main import COMMANDS
from whynan.cli.options import LATER

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
DOCUMENTS = [README, *(ROOT / name for name in ("CHANGELOG.md", "CONTRIBUTING.md")), *sorted((ROOT / "docs").glob("*.md"))]
LINK = re.compile(r"\]\(([^)#\s]+)")
CODE = re.compile(r"`([^`\n]+)`")
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
CALL = re.compile(r"whynan (run|show|explain|doctor|[a-z]+)\b([^`\n#|]*)")
OURS = ("src/", "tests/", "docs/", "tools/", "examples/", "benchmarks/")
NEVER_OURS = {"--help", "--version", "--lr", "--epochs", "--nproc-per-node", "--rounds", "--try"}

each = pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)


def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_readme", ROOT / "tools" / "make_readme.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def options(command: str) -> dict[str, bool]:
    """The options that `--help` shows, and whether each takes a value."""
    found: Any = importlib.import_module(f"whynan.cli.{command}").command
    shown = [one for one in found.params if isinstance(one, click.Option) and not one.hidden]
    return {name: not one.is_flag for one in shown for name in one.opts if name.startswith("--")}


def calls(text: str) -> Iterator[tuple[str, str]]:
    """(command, the rest of the line) of every command line of ours."""
    for found in CALL.finditer(text):
        before = text[text.rfind("\n", 0, found.start()) + 1 : found.start()]
        if before.strip() in ("", "$", "python -m") or before.rstrip().endswith(("`", "-m", "next", "|")):
            yield found[1], found[2]


# ---- the documents ----


def test_the_readme_is_short() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 200


@each
def test_links_lead_somewhere(document: Path) -> None:
    links = [link for link in LINK.findall(document.read_text(encoding="utf-8")) if "://" not in link]
    assert [link for link in links if not (document.parent / link).exists()] == []


@each
def test_paths_exist(document: Path) -> None:
    named = [code for code in CODE.findall(document.read_text(encoding="utf-8")) if code.startswith(OURS) and "<" not in code]
    assert [path for path in named if not (ROOT / path).exists()] == []


@each
def test_scripts_of_the_project_exist(document: Path) -> None:
    named = re.findall(r"python ((?:tools|benchmarks)/\S+?\.py)", document.read_text(encoding="utf-8"))
    assert [path for path in named if not (ROOT / path).is_file()] == []


@each
def test_commands_exist(document: Path) -> None:
    lines = list(calls(document.read_text(encoding="utf-8")))
    assert {command for command, _ in lines} <= set(COMMANDS)
    for command, rest in lines:
        before_the_program = re.split(r" (?:\S+\.py|-m|SCRIPT|MODULE)\b", rest)[0]
        assert set(OPTION.findall(before_the_program)) <= set(options(command)), f"whynan {command}{rest}"


@each
def test_options_exist(document: Path) -> None:
    ours = {name for command in COMMANDS for name in options(command)} | set(LATER) | {"--check"}
    text = FENCED.sub("", document.read_text(encoding="utf-8"))
    named = {name for code in CODE.findall(text) for name in OPTION.findall(code)}
    assert named <= ours | NEVER_OURS


def test_every_option_of_run_is_in_the_usage_with_its_value() -> None:
    for document in (README, ROOT / "docs" / "usage.md"):
        text = document.read_text(encoding="utf-8")
        for name, takes_value in options("run").items():
            assert re.search(rf"`{name} [A-Z]+`" if takes_value else rf"`{name}`", text), f"{name} in {document.name}"


def test_every_option_that_comes_later_is_named_in_the_readme() -> None:
    text = README.read_text(encoding="utf-8")
    assert [name for name in LATER if f"`{name}`" not in text] == []


@each
def test_causes_exist(document: Path) -> None:
    named = re.findall(r"whynan explain ([a-z][a-z0-9-]+)", document.read_text(encoding="utf-8"))
    assert set(named) <= {entry.cause.name for entry in catalogue()}


def test_make_has_the_targets_that_are_named() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = {name for document in DOCUMENTS for name in re.findall(r"(?:`|    )make ([a-z]+)", document.read_text(encoding="utf-8"))}
    assert {"demo", "test"} <= named <= targets


def test_the_usage_names_every_field_of_the_report() -> None:
    from whynan.report import model

    text = (ROOT / "docs" / "usage.md").read_text(encoding="utf-8")
    incident = set(model.IncidentPart.__struct_fields__)
    assert {name for name in incident if f"`{name}`" not in text and f"incidents[].{name}`" not in text} == set()
    assert {name for name in model.Origin.__struct_fields__ if f"`{name}`" not in text} == set()


# ---- the example ----


@pytest.fixture(scope="module")
def report() -> str:
    pytest.importorskip("torch")
    pytest.importorskip("sklearn")
    made: str = tool().report()
    return made


def test_the_readme_shows_the_examples_lines() -> None:
    make = tool()
    assert make.block(README.read_text(encoding="utf-8"), "script") == make.script(), "run tools/make_readme.py"


def test_the_readme_shows_the_examples_report(report: str) -> None:
    make = tool()
    shown = make.block(README.read_text(encoding="utf-8"), "report")
    assert make.stable(shown) == make.stable(report), "run tools/make_readme.py"


def test_the_example_fails_by_its_handwritten_logarithm(report: str) -> None:
    assert re.search(r"epoch 0: loss 0\.\d+", report)
    assert "[log-of-zero]" in report
    assert "examples/digits.py:24 in cross_entropy" in report
    assert "dataset index" in report


def test_the_first_remedy_of_the_report_mends_the_example(report: str, tmp_path: Path) -> None:
    removed, added = (re.search(rf"^ +{re.escape(sign)} (.*)$", report, re.MULTILINE) for sign in "-+")
    assert removed is not None
    assert added is not None
    source = (ROOT / "examples" / "digits.py").read_text(encoding="utf-8")
    assert source.count(removed[1]) == 1
    (tmp_path / "digits.py").write_text(source.replace(removed[1], added[1]), encoding="utf-8")
    done = subprocess.run([sys.executable, "digits.py"], cwd=tmp_path, capture_output=True, text=True, check=True)
    losses = re.findall(r"loss (\S+),", done.stdout)
    assert len(losses) == 10
    assert float(losses[-1]) < float(losses[0])


# ---- the tools ----


def test_what_is_stable_in_a_report() -> None:
    make = tool()
    one = "```text\nepoch 0\n---- x\nwhat      at rows 1, 2 and 3\n          of it\nwhere     a.py:24\nevidence  0.3\nnote      n\nnext      go\n```\n"
    other = one.replace("rows 1, 2 and 3\n          of", "rows 7 of").replace("0.3", "0.4").replace("epoch 0", "epoch 1")
    assert make.stable(one) == make.stable(other) == "what at N of it where a.py:24 next go"
    assert make.stable(one) != make.stable(one.replace("a.py:24", "a.py:25"))


def test_the_benchmark_runs_each_of_its_modes(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    for mode in ("plain", "anomaly"):
        command = [sys.executable, str(ROOT / "benchmarks" / "workloads.py"), "mlp", "3", str(tmp_path / mode), mode]
        subprocess.run(command, check=True, capture_output=True)
        assert len((tmp_path / mode).read_text().splitlines()) == 2  # from one step to the next
