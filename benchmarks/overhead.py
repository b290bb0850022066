"""What watching costs: the same steps plainly, under `whynan run` and under torch's detect_anomaly, in turn; one thread.

python benchmarks/overhead.py            writes docs/performance.md; wants a machine that does nothing else, and a while
python benchmarks/overhead.py --try      few steps and one round, to see that it works: prints, writes nothing
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WORKLOADS = Path(__file__).with_name("workloads.py")
PAGE = ROOT / "docs" / "performance.md"
WATCHED = ("-m", "whynan", "run", "--quiet")
STARTS = {"a script that does nothing": "", "a script that imports torch": "import torch\n"}
INCIDENT = 3
FAILS_AT = 20  # the step of the planted incident, late enough for everything to be warm


@dataclass(frozen=True)
class Workload:
    """`steps` are run, of which those after the first `skipped` count: `trend` measures every step up to the hundredth."""

    name: str
    title: str
    steps: int
    skipped: int = 100


@dataclass(frozen=True)
class Cost:
    """Medians over the rounds; `spread` is the lowest and highest ratio of a watched run to the plain run beside it."""

    title: str
    plain: float
    watched: float
    spread: tuple[float, float]
    anomaly: float
    report: float


ALL = (
    Workload("mlp", "MLP, 85 thousand parameters, batch of 128", 4000),
    Workload("conv", "four convolutions with batch norm, 16 images of 32 x 32", 200),
    Workload("gpt", "six transformer blocks of width 256, 8 x 64 tokens", 150),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="runs of each kind (default: 5)")
    parser.add_argument("--try", dest="trial", action="store_true", help="few steps, one round, and nothing is written")
    options = parser.parse_args()
    workloads = [Workload(w.name, w.title, 6, 3) for w in ALL] if options.trial else ALL
    rounds = 1 if options.trial else options.rounds
    with tempfile.TemporaryDirectory() as folder:
        costs = [cost(workload, rounds, Path(folder)) for workload in workloads]
        starts = [(title, start_up(source, rounds, Path(folder))) for title, source in STARTS.items()]
    text = page(costs, starts, rounds)
    if options.trial:
        print(text)
    else:
        PAGE.write_text(text, encoding="utf-8")


# ---- measuring ----


def cost(workload: Workload, rounds: int, folder: Path) -> Cost:
    """Runs of the three kinds in turn, each round beginning with another, so that a drift of the machine favours none."""
    kinds: list[Callable[[], float]] = [
        lambda: step_seconds(workload, folder),
        lambda: step_seconds(workload, folder, watched=True),
        lambda: step_seconds(workload, folder, mode="anomaly"),
    ]
    found: list[list[float]] = [[], [], []]
    for turn in range(rounds):
        for kind in (*range(turn % 3, 3), *range(turn % 3)):
            found[kind].append(kinds[kind]())
            say(f"{workload.name}, round {turn + 1}: {('plain', 'watched', 'detect_anomaly')[kind]} {1e3 * found[kind][-1]:.3f} ms a step")
    plain, watched, anomaly = found
    ratios = [ours / without for ours, without in zip(watched, plain, strict=True)]
    return Cost(
        workload.title,
        statistics.median(plain),
        statistics.median(ratios),
        (min(ratios), max(ratios)),
        statistics.median(theirs / without for theirs, without in zip(anomaly, plain, strict=True)),
        statistics.median(report_seconds(workload, folder) for _ in range(rounds)),
    )


def step_seconds(workload: Workload, folder: Path, *, watched: bool = False, mode: str = "plain") -> float:
    """The median step of one process."""
    out = folder / "seconds"
    command = [*(WATCHED if watched else ()), WORKLOADS, workload.name, workload.steps, out, mode]
    subprocess.run(python(command), env=surroundings(folder), check=True, stderr=subprocess.DEVNULL)
    return statistics.median(map(float, out.read_text().split()[workload.skipped :]))


def report_seconds(workload: Workload, folder: Path) -> float:
    """From right before the backward that finds it to the last line of the report."""
    out = folder / "seconds"
    command = ["-m", "whynan", "run", WORKLOADS, workload.name, FAILS_AT + 1, out, "fails"]
    with subprocess.Popen(python(command), env=surroundings(folder), stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        printed = [time.monotonic() for _ in process.stderr]
    if process.returncode != INCIDENT:
        raise SystemExit(f"{workload.name}: the planted incident was not reported (exit status {process.returncode})")
    seconds = printed[-1] - float(out.read_text())
    say(f"{workload.name}: report after {seconds:.2f} s")
    return seconds


def start_up(source: str, rounds: int, folder: Path) -> float:
    """Seconds that `whynan run` takes more than plain Python for a whole process."""
    script = folder / "script.py"
    script.write_text(source)
    pairs = [(process_seconds([script], folder), process_seconds([*WATCHED, script], folder)) for _ in range(rounds + 1)]
    return statistics.median(ours - without for without, ours in pairs[1:])  # the first fills the caches


def process_seconds(command: Iterable[object], folder: Path) -> float:
    start = time.perf_counter()
    subprocess.run(python(command), env=surroundings(folder), check=True)
    return time.perf_counter() - start


def python(command: Iterable[object]) -> list[str]:
    return [sys.executable, *map(str, command)]


def surroundings(folder: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1", "WHYNAN_OUTPUT": str(folder / "runs")}


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


# ---- the page ----


def page(costs: list[Cost], starts: list[tuple[str, float]], rounds: int) -> str:
    steps = "\n".join(f"| {one.title} | {milliseconds(one.plain)} | {ratio(one)} | {one.anomaly:.2f} |" for one in costs)
    reports = "\n".join(
        f"| {one.title} | {one.report:.2f} s | {one.report / one.plain:.0f} | {30 * one.plain + 1.5:.2f} s |" for one in costs
    )
    begins = "\n".join(f"| {title} | {seconds:.2f} s |" for title, seconds in starts)
    return f"""# What it costs

Written by `python benchmarks/overhead.py`, which runs everything below again and replaces this page. Measured with Python
{platform.python_version()} and torch {version("torch")} on {machine()}, one thread, rounds: {rounds}.

## A step

The median step of a process after the first 100 steps (in which the trend is measured every step), and the median over the rounds of
its ratio to the plain run beside it. In brackets, the lowest and the highest ratio.

| workload | plain | `whynan run` / plain | `detect_anomaly` / plain |
|---|---|---|---|
{steps}

## From the hit to the report

A loss that is not finite, planted in one step: from right before its backward to the last line of the report.

| workload | time | in steps | limit: 30 steps + 1.5 s |
|---|---|---|---|
{reports}

## Starting

What `whynan run` takes longer than plain Python for a whole process.

| script | more |
|---|---|
{begins}
"""


def milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:.3g} ms"


def ratio(one: Cost) -> str:
    return f"{one.watched:.3f} ({one.spread[0]:.3f} to {one.spread[1]:.3f})"


def machine() -> str:
    """The processor's name, and how many there are."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else platform.machine()} ({os.cpu_count()} cores)"


if __name__ == "__main__":
    main()
