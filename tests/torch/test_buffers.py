"""Buffers, and copies of many tensors, of every kind that a program may hold."""

from __future__ import annotations

import gc
import math
import weakref
from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from whynan.torch.buffers import SMALL, Buffers
from whynan.torch.copies import TensorCopy
from whynan.torch.flat import Flat

KINDS: dict[str, Callable[[], torch.Tensor]] = {
    "scalar": lambda: torch.tensor(3.0),
    "counter": lambda: torch.tensor(3),
    "flag": lambda: torch.tensor(True),
    "empty": lambda: torch.zeros(0, 4),
    "half": lambda: torch.full((5,), 2.0, dtype=torch.float16),
    "double": lambda: torch.full((2, 3), 1e300, dtype=torch.float64),
    "complex": lambda: torch.full((3,), 1 + 2j),
    "tiny": lambda: torch.full((7,), 1e-45),
    "transposed": lambda: torch.arange(6.0).view(2, 3).t(),
    "part of another": lambda: torch.arange(12.0)[3:9:2],
    "a row of another": lambda: torch.arange(12.0).view(3, 4)[1],
    "nan": lambda: torch.full((2,), math.nan),
    "sparse": lambda: torch.eye(3).to_sparse(),
    "parameter": lambda: nn.Parameter(torch.ones(2, 2)),
}


def dense(tensor: torch.Tensor) -> torch.Tensor:
    return (tensor.detach().to_dense() if tensor.layout is not torch.strided else tensor.detach()).clone()


def change(tensor: torch.Tensor) -> None:
    with torch.no_grad():
        tensor.zero_() if tensor.dtype is torch.bool else tensor.mul_(0)


@given(st.lists(st.sampled_from(sorted(KINDS)), max_size=8), st.booleans())
def test_a_copy_puts_back_what_was_there(kinds: list[str], again: bool) -> None:
    tensors = [KINDS[kind]() for kind in kinds]
    copy = TensorCopy()
    if again:
        copy.take(tensors)
        for tensor in tensors:
            if tensor.is_floating_point():
                tensor.data.add_(tensor.data)
    copy.take(tensors)
    before = list(map(dense, tensors))
    for tensor in tensors:
        change(tensor)
    copy.restore()
    for tensor, value in zip(tensors, before, strict=True):
        assert torch.equal(dense(tensor).nan_to_num(), value.nan_to_num())


REPLACED: dict[str, Callable[[torch.Tensor], object]] = {
    "other memory": lambda t: setattr(t, "data", torch.full((4,), 7.0)),
    "another dtype": lambda t: setattr(t, "data", torch.full((4,), 7.0, dtype=torch.float64)),
    "larger": lambda t: t.resize_(9).fill_(7.0),
    "smaller": lambda t: t.resize_(2).fill_(7.0),
    "set": lambda t: t.set_(torch.full((2, 3), 7.0)),
}


@pytest.mark.parametrize("name", REPLACED)
def test_a_tensor_may_be_given_other_memory(name: str) -> None:
    tensor, other = torch.ones(4), torch.ones(3)
    copy = TensorCopy()
    copy.take([tensor, other])
    REPLACED[name](tensor)
    copy.take([tensor, other])
    tensor.zero_()
    copy.restore()
    assert bool((tensor == 7.0).all())


def test_what_cannot_be_written_is_left_alone() -> None:
    expanded, frozen = torch.ones(1).expand(4), torch.ones(3)
    copy = TensorCopy()
    copy.take([expanded, frozen])
    version = frozen._version
    copy.restore()
    assert frozen._version == version
    assert expanded.sum() == 4


def test_copies_of_inference_may_be_refilled_outside_of_it() -> None:
    tensor, copy = torch.ones(3), TensorCopy()
    with torch.inference_mode():
        copy.take([tensor])
    tensor.mul_(2)
    copy.take([tensor])
    tensor.zero_()
    copy.restore()
    assert tensor.tolist() == [2.0] * 3


def test_what_is_joined_is_as_it_is_now() -> None:
    tensors = [torch.ones(2), torch.tensor(5), torch.zeros(0)]
    flat = Flat(tensors)
    tensors[0].mul_(3)
    assert [part.tolist() for part in flat.joined()] == [[3.0, 3.0], [5]]
    assert flat.stands()


class Holder(nn.Module):
    def __init__(self, **buffers: torch.Tensor | None) -> None:
        super().__init__()
        for name, buffer in buffers.items():
            self.register_buffer(name, buffer)


def met(*modules: nn.Module) -> Buffers:
    buffers = Buffers()
    for module in modules:
        buffers.met(module)
    return buffers


@pytest.mark.parametrize("size", [1, SMALL + 1])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_bad_value_is_found(size: int, dtype: torch.dtype, value: float) -> None:
    holder = Holder(good=torch.ones(3), it=torch.zeros(size, dtype=dtype), count=torch.tensor(0), nothing=None)
    buffers = met(holder)
    assert buffers.bad() == []
    holder.it[-1] = value
    [bad] = buffers.bad()
    assert bad is holder.it


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_large_finite_values_are_none(dtype: torch.dtype) -> None:
    most = torch.finfo(dtype).max
    assert met(Holder(a=torch.full((9,), most, dtype=dtype), b=torch.tensor(most, dtype=dtype))).bad() == []


def test_what_was_never_finite_is_not_looked_for() -> None:
    holder = Holder(mask=torch.tensor([0.0, -math.inf]), it=torch.zeros(2))
    buffers = met(holder)
    assert buffers.bad() == []
    holder.it.fill_(math.nan)
    assert [b is holder.it for b in buffers.bad()] == [True]


def test_a_buffer_that_is_assigned_anew_is_followed() -> None:
    holder = Holder(it=torch.zeros(2))
    buffers = met(holder)
    buffers.refresh()
    holder._buffers["it"] = torch.full((2,), math.nan)
    assert [b is holder.it for b in buffers.bad()] == [True]
    holder.it = None
    assert buffers.bad() == buffers.all == []


def test_a_buffer_that_comes_later_is_met() -> None:
    holder = Holder(it=torch.zeros(2))
    buffers = met(holder)
    buffers.refresh()
    holder.register_buffer("more", torch.zeros(1))
    buffers.met(holder)
    buffers.refresh()
    assert len(buffers.all) == 2


def test_modules_are_not_kept_alive() -> None:
    holder, stays = Holder(it=torch.zeros(2)), Holder(it=torch.zeros(3))
    buffers = met(holder, stays)
    buffers.refresh()
    gone, held = weakref.ref(holder), weakref.ref(holder.it)
    del holder
    gc.collect()
    assert gone() is None
    buffers.refresh()
    assert held() is None
    assert [b.numel() for b in buffers.all] == [3]


def test_a_buffer_that_modules_share_is_told_once_or_twice_but_told() -> None:
    shared = torch.zeros(2)
    holders = Holder(it=shared), Holder(it=shared)
    buffers = met(*holders)
    buffers.refresh()
    shared.fill_(math.nan)
    assert all(b is shared for b in buffers.bad())
    assert buffers.bad()
