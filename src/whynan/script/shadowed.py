"""A module of the script's that has the name of one that is loaded already, by us: plain Python would import the script's."""

from __future__ import annotations

import _imp
import contextlib
import importlib
import os
import sys
from collections.abc import Iterator
from types import ModuleType

REPORTING = ("rich", "safetensors", "markdown_it", "pygments")
KEPT = frozenset({"__main__", "encodings", "whynan", *sys.builtin_module_names})  # as plain Python has them before a script starts


@contextlib.contextmanager
def set_aside(folder: str) -> Iterator[None]:
    """Inside, `sys.modules` is without the modules of which `folder` has one of the same name; after it they are back."""
    names = {name for name in _top_level_names() if _has(folder, name)}
    aside = {name: module for name, module in sys.modules.items() if name.partition(".")[0] in names}
    for name in aside:
        del sys.modules[name]
    try:
        yield
    finally:
        sys.modules.update(aside)
        _make_ours_again(folder)


def _make_ours_again(folder: str) -> None:
    """What we import only when we report must not be the script's; its own modules keep what they have imported."""
    theirs = [name for name in REPORTING if _has(folder, name) and name in sys.modules]
    if not theirs:
        return
    for name in [name for name in sys.modules if name.partition(".")[0] in theirs]:
        del sys.modules[name]
    path = sys.path[:]
    sys.path[:] = [entry for entry in path if os.path.realpath(entry) != os.path.realpath(folder)]
    try:
        for name in theirs:
            importlib.import_module(name)
    finally:
        sys.path[:] = path


def _top_level_names() -> set[str]:
    return {name for name, module in list(sys.modules.items()) if "." not in name and _may_be_shadowed(name, module)}


def _may_be_shadowed(name: str, module: ModuleType) -> bool:
    return name not in KEPT and not _imp.is_frozen(name) and getattr(module, "__file__", None) is not None


def _has(folder: str, name: str) -> bool:
    path = os.path.join(folder, name)
    return os.path.isfile(f"{path}.py") or os.path.isfile(os.path.join(path, "__init__.py"))
