"""Plain records of what was seen while a step ran: tensors, places in the user's source, operations.

They are written by a backend and read by `locate`, the catalogue of causes and the reports. None of them refers to a framework's
object, so everything after the replay can be tested from literals.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Direction = Literal["forward", "backward", "optimizer"]
Source = Literal["operation", "input", "parameter", "buffer", "constant", "gradient", "state", "unknown"]
HALVES = frozenset({"float16", "bfloat16"})


@dataclass(frozen=True, slots=True)
class TensorStats:
    """Statistics of one tensor. `min`, `max`, `absmax` and `absmin` (smallest magnitude above 0) are taken over its finite elements
    and are None where it has none (or, for `absmin` and `zero` of a very large tensor, where they were not counted)."""

    shape: tuple[int, ...]
    dtype: str
    min: float | None = None
    max: float | None = None
    absmax: float | None = None
    absmin: float | None = None
    nan: int = 0
    posinf: int = 0
    neginf: int = 0
    zero: int | None = None

    @property
    def numel(self) -> int:
        count = 1
        for size in self.shape:
            count *= size
        return count

    @property
    def inf(self) -> int:
        return self.posinf + self.neginf

    @property
    def finite(self) -> bool:
        return not (self.nan or self.inf)


@dataclass(frozen=True, slots=True)
class Site:
    """A place in the user's own source: the expression that was running.

    `column` is (first, last + 1) on `line`, counted in characters from 0; `call` is what the user wrote there
    (`torch.log`, `F.cross_entropy`, `operator.truediv` for a `/`).
    """

    file: str
    line: int
    function: str
    source: str = ""
    column: tuple[int, int] | None = None
    expression: str | None = None
    call: str | None = None


@dataclass(frozen=True, slots=True)
class Operand:
    """One tensor that an operation read.

    `producer` is the index of the operation that wrote the value, None where it came from outside the record; `source` then says
    from where. `at_birth` holds up to eight of its elements at the positions where the operation's result is not finite (where the
    shapes can be matched by broadcasting). `constant` is its value where it is a single number that the user wrote, `rows` its
    non-finite rows where it came from outside, `identity` the same number for every operand that lies in the same memory. `graded`: a
    gradient flows back through it, so a prediction is told from the same prediction detached. `share` is that of the commonest label
    in a target of whole numbers (those below 0 are ignored by convention). `lowest` and `highest`: where its smallest and its largest
    finite element stand, of an operation that may be the birth.
    """

    role: str
    stats: TensorStats
    producer: int | None = None
    source: Source = "operation"
    name: str | None = None
    from_batch: bool = False
    at_birth: tuple[float, ...] = ()
    constant: float | None = None
    rows: tuple[int, ...] | None = None
    identity: int | None = None
    graded: bool = False
    share: float | None = None
    lowest: tuple[int, ...] | None = None
    highest: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of the traced step.

    `op` is the canonical name (`log`, `div`, `softmax`), `kernel` the framework's own. `scalars` are its arguments that are no
    tensors, by name (`dim`, `exponent`, `value`, `eps`, `p`; NaN and infinities included). `node` names the autograd node of an
    operation of the backward pass and `forward` is the index of the operation that made that node. `rows` are the indices along
    dimension 0 at which the output is not finite (None where the output has no rows), `nan_rows` those at which it is NaN; `batch_rows`
    tells whether these rows are rows of the batch. `absorbed` counts elements at which adding or
    subtracting a non-zero constant left the other operand as it was; `degrees` is n - correction of a variance.
    `float64_finite` tells of an operation that made the first non-finite value whether the same operation in float64 on the same
    operands is finite wherever the operands are (None: not tried). `by_hand` marks an operation of the backward pass that the user wrote
    there (in an autograd.Function, in a hook): it is the derivative of nothing. `failed` is the message of an operation that raised;
    `writes` names the parameters and buffers that it wrote.
    """

    index: int
    op: str
    kernel: str
    direction: Direction
    site: Site | None = None
    module: str | None = None
    module_type: str | None = None
    node: str | None = None
    forward: int | None = None
    inputs: tuple[Operand, ...] = ()
    outputs: tuple[TensorStats, ...] = ()
    scalars: dict[str, object] = field(default_factory=dict)
    rows: tuple[int, ...] | None = None
    nan_rows: tuple[int, ...] | None = None
    batch_rows: bool = False
    from_batch: bool = False
    absorbed: int = 0
    degrees: float | None = None
    float64_finite: bool | None = None
    by_hand: bool = False
    failed: str | None = None
    writes: tuple[str, ...] = ()

    @property
    def finite(self) -> bool:
        return all(out.finite for out in self.outputs)

    @property
    def makes_nan(self) -> bool:
        return any(out.nan for out in self.outputs)

    def operand(self, role: str) -> Operand | None:
        return next((operand for operand in self.inputs if operand.role == role), None)


@dataclass(frozen=True, slots=True)
class OptimizerState:
    """What is known of one optimizer: `type` is the class name, `groups` the numbers of each parameter group (`lr`, `eps`, `betas`, ...),
    `site` where the user made it, `dtypes` those of its parameters."""

    type: str
    groups: tuple[dict[str, object], ...]
    site: Site | None = None
    dtypes: tuple[str, ...] = ()


@dataclass(slots=True)
class Trend:
    """The course of the run: one entry a recorded step, None where a quantity was not measured at that step."""

    steps: list[int] = field(default_factory=list)
    loss: list[float | None] = field(default_factory=list)
    grad_norm: list[float | None] = field(default_factory=list)
    update_ratio: list[float | None] = field(default_factory=list)
    lr: list[float | None] = field(default_factory=list)
