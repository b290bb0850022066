"""Who wrote a tensor: links between operations through the storage that they share.

A tensor's Python object is not kept between forward and backward (saved tensors come back as new objects), its storage is. Views share
their storage, so a link is a storage and the range of elements in it; the last writer of that range is the producer.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch

from whynan.core.records import Source, TensorStats
from whynan.torch._compat import storage_key, unwrapped
from whynan.torch.measure import measure

Range = tuple[int, int]
Key = tuple[object, ...]


@dataclass(slots=True)
class Written:
    operation: int
    extent: Range
    finite: bool


@dataclass(slots=True)
class Storage:
    """`source` says where the content came from before the record's first write to it; `rows` is the size of dimension 0 of a tensor of the
    batch."""

    reference: object
    number: int
    source: Source
    name: str | None = None
    from_batch: bool = False
    from_gradient: bool = False
    version: int = 0
    rows: int = 0
    writers: list[Written] = field(default_factory=list)
    stats: dict[Key, TensorStats] = field(default_factory=dict)


class StorageTable:
    """Every storage that the record has met. Weak references are held, so no memory of the user's is kept alive."""

    def __init__(self) -> None:
        self._storages: dict[int, Storage] = {}

    def new_step(self) -> None:
        """What was a gradient in the step before may be a parameter in this one."""
        for storage in self._storages.values():
            storage.from_gradient = False

    def find(self, tensor: torch.Tensor, source: Source = "unknown") -> Storage | None:
        base = backing(tensor)
        if base is None:
            return None
        key, reference = storage_key(base)
        storage = self._storages.get(key)
        if storage is None:
            storage = self._storages[key] = Storage(reference, len(self._storages), source)
        return storage

    def stats(self, tensor: torch.Tensor, storage: Storage | None) -> TensorStats:
        """Statistics of the tensor's present content, taken once for each content."""
        if storage is None:
            return measure(tensor)
        key = _content(tensor)
        known = storage.stats.get(key)
        if known is None:
            known = storage.stats[key] = measure(tensor)
        return known if known.shape == tuple(tensor.shape) else replace(known, shape=tuple(tensor.shape))

    def wrote(self, storage: Storage, tensor: torch.Tensor, operation: int, finite: bool) -> None:
        storage.version += 1
        storage.stats.clear()
        storage.writers.append(Written(operation, extent(tensor), finite))


def producer(storage: Storage, tensor: torch.Tensor, finite: bool) -> int | None:
    """The operation that wrote what `tensor` holds; of something not finite, the last that wrote something not finite there."""
    start, stop = extent(tensor)
    for written in reversed(storage.writers):
        overlaps = written.extent[0] < stop and start < written.extent[1]
        if overlaps and (finite or not written.finite):
            return written.operation
    return None


def backing(tensor: torch.Tensor) -> torch.Tensor | None:
    """The strided tensor that holds the values; None where there is none to name."""
    tensor = unwrapped(tensor)
    if hasattr(tensor, "to_local"):
        tensor = tensor.to_local()
    if tensor.layout is torch.sparse_coo:
        tensor = tensor._values()
    if tensor.layout is not torch.strided or tensor.is_meta or tensor.is_nested:
        return None
    return tensor


def extent(tensor: torch.Tensor) -> Range:
    """The bytes of its storage from the first to behind the last element."""
    base = backing(tensor)
    if base is None or base.numel() == 0:
        return (0, 0)
    size = base.element_size()
    start = int(base.storage_offset()) * size
    last = sum((n - 1) * stride for n, stride in zip(base.shape, base.stride(), strict=True))
    return start, start + int(last + 1) * size


def _content(tensor: torch.Tensor) -> Key:
    """Tensors that cover their whole storage have the same statistics whatever their strides."""
    base = backing(tensor)
    if base is None:
        return (id(tensor),)
    if base.numel() * base.element_size() == base.untyped_storage().nbytes() and 0 not in base.stride():
        return ("whole", base.dtype, base.is_conj(), base.is_neg())
    return (base.storage_offset(), tuple(base.shape), base.stride(), base.dtype)
