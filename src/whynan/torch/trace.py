"""The replay's recorder: every aten operation of forward, backward and optimizer as a `core.records.Operation`.

Statistics and links are kept, not tensors; only the operands of possible births are held, so a replay fits where the step fitted.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from whynan.core.records import Operand, Operation, Source, TensorStats
from whynan.torch.arguments import Before, Held
from whynan.torch.batch_rows import BatchRows, rows_of
from whynan.torch.birth_facts import absorbed, degrees_of_freedom, finite_in_float64
from whynan.torch.kernels import Argument, kernel_of, outputs, scalars, tensors
from whynan.torch.measure import bad_rows, extremes_at, label_share, measure, plain, values_at
from whynan.torch.optables import CREATION, RANDOM
from whynan.torch.storages import Storage, StorageTable, backing, producer
from whynan.torch.whereabouts import Whereabouts

HELD_BIRTHS = 8


class Trace(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """`done`: what is looked for has been met, and what follows in the body is not recorded."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.operations: list[Operation] = []
        self.modules: list[nn.Module | None] = []
        self.held: dict[int, Held] = {}
        self.table = StorageTable()
        self.where = Whereabouts()
        self._batch = BatchRows()
        self.fault: Exception | None = None
        self.paused = False
        self.done = False

    def know(self, tensor: torch.Tensor, source: Source, *, from_batch: bool = False) -> None:
        """Say what an outside tensor is before the trace meets it."""
        storage = self.table.find(tensor, source)
        if storage is not None and not storage.writers:
            storage.source, storage.name, storage.from_batch = source, str(id(tensor)), from_batch
            if from_batch:
                self._batch.given(tensor, storage)

    def last_writer(self, tensor: torch.Tensor) -> int | None:
        storage = self.table.find(tensor)
        return producer(storage, tensor, measure(tensor).finite) if storage else None

    @contextlib.contextmanager
    def pause(self) -> Iterator[None]:
        """Operations inside are ours and not recorded."""
        before, self.paused = self.paused, True
        try:
            yield
        finally:
            self.paused = before

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if self.paused or self.done:
            return func(*args, **kwargs)
        before = self._guarded(self._before, func, args, kwargs)
        try:
            result = func(*args, **kwargs)
        except Exception as error:
            if before is not None:
                self._guarded(self._failed, before, error)
            raise
        if before is not None:
            self._guarded(self._after, func, before, result)
        return result

    def _guarded(self, function: Any, *args: Any) -> Any:
        """A fault of ours must not change the replayed step; the first one is kept and told."""
        if self.fault is not None:
            return None
        try:
            return function(*args)
        except Exception as error:
            self.fault = error
            return None

    def _before(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Before | None:
        kernel = kernel_of(func)
        where = self.where.now(4)
        arguments = tensors(kernel, args, kwargs)
        if kernel.op == "lift_fresh":
            for argument in arguments:
                self._meet_constant(argument.tensor)
            return None
        storages = [self.table.find(a.tensor) for a in arguments]
        operands = [self._operand(a, s) for a, s in zip(arguments, storages, strict=True)]
        before = Before(kernel, where, arguments, storages, operands, args, kwargs)
        if kernel.mutable:
            before.args = before.before_write()
        return before

    def _operand(self, argument: Argument, storage: Storage | None) -> Operand:
        tensor = argument.tensor
        if storage is not None and storage.source == "unknown" and not storage.writers:
            self._batch.met(tensor, storage)
        stats = self.table.stats(tensor, storage)
        index = producer(storage, tensor, stats.finite) if storage else None
        if index is not None and storage is not None and tensor.requires_grad and tensor.is_leaf:
            self._batch.differentiated(tensor, storage)
        source: Source = "operation" if index is not None else storage.source if storage else "unknown"
        return Operand(
            role=argument.role,
            stats=stats,
            producer=index,
            source=source,
            name=storage.name if storage and index is None else None,
            from_batch=bool(storage and storage.from_batch),
            constant=_single(stats) if source == "constant" else None,
            rows=None if stats.finite or index is not None else rows_of(tensor, storage),
            identity=storage.number if storage else None,
            graded=tensor.requires_grad,
            share=label_share(tensor) if argument.role == "target" else None,
        )

    def _meet_constant(self, tensor: torch.Tensor) -> None:
        """A tensor made of numbers inside the step: a constant, or a batch put together there (used only if no other is met)."""
        self.know(tensor, "constant")
        storage = self.table.find(tensor)
        if storage is not None and tensor.dim() and not storage.writers:
            storage.from_batch = True
            self._batch.made([tensor])

    def _after(self, func: Any, before: Before, result: Any) -> None:
        results = self._written(before, result)
        if not results:
            self.where.made(before.where, None)
            return
        index = len(self.operations)
        self.where.made(before.where, index)
        if before.where.node is None:
            self._batch.read(before.kernel.op, before.arguments, before.storages, before.operands, [t for t, _ in results])
        from_batch = any(s.from_batch for s in before.storages if s) or self._makes_batch(before, results)
        gradient = before.where.node is not None or any(s.from_gradient for s in before.storages if s)
        stats, names = [], []
        for tensor, storage in results:
            found = measure(tensor)
            stats.append(found)
            names.extend([storage.name] if storage.name and storage.source in ("parameter", "buffer") else [])
            self.table.wrote(storage, tensor, index, found.finite)
            storage.from_batch |= from_batch
            storage.from_gradient |= gradient
        operation = self._operation(index, before, results, tuple(stats), from_batch)
        if gradient and operation.direction == "forward" and not any(a.tensor.requires_grad for a in before.arguments if not a.written):
            operation = replace(operation, direction="optimizer")
        operation = replace(operation, writes=tuple(names))
        if not operation.finite:
            operation = self._suspect(func, before, operation, results)
        self.operations.append(operation)
        self.modules.append(before.where.module)

    def _written(self, before: Before, result: Any) -> list[tuple[torch.Tensor, Storage]]:
        """What the operation wrote: new storages and arguments written in place; views of arguments are none."""
        read = {id(s) for s, a in zip(before.storages, before.arguments, strict=True) if s and not a.written}
        written = [(a.tensor, s) for a, s in zip(before.arguments, before.storages, strict=True) if a.written and s]
        seen = {id(s) for _, s in written}
        for tensor in outputs(result):
            storage = self.table.find(tensor, "operation")
            if storage is not None and id(storage) not in read and id(storage) not in seen:
                seen.add(id(storage))
                written.append((tensor, storage))
        return written

    def _makes_batch(self, before: Before, results: list[tuple[torch.Tensor, Storage]]) -> bool:
        if before.kernel.op not in RANDOM or before.kernel.op.endswith("_like") or before.arguments:
            return False
        self._batch.made(t for t, _ in results)
        return True

    def _operation(
        self, index: int, before: Before, results: list[tuple[torch.Tensor, Storage]], stats: tuple[TensorStats, ...], from_batch: bool
    ) -> Operation:
        kernel, where = before.kernel, before.where
        first = next((a.tensor for a in before.arguments), None)
        operands = before.operands
        if not kernel.reads_target:
            operands = [o for o, a in zip(operands, before.arguments, strict=True) if not a.written]
        source = before.args[0] if before.args and isinstance(before.args[0], torch.Tensor) else first
        return Operation(
            index=index,
            op=kernel.op,
            kernel=kernel.name,
            direction=where.direction,
            site=where.site,
            module_type=type(where.module).__name__ if where.module is not None else None,
            node=where.node,
            forward=where.forward,
            by_hand=where.by_hand,
            inputs=tuple(operands),
            outputs=stats,
            scalars=scalars(kernel, before.args, before.kwargs),
            from_batch=from_batch,
            absorbed=absorbed(kernel, before.args, before.kwargs, source, results[0][0].detach()),
            degrees=degrees_of_freedom(kernel, before.args, before.kwargs),
        )

    def _suspect(self, func: Any, before: Before, operation: Operation, results: list[tuple[torch.Tensor, Storage]]) -> Operation:
        """An operation whose result is not finite: which rows and, where it may be the birth, the exact operands."""
        bad = next(t for (t, _), s in zip(results, operation.outputs, strict=True) if not s.finite)
        operation = replace(operation, rows=bad_rows(bad), nan_rows=bad_rows(bad, nan_only=True))
        if any(o.stats.nan for o in operation.inputs):
            return operation
        exact = [a.tensor for a in tensors(before.kernel, before.args, before.kwargs)]
        kept = {o.role: o for o in operation.inputs}
        result = backing(bad.detach())
        for argument, tensor in zip(before.arguments, exact, strict=True):
            operand = kept.get(argument.role)
            values = plain(tensor)
            if operand is None or values is None or result is None:
                continue
            at_birth = values_at(values, result) if not tensor.is_complex() and not result.is_complex() else ()
            lowest, highest = extremes_at(values) if values.shape == tensor.shape and values.dtype is not torch.bool else (None, None)
            stats = measure(tensor, full=True)
            kept[argument.role] = replace(operand, stats=stats, at_birth=at_birth, lowest=lowest, highest=highest)
        if len(self.held) < HELD_BIRTHS:
            self.held[operation.index] = Held(func, before.args, before.kwargs)
        return replace(
            operation,
            inputs=tuple(kept[o.role] for o in operation.inputs),
            float64_finite=finite_in_float64(func, before.args, before.kwargs) if before.kernel.op not in RANDOM | CREATION else None,
        )

    def _failed(self, before: Before, error: Exception) -> None:
        index = len(self.operations)
        operation = Operation(
            index=index,
            op=before.kernel.op,
            kernel=before.kernel.name,
            direction=before.where.direction,
            site=before.where.site,
            node=before.where.node,
            forward=before.where.forward,
            inputs=tuple(before.operands),
            scalars=scalars(before.kernel, before.args, before.kwargs),
            failed=str(error)[:500],
        )
        self.operations.append(operation)
        self.modules.append(before.where.module)

    def finished(self, modules: dict[int, str], tensors: dict[int, str]) -> list[Operation]:
        """The operations with the names of modules and tensors and, now that the batch is known, whether their rows are its rows.

        Both dictionaries map an object's id to its name; until now an operand's name was the id of what `know` was told.
        """
        return [
            replace(
                op,
                module=modules.get(id(module)) if module is not None else None,
                batch_rows=self._batch.has(op),
                inputs=tuple(replace(o, name=tensors.get(int(o.name), o.name)) if o.name else o for o in op.inputs),
                writes=tuple(tensors.get(int(name), name) for name in op.writes),
            )
            for op, module in zip(self.operations, self.modules, strict=True)
        ]


def _single(stats: TensorStats) -> float | None:
    if stats.numel != 1:
        return None
    if stats.finite:
        return stats.min
    return math.nan if stats.nan else math.inf if stats.posinf else -math.inf
