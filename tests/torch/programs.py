"""Random small training steps as source text, with a birth planted on a known line.

`x` is a batch of four rows, `w` and `b` are parameters, `r` marks the rows that are to go wrong. Every line of a program lets what is
not finite through; the planted one makes it of finite operands.
"""

from __future__ import annotations

import linecache
import sys
from dataclasses import dataclass
from typing import Any

import torch
from hypothesis import strategies as st

from tests.torch.tensors import BAD, FLOATING, NASTY, VIEWS
from whynan.core.locate import locate
from whynan.core.places import user_frame
from whynan.core.session import Birth, Reproduced, Seed, Session
from whynan.torch.trace import Trace

ROWS, COLUMNS = 4, 3

LINES = (
    "{n} = {a} * 0.5",
    "{n} = {a} + 1.0",
    "{n} = -{a}",
    "{n} = {a} + {c}",
    "{n} = {a} - 0.5 * {c}",
    "{n} = {a} @ w",
    "{n} = F.linear({a}, w, b)",
    "{n} = torch.addmm(b, {a}, w)",
    "{n} = {a}.clone()",
    "{n} = F.leaky_relu({a})",
    "{n} = F.layer_norm({a}, (3,))",
    "{n} = F.dropout({a}, 0.25)",
    "{n} = {a} + 0.1 * torch.rand_like({a})",
    "{n} = {a}.t().t()",
    "{n} = {a}.reshape(-1, 2).reshape(4, 3)",
    "{n} = {a}.unsqueeze(1).squeeze(1)",
    "{n} = {a}.expand(2, 4, 3)[1]",
    "{n} = {a}.t().contiguous().t()",
    "{n} = {a}[:, [2, 0, 1]]",
    "{n} = torch.cat([{a}, {c}], 1)[:, :3]",
    "{n} = torch.cat([{c}, {a}], 1)[:, 3:]",
    "{n} = torch.stack([{a}, {c}]).sum(0)",
    "{n} = torch.where(r, {a}, {c}) + {a}",
    "{n} = {a}.double().float()",
    "{n} = {a}.clone(); {n} += {c}",
    "{n} = {a}.clone(); {n}.mul_(0.5).add_({c})",
    "{n} = torch.zeros(4, 3); {n}[:] = {a}",
    "{n} = torch.zeros(4, 6); {n}[:, :3] = {c}; {n}[:, 3:] = {a}; {n} = {n}[:, 2:5] + {n}[:, 3:]",
    "{n} = torch.zeros(4, 3); {n}[:2], {n}[2:] = {a}[:2], {a}[2:]",
    "{n} = {c}.clone(); {n}[r[:, 0]] = {a}[r[:, 0]]",
    "{n} = torch.zeros(8, 3); {n}[::2] = {a}; {n} = {n}[::2]",
    "{n} = torch.zeros(12); {n}.view(4, 3).copy_({a}); {n} = {n}.view(4, 3)",
)
# for tensors of any size and content
ANY_LINES = (
    "{n} = {a} * 0.5",
    "{n} = {a} / {c}",
    "{n} = {a} - {c}",
    "{n} = {a} * {c}",
    "{n} = {a} ** 2",
    "{n} = torch.log({a})",
    "{n} = torch.exp({a})",
    "{n} = torch.sqrt({a})",
    "{n} = {a}.abs().rsqrt()",
    "{n} = torch.softmax({a}, 1)",
    "{n} = torch.where({a} > 0, {a}, {c})",
    "{n} = torch.maximum({a}, {c})",
    "{n} = {a}.masked_fill({a} < 0, -torch.inf)",
    "{n} = {a}.nan_to_num()",
    "{n} = {a}.clamp(min=1e-8)",
    "{n} = {a}.clone().add_({c})",
    "{n} = {a}.clone(); {n}.mul_({c}); {n}.log_()",
    "{n} = {a}.t().t()",
    "{n} = {a}.flip(0)",
    "{n} = torch.cat([{a}, {c}])[: len({a})]",
    "{n} = {a}[::2].repeat_interleave(2, 0)[: len({a})]",
    "{n} = torch.zeros_like({a}); {n}[1:] = {a}[1:]",
    "{n} = torch.zeros_like({a}); {n}[::2] += {c}[::2]",
    "{n} = {a}.cumsum(0)",
    "{n} = {a}.mean(0) + {a}",
    "{n} = ({a} * 2).amin(0) + {a} if len({a}) else {a} * 2",
    "{n} = {a}.flatten().sort()[0].view_as({a})",
    "{n} = torch.view_as_real(torch.complex({a}.float(), {c}.float()).sqrt())[..., 1].to({a}.dtype)",
    "{n} = ({a}.to_sparse().to_dense() if {a}.dtype is torch.float32 else {a}) + {c}",
    "{n} = {a}.half().to({a}.dtype)",
    "{n} = F.dropout({a}, 0.5)",
    "{n} = {a} + torch.randn({a}.shape).to({a}.dtype)",
)
LOSSES = ("{a}.mean()", "{a}.sum()", "F.mse_loss({a}, y)", "{a}.square().sum(1).mean()", "{a}.norm()", "({a} * y).sum()", "{a}.max() - {a}.min()")


@dataclass(frozen=True, slots=True)
class Plant:
    """`special` is the operand on the marked rows; elsewhere it is between 1 and 2."""

    special: str
    line: str
    op: str
    kind: str
    rows: bool = True


FORWARD = (
    Plant("0.0", "{n} = torch.log(q)", "log", "inf"),
    Plant("0.0", "{n} = q.log2()", "log2", "inf"),
    Plant("0.0", "{n} = q / q", "div", "nan"),
    Plant("0.0", "{n} = 1.0 / q", "reciprocal", "inf"),
    Plant("0.0", "{n} = torch.rsqrt(q)", "rsqrt", "inf"),
    Plant("0.0", "{n} = q ** -1.5", "pow", "inf"),
    Plant("0.0", "{n} = q.clone(); {n}.log_()", "log", "inf"),
    Plant("0.0", "{n} = q.clone(); {n} /= q", "div", "nan"),
    Plant("0.0", "{n} = torch.zeros(4, 3); {n}[:] = torch.log(q)", "log", "inf"),
    Plant("0.0", "{n} = torch.zeros(4, 6); {n}[:, 2:5] = torch.log(q); {n} = {n}[:, 1:4]", "log", "inf"),
    Plant("0.0", "{n} = torch.zeros(4, 3); {n}[1:3] = torch.log(q[1:3])", "log", "inf", rows=False),
    Plant("0.0", "{n} = torch.log(q.detach(), out=torch.zeros(4, 3)) + 0.0 * b", "log", "inf"),
    Plant("0.0", "{n} = torch.log(q.half()).float()", "log", "inf"),
    Plant("0.0", "{n} = torch.log(q.bfloat16()).float()", "log", "inf"),
    Plant("0.0", "{n} = torch.log(q.double()).float()", "log", "inf"),
    Plant("0.0", "{n} = torch.log(q.t()).t()", "log", "inf", rows=False),
    Plant("0.0", "{n} = torch.log(q.expand(2, 4, 3))[1]", "log", "inf", rows=False),
    Plant("0.0", "{n} = torch.view_as_real(torch.complex(q, q).log())[..., 0]", "log", "inf"),
    Plant("0.0", "{n} = q * torch.where(r, torch.inf, 1.0)", "mul", "nan"),
    Plant("0.0", "{n} = torch.xlogy(1.0, q)", "xlogy", "inf"),
    Plant("-1.0", "{n} = torch.log(q)", "log", "nan"),
    Plant("-1.0", "{n} = torch.sqrt(q)", "sqrt", "nan"),
    Plant("-1.0", "{n} = q ** 0.3", "pow", "nan"),
    Plant("-1.0", "{n} = torch.acos(q - 1.5)", "acos", "nan"),
    Plant("-1.0", "{n} = torch.log1p(q - 1.0)", "log1p", "nan"),
    Plant("1000.0", "{n} = torch.exp(q)", "exp", "inf"),
    Plant("1000.0", "{n} = q.clone(); {n}.exp_()", "exp", "inf"),
    Plant("1000.0", "{n} = torch.expm1(q)", "expm1", "inf"),
    Plant("1000.0", "{n} = torch.cosh(q)", "cosh", "inf"),
    Plant("1000.0", "{n} = (q * 100.0).half().float()", "_to_copy", "inf"),
    Plant("1000.0", "{n} = (q.half() * 1000.0).float()", "mul", "inf"),
    Plant("1000.0", "{n} = torch.atanh(q * 0.3)", "atanh", "nan"),
    Plant("3e38", "{n} = q * 2.0", "mul", "inf"),
    Plant("3e38", "{n} = q + q", "add", "inf"),
    Plant("3e38", "{n} = q.square()", "pow", "inf"),
    Plant("3e38", "{n} = q @ torch.full((3, 3), 10.0)", "mm", "inf"),
    Plant("3e38", "{n} = F.mse_loss(q, y, reduction='none')", "mse_loss", "inf"),
    Plant("3e38", "{n} = q * 2.0 - q * 2.0", "mul", "inf"),
    Plant("3e38", "{n} = q * 2.0; {n} = {n} / {n}", "mul", "inf"),
    Plant("1.0", "{n} = torch.softmax(q.masked_fill(r, -torch.inf), 1)", "softmax", "nan"),
    Plant("1.0", "{n} = F.log_softmax(torch.where(r, -torch.inf, q), 1)", "log_softmax", "nan"),
    Plant("1.0", "{n} = torch.softmax(q + torch.zeros(4, 3).masked_fill(r, -torch.inf), 1)", "softmax", "nan"),
)
# between 1 and 2 but for the marked rows; its gradient goes through everywhere
OPERAND = ("s = torch.sigmoid({a} @ w)", "q = torch.where(r, {special}, s.detach() + 1.0) + (s - s.detach())")

# finite in the forward pass, not in the backward pass of the line
BACKWARD = (
    Plant("0.0", "{n} = torch.sqrt(q)", "", ""),
    Plant("0.0", "{n} = q ** 0.5", "", ""),
    Plant("0.0", "{n} = q.pow(0.25)", "", ""),
    Plant("0.0", "{n} = q.sum(1, keepdim=True).sqrt().expand(4, 3)", "", ""),
    Plant("2.5", "{n} = torch.acos(q - 1.5)", "", ""),
    Plant("2.5", "{n} = torch.asin(q - 1.5)", "", ""),
    Plant("0.0", "{n} = torch.zeros(4, 6); {n}[:, 2:5] = torch.sqrt(q); {n} = {n}[:, 2:5]", "", ""),
)


@dataclass(frozen=True, slots=True)
class Program:
    source: str
    rows: tuple[int, ...]
    line: int
    plant: Plant | None
    values: torch.Tensor

    def __repr__(self) -> str:
        return f"rows {self.rows}, line {self.line}:\n{self.source}"


@st.composite
def programs(draw: st.DrawFn, plants: tuple[Plant, ...] = FORWARD) -> Program:
    lines, known = ["v0 = x * 1.0"], ["v0"]
    for _ in range(draw(st.integers(0, 5))):
        _add(lines, known, draw(st.sampled_from(LINES)), draw(st.sampled_from(known)), draw(st.sampled_from(known)))
    before, plant = draw(st.sampled_from(known)), draw(st.sampled_from(plants))
    lines += [line.format(special=plant.special, a=before) for line in OPERAND]
    _add(lines, known, plant.line, before, before)
    line = len(lines)
    for _ in range(draw(st.integers(0, 5))):
        _add(lines, known, draw(st.sampled_from(LINES)), known[-1], draw(st.sampled_from(known)))
    lines.append("loss = " + draw(st.sampled_from(LOSSES)).format(a=known[-1]))
    rows = draw(st.sets(st.integers(0, ROWS - 1), min_size=1, max_size=ROWS - 1))
    values = torch.tensor(draw(st.lists(st.floats(-2, 2, width=16), min_size=12, max_size=12))).reshape(ROWS, COLUMNS)
    return Program("\n".join(lines) + "\n", tuple(sorted(rows)), line, plant, values)


@st.composite
def nasty_programs(draw: st.DrawFn) -> Program:
    """Operations on a matrix of any size, dtype, layout and content; nothing is planted, and much may go wrong."""
    dtype = draw(st.sampled_from(FLOATING))
    shape = draw(st.sampled_from(((4, 3), (1, 3), (0, 3), (4, 0), (1, 1), (2, 2))))
    numbers = st.sampled_from(NASTY + BAD) | st.floats(-4, 4, width=16)
    content = draw(st.lists(numbers, min_size=shape[0] * shape[1], max_size=shape[0] * shape[1]))
    values = torch.tensor(content, dtype=torch.float64).reshape(shape).to(dtype)
    view = draw(st.sampled_from(("itself", "every second", "a slice", "offset", "reversed dimensions")))
    lines, known = ["v0 = x + 0.0 * w.sum().to(x.dtype)"], ["v0"]
    for _ in range(draw(st.integers(1, 8))):
        _add(lines, known, draw(st.sampled_from(ANY_LINES)), draw(st.sampled_from(known)), draw(st.sampled_from(known)))
    lines.append(f"loss = {known[-1]}.sum()")
    return Program("\n".join(lines) + "\n", (), 0, None, VIEWS[view](values))


def _add(lines: list[str], known: list[str], template: str, a: str, c: str) -> None:
    name = f"v{len(known)}"
    lines.append(template.format(n=name, a=a, c=c))
    known.append(name)


class Run:
    """One run of a program, plain or under a trace. `names` are its variables afterwards."""

    def __init__(self, program: Program) -> None:
        self.program = program
        torch.manual_seed(3)
        self.w = (torch.rand(COLUMNS, COLUMNS) * 0.5 + 0.1).requires_grad_()
        self.b = torch.rand(COLUMNS).requires_grad_()
        marked = torch.zeros(ROWS, 1, dtype=torch.bool)
        marked[list(program.rows)] = True
        self.names: dict[str, Any] = {
            "torch": torch,
            "F": torch.nn.functional,
            "x": program.values.detach(),
            "y": torch.linspace(-1, 1, ROWS * COLUMNS).reshape(ROWS, COLUMNS),
            "r": marked,
            "w": self.w,
            "b": self.b,
        }
        self.file = f"/home/user/step_{abs(hash(program.source))}.py"
        linecache.cache[self.file] = (len(program.source), None, program.source.splitlines(True), self.file)

    @property
    def loss(self) -> torch.Tensor:
        return self.names["loss"]  # type: ignore[no-any-return]

    def forward(self) -> None:
        torch.manual_seed(4)
        exec(compile(self.program.source, self.file, "exec"), self.names)

    def plainly(self) -> Run:
        self.forward()
        self.loss.backward()  # type: ignore[no-untyped-call]
        return self

    def traced(self) -> Trace:
        trace = Trace()
        trace.know(self.w, "parameter")
        trace.know(self.b, "parameter")
        trace.know(self.names["x"], "input", from_batch=True)
        with trace.where, trace:
            self.forward()
            trace.where.engine_frames.append(user_frame(sys._getframe()))
            self.loss.backward()  # type: ignore[no-untyped-call]
        return trace

    def finite_before(self, line: int) -> bool:
        """Whether every line before this one gives finite values."""
        names = dict(self.names)
        exec(compile("\n".join(self.program.source.splitlines()[: line - 1]), self.file, "exec"), names)
        return all(bool(torch.isfinite(v).all()) for v in names.values() if isinstance(v, torch.Tensor))


def located(trace: Trace, what: str, *bad: torch.Tensor) -> Birth | None:
    seeds = tuple(Seed(what, "", trace.last_writer(tensor)) for tensor in bad)  # type: ignore[arg-type]
    operations = trace.finished({}, {})
    session = Session(0, what, seeds=seeds, operations=operations, parameters=("w", "b"), replay=Reproduced(0.0))  # type: ignore[arg-type]
    return locate(session)
