"""The hooks that see every step: the autograd engine, optimizer steps, gradient scalers, loaders, buffers.

Each of them only calls a method of `Watcher`; all are put back by `uninstall`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import CodeType
from typing import Any, Protocol

import torch
from torch import nn
from torch.optim import optimizer as optim

from whynan.torch import _compat
from whynan.torch.children import Children
from whynan.torch.compiled import patched
from whynan.torch.guard import UNGUARDED, Guard
from whynan.torch.loader import LoaderWatch
from whynan.torch.registry import Registry
from whynan.torch.scaling import Scaling


class Watcher(Protocol):
    @property
    def engine(self) -> _compat.Engine: ...

    def before_step(self, optimizer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None: ...

    def after_step(self, optimizer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None: ...

    def original_code(self, code: CodeType) -> CodeType | None: ...

    def compiles(self) -> None: ...


class Hooks:
    def __init__(self, watcher: Watcher, registry: Registry, scaling: Scaling, loaders: LoaderWatch, guard: Guard = UNGUARDED) -> None:
        self._watcher, self._registry, self._scaling, self._loaders = watcher, registry, scaling, loaders
        self._guard = guard
        self.children = Children(guard)
        self._remove_around_steps: Callable[[], None] = lambda: None
        self._undo: list[Callable[[], None]] = []

    def install(self) -> None:
        self._engine()
        self._optimizers()
        self._buffers()
        self._compile()
        self._registry.origins.install()
        self._scaling.install()
        self._loaders.install()
        self.children.install()
        self._undo += [self.children.uninstall, self._scaling.uninstall, self._loaders.uninstall, self._registry.origins.uninstall]

    def uninstall(self) -> None:
        while self._undo:
            self._undo.pop()()

    def _engine(self) -> None:
        original = _compat.engine()
        _compat.set_engine(self._watcher.engine)
        self._undo.append(lambda: _compat.set_engine(original))

    def _optimizers(self) -> None:
        self._around_steps(self._watcher.before_step, self._watcher.after_step)
        self._undo.append(lambda: self._remove_around_steps())
        registry = self._registry
        self._wrap(torch.optim.Optimizer, "_patch_step_function", lambda o: registry.made_optimizer(o))
        self._wrap(torch.optim.Optimizer, "add_param_group", lambda o: registry.forget_groups())

    def _around_steps(self, before: Any, after: Any) -> None:
        hooks = optim.register_optimizer_step_pre_hook(before), optim.register_optimizer_step_post_hook(after)

        def remove() -> None:
            for hook in hooks:
                hook.remove()

        self._remove_around_steps = remove

    def _buffers(self) -> None:
        registry = self._registry
        self._wrap(nn.Module, "register_buffer", lambda module: registry.met_module(module))
        self._wrap(nn.Module, "__setstate__", lambda module: registry.met_module(module) if module._buffers else None)

    def _begin_to_compile(self) -> None:
        """The hooks of a compiled step are nothing: a compiler reads them as the constant None."""
        compiling, watcher = torch.compiler.is_compiling, self._watcher
        self._remove_around_steps()
        self._around_steps(
            lambda o, a, k: None if compiling() else watcher.before_step(o, a, k),
            lambda o, a, k: None if compiling() else watcher.after_step(o, a, k),
        )
        _compat.never_compile(_compat.engine())
        self._watcher.compiles()

    def _compile(self) -> None:
        compile_, original = patched(self._watcher.original_code, self._begin_to_compile, self._guard)
        torch.compile = compile_
        self._undo.append(lambda: setattr(torch, "compile", original))

    def _wrap(self, owner: Any, name: str, note: Callable[[Any], Any]) -> None:
        """After the method of `owner` has run, `note` its object."""
        original, guard = owner.__dict__[name], self._guard

        @functools.wraps(original)
        def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(self, *args, **kwargs)
            guard("noting what is trained", note, self)
            return result

        setattr(owner, name, wrapper)
        self._undo.append(lambda: setattr(owner, name, original))
