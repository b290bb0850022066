"""What watching costs: the same steps plainly, under `whynan run` and under torch's detect_anomaly, in turn; one thread.

python benchmarks/overhead.py            writes docs/performance.md; wants a machine that does nothing else, and some minutes
python benchmarks/overhead.py --try      few steps, to see that it works: prints, writes nothing
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import math
import os
import platform
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WORKLOADS = Path(__file__).with_name("workloads.py")
PAGE = ROOT / "docs" / "performance.md"
WATCHED = ("-m", "whynan", "run", "--quiet")
STARTS = {"a script that does nothing": "", "a script that imports torch": "import torch\n"}
KEEP = {"MALLOC_TRIM_THRESHOLD_": "4000000000", "MALLOC_MMAP_THRESHOLD_": "1000000000"}  # for glibc's allocator; bytes
MODES = {"plain": "plain", "watched": "plain", "anomaly": "anomaly"}
ROUNDS = 5  # reports and starts
INCIDENT = 3
FAILS_AT = 20  # the step of the planted incident, late enough for everything to be warm


@dataclass(frozen=True)
class Workload:
    """`steps` are run, of which those after the first `skipped` count: `trend` measures every step up to the hundredth. `turn`: seconds.
    `rounds`: how often all is begun afresh, since where a process lies in memory makes it faster or slower."""

    name: str
    title: str
    steps: int
    turn: float
    rounds: int
    skipped: int = 100


@dataclass(frozen=True)
class Cost:
    """Medians; `watched` and `anomaly` as ratios to the plain run beside them, `spread` their quartiles for the watched run."""

    title: str
    plain: float
    watched: float
    spread: tuple[float, float]
    anomaly: float
    report: float


ALL = (
    Workload("mlp", "MLP, 85 thousand parameters, batch of 128", 3000, 0.2, 10),
    Workload("conv", "four convolutions with batch norm, 4 images of 32 x 32", 300, 1.0, 6),
    Workload("gpt", "six transformer blocks of width 256, 8 x 64 tokens", 180, 2.0, 3),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=[workload.name for workload in ALL], help="one workload; nothing is written")
    parser.add_argument("--try", dest="trial", action="store_true", help="a few steps, and nothing is written")
    options = parser.parse_args()
    workloads = [replace(w, steps=max(w.steps // 50, 20), skipped=10, rounds=1) for w in ALL] if options.trial else ALL
    with tempfile.TemporaryDirectory() as folder:
        costs = [cost(w, Path(folder)) for w in workloads if options.only in (None, w.name)]
        starts = [(title, start_up(source, Path(folder))) for title, source in STARTS.items()] if not options.only else []
    text = page(costs, starts)
    if options.trial or options.only:
        print(text)
    else:
        PAGE.write_text(text, encoding="utf-8")


# ---- measuring ----


def cost(workload: Workload, folder: Path) -> Cost:
    rounds = [in_turn(workload, folder) for _ in range(workload.rounds)]
    plain, watched, anomaly = (list(itertools.chain(*kind)) for kind in zip(*rounds, strict=True))
    ours = ratios(watched, plain)
    say(f"{workload.name}: {statistics.median(ours):.4f} of plain by {len(ours)} turns")
    low, _, high = statistics.quantiles(ours * 2, n=4)  # twice, for there may be one only
    theirs = statistics.median(ratios(anomaly, plain))
    report = statistics.median(report_seconds(workload, folder) for _ in range(ROUNDS))
    return Cost(workload.title, statistics.median(filter(math.isfinite, plain)), statistics.median(ours), (low, high), theirs, report)


def in_turn(workload: Workload, folder: Path) -> list[list[float]]:
    """The median step of every turn of the three kinds, which run side by side, one at a time: the others are stopped meanwhile, so that
    a change of the machine's speed meets all of them."""
    outs = [folder / kind for kind in ("plain", "watched", "anomaly")]
    rest = [WORKLOADS, workload.name, workload.steps]
    commands = [[*(WATCHED if out.name == "watched" else ()), *rest, out, MODES[out.name]] for out in outs]
    apart = {"stderr": subprocess.DEVNULL, "start_new_session": True}  # a stopped process ends when its terminal's group is left alone
    processes = [subprocess.Popen(python(c), env=surroundings(folder), **apart) for c in commands]
    try:
        turns = take_turns(processes, workload.turn)
    finally:
        for process in processes:
            process.kill()
    if any(process.returncode for process in processes):
        raise SystemExit(f"{workload.name}: a run failed")
    return [medians(steps_of(out, workload.skipped), turns[i]) for i, out in enumerate(outs)]


def take_turns(processes: list[subprocess.Popen[bytes]], seconds: float) -> list[list[tuple[float, float]]]:
    """-> of each process, when it ran: (from, to)."""
    for process in processes:
        process.send_signal(signal.SIGSTOP)
    turns: list[list[tuple[float, float]]] = [[] for _ in processes]
    while any(process.poll() is None for process in processes):
        for number, process in enumerate(processes):
            start = time.perf_counter()
            process.send_signal(signal.SIGCONT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(seconds)
            process.send_signal(signal.SIGSTOP)
            turns[number].append((start, time.perf_counter()))
    return turns


def steps_of(out: Path, skipped: int) -> list[tuple[float, float]]:
    return [(float(start), float(seconds)) for start, seconds in map(str.split, out.read_text().splitlines()[skipped:])]


def medians(steps: list[tuple[float, float]], turns: list[tuple[float, float]]) -> list[float]:
    """Of the steps that lie within each turn; nan for a turn without."""
    found = [[seconds for at, seconds in steps if start < at and at + seconds < end] for start, end in turns]
    return [statistics.median(within) if within else math.nan for within in found]


def ratios(ours: list[float], without: list[float]) -> list[float]:
    """Of neighbouring turns."""
    return [a / b for a, b in zip(ours, without, strict=False) if not math.isnan(a + b)]


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


def start_up(source: str, folder: Path) -> float:
    """Seconds that `whynan run` takes more than plain Python for a whole process."""
    script = folder / "script.py"
    script.write_text(source)
    pairs = [(process_seconds([script], folder), process_seconds([*WATCHED, script], folder)) for _ in range(ROUNDS + 1)]
    return statistics.median(ours - without for without, ours in pairs[1:])  # the first fills the caches


def process_seconds(command: Iterable[object], folder: Path) -> float:
    start = time.perf_counter()
    subprocess.run(python(command), env=surroundings(folder), check=True)
    return time.perf_counter() - start


def python(command: Iterable[object]) -> list[str]:
    return [sys.executable, *map(str, command)]


def surroundings(folder: Path) -> dict[str, str]:
    return {**os.environ, **KEEP, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1", "WHYNAN_OUTPUT": str(folder / "runs")}


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


# ---- the page ----


def page(costs: list[Cost], starts: list[tuple[str, float]]) -> str:
    steps = "\n".join(f"| {one.title} | {milliseconds(one.plain)} | {ratio(one)} | {one.anomaly:.2f} |" for one in costs)
    reports = "\n".join(
        f"| {one.title} | {one.report:.2f} s | {one.report / one.plain:.0f} | {30 * one.plain + 1.5:.2f} s |" for one in costs
    )
    begins = "\n".join(f"| {title} | {seconds:.2f} s |" for title, seconds in starts)
    return f"""# What it costs

Written by `python benchmarks/overhead.py`, which runs everything below again and replaces this page. Measured with Python
{platform.python_version()} and torch {version("torch")} on {machine()}, one thread.

## A step

The steps after the first 100 (in which the trend is measured every step), each from its beginning to that of the next. The three kinds of
run take turns of 0.2 to 2 seconds, the others being stopped meanwhile; of every turn the median step counts, and of those medians the
ratio to the plain run's turn beside it: the median of the ratios, in brackets their quartiles. In all of them the C library keeps the
memory it has (`MALLOC_TRIM_THRESHOLD_`): otherwise it gives the large buffers of a step back to the system and takes them anew, in some
processes more often than in others, which makes their steps differ by several per cent, watched or not.

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
