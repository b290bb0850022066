"""Finds the files of the user's own modules without importing them."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterable, Iterator
from importlib.machinery import ModuleSpec, PathFinder

from whynan.core.user_code import is_user_file

Spec = tuple[str | None, list[str] | None]  # (source file, folders of its submodules)


def find(name: str, added: Iterable[str] = (), first: Iterable[str] = ()) -> Spec | None:
    """The dotted module `name`: its file and the folders that hold its submodules. `first` and `added` are folders that are
    searched before and after `sys.path`."""
    top, *rest = name.split(".")
    found = _found_in(top, list(first)) or _top_level(top, list(added))
    full = top
    for part in rest:
        if found is None or found[1] is None:
            return None
        full = f"{full}.{part}"
        found = _found_in(full, found[1])
    return found


def _top_level(name: str, added: list[str]) -> Spec | None:
    """Asks the finders that an import would ask: those of editable installations find files outside `sys.path`."""
    for finder in sys.meta_path:
        if type(finder).__module__.startswith("whynan."):
            continue
        try:
            spec = finder.find_spec(name, None)
        except Exception:
            continue
        if spec is not None:
            return _parts(spec)
    return _found_in(name, added)


def _found_in(name: str, folders: list[str]) -> Spec | None:
    """Module `name` in `folders`; a folder without `__init__.py` is a package whose path only its imported parent could tell."""
    last = name.rpartition(".")[2]
    try:
        found = _parts(PathFinder.find_spec(name, folders))
    except KeyError:
        found = None
    except Exception:
        return None
    if found is not None:
        return found
    inside = [path for folder in folders if os.path.isdir(path := os.path.join(folder, last))]
    return (None, inside) if inside else None


def _parts(spec: ModuleSpec | None) -> Spec | None:
    if spec is None:
        return None
    folders = spec.submodule_search_locations
    return (spec.origin if spec.has_location else None), list(folders) if folders is not None else None


def imported_files(
    imports: Iterable[tuple[int, str, tuple[str, ...]]], package: str, added: Iterable[str] = ()
) -> Iterator[tuple[str, str]]:
    """(module name, file) of the user's modules that a module inside `package` imports, parent packages included."""
    seen: set[str] = set()
    for level, module, names in imports:
        base = _absolute(level, module, package)
        if base is None:
            continue
        for name in [*_with_parents(base), *(f"{base}.{n}" if base else n for n in names if n != "*")]:
            if name in seen:
                continue
            seen.add(name)
            found = find(name, added)
            if found is not None and found[0] is not None and found[0].endswith(".py") and is_user_file(found[0]):
                yield name, found[0]


def _with_parents(name: str) -> list[str]:
    parts = name.split(".") if name else []
    return [".".join(parts[: n + 1]) for n in range(len(parts))]


def _absolute(level: int, module: str, package: str) -> str | None:
    """The absolute name of `from ..module import` inside `package`."""
    if not level:
        return module
    parts = package.split(".") if package else []
    if level > len(parts):
        return None
    return ".".join([*parts[: len(parts) - level + 1], *([module] if module else [])])


def folders_added(tree: ast.Module, file: str) -> list[str]:
    """Folders that the source puts on `sys.path` itself, where they can be told without running it."""
    folders = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args and ast.unparse(node.func) in ("sys.path.append", "sys.path.insert"):
            folder = _path(node.args[-1], file, tree)
            if folder is not None:
                folders.append(os.path.abspath(folder))
    return folders


def _path(node: ast.expr, file: str, tree: ast.Module) -> str | None:
    """The value of an expression made of `__file__`, constants, `os.path` functions and `pathlib` steps; None for any other."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.Name):
        return file if node.id == "__file__" else _assigned(node.id, file, tree)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        return _joined([_path(node.left, file, tree), _path(node.right, file, tree)])
    if isinstance(node, ast.Attribute):
        if node.attr == "parent":
            base = _path(node.value, file, tree)
            return os.path.dirname(base) if base is not None else None
        return os.pardir if node.attr == "pardir" else None
    if isinstance(node, ast.Subscript):
        return _ancestor(node, file, tree)
    return _called(node, file, tree) if isinstance(node, ast.Call) else None


def _assigned(name: str, file: str, tree: ast.Module) -> str | None:
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in statement.targets):
            used = {n.id for n in ast.walk(statement.value) if isinstance(n, ast.Name)}
            return None if name in used else _path(statement.value, file, tree)
    return None


def _ancestor(node: ast.Subscript, file: str, tree: ast.Module) -> str | None:
    """`path.parents[n]`."""
    if not (isinstance(node.value, ast.Attribute) and node.value.attr == "parents" and isinstance(node.slice, ast.Constant)):
        return None
    path = _path(node.value.value, file, tree)
    for _ in range(int(node.slice.value) + 1 if isinstance(node.slice.value, int) else 0):
        path = os.path.dirname(path) if path is not None else None
    return path


def _called(node: ast.Call, file: str, tree: ast.Module) -> str | None:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id if isinstance(node.func, ast.Name) else ""
    if name in ("resolve", "absolute") and isinstance(node.func, ast.Attribute):
        return _path(node.func.value, file, tree)
    if name == "getcwd":
        return os.getcwd()
    values = [_path(arg, file, tree) for arg in node.args]
    if not values or values[0] is None:
        return None
    if name == "join":
        return _joined(values)
    if name == "dirname":
        return os.path.dirname(values[0])
    return values[0] if name in ("abspath", "realpath", "normpath", "Path", "str", "fspath") else None


def _joined(values: list[str | None]) -> str | None:
    return os.path.join(*(v for v in values if v is not None)) if all(v is not None for v in values) else None
