"""The session: everything known about one incident, as plain data, between collecting and presenting."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from whynan.core.components import Component
from whynan.core.flow import Flow
from whynan.core.records import Direction, Operation, OptimizerState, Site, TensorStats, Trend
from whynan.core.trials import Outcome

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


@dataclass(frozen=True, slots=True)
class Earlier:
    """A step before the incident, recorded in the same way when it was made once more."""

    step: int
    operations: list[Operation]
    components: list[Component]


@dataclass(frozen=True, slots=True)
class Extent:
    """The smallest and the largest finite element of a tensor at one step."""

    step: int
    min: float
    max: float


@dataclass(slots=True)
class Session:
    """One incident as the backend recorded it.

    `seeds` are what went bad; `operations` the traced step in order (empty where the replay was impossible). `parameters` names the
    gradients or parameters that became non-finite, `dataset_indices` the indices of the batch's rows in the
    dataset. `made` tells where a parameter was created or last initialised. `never_finite` names the buffers and other constants of
    modules that were not finite when first seen and that nothing has written since. `faults`: probes of the catalogue that failed.

    The last steps made once more: `earlier` is the record of one of them, `trials` how they went with something changed, by the name of
    the trial, `course` how the culprit operand went in them.
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
    earlier: Earlier | None = None
    trials: dict[str, Outcome] = field(default_factory=dict)
    course: tuple[Extent, ...] = ()
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
