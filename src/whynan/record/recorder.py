"""Keeps a run as it goes on. Nothing here raises into the user's run: what disk refuses stays in memory, and one line says so."""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic
from typing import Literal, Protocol

from whynan.core.faults import is_ours
from whynan.core.incident import Incident, Run
from whynan.record import folders, incidents
from whynan.record.store import StepRow, Store, WarningRow

EVERY = 0.5  # seconds between two writes
SHARE = 0.002  # of the time that writing may take
LONGEST = 1.0  # seconds that may be lost by kill -9


class Describe(Protocol):
    """How a run and its incidents are written down; `whynan.report.json` is one."""

    def encode_run(self, run: Run) -> str: ...

    def encode_incident(self, run: Run, incident: Incident) -> str: ...

    def render_parts(self, run: str, warnings: Sequence[WarningRow], incidents: Sequence[str]) -> bytes: ...


class RunRecorder:
    """Implements `core.backend.Recorder`. `warn` prints one line for the user, as does `tell` each warning (None: nobody wants to read
    them while training goes on); `folder` is None until something was recorded. `steps`: what waits to be written."""

    def __init__(
        self, run: Run, output: Path, describe: Describe, warn: Callable[[str], None], tell: Callable[[str], None] | None = None
    ) -> None:
        self.run = run
        self.output, self.shown_output = output.absolute(), output
        self.folder: Path | None = None
        self.warnings: list[WarningRow] = []
        self.incidents: list[Incident] = []
        self._describe, self._warn, self._tell = describe, warn, tell
        self.steps: list[StepRow] = []
        self._unsaved_warnings: list[WarningRow] = []
        self._store: Store | None = None
        self._closed = False
        self._expecting = False
        self._due = 0.0
        self._lock = threading.RLock()
        self._pid = os.getpid()

    def step(self, row: StepRow) -> None:
        self.steps.append(row)
        if monotonic() >= self._due:
            self.flush()

    def warning(self, step: int, name: str, text: str) -> None:
        self.warnings.append((step, name, text))
        self._unsaved_warnings.append((step, name, text))
        if self._tell is not None:
            self._tell(f"warning: step {step}: {text} [{name}]")

    def limit(self, text: str) -> None:
        if text not in self.run.limits:
            self.run.limits.append(text)

    def expected(self, incident: Incident) -> None:
        self._note(incident, None)
        self._expecting = True

    def incident(self, incident: Incident, write_artifacts: Callable[[Path], None] | None) -> None:
        if self._expecting:
            self.incidents.pop()
            self._expecting = False
        self._note(incident, write_artifacts)

    def withdraw(self) -> None:
        self.incidents.pop()
        self._expecting = False
        self.run.status = "running"
        self._keep(self._remove_last)

    def _note(self, incident: Incident, write_artifacts: Callable[[Path], None] | None) -> None:
        self.incidents.append(incident)
        self.run.status, self.run.steps = "incident", max(self.run.steps, incident.session.step + 1)
        number = len(self.incidents)
        self._keep(self._write_gathered)
        self._keep(lambda store: self._write_incident(store, number, incident, write_artifacts))

    def flush(self) -> None:
        """Write what has gathered. The pause that follows depends on what writing cost, but for the first time, which makes the folder."""
        start, opening = monotonic(), self._store is None
        self._keep(self._write_gathered)
        now = monotonic()
        cost = 0.0 if opening else now - start
        self._due = now + min(max(EVERY, cost / SHARE), LONGEST)

    def finish(self, status: Literal["clean", "incident", "error"], exit_code: int | None, overhead: float, steps: int) -> None:
        """Note how the run ended, close its file and remove old runs. A run without a step leaves no folder."""
        self.run.status, self.run.exit_code, self.run.overhead, self.run.steps = status, exit_code, overhead, steps
        if self._store is not None or self.steps or steps:
            self._keep(self._write_gathered)
            self._keep(self._write_end)
        self._closed = True  # what comes later, from a thread that trains on, is not recorded

    def _keep(self, write: Callable[[Store], None]) -> None:
        """Do `write` on the store, which is opened when first needed; never in a forked child, nor once writing has failed."""
        if os.getpid() != self._pid:
            self.steps.clear()
            return
        with self._lock:
            try:
                if store := self._opened():
                    write(store)
            except Exception as error:
                if not is_ours(error):
                    raise
                self._give_up(str(error) if isinstance(error, OSError) else f"{type(error).__name__}: {error}")

    def _opened(self) -> Store | None:
        if self._closed:
            self.steps.clear()
        elif self._store is None:
            self.folder = folders.create(self.output, self.run.rank)
            self._store = self._made(self.folder)
        return self._store

    def _made(self, folder: Path) -> Store:
        """An empty folder helps nobody."""
        try:
            return Store(folder, self._describe.encode_run(self.run), self.run.launch)
        except Exception:
            shutil.rmtree(folder, ignore_errors=True)
            raise

    def _write_gathered(self, store: Store) -> None:
        steps = self.steps.copy()
        del self.steps[: len(steps)]
        warnings, self._unsaved_warnings = self._unsaved_warnings, []
        if steps or warnings:
            store.add(steps, warnings)

    def _write_incident(
        self, store: Store, number: int, incident: Incident, write_artifacts: Callable[[Path], None] | None
    ) -> None:
        assert self.folder is not None
        if problem := incidents.create(self.folder, number, write_artifacts):
            self.limit(problem)
        incident.folder = os.path.join(self.shown_output, self.folder.name, f"incident-{number}")
        try:
            run, described = self._describe.encode_run(self.run), self._describe.encode_incident(self.run, incident)
            store.add_incident(number, described, run)
            report = self._describe.render_parts(run, self.warnings, [described])
            (incidents.folder_of(self.folder, number) / incidents.REPORT).write_bytes(report)
        except BaseException:
            incident.folder = None
            raise

    def _remove_last(self, store: Store) -> None:
        assert self.folder is not None
        number = len(self.incidents) + 1
        store.remove_incident(number, self._describe.encode_run(self.run))
        shutil.rmtree(incidents.folder_of(self.folder, number), ignore_errors=True)

    def _write_end(self, store: Store) -> None:
        store.end(self._describe.encode_run(self.run))
        self._store = None
        store.close()
        folders.prune(self.output)

    def _give_up(self, reason: str) -> None:
        self._closed = True
        self._warn(f"this run cannot be recorded in {self.shown_output} ({reason}); it goes on without")
        store, self._store = self._store, None
        with contextlib.suppress(Exception):
            if store is not None:
                store.close()
