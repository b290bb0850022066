"""Deliberately nasty tensors, shared by the tests of everything that looks at values."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable

import torch
from hypothesis import strategies as st

NASTY = (0.0, -0.0, 1e-45, -1e-45, 1e-38, 1.0, -1.0, 1e-8, 6e4, 1e38, -3e38, 3.4e38)
BAD = (math.nan, math.inf, -math.inf)
FLOATING = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
WHOLE = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint16, torch.uint32, torch.uint64, torch.bool)
COMPLEX = (torch.complex32, torch.complex64, torch.complex128)
EIGHT_BITS = (torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz)
SHAPES = ((), (0,), (1,), (3,), (4, 2), (1, 5), (2, 0, 3), (2, 3, 2), (5, 1))

VIEWS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "itself": lambda t: t,
    "reversed dimensions": lambda t: t.permute(*reversed(range(t.dim()))) if t.dim() else t,
    "every second": lambda t: t[::2] if t.dim() else t,
    "a slice": lambda t: t[1:] if t.dim() and t.shape[0] else t,
    "expanded": lambda t: t.unsqueeze(0).expand(3, *t.shape),
    "offset": lambda t: torch.cat([t.new_zeros(1), t.reshape(-1)])[1:].reshape(t.shape),
}


@st.composite
def floating(draw: st.DrawFn, dtypes: tuple[torch.dtype, ...] = FLOATING, *, finite: bool = False) -> torch.Tensor:
    """A tensor of any shape and layout in memory; what does not fit into its dtype is infinite there, unless only finite is asked for."""
    shape, dtype = draw(st.sampled_from(SHAPES)), draw(st.sampled_from(dtypes))
    count = math.prod(shape)
    numbers = st.sampled_from(NASTY if finite else NASTY + BAD) | st.floats(-10, 10, width=32)
    tensor = torch.tensor(draw(st.lists(numbers, min_size=count, max_size=count)), dtype=torch.float64).reshape(shape).to(dtype)
    if finite:
        tensor = torch.where(torch.isfinite(tensor), tensor, torch.full_like(tensor, torch.finfo(dtype).max))
    return VIEWS[draw(st.sampled_from(sorted(VIEWS)))](tensor)


def sparse(layout: str, *values: float) -> torch.Tensor:
    """A matrix with these values on its diagonal."""
    dense = torch.diag(torch.tensor(values))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some layouts are in beta
        indices = torch.arange(len(values))
        if layout == "coo":
            return torch.sparse_coo_tensor(torch.stack([indices, indices]), torch.tensor(values), dense.shape)
        if layout == "csr":
            return torch.sparse_csr_tensor(torch.arange(len(values) + 1), indices, torch.tensor(values), dense.shape)
        return torch.sparse_csc_tensor(torch.arange(len(values) + 1), indices, torch.tensor(values), dense.shape)


def bits(tensor: torch.Tensor) -> bytes:
    """The content, NaN payloads and signs of zero included."""
    flat = tensor.detach().resolve_conj().flatten().clone(memory_format=torch.contiguous_format)
    return flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""
