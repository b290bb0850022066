"""What the record of a step holds: links through memory, directions, modules, names, and the operands of a birth as they were."""

from __future__ import annotations

import contextlib
import gc
import math
import sys
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from tests.torch.programs import located
from tests.torch.tensors import bits
from whynan.core.places import user_frame
from whynan.core.records import Operation, Source
from whynan.core.session import Birth
from whynan.torch.trace import Trace

INF = math.inf


def traced(step: Callable[[], Any], **outside: torch.Tensor) -> tuple[Trace, Any]:
    """`x` and `y` are of the batch, `buffer` is a buffer, everything else is a parameter."""
    trace = Trace()
    sources: dict[str, Source] = {"x": "input", "y": "input", "buffer": "buffer"}
    for name, tensor in outside.items():
        trace.know(tensor, sources.get(name, "parameter"), from_batch=name in ("x", "y"))
    with trace.where, trace:
        result = step()
    assert trace.fault is None
    return trace, result


def backward(trace: Trace, loss: torch.Tensor) -> None:
    """As the backend calls it: the user's frame that did is known."""
    trace.where.engine_frames.append(user_frame(sys._getframe()))
    with trace.where, trace:
        loss.backward()  # type: ignore[no-untyped-call]
    trace.where.engine_frames.pop()


def only(trace: Trace, op: str) -> Operation:
    (found,) = [operation for operation in trace.finished({}, {}) if operation.op == op]
    return found


def birth_of(trace: Trace, *bad: torch.Tensor, what: str = "loss") -> Birth:
    birth = located(trace, what, *bad)
    assert birth is not None
    return birth


# ---- links through memory ----


def makers(trace: Trace, operation: Operation) -> list[str]:
    """The operations from which the first operand came, one after the other."""
    found: list[str] = []
    while operation.inputs and operation.inputs[0].producer is not None:
        operation = trace.operations[operation.inputs[0].producer]
        found.append(operation.op)
    return found


def test_a_view_is_linked_to_whoever_wrote_the_memory() -> None:
    trace, _ = traced(lambda: torch.exp(torch.zeros(4, 3) + 1).t()[1:].contiguous().view(-1).neg())
    assert makers(trace, only(trace, "neg")) == ["clone", "exp", "add", "zeros"]


def test_the_last_writer_of_a_slice_is_its_producer() -> None:
    def step() -> tuple[torch.Tensor, torch.Tensor]:
        out = torch.zeros(4, 3)
        out[:2] = torch.ones(2, 3).exp()
        out[2:] = torch.ones(2, 3).log()
        return out[:1].neg(), out[3:].sqrt()

    trace, _ = traced(step)
    assert makers(trace, only(trace, "neg"))[:2] == ["copy", "exp"]
    assert makers(trace, only(trace, "sqrt"))[:2] == ["copy", "log"]


def test_a_bad_slice_of_a_buffer_is_followed_to_what_made_it() -> None:
    buffer, x = torch.zeros(4, 3), torch.tensor([[1.0, 2, 3], [0, 1, 1]])

    def step() -> torch.Tensor:
        buffer[1:3] = torch.log(x)
        buffer[0] = 7.0
        return buffer.sum()

    trace, loss = traced(step, buffer=buffer, x=x)
    birth = birth_of(trace, loss)
    assert (birth.op, birth.kind, birth.samples) == ("log", "inf", (1,))
    assert any(operation.writes for operation in trace.operations)


def test_what_was_overwritten_is_not_blamed() -> None:
    x = torch.tensor([[0.0, 1.0]])

    def step() -> torch.Tensor:
        out = torch.log(x)
        out[:] = 1.0
        out.mul_(2.0).sub_(3.0)
        return torch.sqrt(out).sum()

    trace, loss = traced(step, x=x)
    assert birth_of(trace, loss).op == "sqrt"


def test_memory_that_is_freed_and_used_again_is_another_tensor() -> None:
    """The allocator gives the same address again; a link must not lead to what stood there before."""

    def step() -> torch.Tensor:
        for _ in range(50):
            torch.log(torch.zeros(64)).sum()
            last = torch.sqrt(torch.zeros(64) - 1).sum()
        return last

    trace, loss = traced(step)
    assert birth_of(trace, loss).op == "sqrt"


def test_a_tensor_from_outside_in_memory_that_was_freed() -> None:
    """Nothing recorded wrote it, whatever stood at its address before."""
    array = np.full(64, np.nan, dtype=np.float32)

    def step() -> list[torch.Tensor]:
        gone = [torch.sqrt(torch.zeros(64) - 1) for _ in range(200)]
        gone.clear()
        outside = [torch.from_numpy(array) for _ in range(200)]
        return [tensor.neg() for tensor in outside]

    trace, _ = traced(step)
    readers = [operation for operation in trace.operations if operation.op == "neg"]
    assert len(readers) == 200
    assert all(operation.inputs[0].producer is None for operation in readers)


def test_a_tensor_that_wraps_numpys_memory() -> None:
    array = np.array([0.0, 1.0], dtype=np.float32)
    trace, loss = traced(lambda: torch.log(torch.from_numpy(array)).sum())
    assert birth_of(trace, loss).op == "log"


def test_writing_through_data_is_seen() -> None:
    weight = torch.ones(3, requires_grad=True)

    def step() -> torch.Tensor:
        weight.data.log_()
        weight.data.reciprocal_()
        return weight.sum()

    trace, loss = traced(step, weight=weight)
    assert birth_of(trace, loss).op == "reciprocal"


def in_place_by_itself(y: torch.Tensor) -> None:
    y /= y


def in_place_by_a_view_of_itself(y: torch.Tensor) -> None:
    y.view(-1).div_(y.reshape(-1))


def one_row_by_another(y: torch.Tensor) -> None:
    y[0] = y[1] / y[2]


def one_row_by_another_at_once(y: torch.Tensor) -> None:
    torch.div(y[1], y[2], out=y[0])


def a_list_by_itself(y: torch.Tensor) -> None:
    torch._foreach_div_([y], [y])


def into_itself(y: torch.Tensor) -> None:
    torch.div(y, y, out=y)


SELF = (in_place_by_itself, in_place_by_a_view_of_itself, one_row_by_another, one_row_by_another_at_once, a_list_by_itself, into_itself)


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64], ids=str)
@pytest.mark.parametrize("divide", SELF, ids=lambda function: function.__name__)
def test_an_operation_that_overwrites_what_it_reads(divide: Callable[[torch.Tensor], None], dtype: torch.dtype) -> None:
    """After it, what it read is not finite either; before it, it was."""
    x = torch.zeros(3, 2, dtype=dtype)

    def step() -> torch.Tensor:
        y = x * 1.0
        divide(y)
        return y.abs().sum()

    trace, loss = traced(step, x=x)
    birth = birth_of(trace, loss)
    assert (birth.op, birth.kind) == ("div", "nan")
    assert all(operand.stats.finite for operand in birth.operation.inputs)


# ---- kinds of tensors and gradients ----


def test_sparse_gradients() -> None:
    table = nn.Embedding(5, 3, sparse=True)
    x = torch.tensor([1, 4])
    trace, loss = traced(lambda: table(x).sub(table.weight.detach()[x]).pow(0.5).sum(), weight=table.weight, x=x)
    backward(trace, loss)
    grad = table.weight.grad
    assert grad is not None
    assert grad.is_sparse
    assert not torch.isfinite(grad._values()).all()
    birth = birth_of(trace, grad, what="gradient")
    assert (birth.op, birth.direction, birth.operation.node) == ("pow", "backward", "PowBackward0")


def test_a_sparse_product() -> None:
    matrix = torch.eye(3).to_sparse()
    weight = torch.full((3, 2), 3e38, requires_grad=True)
    trace, loss = traced(lambda: (torch.sparse.mm(matrix * 2.0, weight)).sum(), weight=weight)
    backward(trace, loss)
    assert birth_of(trace, loss).site is not None


def test_complex_gradients() -> None:
    weight = torch.tensor([0j, 1 + 1j], requires_grad=True)
    trace, loss = traced(lambda: weight.abs().log().sum(), weight=weight)
    backward(trace, loss)
    assert (birth_of(trace, loss).op, birth_of(trace, loss).kind) == ("log", "inf")
    assert weight.grad is not None
    assert birth_of(trace, weight.grad, what="gradient").site is not None


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=str)
def test_any_precision(dtype: torch.dtype) -> None:
    x = torch.tensor([[1.0], [0.0]], dtype=dtype)
    trace, loss = traced(lambda: torch.log(x).sum(), x=x)
    birth = birth_of(trace, loss)
    assert (birth.op, birth.samples, birth.operation.outputs[0].dtype) == ("log", (1,), str(dtype).removeprefix("torch."))


@pytest.mark.parametrize("dtype", [torch.uint16, torch.uint32, torch.uint64, torch.bool, torch.float8_e5m2], ids=str)
def test_a_dtype_with_few_operations_does_not_stop_the_record(dtype: torch.dtype) -> None:
    x = torch.tensor([1, 0]).to(dtype)
    trace, loss = traced(lambda: torch.log(x.clone().float()).sum(), x=x)
    assert birth_of(trace, loss).op == "log"


def test_nested_tensors_do_not_stop_the_record() -> None:
    def step() -> torch.Tensor:
        nested = torch.nested.as_nested_tensor([torch.ones(2), torch.zeros(3)], layout=torch.jagged)
        return torch.log((nested * 2).values()).sum()

    trace, loss = traced(step)
    assert birth_of(trace, loss).op == "log"


def test_an_empty_batch_has_no_birth_but_that_of_its_mean() -> None:
    x = torch.zeros(0, 3)
    trace, loss = traced(lambda: torch.log(x).mean(), x=x)
    assert (birth_of(trace, loss).op, birth_of(trace, loss).kind) == ("mean", "nan")


def test_a_batch_of_one_row() -> None:
    x = torch.tensor([[0.0, 1.0]])
    trace, loss = traced(lambda: torch.log(x).sum(), x=x)
    assert birth_of(trace, loss).samples == (0,)


def test_rows_of_weights_are_no_rows_of_the_batch() -> None:
    """In the backward pass a linear layer reads the batch transposed; its features are no samples."""
    x, weight = torch.ones(4, 3), torch.full((3, 3), 0.5, requires_grad=True)
    trace, loss = traced(lambda: ((x @ weight) * 1e20).pow(2).sum() * 1e-30, x=x, weight=weight)
    backward(trace, loss)
    gradient = [o for o in trace.finished({}, {}) if o.direction == "backward" and o.outputs[0].shape == (3, 3)]
    assert gradient
    assert not any(operation.batch_rows for operation in gradient)


# ---- what stands in the record ----


def test_direction_node_and_maker_of_a_backward_operation() -> None:
    weight = torch.zeros(2, requires_grad=True)
    trace, loss = traced(lambda: torch.sqrt(weight).sum(), weight=weight)
    backward(trace, loss)
    birth = birth_of(trace, weight.grad, what="gradient")  # type: ignore[arg-type]
    operation = birth.operation
    assert (operation.op, operation.direction, operation.node) == ("div", "backward", "SqrtBackward0")
    assert operation.forward is not None
    maker = trace.operations[operation.forward]
    assert (maker.op, maker.site, birth.site) == ("sqrt", operation.site, operation.site)


def test_modules_are_named_by_their_path() -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 2), nn.Softmax(1)))
    x = torch.full((4, 2), INF)
    trace, _ = traced(lambda: net(x), x=x)
    names = {id(module): name for name, module in net.named_modules()}
    found = [(o.op, o.module, o.module_type) for o in trace.finished(names, {id(x): "x"})]
    assert found == [("addmm", "0", "Linear"), ("addmm", "1.0", "Linear"), ("softmax", "1.1", "Softmax")]


def test_a_module_that_raises_is_left_again() -> None:
    class Fails(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            raise ValueError

    def step() -> torch.Tensor:
        with contextlib.suppress(ValueError):
            Fails()(torch.ones(1))
        return torch.ones(1).neg()

    trace, _ = traced(step)
    assert only(trace, "neg").module_type is None


def test_parameters_inputs_and_numbers_are_told_apart() -> None:
    x, weight = torch.ones(4, 3), torch.ones(3, requires_grad=True)
    trace, _ = traced(lambda: x * weight * torch.tensor(2.5), x=x, weight=weight)
    first, second = trace.finished({}, {id(x): "x", id(weight): "net.weight"})
    assert [(o.source, o.name, o.producer) for o in first.inputs] == [("input", "x", None), ("parameter", "net.weight", None)]
    assert second.inputs[0].producer == 0
    assert (second.inputs[1].source, second.inputs[1].constant) == ("constant", 2.5)


def test_numbers_among_the_arguments() -> None:
    trace, _ = traced(lambda: torch.clamp(torch.ones(2, 3).sum(1, keepdim=True), min=-INF, max=math.nan))
    assert only(trace, "sum").scalars == {"dim": [1], "keepdim": True}
    scalars = only(trace, "clamp").scalars
    assert scalars["min"] == -INF
    assert math.isnan(scalars["max"])  # type: ignore[arg-type]


def test_operands_at_the_birth() -> None:
    x = torch.tensor([[4.0, 0.0], [-0.0, 1.0]])
    trace, _ = traced(lambda: torch.ones(2, 2) / x, x=x)
    operation = only(trace, "div")
    assert [(o.role, o.at_birth) for o in operation.inputs] == [("dividend", (1.0, 1.0)), ("divisor", (0.0, -0.0))]
    assert operation.rows == (0, 1)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64], ids=str)
def test_operands_of_a_birth_in_place_are_those_before_it(dtype: torch.dtype) -> None:
    """Both those in the record and those kept for `repro.py`."""
    x = torch.tensor([[4.0], [0.0]], dtype=dtype)
    trace, _ = traced(lambda: x.log_(), x=x)
    (operand,) = only(trace, "log").inputs
    assert operand.at_birth == (0.0,)
    assert (operand.stats.min, operand.stats.max, operand.stats.finite) == (0.0, 4.0, True)
    assert trace.held[0].args[0].flatten().tolist() == [4.0, 0.0]
    assert x.flatten().tolist() == [pytest.approx(math.log(4), rel=1e-3), -INF]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_a_result_written_into_the_users_tensor_is_left_as_it_is(dtype: torch.dtype) -> None:
    """The same operation is tried in float64: not with the user's own tensor for its result."""
    x = torch.linspace(0.0, 2.0, 64, dtype=dtype)
    expected, out = torch.log(x), torch.zeros(64, dtype=dtype)
    traced(lambda: torch.log(x, out=out), x=x)
    assert bits(out) == bits(expected)


@pytest.mark.parametrize(("dtype", "finite"), [(torch.float32, True), (torch.float16, True), (torch.float64, False)])
def test_the_same_operation_in_float64_tells_precision_from_domain(dtype: torch.dtype, finite: bool) -> None:
    x = torch.full((2,), torch.finfo(dtype).max, dtype=dtype)
    trace, _ = traced(lambda: x * 2, x=x)
    assert only(trace, "mul").float64_finite is finite


@pytest.mark.parametrize(("dtype", "lost"), [(torch.float16, 3), (torch.float32, 0), (torch.float64, 0)])
def test_an_eps_that_rounds_away_is_counted(dtype: torch.dtype, lost: int) -> None:
    x = torch.zeros(3, dtype=dtype)
    trace, _ = traced(lambda: 1.0 / (x + 1e-8), x=x)
    assert only(trace, "add").absorbed == lost


def test_degrees_of_freedom_of_a_variance() -> None:
    x = torch.ones(1, 3)
    trace, _ = traced(lambda: x.var(1), x=x)
    assert only(trace, "var").degrees == 2.0


def test_an_operation_that_raises_is_recorded_with_its_message() -> None:
    x = torch.full((2, 2), math.nan)

    def step() -> None:
        with pytest.raises(torch.linalg.LinAlgError, match="converge"):
            torch.linalg.svd(x)

    trace, _ = traced(step, x=x)
    failed = [operation for operation in trace.operations if operation.failed]
    assert [operation.op for operation in failed] == ["linalg_svd"]
    assert "converge" in (failed[0].failed or "")
    assert failed[0].inputs[0].stats.nan == 4


def test_batch_norm_writes_its_statistics_only_in_training() -> None:
    norm = nn.BatchNorm1d(3)
    x = torch.randn(4, 3)
    for training in (True, False):
        norm.train(training)
        trace = Trace()
        for buffer in norm.buffers():
            trace.know(buffer, "buffer")
        with trace.where, trace:
            norm(x)
        names = {id(buffer): name for name, buffer in norm.named_buffers()}
        written = {name for operation in trace.finished({}, names) for name in operation.writes}
        assert written == ({"running_mean", "running_var", "num_batches_tracked"} if training else set())


# ---- the optimizer ----


def optimized(optimizer: torch.optim.Optimizer, *parameters: torch.Tensor) -> Trace:
    trace = Trace()
    for parameter in parameters:
        trace.know(parameter, "parameter")
        if parameter.grad is not None:
            trace.know(parameter.grad, "gradient")
    trace.where.optimizer_depth += 1
    with trace.where, trace:
        optimizer.step()
    assert trace.fault is None
    return trace


@pytest.mark.parametrize("foreach", [False, True])
@pytest.mark.parametrize("make", [torch.optim.Adam, torch.optim.AdamW, torch.optim.RMSprop, torch.optim.Adagrad], ids=lambda make: make.__name__)
def test_zero_divided_by_zero_in_an_optimizer(make: Any, foreach: bool) -> None:
    weights = [torch.ones(3, requires_grad=True), torch.ones(2, requires_grad=True)]
    for weight in weights:
        weight.grad = torch.zeros_like(weight)
    trace = optimized(make(weights, eps=0.0, foreach=foreach), *weights)
    assert torch.isnan(weights[0]).all()
    birth = birth_of(trace, *weights, what="parameter")
    assert (birth.op, birth.direction, birth.phase, birth.kind) == ("addcdiv", "optimizer", "optimizer", "nan")


def test_an_update_that_overflows() -> None:
    weight = torch.full((3,), 3e38, requires_grad=True)
    weight.grad = torch.full((3,), -3e38)
    trace = optimized(torch.optim.SGD([weight], lr=1.0, foreach=False), weight)
    birth = birth_of(trace, weight, what="parameter")
    assert (birth.op, birth.kind, birth.direction) == ("add", "inf", "optimizer")


# ---- faults of our own ----


@pytest.mark.parametrize("method", ["_before", "_after", "_suspect", "_operation"])
def test_a_fault_of_the_recorder_does_not_change_the_step(monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    def fails(*_: Any) -> None:
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr(Trace, method, fails)
    x = torch.tensor([0.0, 1.0])
    trace = Trace()
    with trace.where, trace:
        result = torch.log(x).add(1)
    assert result.tolist() == [-INF, 1.0]
    assert str(trace.fault) == "a fault of ours"


def test_what_the_user_raises_goes_on_its_way() -> None:
    trace = Trace()
    with pytest.raises(RuntimeError, match="cannot be multiplied"), trace.where, trace:
        torch.ones(2, 3) @ torch.ones(2, 3)
    assert trace.fault is None
    assert trace.operations[-1].failed


def test_while_paused_nothing_is_recorded() -> None:
    trace = Trace()
    with trace.where, trace:
        a = torch.ones(2)
        with trace.pause():
            a = a + 1
        a * 2
    assert [operation.op for operation in trace.operations] == ["ones", "mul"]


def test_nothing_of_the_users_is_kept_alive() -> None:
    trace = Trace()
    with trace.where, trace:
        kept = torch.ones(1000)
        hidden = kept.exp()
        reference = weakref.ref(hidden)
        hidden.sum()
    del hidden
    gc.collect()
    assert reference() is None
