"""Every private call into torch, each with its fallback. `whynan doctor` tries all of them."""

from __future__ import annotations

import contextlib
import functools
import io
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

Engine = Callable[..., Any]


sequence_number: Callable[[], int] = torch._C._autograd._get_sequence_nr
"""The number that the next autograd node will get; nodes made before have smaller ones."""
random_state: Callable[[], torch.Tensor] = torch.default_generator.get_state


def current_node() -> Any | None:
    """The autograd node whose backward is running in this thread."""
    return torch._C._current_autograd_node()


def node_number(node: Any) -> int:
    return int(node._sequence_nr())


def engine() -> Engine:
    """The function through which `Tensor.backward`, `autograd.backward` and `autograd.grad` all reach the engine."""
    return torch.autograd._engine_run_backward  # type: ignore[attr-defined]


def set_engine(function: Engine) -> None:
    torch.autograd._engine_run_backward = function  # type: ignore[attr-defined]


def storage_key(tensor: torch.Tensor) -> tuple[int, StorageWeakRef]:
    """The storage's identity; it stays unique while the weak reference is held."""
    storage = tensor.untyped_storage()
    return storage._cdata, StorageWeakRef(storage)  # type: ignore[no-untyped-call]


def non_finite_flag(tensors: Sequence[torch.Tensor], flag: torch.Tensor, one: torch.Tensor) -> None:
    """Set `flag` (one float32 element) to 1 where any element of `tensors` is not finite; the tensors are multiplied by exactly 1."""
    torch._amp_foreach_non_finite_check_and_unscale_(list(tensors), flag, one)


@contextlib.contextmanager
def eager() -> Iterator[None]:
    """Compiled functions run eagerly inside; their compiled code is kept."""
    if "torch._dynamo" not in __import__("sys").modules:
        yield
        return
    with torch.compiler.set_stance("force_eager"):
        yield


dispatch_modes: Callable[[], int] = torch._C._len_torch_dispatch_stack
function_modes: Callable[[], int] = torch._C._len_torch_function_stack
"""How many modes of each kind see every operation of the program."""


@contextlib.contextmanager
def no_modes() -> Iterator[None]:
    """Operations inside are seen by no mode."""
    from torch.utils._python_dispatch import _disable_current_modes

    with _disable_current_modes(), torch._C.DisableTorchFunction():
        yield


def without_modes(function: Callable[..., Any], *args: Any) -> Any:
    if not (dispatch_modes() or function_modes()):
        return function(*args)
    with no_modes():
        return function(*args)


@contextlib.contextmanager
def saving_nowhere() -> Iterator[None]:
    """`torch.save` to a path, which writes below Python's files, writes into memory inside."""
    serialization: Any = torch.serialization
    open_writer = serialization._open_zipfile_writer
    serialization._open_zipfile_writer = lambda _target: open_writer(io.BytesIO())
    try:
        yield
    finally:
        serialization._open_zipfile_writer = open_writer


cuda_in_use: Callable[[], bool] = functools.partial(getattr, torch.cuda, "_initialized")
"""As `torch.cuda.is_initialized`, for a process that was not forked from one that uses it."""


def compiling() -> bool:
    return torch.compiler.is_compiling()


def set_compiler(callback: Any) -> Any:
    """What compiles the frames that are entered from here on (None: nothing does); returns what did so far."""
    return torch._C._dynamo.eval_frame.set_eval_frame(callback)


def never_compile(*functions: Any) -> None:
    """Run these as they are where a compiled function's graph breaks and calls them. (Compiled, they would be told for good that a
    compiler is running.)"""
    from torch._dynamo.eval_frame import skip_code

    for function in functions:
        skip_code(function.__code__)


def put_back_versions(tensors: Sequence[torch.Tensor], versions: Sequence[int]) -> None:
    """Undo the version bumps of a write that changed nothing, so that a saved tensor does not count as modified."""
    torch._C._autograd._unsafe_set_version_counter(tuple(tensors), tuple(versions))


def unwrapped(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor below the wrappers of `torch.func` transforms."""
    functorch = torch._C._functorch
    while functorch.is_functorch_wrapped_tensor(tensor):
        tensor = functorch.get_unwrapped(tensor)
    return tensor


def is_wrapped(tensor: torch.Tensor) -> bool:
    """Whether a transform of `torch.func` is at work on it."""
    return bool(torch._C._functorch.is_functorch_wrapped_tensor(tensor))


def is_batched(tensor: torch.Tensor) -> bool:
    """Whether it stands for many tensors at once: inside `torch.func.vmap`, or one of the batched gradients of `autograd.grad`."""
    functorch = torch._C._functorch
    if functorch.is_legacy_batchedtensor(tensor):
        return True
    while functorch.is_functorch_wrapped_tensor(tensor):
        if functorch.is_batchedtensor(tensor):
            return True
        tensor = functorch.get_unwrapped(tensor)
    return False
