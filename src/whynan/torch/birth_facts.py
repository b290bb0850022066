"""What is measured only where a non-finite value may have been born: exact operands, lost constants, the same operation in float64."""

from __future__ import annotations

from typing import Any

import torch

from whynan.torch.gate import finite
from whynan.torch.kernels import Kernel, scalars

FLOAT64_LIMIT = 1 << 22  # elements of all operands together


def absorbed(kernel: Kernel, args: tuple[Any, ...], kwargs: dict[str, Any], source: torch.Tensor | None, result: torch.Tensor) -> int:
    """Count the elements at which a constant that was added, subtracted or used as a bound rounded away."""
    if source is None or not result.is_floating_point() or result.numel() == 0 or source.shape != result.shape:
        return 0
    if kernel.op in ("add", "sub", "rsub"):
        constant = _constant(args[1] if len(args) > 1 else None)
        return _lost_addend(kernel.op, constant, source, result) if constant else 0
    if kernel.op in ("clamp", "clamp_min", "clamp_max"):
        return _lost_bound(scalars(kernel, args, kwargs), result)
    return 0


def _constant(value: Any) -> float | None:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, torch.Tensor) and value.dim() == 0 and value.is_floating_point() and not value.requires_grad:
        return float(value)
    return None


def _lost_addend(op: str, constant: float, source: torch.Tensor, result: torch.Tensor) -> int:
    if op == "rsub":
        exact = constant - source.double()
        return int(((result == 0) & (exact != 0)).sum())
    info = torch.finfo(result.dtype)
    if abs(constant) > info.eps * max(1.0, float(source.abs().max())) and abs(constant) >= info.tiny:
        return 0
    return int((result == source).sum())


def _lost_bound(values: dict[str, object], result: torch.Tensor) -> int:
    low, high = values.get("min"), values.get("max")
    count = 0
    if isinstance(low, float) and low != 0 and float(torch.tensor(low, dtype=result.dtype)) == 0:
        count += int((result == 0).sum())
    if isinstance(high, float) and high < 1 and float(torch.tensor(high, dtype=result.dtype)) == 1:
        count += int((result == 1).sum())
    return count


def degrees_of_freedom(kernel: Kernel, args: tuple[Any, ...], kwargs: dict[str, Any]) -> float | None:
    """n - correction of a variance or standard deviation."""
    if kernel.op not in ("var", "std", "var_mean", "std_mean") or not args:
        return None
    values = scalars(kernel, args, kwargs)
    dims, tensor = values.get("dim"), args[0]
    count = tensor.numel()
    if isinstance(dims, list) and dims:
        count = 1
        for dim in dims:
            count *= tensor.shape[dim] if isinstance(dim, int) else 1
    correction = values.get("correction", 1 if values.get("unbiased", True) else 0)
    return count - float(correction) if isinstance(correction, (int, float)) else None


def finite_in_float64(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool | None:
    """Whether the same operation on the same operands in float64 is finite; None where it can't be tried. It works on copies
    throughout: it may write into its arguments."""
    leaves = [a for a in args if isinstance(a, torch.Tensor)]
    if sum(a.numel() for a in leaves) > FLOAT64_LIMIT or not leaves:
        return None
    random = torch.get_rng_state()
    try:
        wide = [_wide(a) for a in args]
        result = function(*wide, **{k: _wide(v) for k, v in kwargs.items()})
        first = result[0] if isinstance(result, (tuple, list)) else result
        return finite(first) if isinstance(first, torch.Tensor) and first.dtype is torch.float64 else None
    except Exception:
        return None
    finally:
        torch.set_rng_state(random)


def _wide(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.to(torch.float64, copy=True) if value.is_floating_point() else value.clone()
    if isinstance(value, torch.dtype) and value.is_floating_point:
        return torch.float64
    return value
