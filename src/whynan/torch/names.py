"""Names as the user knows them: of modules by their root, of tensors outside any module by the variable that holds them."""

from __future__ import annotations

import gc
import types
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from whynan.core.attributes import attributes_of
from whynan.torch.storages import backing

OPAQUE = (type, types.ModuleType, types.FunctionType, types.MethodType)
WRAPPERS = ("module.", "_orig_mod.", "_forward_module.", "_fsdp_wrapped_module.")


@dataclass(slots=True)
class Names:
    """`modules` and `tensors` by the object's id; `parameters`, `buffers` and `constants` (tensors that a module holds
    unregistered) keep the tensors themselves with their names."""

    modules: dict[int, str] = field(default_factory=dict)
    tensors: dict[int, str] = field(default_factory=dict)
    parameters: list[tuple[str, torch.Tensor]] = field(default_factory=list)
    buffers: list[tuple[str, torch.Tensor]] = field(default_factory=list)
    constants: list[tuple[str, torch.Tensor]] = field(default_factory=list)
    addresses: dict[int, str] = field(default_factory=dict)

    def of(self, tensor: torch.Tensor) -> str | None:
        """By the object or, where a transform has wrapped it, by its memory."""
        return self.tensors.get(id(tensor)) or self.addresses.get(_address(tensor))


def collect(scopes: Iterable[dict[str, Any]], concerned: set[int] | None) -> Names:
    """`scopes`: the variables of the user's frames, innermost first; `concerned`: ids of the parameters that are trained and of the
    modules that ran, which with the variables tell the roots of this script from others that are still in memory (None: all).

    One root with parameters gives plain names; of several, the name of the script's variable comes first.
    """
    scopes = list(scopes)
    roots = _roots()
    held = _variables(scopes)
    if concerned is not None:
        own = {key for key, (name, _) in held.items() if "[" not in name}  # a variable's own, not something in a container
        roots = [r for r in roots if id(r) in own or _concerns(r, concerned)]
    with_parameters = [r for r in roots if next(r.parameters(), None) is not None]
    names = Names()
    for root in sorted(roots, key=lambda r: id(r) not in {id(w) for w in with_parameters}):
        variable = held[id(root)][0] if id(root) in held else type(root).__name__
        _add(names, root, "" if with_parameters == [root] else variable)
    for key, (name, value) in held.items():
        names.tensors.setdefault(key, name)
        if isinstance(value, torch.Tensor) and value.numel():
            names.addresses.setdefault(_address(value), name)
    return names


def variables(scopes: Iterable[dict[str, Any]]) -> dict[int, str]:
    """The names of the tensors and modules that variables hold at this moment, by their ids."""
    return {key: name for key, (name, _) in _variables(list(scopes)).items()}


def _address(tensor: torch.Tensor) -> int:
    base = backing(tensor)
    return base.data_ptr() if base is not None else 0


def _roots() -> list[nn.Module]:
    modules = [o for o in gc.get_objects() if issubclass(type(o), nn.Module) and "_modules" in attributes_of(o)]
    children = {id(child) for m in modules for child in m._modules.values() if child is not None}
    return [m for m in modules if id(m) not in children]


def _concerns(root: nn.Module, concerned: set[int]) -> bool:
    return any(id(m) in concerned for m in root.modules()) or any(id(p) in concerned for p in root.parameters())


def _add(names: Names, root: nn.Module, prefix: str) -> None:
    for name, module in root.named_modules(remove_duplicate=True):
        names.modules.setdefault(id(module), _joined(prefix, _plain(name)))
        _add_constants(names, module, names.modules[id(module)])
    for name, parameter in root.named_parameters(remove_duplicate=True):
        if names.tensors.setdefault(id(parameter), _joined(prefix, _plain(name))):
            names.parameters.append((names.tensors[id(parameter)], parameter))
    for name, buffer in root.named_buffers(remove_duplicate=True):
        names.tensors.setdefault(id(buffer), _joined(prefix, _plain(name)))
        names.buffers.append((names.tensors[id(buffer)], buffer))


def _add_constants(names: Names, module: nn.Module, prefix: str) -> None:
    """Tensors that are plain attributes: buffers in all but name. What has a history is a result that the module keeps."""
    for key, value in list(attributes_of(module).items()):
        if issubclass(type(value), torch.Tensor) and value.is_leaf and not value.requires_grad:
            names.tensors.setdefault(id(value), _joined(prefix, key))
            names.constants.append((names.tensors[id(value)], value))


def _plain(name: str) -> str:
    """Without the prefixes of wrappers such as DistributedDataParallel and torch.compile."""
    name += "."
    for wrapper in WRAPPERS:
        if name.startswith(wrapper):
            name = name[len(wrapper) :]
        name = name.replace("." + wrapper, ".") if wrapper != "module." else name
    return name.rstrip(".")


def _joined(prefix: str, name: str) -> str:
    return f"{prefix}.{name}" if prefix and name else prefix or name


def _variables(scopes: list[dict[str, Any]]) -> dict[int, tuple[str, Any]]:
    """The names of modules and tensors in the user's variables: plain, one level deep in containers, and as attributes of objects."""
    found: dict[int, tuple[str, Any]] = {}
    for scope in scopes:
        for name, value in list(scope.items()):
            if not name.startswith("__"):
                _note(found, name, value, 0)
    return found


def _note(found: dict[int, tuple[str, Any]], name: str, value: Any, depth: int) -> None:
    kind = type(value)
    if issubclass(kind, (torch.Tensor, nn.Module)):
        found.setdefault(id(value), (name, value))
    elif depth < 2 and kind in (list, tuple) and len(value) <= 256:
        for i, part in enumerate(value):
            _note(found, f"{name}[{i}]", part, depth + 1)
    elif depth < 2 and kind is dict and len(value) <= 256:
        for key, part in list(value.items()):
            if isinstance(key, (str, int)):
                _note(found, f"{name}[{key!r}]", part, depth + 1)
    elif depth < 2 and not issubclass(kind, OPAQUE) and kind.__module__ != "builtins":
        for key, part in list(attributes_of(value).items()):
            _note(found, key if name == "self" else f"{name}.{key}", part, depth + 1)
