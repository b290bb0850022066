"""The finite check is exact and leaves no mark: not on a value, not on a version counter, not on a graph."""

from __future__ import annotations

import math
import struct

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.torch.tensors import BAD, COMPLEX, EIGHT_BITS, FLOATING, NASTY, VIEWS, WHOLE, bits, floating, sparse
from whynan.torch.gate import Gate, all_finite, finite

any_tensors = settings(max_examples=120, deadline=None)


def assert_exact(tensors: list[torch.Tensor], *, bad: bool) -> None:
    """One check over all of them, each by itself, and a gate that has been used before all say the same."""
    gate = Gate()
    assert gate.suspicious(tensors) is bad
    assert gate.suspicious(tensors) is bad
    assert all_finite(tensors) is not bad
    assert any(not finite(tensor) for tensor in tensors) is bad


def assert_untouched(tensors: list[torch.Tensor]) -> None:
    before = [(bits(t), t._version, t.requires_grad, t.grad_fn) for t in tensors]
    number = torch._C._autograd._get_sequence_nr()
    Gate().suspicious(tensors)
    assert [(bits(t), t._version, t.requires_grad, t.grad_fn) for t in tensors] == before
    assert torch._C._autograd._get_sequence_nr() == number


@any_tensors
@given(st.lists(floating(), max_size=5))
def test_exact_for_any_tensors(tensors: list[torch.Tensor]) -> None:
    assert_exact(tensors, bad=any(not torch.isfinite(t).all() for t in tensors))


@any_tensors
@given(st.lists(floating(), max_size=5))
def test_any_tensors_are_left_as_they_are(tensors: list[torch.Tensor]) -> None:
    assert_untouched(tensors)


@any_tensors
@given(st.lists(floating(finite=True), max_size=5))
def test_silent_on_finite_values_whatever_their_sum(tensors: list[torch.Tensor]) -> None:
    assert_exact(tensors, bad=False)


# ---- values ----


@pytest.mark.parametrize("dtype", FLOATING, ids=str)
def test_values_whose_sum_or_norm_overflows_are_finite(dtype: torch.dtype) -> None:
    top = torch.finfo(dtype).max
    assert_exact([torch.full((1000,), top, dtype=dtype), torch.full((1000,), -top, dtype=dtype)], bad=False)


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("dtype", FLOATING, ids=str)
@pytest.mark.parametrize("place", [0, 7, 63, 64, 1000, 4096])
def test_one_bad_element_among_many_is_seen(dtype: torch.dtype, bad: float, place: int) -> None:
    """Vectorised kernels treat the end of a tensor apart from its middle."""
    tensor = torch.zeros(4097, dtype=dtype)
    tensor[place] = bad
    assert_exact([torch.ones(5, dtype=dtype), tensor[: place + 1], torch.ones(5, dtype=dtype)], bad=True)
    assert_exact([tensor[:place], tensor[place + 1 :]], bad=False)


@pytest.mark.parametrize("pattern", [0x7F800001, 0xFFC12345, 0x7FFFFFFF, 0xFF800001], ids=hex)
def test_the_payload_of_a_nan_is_kept(pattern: int) -> None:
    """Signalling NaN too: arithmetic would make it a quiet one."""
    tensor = torch.frombuffer(bytearray(struct.pack("<5I", *[pattern] * 5)), dtype=torch.float32)
    assert_untouched([tensor])
    assert_exact([tensor], bad=True)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_a_nan_in_half_precision_stays_one(dtype: torch.dtype) -> None:
    """It is read through float32, so that only its payload may change: to that of every NaN that arithmetic makes."""
    tensor = torch.tensor([1.0, math.nan, -2.0], dtype=dtype)
    version = tensor._version
    assert_exact([tensor], bad=True)
    assert tensor.isnan().tolist() == [False, True, False]
    assert tensor[::2].tolist() == [1.0, -2.0]
    assert tensor._version == version


@pytest.mark.parametrize("dtype", FLOATING, ids=str)
def test_zeros_keep_their_sign_and_denormals_their_bits(dtype: torch.dtype) -> None:
    tiny = torch.finfo(dtype).smallest_normal * 2**-2
    tensor = torch.tensor([0.0, -0.0, tiny, -tiny] * 5, dtype=dtype)
    assert tensor[2] != 0
    assert_untouched([tensor])
    assert_exact([tensor], bad=False)


def test_denormals_are_kept_where_the_user_has_them_flushed() -> None:
    tensor = torch.tensor([1e-45, -1e-45, 1e-40] * 9)
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor can't")
    try:
        before = bits(tensor)
        Gate().suspicious([tensor])
    finally:
        torch.set_flush_denormal(False)
    assert bits(tensor) == before


@pytest.mark.parametrize("value", [*NASTY, *BAD])
def test_single_numbers(value: float) -> None:
    assert_exact([torch.tensor(value)], bad=not math.isfinite(value))
    assert_exact([torch.tensor([value], dtype=torch.float64)], bad=not math.isfinite(value))


# ---- kinds of tensors ----


@pytest.mark.parametrize("bad", [1.0, *BAD])
def test_dtypes_may_be_mixed(bad: float) -> None:
    tensors = [torch.tensor([1.0, bad if dtype is torch.float64 else 1.0], dtype=dtype) for dtype in (torch.float32, torch.float64, torch.float16)]
    assert_exact(tensors, bad=bad != 1.0)
    assert_untouched(tensors)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("bad", [1.0, math.nan])
def test_views_of_any_strides(view: str, bad: float) -> None:
    """An expanded gradient shares one element; nothing can be written to it."""
    tensor = VIEWS[view](torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, bad]]))
    assert_exact([torch.ones(2), tensor], bad=bad != 1.0)
    assert_untouched([torch.ones(2), tensor])


@pytest.mark.parametrize("layout", ["coo", "csr", "csc"])
@pytest.mark.parametrize("bad", [1.0, *BAD])
def test_sparse_tensors(layout: str, bad: float) -> None:
    assert_exact([torch.ones(2), sparse(layout, 1.0, bad)], bad=bad != 1.0)


def test_an_empty_sparse_tensor_is_finite() -> None:
    assert_exact([torch.sparse_coo_tensor(torch.zeros(1, 0), torch.zeros(0), (3,))], bad=False)


@pytest.mark.parametrize("dtype", COMPLEX[1:], ids=str)
@pytest.mark.parametrize(("bad", "is_bad"), [(1 + 1j, False), (complex(0, math.nan), True), (complex(-math.inf, 0), True)])
def test_complex_tensors(dtype: torch.dtype, bad: complex, is_bad: bool) -> None:
    assert_exact([torch.tensor([1j, bad], dtype=dtype)], bad=is_bad)
    assert_exact([torch.tensor([1j, bad], dtype=dtype).conj()], bad=is_bad)


@pytest.mark.parametrize("dtype", EIGHT_BITS, ids=str)
def test_eight_bits(dtype: torch.dtype) -> None:
    assert_exact([torch.tensor([1.0, 0.5]).to(dtype)], bad=False)
    assert_exact([torch.tensor([1.0, math.nan]).to(dtype)], bad=True)


@pytest.mark.parametrize("dtype", WHOLE, ids=str)
def test_whole_numbers_are_finite(dtype: torch.dtype) -> None:
    assert_exact([torch.ones(3).to(dtype)], bad=False)


def test_nothing_is_finite() -> None:
    assert_exact([], bad=False)
    assert_exact([torch.zeros(0), torch.zeros(3, 0, dtype=torch.float64)], bad=False)


@pytest.mark.parametrize("shape", [(1,), (3,), ()])
def test_tensors_without_memory_are_finite(shape: tuple[int, ...]) -> None:
    assert_exact([torch.ones(shape, device="meta")], bad=False)


@pytest.mark.parametrize("bad", [1.0, math.nan])
def test_tensors_of_inference_mode(bad: float) -> None:
    with torch.inference_mode():
        tensor = torch.tensor([1.0, bad])
    assert_exact([tensor], bad=bad != 1.0)


# ---- graphs ----


def test_gradients_that_have_a_graph_of_their_own() -> None:
    """`create_graph=True`: writing into them, even the same value, would break the second backward."""
    leaf = torch.tensor([1.0, 2.0], requires_grad=True)
    (first,) = torch.autograd.grad((leaf**3).sum(), leaf, create_graph=True)
    assert first.requires_grad
    assert_untouched([first])
    (second,) = torch.autograd.grad(first.sum(), leaf)
    assert second.tolist() == [6.0, 12.0]


def test_a_saved_tensor_can_still_be_used_by_backward() -> None:
    leaf = torch.tensor([1.0, 2.0], requires_grad=True)
    factor = torch.tensor([3.0, 4.0])
    loss = (leaf * factor).sum()
    assert not Gate().suspicious([factor, leaf.detach()])
    loss.backward()
    assert leaf.grad is not None
    assert leaf.grad.tolist() == [3.0, 4.0]


def test_a_leaf_that_requires_grad() -> None:
    assert_exact([torch.tensor([1.0, math.inf], requires_grad=True)], bad=True)
    assert_untouched([torch.tensor([1.0, math.inf], requires_grad=True)])


def test_the_same_memory_may_be_given_twice() -> None:
    tensor = torch.tensor([1.0, 2.0, 3.0])
    tensors = [tensor, tensor, tensor[1:], tensor.detach()]
    assert_exact(tensors, bad=False)
    assert_untouched(tensors)


def test_a_flag_raised_once_does_not_stay() -> None:
    gate = Gate()
    assert gate.suspicious([torch.tensor([math.nan])])
    assert not gate.suspicious([torch.tensor([1.0])])
    assert gate.suspicious([torch.tensor([1.0]), torch.tensor([math.inf], dtype=torch.float16)])
    assert not gate.suspicious([torch.tensor([1.0]), torch.tensor([1.0], dtype=torch.float16)])
