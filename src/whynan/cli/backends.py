"""Brings the backend in when the script imports its framework, and not before."""

from __future__ import annotations

import importlib.util
import sys
from typing import Any

import click

from whynan.record.recorder import RunRecorder

PIP_LINE = 'pip install "whynan[torch]"'


def require_one() -> None:
    if "torch" not in sys.modules and importlib.util.find_spec("torch") is None:
        raise click.UsageError(f"no framework to watch is installed: {PIP_LINE}")


class Watch:
    """The backend once there is one. Whatever fails in it costs the watch, never the run."""

    def __init__(self, recorder: RunRecorder, trace_step: int | None) -> None:
        self.recorder, self.trace_step = recorder, trace_step
        self.backend: Any = None

    def attach(self, *_: Any) -> None:
        """Called by the import hook when torch has been imported."""
        try:
            from whynan.torch.backend import TorchBackend

            self.recorder.run.backend_version = str(sys.modules["torch"].__version__).partition("+")[0]
            backend = TorchBackend(self.recorder, trace_step=self.trace_step)
            backend.install()
            self.backend = backend
        except Exception as error:
            self.recorder.limit(f"the run was not watched: {type(error).__name__}: {error}")

    def detach(self) -> None:
        """Remove the hooks and take over what the backend counted."""
        if self.backend is None:
            return
        try:
            self.backend.close()
            for limit in self.backend.limits:
                self.recorder.limit(limit)
        except Exception as error:
            self.recorder.limit(f"the watch could not be closed: {type(error).__name__}: {error}")

    @property
    def steps(self) -> int:
        return int(getattr(self.backend, "steps", 0))

    @property
    def overhead(self) -> float:
        return float(getattr(self.backend, "overhead", 0.0))
