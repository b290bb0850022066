"""Is it still finite? A cheap sign for many tensors, confirmed elementwise where it says no."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence
from operator import attrgetter, is_not

import torch

from whynan.torch import _compat
from whynan.torch.measure import plain

FUSED = frozenset({torch.float16, torch.bfloat16, torch.float32})
PLAIN = frozenset({torch.Tensor, torch.nn.Parameter})  # subclasses (distributed, masked) keep their values elsewhere
traits = attrgetter("dtype", "__class__", "is_cpu", "requires_grad", "layout")
gradient_of, item = attrgetter("grad"), torch.Tensor.item
is_given = functools.partial(is_not, None)
WIDE = (torch.float32, torch.float64, torch.bfloat16)  # sums of half precision overflow
SUMMED = frozenset((dtype, kind, True, False, torch.strided) for dtype in WIDE for kind in PLAIN)


class Gate:
    """Reusable buffers of the fused check, one pair a device."""

    def __init__(self) -> None:
        self._flags: dict[torch.device, tuple[torch.Tensor, torch.Tensor]] = {}

    def suspicious(self, tensors: Sequence[torch.Tensor]) -> bool:
        """Whether something is non-finite. Plain tensors of the CPU are summed, others, in one call, multiplied by exactly 1 and their
        version counters put back."""
        if not tensors:
            return False
        if not SUMMED.issuperset(map(traits, tensors)):
            return self._suspicious_by_group(tensors)
        return not math.isfinite(sum(map(item, map(torch.sum, tensors)))) and not all_finite(tensors)

    def _suspicious_by_group(self, tensors: Sequence[torch.Tensor]) -> bool:
        device, dtype = tensors[0].device, tensors[0].dtype
        if dtype in FUSED and all(type(t) in PLAIN and t.dtype is dtype and t.device == device for t in tensors):
            return self._together(device, tensors)
        groups: dict[tuple[torch.device, torch.dtype], list[torch.Tensor]] = {}
        for tensor in tensors:
            groups.setdefault((tensor.device, tensor.dtype), []).append(tensor)
        return any(self._group(device, dtype, group) for (device, dtype), group in groups.items())

    def _group(self, device: torch.device, dtype: torch.dtype, group: list[torch.Tensor]) -> bool:
        if dtype not in FUSED or any(type(t) not in PLAIN for t in group):
            return any(not finite(t) for t in group)
        return self._together(device, group)

    def _together(self, device: torch.device, group: Sequence[torch.Tensor]) -> bool:
        if any(t.requires_grad or t.layout is not torch.strided for t in group):
            return any(not finite(t) for t in group)
        if device.type == "meta":
            return False
        flag, one = self._flag(device)
        flag.zero_()
        try:
            versions = [t._version for t in group]
            _compat.non_finite_flag(group, flag, one)
        except RuntimeError:  # overlapping memory (an expanded gradient), or tensors of inference mode
            return any(not finite(t) for t in group)
        _compat.put_back_versions(group, versions)
        return bool(flag.item())

    def _flag(self, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
        if device not in self._flags:
            self._flags[device] = torch.zeros(1, device=device), torch.ones(1, device=device)
        return self._flags[device]


def gradients_of(leaves: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    return list(filter(is_given, map(gradient_of, leaves)))


def finite(tensor: torch.Tensor) -> bool:
    """Exact and read-only; whatever has no floating-point values is finite."""
    if not (tensor.is_floating_point() or tensor.is_complex()) or tensor.numel() == 0 or tensor.is_meta:
        return True
    if tensor.numel() == 1 and tensor.layout is torch.strided and not tensor.is_complex():
        return math.isfinite(tensor.item())
    values = plain(tensor)
    if values is None or values.numel() == 0:
        return True
    low, high = torch.aminmax(values)
    return math.isfinite(low.item()) and math.isfinite(high.item())


def all_finite(tensors: Iterable[torch.Tensor]) -> bool:
    """Read-only: for memory that others may write at the same time."""
    return all(finite(t) for t in tensors)
