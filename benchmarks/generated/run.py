"""Generated training runs whose cause is known, and healthy ones, under `whynan run`: how often it is right.

python benchmarks/generated/run.py                               60 failing and 30 healthy runs of the tuning set
python benchmarks/generated/run.py --only log-of-zero --keep DIR   one cause; the folders of what was missed stay in DIR
python benchmarks/generated/run.py --set test --failing 300 --healthy 300 --slow 40 --write    writes docs/accuracy.md
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.generated import catalogue, page  # noqa: E402
from benchmarks.generated.draw import draw, promise  # noqa: E402
from benchmarks.generated.judge import Judged, judge  # noqa: E402
from benchmarks.generated.parts import Variant  # noqa: E402
from tests.grid.runner import Zygote  # noqa: E402

LOCAL = threading.local()
PAGE = ROOT / "docs" / "accuracy.md"


def main() -> None:
    options = arguments()
    base = Path(tempfile.mkdtemp(prefix="generated-"))
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
    tasks = list(planned(options))
    if options.check:
        check(options, base)
        return
    started: list[Zygote] = []
    try:
        with ThreadPoolExecutor(options.jobs) as pool:
            results = list(pool.map(lambda task: carried_out(task, options, base, started), tasks))
    finally:
        for zygote in started:
            zygote.close()
        shutil.rmtree(base, ignore_errors=True)
    judged = [result for result in results if result is not None]
    text = page.tables(judged, options.set)
    print(text)
    if options.write:
        PAGE.write_text(page.page(text, sys.argv[1:]))


def check(options: argparse.Namespace, base: Path, times: int = 2) -> None:
    """One line a variant that seldom keeps its promise."""
    zygote = Zygote()
    variants = [v for v in catalogue.variants(options.set) if not options.only or v.causes and v.causes[0] in options.only]
    for index, variant in enumerate(variants):
        if options.kind not in (None, "held back" if variant.held_back else variant.kind):
            continue
        seen = [promise(variant, number, zygote, base / f"{index}-{number}") for number in range(times)]
        if seen.count("") < times:
            print(f"{index} {variant.kind} {'/'.join(variant.causes)} {seen}", flush=True)
    zygote.close()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", choices=("tune", "test"), default="tune", help="tune: seeds and variants to look at; test: neither")
    parser.add_argument("--failing", type=int, default=60)
    parser.add_argument("--healthy", type=int, default=30)
    parser.add_argument("--slow", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first run of each kind")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", nargs="+", metavar="CAUSE", help="these causes alone")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="copy the folders of runs that were missed to DIR")
    parser.add_argument("--keep-all", action="store_true", help="with --keep: of all runs")
    parser.add_argument("--prove", action="store_true", help="let remedies be tried")
    parser.add_argument("--check", action="store_true", help="only see how often each variant does under plain torch what it claims to")
    parser.add_argument("--kind", choices=("failing", "held back", "healthy", "slow"), help="with --check: only these")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    return parser.parse_args()


def planned(options: argparse.Namespace) -> Iterator[tuple[str, int, list[Variant]]]:
    """Failing runs go round the causes, so that each gets as many; within a cause the variants take turns."""
    variants = catalogue.variants(options.set)
    if options.only:
        variants = [v for v in variants if v.causes and v.causes[0] in options.only]
    by_cause: dict[str, list[Variant]] = {}
    for variant in variants:
        if variant.kind == "failing":
            by_cause.setdefault(variant.causes[0], []).append(variant)
    causes = sorted(by_cause)
    for number in range(options.first, options.first + options.failing if causes else 0):
        own = by_cause[causes[number % len(causes)]]
        turn = (number // len(causes)) % len(own)
        yield "failing", number, own[turn:] + own[:turn]
    healthy, twins = [v for v in variants if v.kind == "healthy"], [v for v in variants if v.kind == "failing"]
    for number in range(options.first, options.first + options.healthy):
        pool = healthy if healthy and number % 2 else twins
        turn = (number // 2) * 7 % len(pool)
        yield "healthy", number, pool[turn:] + pool[:turn]
    slow = [v for v in variants if v.kind == "slow"]
    for number in range(options.first, options.first + options.slow if slow else 0):
        turn = number % len(slow)
        yield "slow", number, slow[turn:] + slow[:turn]


def carried_out(task: tuple[str, int, list[Variant]], options: argparse.Namespace, base: Path, started: list[Zygote]) -> Judged | None:
    kind, number, variants = task
    if not hasattr(LOCAL, "zygote"):
        LOCAL.zygote = Zygote()
        started.append(LOCAL.zygote)
    folder = base / f"{options.set}-{kind}-{number:03d}"
    try:
        drawn = draw(variants, kind, options.set, number, LOCAL.zygote, folder)
    except RuntimeError as error:
        print(f"NOT DRAWN {error}", flush=True)
        return None
    result = judge(drawn, LOCAL.zygote, folder / "watched", () if options.prove else ("--no-prove",))
    missed = page.missed(result)
    if options.keep and (missed or options.keep_all):
        shutil.copytree(folder / "watched", options.keep / drawn.name, dirs_exist_ok=True)
    if missed:
        where = options.keep / drawn.name if options.keep else ""
        print(f"{drawn.name} {missed} {where}", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    return result


if __name__ == "__main__":
    main()
