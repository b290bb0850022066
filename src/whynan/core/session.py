"""The session: everything known about one incident, as plain data, between collecting and presenting."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from whynan.core.flow import Flow
from whynan.core.records import Direction, Operation, OptimizerState, Site, TensorStats, Trend

Kind = Literal["nan", "inf", "divergence", "loss-scale-collapse"]
Phase = Literal["input", "forward", "loss", "backward", "optimizer", "dynamics"]
What = Literal["loss", "gradient", "parameter", "buffer", "exception"]


@dataclass(frozen=True, slots=True)
class Reproduced:
    """The replay met the same non-finite quantity again."""

    seconds: float


@dataclass(frozen=True, slots=True)
class NotReproduced:
    """The replay was impossible or ended otherwise; `reason` says why, `command` is what places the birth instead."""

    reason: str
    command: str | None = None
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Seed:
    """A value that went bad: the index of the operation that wrote it last (None: it came from outside the record)."""

    what: What
    name: str
    operation: int | None
    stats: TensorStats | None = None


@dataclass(slots=True)
class Session:
    """One incident as the backend recorded it.

    `seeds` are what went bad; `operations` the traced step in order (empty where the replay was impossible). `parameters` names the
    gradients or parameters that became non-finite, `dataset_indices` the indices of the batch's rows in the
    dataset. `made` tells where a parameter was created or last initialised. `never_finite` names the buffers and other constants of
    modules that were not finite when first seen and that nothing has written since. `faults`: probes of the catalogue that failed.
    """

    step: int
    what: What
    names: tuple[str, ...] = ()
    seeds: tuple[Seed, ...] = ()
    operations: list[Operation] = field(default_factory=list)
    parameters: tuple[str, ...] | None = None
    dataset_indices: tuple[int, ...] | None = None
    optimizers: tuple[OptimizerState, ...] = ()
    trend: Trend = field(default_factory=Trend)
    replay: Reproduced | NotReproduced = field(default_factory=lambda: NotReproduced("not replayed"))
    site: Site | None = None
    exception: str | None = None
    scale: float | None = None
    kind: Kind | None = None
    made: dict[str, Site] = field(default_factory=dict)
    never_finite: frozenset[str] = frozenset()
    faults: list[str] = field(default_factory=list)
    _flow: Flow | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def flow(self) -> Flow:
        """The operations as a graph, made once."""
        if self._flow is None or self._flow.operations is not self.operations:
            self._flow = Flow(self.operations)
        return self._flow


@dataclass(frozen=True, slots=True)
class Birth:
    """Where the first harmful value was born, as `locate` found it.

    `operation` is the one that made it (for a value that was there before the step: the first that consumed it). `op` is its name in
    the report: the canonical operation, or `input`, `parameter` -> `param`, `buffer` for a value from outside. `operand` is then the
    tensor that carried it in. `chain` holds the indices of the operations from the birth to what went bad, the birth first.
    `since_made`: the tensor was not finite when it was made, so no step is to blame.
    """

    operation: Operation
    op: str
    kind: Kind
    direction: Direction
    phase: Phase
    site: Site | None
    samples: tuple[int, ...] | None = None
    dataset_indices: tuple[int, ...] | None = None
    parameters: tuple[str, ...] | None = None
    chain: tuple[int, ...] = ()
    from_infinity: bool = False
    origin_name: str | None = None
    since_made: bool = False
