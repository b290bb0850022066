"""Which rows of a tensor are rows of the batch: told from the sizes of what comes from outside the step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch

from whynan.core.records import Operand, Operation
from whynan.torch.kernels import Argument
from whynan.torch.measure import bad_rows
from whynan.torch.storages import Storage

REARRANGING = frozenset({"index", "index_select", "stack", "cat"})


class BatchRows:
    """The sizes of dimension 0 of the tensors that the loop was given; those of tensors met outside, or made in the step, stand in where
    none is known."""

    def __init__(self) -> None:
        self._sizes: set[int] = set()
        self._met: set[int] = set()
        self._made: set[int] = set()
        self._given: set[int] = set()

    def given(self, tensor: torch.Tensor, storage: Storage) -> None:
        """A tensor of the batch itself."""
        if tensor.dim():
            self._sizes.add(tensor.shape[0])
            self._given.add(storage.number)
            storage.rows = tensor.shape[0]

    def met(self, tensor: torch.Tensor, storage: Storage) -> None:
        """A tensor from outside that nobody named: taken for a part of the batch unless it is a single number."""
        storage.source = "input"
        storage.from_batch = tensor.dim() > 0 and not tensor.requires_grad
        storage.rows = tensor.shape[0] if storage.from_batch else 0

    def differentiated(self, tensor: torch.Tensor, storage: Storage) -> None:
        """A leaf that the step made and differentiates by: an input of its own making. (What was made of gradients are weights.)"""
        if tensor.dim() and not storage.from_gradient and not storage.from_batch:
            storage.from_batch = True
            self.made([tensor])

    def made(self, tensors: Iterable[torch.Tensor]) -> None:
        """Tensors that the step makes: used only if no other is met."""
        self._made.update(t.shape[0] for t in tensors if t.dim())

    def read(
        self,
        op: str,
        arguments: Sequence[Argument],
        storages: Sequence[Storage | None],
        operands: Sequence[Operand],
        results: Sequence[torch.Tensor],
    ) -> None:
        """What an operation of the forward pass reads straight from the batch, and what it picks out of it or stacks, has rows of the
        batch. (In the backward pass the batch is read transposed.)"""
        for argument, storage, operand in zip(arguments, storages, operands, strict=True):
            if storage is None or operand.producer is not None or storage.source != "input" or not storage.from_batch:
                continue
            sizes = self._sizes if storage.number in self._given else self._met
            sizes.update(argument.tensor.shape[:1])
            if op in REARRANGING:
                sizes.update(n for tensor in results for n in tensor.shape[:1])

    def has(self, operation: Operation) -> bool:
        """Whether the rows of its result are rows of the batch; asked when the step is over."""
        shape = operation.outputs[0].shape if operation.outputs else ()
        return operation.from_batch and bool(shape) and shape[0] in (self._sizes or self._met | self._made)


def rows_of(tensor: torch.Tensor, storage: Storage | None) -> tuple[int, ...] | None:
    """The bad rows of an outside tensor, as rows of the batch's own tensor where this is a flattened view of it."""
    rows = bad_rows(tensor)
    size = storage.rows if storage is not None else 0
    if not rows or not size or tensor.shape[0] == size or tensor.shape[0] % size or not tensor.is_contiguous():
        return rows
    return tuple(sorted({row // (tensor.shape[0] // size) for row in rows}))
