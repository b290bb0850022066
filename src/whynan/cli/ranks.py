"""One run a rank under `torchrun`, one report for the first rank that fails: it is the one that makes a file first."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

LAUNCH = ("TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE")
PATIENCE = 30.0  # seconds
SLACK = 1.0  # seconds by which clocks may differ; ranks that train together have all started before one of them fails


def rank() -> int | None:
    """This process's rank, None where it is the only one."""
    value, world = os.environ.get("RANK", ""), os.environ.get("WORLD_SIZE", "1")
    return int(value) if value.isdecimal() and world.isdecimal() and int(world) > 1 else None


class Claim:
    """Who reports. Made when a rank starts, so that the file of an earlier launch with the same name can be told by its age."""

    def __init__(self, output: Path, rank: int | None) -> None:
        self.rank, self.started = rank, time.time()
        self.file = output.absolute() / f".first-{launch_name()}"

    def take(self) -> bool:
        """Whether this rank is the first that fails. Where no file can be made every rank reports: too much beats nothing."""
        if self.rank is None:
            return True
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            if self.taken() is False:
                self.file.unlink(missing_ok=True)
            os.close(os.open(self.file, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        except FileExistsError:
            return False
        except OSError:
            return True
        return True

    def taken(self) -> bool:
        """Whether a rank of this launch has failed."""
        try:
            return self.file.stat().st_mtime >= self.started - SLACK
        except OSError:
            return False

    def wait_for_another(self) -> None:
        """Give the rank where it was born, which runs its own step again at this moment, the time to claim the report."""
        end = time.time() + PATIENCE
        while self.rank is not None and not self.taken() and time.time() < end:
            time.sleep(0.1)

    def speaks(self, failed: bool, placed: bool = True, *, together: bool = True) -> bool:
        """Whether this rank writes the report: the first that fails, and where none did, rank 0. One that found no place lets the
        others go first: what it got bad may have come from them, by the reduction of gradients. Ranks that did not train `together`
        each speak for themselves."""
        if not together and LAUNCH[0] not in os.environ:
            return True
        if failed and not placed:
            self.wait_for_another()
        return self.take() if failed else self.rank is None or (self.rank == 0 and not self.taken())


def launch_name() -> str:
    """The same for all ranks of one launch. On one machine they have one parent, which no other launch at that time has."""
    parts = [os.environ.get(name, "") for name in LAUNCH]
    if os.environ.get("LOCAL_WORLD_SIZE") == os.environ.get("WORLD_SIZE"):
        parts.append(str(os.getppid()))
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:16]
