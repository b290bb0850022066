"""Statistics of a tensor as plain numbers. One pass tells finite from not; only what is not finite is looked at again."""

from __future__ import annotations

import math
from dataclasses import replace

import torch

from whynan.core.records import TensorStats
from whynan.torch._compat import unwrapped

COUNT_LIMIT = 1 << 20  # elements up to which zeros are counted
ROW_LIMIT = 4096
SAMPLE = 8
# dtypes of which torch can copy a tensor, but not much more
WIDER = {torch.bool: torch.uint8, torch.uint16: torch.int32, torch.uint32: torch.int64, torch.uint64: torch.float64}


def measure(tensor: torch.Tensor, *, full: bool = False) -> TensorStats:
    """`full` adds `absmin` and `zero` whatever the size."""
    shape, dtype = shape_of(tensor), str(tensor.dtype).removeprefix("torch.")
    values = plain(tensor)
    if values is None or values.numel() == 0:
        return TensorStats(shape, dtype)
    low, high = (float(v) for v in torch.aminmax(values))
    if math.isfinite(low) and math.isfinite(high):
        stats = TensorStats(shape, dtype, low, high, max(abs(low), abs(high)))
    else:
        stats = _of_non_finite(values, shape, dtype)
        stats = _by_element(tensor, stats) if tensor.is_complex() and tensor.layout is torch.strided else stats
        values = values[torch.isfinite(values)]
    return _counted(stats, values) if full or values.numel() <= COUNT_LIMIT else stats


def shape_of(tensor: torch.Tensor) -> tuple[int, ...]:
    """Of a nested tensor, which has no one shape, the number of its parts."""
    return (tensor.size(0),) if tensor.is_nested else tuple(tensor.shape)


def plain(tensor: torch.Tensor) -> torch.Tensor | None:
    """The values of any tensor as a dense real one; None where they can't be read (meta, quantized, two in a byte)."""
    tensor = unwrapped(tensor.detach())
    if hasattr(tensor, "to_local"):
        tensor = tensor.to_local()
    if tensor._is_zerotensor():  # forward-mode derivatives: nothing is stored
        return torch.zeros(tensor.shape, dtype=tensor.dtype, device=tensor.device)
    if tensor.is_quantized or tensor.is_meta or tensor.dtype is torch.float4_e2m1fn_x2:
        return None
    if tensor.layout is not torch.strided or tensor.is_nested:
        tensor = _values(tensor)
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    if tensor.is_floating_point() and tensor.element_size() == 1:
        return tensor.float()
    return tensor.to(WIDER.get(tensor.dtype, tensor.dtype))


def _values(tensor: torch.Tensor) -> torch.Tensor:
    """The elements that a tensor of another layout holds."""
    if tensor.layout is torch.sparse_coo:
        return tensor._values()
    return tensor.to_dense() if tensor.is_mkldnn else tensor.values()


def _of_non_finite(values: torch.Tensor, shape: tuple[int, ...], dtype: str) -> TensorStats:
    nan = int(torch.isnan(values).sum())
    posinf, neginf = int((values == math.inf).sum()), int((values == -math.inf).sum())
    finite = values[torch.isfinite(values)]
    if finite.numel() == 0:
        return TensorStats(shape, dtype, nan=nan, posinf=posinf, neginf=neginf)
    low, high = (float(v) for v in torch.aminmax(finite))
    return TensorStats(shape, dtype, low, high, max(abs(low), abs(high)), nan=nan, posinf=posinf, neginf=neginf)


def _by_element(tensor: torch.Tensor, stats: TensorStats) -> TensorStats:
    """A complex element counts once, whichever of its parts is not finite."""
    nan = torch.isnan(tensor)
    parts = torch.view_as_real(tensor.detach().resolve_conj())
    posinf, neginf = ((parts == sign * math.inf).any(-1) & ~nan for sign in (1, -1))
    return replace(stats, nan=int(nan.sum()), posinf=int(posinf.sum()), neginf=int((neginf & ~posinf).sum()))


def _counted(stats: TensorStats, finite: torch.Tensor) -> TensorStats:
    if finite.numel() == 0:
        return replace(stats, zero=0)
    zero = int(finite.numel() - torch.count_nonzero(finite))
    if zero == finite.numel() or not finite.is_floating_point():
        return replace(stats, zero=zero)
    magnitude = finite.abs()
    absmin = float(magnitude[magnitude > 0].min()) if zero else float(magnitude.min())
    return replace(stats, zero=zero, absmin=absmin)


def bad_rows(tensor: torch.Tensor, *, nan_only: bool = False) -> tuple[int, ...] | None:
    """The indices along dimension 0 that hold a non-finite element."""
    if tensor.dim() == 0 or tensor.layout is not torch.strided:
        return None
    values = plain(tensor)
    if values is None or not values.is_floating_point():
        return None
    bad = torch.isnan(values) if nan_only else ~torch.isfinite(values)
    rows = bad.reshape(bad.shape[0], -1).any(1).nonzero().flatten() if bad.numel() else bad.new_zeros(0)
    return tuple(rows[:ROW_LIMIT].tolist())


def values_at(operand: torch.Tensor, result: torch.Tensor) -> tuple[float, ...]:
    """Up to eight elements of `operand` at the places where `result` is not finite, where the shapes can be matched."""
    bad = (~torch.isfinite(result)).flatten().nonzero().flatten()[:SAMPLE] if result.dim() else None
    try:
        spread = operand.detach().expand(result.shape).reshape(-1)
    except RuntimeError:
        return tuple(float(v) for v in operand.flatten()[:1]) if operand.numel() == 1 else ()
    if spread.is_complex():
        return ()
    picked = spread[:1] if bad is None else spread[bad]
    return tuple(float(v) for v in picked.tolist())


def extremes_at(values: torch.Tensor) -> tuple[tuple[int, ...] | None, tuple[int, ...] | None]:
    """Where the smallest and the largest finite element stand."""
    bad = ~torch.isfinite(values)
    if not values.dim() or bool(bad.all()):
        return None, None
    low, high = (values.masked_fill(bad, end) for end in _ends(values.dtype))
    return _index(low.argmin(), values.shape), _index(high.argmax(), values.shape)


def _ends(dtype: torch.dtype) -> tuple[float, float]:
    info = torch.finfo(dtype) if dtype.is_floating_point else torch.iinfo(dtype)
    return info.max, info.min


def _index(flat: torch.Tensor, shape: torch.Size) -> tuple[int, ...]:
    return tuple(int(i) for i in torch.unravel_index(flat, shape))


def label_share(labels: torch.Tensor) -> float | None:
    """The share of the commonest of the labels; those below 0 mark what is left out."""
    values = None if labels.is_floating_point() or labels.is_complex() else plain(labels)
    counted = values[values >= 0] if values is not None else None
    if counted is None or not counted.numel():
        return None
    return int(torch.unique(counted, return_counts=True)[1].max()) / counted.numel()
