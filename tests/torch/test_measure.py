"""Statistics as numpy has them, whatever the tensor."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings

from tests.torch.tensors import BAD, COMPLEX, EIGHT_BITS, FLOATING, WHOLE, bits, floating, sparse
from whynan.core.records import TensorStats
from whynan.torch import measure as module
from whynan.torch.measure import bad_rows, measure, plain, values_at

any_tensor = settings(max_examples=150, deadline=None)


def by_numpy(values: np.ndarray[Any, Any]) -> dict[str, float | int | None]:
    finite = values[np.isfinite(values)]
    magnitude = np.abs(finite)
    return {
        "min": float(finite.min()) if finite.size else None,
        "max": float(finite.max()) if finite.size else None,
        "absmax": float(magnitude.max()) if finite.size else None,
        "absmin": float(magnitude[magnitude > 0].min()) if (magnitude > 0).any() else None,
        "nan": int(np.isnan(values).sum()),
        "posinf": int((values == np.inf).sum()),
        "neginf": int((values == -np.inf).sum()),
        "zero": int((finite == 0).sum()) if values.size else None,
    }


def numbers(stats: TensorStats) -> dict[str, float | int | None]:
    return {name: getattr(stats, name) for name in ("min", "max", "absmax", "absmin", "nan", "posinf", "neginf", "zero")}


def assert_as_numpy(tensor: torch.Tensor) -> None:
    stats = measure(tensor)
    assert numbers(stats) == by_numpy(tensor.detach().double().numpy())
    assert stats.shape == tuple(tensor.shape)
    assert stats.dtype == str(tensor.dtype).removeprefix("torch.")
    assert stats.finite == bool(torch.isfinite(tensor.double()).all())


@any_tensor
@given(floating())
def test_statistics_are_those_of_numpy(tensor: torch.Tensor) -> None:
    before, version = bits(tensor), tensor._version
    assert_as_numpy(tensor)
    assert (bits(tensor), tensor._version) == (before, version)


@pytest.mark.parametrize("dtype", FLOATING, ids=str)
def test_every_bad_element_is_counted(dtype: torch.dtype) -> None:
    tensor = torch.tensor([math.nan] * 3 + [math.inf] * 2 + [-math.inf] * 4 + [0.0, -0.0, -2.0, 0.5], dtype=dtype)
    assert_as_numpy(tensor)
    assert (measure(tensor).nan, measure(tensor).posinf, measure(tensor).neginf, measure(tensor).zero) == (3, 2, 4, 2)


@pytest.mark.parametrize("dtype", [*FLOATING, *EIGHT_BITS, *WHOLE], ids=str)
def test_every_dtype_can_be_measured(dtype: torch.dtype) -> None:
    tensor = torch.tensor([0, 1, 1, 0], dtype=torch.float32).to(dtype)
    stats = measure(tensor)
    assert (stats.min, stats.max, stats.absmax, stats.zero) == (0.0, 1.0, 1.0, 2)
    assert stats.absmin == 1.0 or not dtype.is_floating_point
    assert stats.finite
    assert measure(tensor[:0]) == TensorStats((0,), stats.dtype)
    assert measure(tensor[1]).max == 1.0


@pytest.mark.parametrize("dtype", [torch.uint16, torch.uint32, torch.uint64, torch.int64], ids=str)
def test_large_whole_numbers_keep_their_size(dtype: torch.dtype) -> None:
    top = torch.iinfo(dtype).max
    assert measure(torch.tensor([1, top], dtype=dtype)).max == float(top)


@pytest.mark.parametrize("dtype", EIGHT_BITS, ids=str)
def test_nan_in_eight_bits(dtype: torch.dtype) -> None:
    assert measure(torch.tensor([1.0, math.nan]).to(dtype)).nan == 1


@pytest.mark.filterwarnings("ignore:ComplexHalf")
@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
def test_a_complex_element_counts_once(dtype: torch.dtype) -> None:
    values = [complex(1, -2), complex(math.nan, math.nan), complex(math.inf, math.nan), complex(0, -math.inf), complex(math.inf, 1)]
    stats = measure(torch.tensor(values, dtype=torch.complex128).to(dtype))
    assert (stats.nan, stats.posinf, stats.neginf) == (2, 1, 1)
    assert (stats.min, stats.max) == (-2.0, 1.0)


def test_conjugated_and_negated_views_are_read_as_they_look() -> None:
    tensor = torch.tensor([complex(1, 5), complex(2, -7)]).conj()
    assert (measure(tensor).min, measure(tensor).max) == (-5.0, 7.0)
    assert (measure(tensor.imag).min, measure(tensor.imag).max) == (-5.0, 7.0)


@pytest.mark.parametrize("layout", ["coo", "csr", "csc"])
def test_of_a_sparse_tensor_its_elements_are_measured(layout: str) -> None:
    stats = measure(sparse(layout, 2.0, math.nan, -3.0))
    assert (stats.shape, stats.min, stats.max, stats.nan) == ((3, 3), -3.0, 2.0, 1)


def test_of_a_nested_tensor_its_elements_are_measured() -> None:
    parts = [torch.tensor([1.0, math.nan]), torch.tensor([2.0, 3.0, 4.0])]
    stats = measure(torch.nested.as_nested_tensor(parts, layout=torch.jagged))
    assert (stats.shape, stats.max, stats.nan) == ((2,), 4.0, 1)


def test_an_mkldnn_tensor_is_measured() -> None:
    assert measure(torch.tensor([[1.0, math.inf]]).to_mkldnn()).posinf == 1


@pytest.mark.parametrize("tensor", [torch.ones(3, device="meta"), torch.zeros(3, dtype=torch.float4_e2m1fn_x2)], ids=["meta", "4 bits"])
def test_what_cannot_be_read_has_a_shape_and_a_dtype(tensor: torch.Tensor) -> None:
    assert plain(tensor) is None
    assert measure(tensor) == TensorStats((3,), str(tensor.dtype).removeprefix("torch."))


def test_measuring_leaves_no_trace_in_the_graph() -> None:
    leaf = torch.ones(3, requires_grad=True)
    product = leaf * 2
    node, number = product.grad_fn, torch._C._autograd._get_sequence_nr()
    measure(product, full=True)
    assert product.grad_fn is node
    assert torch._C._autograd._get_sequence_nr() == number


def test_zeros_of_a_large_tensor_are_counted_only_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "COUNT_LIMIT", 3)
    tensor = torch.tensor([0.0, 0.5, -2.0, 1.0])
    assert (measure(tensor).zero, measure(tensor).absmin, measure(tensor).absmax) == (None, None, 2.0)
    assert (measure(tensor, full=True).zero, measure(tensor, full=True).absmin) == (1, 0.5)


# ---- rows ----


@any_tensor
@given(floating())
def test_bad_rows_are_those_of_numpy(tensor: torch.Tensor) -> None:
    values = tensor.double().numpy()
    rows, nan_rows = bad_rows(tensor), bad_rows(tensor, nan_only=True)
    if values.ndim == 0:
        assert rows is None
        return
    flat = values.reshape(values.shape[0], -1) if values.size else values.reshape(values.shape[0], 0)
    assert rows == tuple(np.flatnonzero((~np.isfinite(flat)).any(1)).tolist())
    assert nan_rows == tuple(np.flatnonzero(np.isnan(flat).any(1)).tolist())


@pytest.mark.filterwarnings("ignore:ComplexHalf")
@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
def test_bad_rows_of_complex_numbers(dtype: torch.dtype) -> None:
    tensor = torch.tensor([[0j, 1], [complex(0, math.nan), 1], [1, complex(math.inf, 0)]], dtype=torch.complex128).to(dtype)
    assert bad_rows(tensor) == (1, 2)
    assert bad_rows(tensor, nan_only=True) == (1,)


def test_what_has_no_rows_or_no_numbers_has_no_bad_rows() -> None:
    assert bad_rows(torch.tensor(math.nan)) is None
    assert bad_rows(torch.tensor([1, 2])) is None
    assert bad_rows(sparse("coo", math.nan)) is None
    assert bad_rows(torch.ones(2, device="meta")) is None


def test_there_is_an_end_to_the_rows_that_are_told() -> None:
    rows = bad_rows(torch.full((module.ROW_LIMIT + 5,), math.nan))
    assert rows is not None
    assert len(rows) == module.ROW_LIMIT


# ---- the operands of a birth ----


def test_the_elements_at_the_birth_are_told() -> None:
    operand = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert values_at(operand, torch.tensor([[0.0, math.nan], [math.inf, 1.0]])) == (2.0, 3.0)


@pytest.mark.parametrize(
    ("operand", "expected"),
    [([5.0], (5.0, 5.0)), ([[1.0], [2.0]], (2.0, 2.0)), ([7.0, 8.0], (7.0, 8.0)), ([1.0, 2.0, 3.0], ()), ([[1.0, 2.0]] * 3, ())],
)
def test_operands_of_another_shape_are_matched_where_they_can_be(operand: list[Any], expected: tuple[float, ...]) -> None:
    result = torch.tensor([[1.0, 1.0], [math.nan, math.inf]])
    assert values_at(torch.tensor(operand), result) == expected


def test_a_single_number_is_told_whatever_the_result() -> None:
    assert values_at(torch.tensor(3.0), torch.tensor(math.nan)) == (3.0,)
    assert values_at(torch.tensor([3.0]), torch.tensor(math.nan)) == (3.0,)


def test_only_a_few_elements_are_told() -> None:
    assert len(values_at(torch.arange(100.0), torch.full((100,), math.nan))) == module.SAMPLE


@pytest.mark.parametrize("bad", BAD)
def test_bad_elements_are_told_as_they_are(bad: float) -> None:
    (told,) = values_at(torch.tensor([1.0, bad]), torch.tensor([0.0, math.nan]))
    assert told == bad or math.isnan(told) and math.isnan(bad)
