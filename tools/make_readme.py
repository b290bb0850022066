"""Write into README.md what it shows of the example: the lines of examples/digits.py that matter, and the report of a real run.

python tools/make_readme.py [--check]        with --check, only tell which blocks are out of date (exit status 1)

A block stands between `<!-- NAME -->` and `<!-- end of NAME -->`. Numbers of a run may differ between machines, so a check compares what
`stable` keeps of its report.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
SCRIPT = Path("examples", "digits.py")
INCIDENT = 3
WIDTH = "96"
RUN = re.compile(r"\d{8}-\d{6}-\d+(?=/incident)")
SAMPLE_RUN = "20260101-120000-4711"  # stands for the time and the process of the run
COUNTED = re.compile(r"\b(step|rows?|index|indices) \d+(?:(?:, | and )\d+)*")
LABEL = 10  # columns of the report in which its parts are named
STABLE = ("what", "where", "why", "help", "next")


def main() -> int:
    parser = argparse.ArgumentParser(description="Write into README.md what it shows of the example.")
    parser.add_argument("--check", action="store_true", help="only tell which blocks are out of date")
    text = README.read_text(encoding="utf-8")
    found = {"script": script(), "report": report()}
    if parser.parse_args().check:
        stale = [name for name, new in found.items() if stable(block(text, name)) != stable(new)]
        print("\n".join(stale))
        return int(bool(stale))
    for name, new in found.items():
        before, after = text.split(start(name))[0], text.split(end(name))[1]
        text = before + start(name) + new + end(name) + after
    README.write_text(text, encoding="utf-8")
    return 0


def block(text: str, name: str) -> str:
    """What stands between the two marks of a block."""
    return text.partition(start(name))[2].partition(end(name))[0]


def start(name: str) -> str:
    return f"<!-- {name} -->\n"


def end(name: str) -> str:
    return f"<!-- end of {name} -->\n"


def script() -> str:
    """The hand-written loss and the training loop, without what lies between them."""
    source = (ROOT / SCRIPT).read_text(encoding="utf-8")
    nodes = list(ast.walk(ast.parse(source)))
    loss = next(node for node in nodes if isinstance(node, ast.FunctionDef) and node.name == "cross_entropy")
    loop = next(node for node in nodes if isinstance(node, ast.For) and ast.unparse(node.iter) == "loader")
    shown = "\n\n...\n".join(lines(source, node) for node in (loss, loop))
    return f"```python\n{shown}\n```\n"


def lines(source: str, node: ast.stmt) -> str:
    return textwrap.dedent("\n".join(source.splitlines()[node.lineno - 1 : node.end_lineno]))


def report() -> str:
    """The command, and what the script and whynan print, as on a terminal."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / SCRIPT.parent).mkdir()
        shutil.copy(ROOT / SCRIPT, Path(folder) / SCRIPT)
        done = subprocess.run(
            [sys.executable, "-m", "whynan", "run", str(SCRIPT)],
            cwd=folder,
            env=surroundings(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
    if done.returncode != INCIDENT:
        raise SystemExit(f"{SCRIPT} ended with exit status {done.returncode}:\n{done.stdout}")
    return f"```text\n$ whynan run {SCRIPT}\n{RUN.sub(SAMPLE_RUN, done.stdout)}```\n"


def surroundings() -> dict[str, str]:
    ours = ("WHYNAN", "PYTHON", "PYTEST", "FORCE_COLOR", "COLUMNS")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return {**kept, "PYTHONPATH": str(ROOT / "src"), "COLUMNS": WIDTH}


def stable(text: str) -> str:
    """What is the same on every machine: of a report its parts `STABLE`, whatever the step, the rows and the line breaks are; else all."""
    if not text.startswith("```text"):
        return text
    kept, part = [], ""
    for line in text.splitlines():
        part = line[:LABEL].strip() or part
        if part in STABLE:
            kept += line.split()
    return COUNTED.sub("N", " ".join(kept))


if __name__ == "__main__":
    sys.exit(main())
