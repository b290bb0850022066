"""Many small tensors read as one: an operation costs more than what it reads of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter

import torch

from whynan.torch import _compat
from whynan.torch.gate import PLAIN

place_of, shape_of = torch.Tensor.data_ptr, attrgetter("shape")


class Flat:
    """`parts`: the values of `tensors`, each as a vector that shares its memory, by dtype and device. They are so as long as `stands`."""

    def __init__(self, tensors: Sequence[torch.Tensor]) -> None:
        self.tensors = tensors
        self._places, self._shapes = list(map(place_of, tensors)), list(map(shape_of, tensors))
        self._groups: dict[tuple[torch.dtype, torch.device], list[torch.Tensor]] = {}
        for tensor in tensors:
            self._groups.setdefault((tensor.dtype, tensor.device), []).append(tensor)
        self.parts = [[t.detach().view(-1) for t in group] for group in self._groups.values()]

    def stands(self) -> bool:
        """No tensor was given other memory. (What `parts` hold can't have been given to another meanwhile.)"""
        return list(map(place_of, self.tensors)) == self._places and list(map(shape_of, self.tensors)) == self._shapes

    def joined(self) -> list[torch.Tensor]:
        """The values as they are now, one vector a dtype and device."""
        return list(map(torch.cat, self.parts))

    def pairs(self, joined: Sequence[torch.Tensor]) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """(tensor, its values out of what `joined` has given, in its shape)"""
        for group, vector in zip(self._groups.values(), joined, strict=True):
            pieces = torch.split(vector, [t.numel() for t in group])
            yield from ((t, piece.view(t.shape)) for t, piece in zip(group, pieces, strict=True))


def is_flat(tensor: torch.Tensor) -> bool:
    """Whether its values lie one behind the other in memory that can be read."""
    plain = type(tensor) in PLAIN and tensor.layout is torch.strided and not tensor.is_meta
    return plain and not _compat.is_wrapped(tensor) and tensor.is_contiguous()
