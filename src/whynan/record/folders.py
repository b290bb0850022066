"""The folders of runs below one output folder: their names, the latest one, and which old ones to remove."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from whynan.record.store import FILE, UnreadableRun, launch_of, read

KEEP_RUNS = 50
KEEP_BYTES = 2 << 30
NAME = re.compile(r"\d{8}-\d{6}-(rank)?\d+(-\d+)?")


def create(output: Path, rank: int | None) -> Path:
    """A fresh folder for a run, named after the time and the rank or process."""
    name = f"{time.strftime('%Y%m%d-%H%M%S')}-" + (f"rank{rank}" if rank is not None else str(os.getpid()))
    output.mkdir(parents=True, exist_ok=True)
    for suffix in ("", *(f"-{count}" for count in range(2, 100))):
        with contextlib.suppress(FileExistsError):
            (output / (name + suffix)).mkdir()
            return output / (name + suffix)
    raise FileExistsError(f"{output / name} and 98 more of its name exist")


def runs(output: Path) -> list[Path]:
    """Every run below `output`, the latest last. Folders that we did not make are no runs."""
    found = []
    with contextlib.suppress(OSError), os.scandir(output) as entries:
        for entry in entries:
            ours = NAME.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False)
            if ours and os.path.isfile(os.path.join(entry.path, FILE)):
                found.append(Path(entry.path))
    return sorted(found, key=lambda folder: (folder.name[:15], modified(folder)))


def latest(output: Path) -> list[Path]:
    """The latest run, and where a rank made it those of the ranks that were started with it, the latest first."""
    newest_first = runs(output)[::-1]
    launch = launch_of(newest_first[0]) if newest_first else None
    if launch is None:
        return newest_first[:1]
    ranks: dict[str, Path] = {}
    for folder in newest_first:
        if launch_of(folder) == launch:
            rank = folder.name.split("-")[2]
            if rank in ranks:  # an earlier launch of the same name
                break
            ranks[rank] = folder
    return list(ranks.values())


def prune(output: Path, keep: int = KEEP_RUNS, size: int = KEEP_BYTES) -> list[Path]:
    """Remove the oldest runs beyond `keep` and `size`, never one that still goes on or has an incident the user has not seen."""
    removed, kept, total = [], 0, 0
    for folder in reversed(runs(output)):
        used = bytes_in(folder)
        if (kept >= keep or total + used > size) and kept > 0 and removable(folder):
            shutil.rmtree(folder, ignore_errors=True)
            removed.append(folder)
        else:
            kept, total = kept + 1, total + used
    return removed


def removable(folder: Path) -> bool:
    try:
        run = read(folder)
    except UnreadableRun:
        return False
    return run.unseen == 0 and (run.ended or not goes_on(folder, run.pid))


def goes_on(folder: Path, pid: int) -> bool:
    """A run of another machine cannot be asked: it counts as going on for a day after its last word."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return time.time() - modified(folder) < 24 * 3600
    except (OSError, OverflowError):
        pass
    return True


def modified(folder: Path) -> float:
    times = []
    for name in (FILE, FILE + "-wal"):
        with contextlib.suppress(OSError):
            times.append(os.stat(folder / name).st_mtime)
    return max(times, default=0.0)


def bytes_in(folder: Path) -> int:
    return sum(sizes(folder))


def sizes(folder: Path) -> Iterator[int]:
    for base, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                yield os.lstat(os.path.join(base, name)).st_size
