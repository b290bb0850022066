"""Brings the backend in when the script imports its framework, and not before."""

from __future__ import annotations

import importlib.util
import sys
from typing import Any, cast

import click

from whynan.cli.stderr import complain
from whynan.core.backend import StepBackend
from whynan.record.recorder import RunRecorder
from whynan.script.importer import on_import
from whynan.script.runtime import Runtime
from whynan.script.sites import SiteTable

PIP_LINE = 'pip install "whynan[torch]"'


def require_one() -> None:
    if "torch" not in sys.modules and importlib.util.find_spec("torch") is None:
        raise click.UsageError(f"no framework to watch is installed: {PIP_LINE}")


class Idle:
    """The backend of a script that has not imported a framework: nothing is watched, so nothing else is asked of it."""

    watching = False


class Watch:
    """The backend once there is one. Whatever fails in it costs the watch, never the run."""

    def __init__(self, recorder: RunRecorder, trace_step: int | None, history: int | None = None) -> None:
        self.recorder, self.trace_step, self.history = recorder, trace_step, history
        self.backend: Any = None
        self.runtime: Any = None

    def prepare(self, sites: SiteTable) -> Runtime:
        """What rewritten code calls from the start of the script on."""
        self.runtime = Runtime(sites, cast(StepBackend, Idle()))
        if "torch" in sys.modules:
            self.attach(sys.modules["torch"])
        else:
            on_import("torch", self.attach)
        return self.runtime  # type: ignore[no-any-return]

    def attach(self, torch: Any) -> None:
        """Called by the import hook when torch has been imported."""
        try:
            from whynan.torch.backend import TorchBackend

            self.recorder.run.backend_version = str(torch.__version__).partition("+")[0]
            backend = TorchBackend(self.recorder, trace_step=self.trace_step, history=self.history)
            backend.install(self.runtime)
            self.backend = self.runtime.backend = backend
        except Exception as error:
            self.recorder.limit(f"the run was not watched: {type(error).__name__}: {error}")
            complain(f"a fault of its own, the run is not watched: {type(error).__name__}: {error}")

    def detach(self, in_order: bool) -> None:
        """Remove the hooks and take over what the backend counted. `in_order`: the exit status is 0."""
        if self.backend is None:
            return
        try:
            self.backend.close(in_order)
            for limit in self.backend.limits:
                self.recorder.limit(limit)
        except Exception as error:
            self.recorder.limit(f"the watch could not be closed: {type(error).__name__}: {error}")

    @property
    def unwatched(self) -> str | None:
        """Why not a step was seen, where that is known."""
        return getattr(self.backend, "unwatched", None)

    @property
    def untraced(self) -> str | None:
        """That the run ended before the step that was to be traced."""
        steps = max(self.steps, self.recorder.run.steps)  # an incident's step may have had no backward
        if self.trace_step is None or steps > self.trace_step:
            return None
        return f"step {self.trace_step}, which was to be traced, was never reached: the run had {steps} step{'s' * (steps != 1)}"

    @property
    def together(self) -> bool:
        """Whether this process trained together with other ranks."""
        return bool(getattr(self.backend, "together", False))

    @property
    def steps(self) -> int:
        return int(getattr(self.backend, "steps", 0))

    @property
    def overhead(self) -> float:
        return float(getattr(self.backend, "overhead", 0.0))
