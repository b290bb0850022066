"""Rewrites the user's own modules as they are imported, and tells when a named package has been imported.

As pytest does for assertions, with two differences: whatever finder finds a module is asked first, and no frame of ours is on the
stack while code of the user runs or an import fails, so that tracebacks are those of plain Python.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import CodeType, ModuleType
from typing import Any

from whynan.core.user_code import is_user_file
from whynan.script.hooks import NAME
from whynan.script.rewrite import rewrite_source
from whynan.script.scan import Reach, package_of
from whynan.script.sites import SiteTable

IMPORT_FRAME = "<frozen importlib._bootstrap>"


class RewritingLoader(SourceFileLoader):
    """A loader whose code is there already. Its `get_code` can't fail, and what it gives never comes into the bytecode cache."""

    def __init__(self, fullname: str, path: str, code: CodeType, hooks: Any, table: SiteTable) -> None:
        super().__init__(fullname, path)
        self._code, self._hooks, self._table = code, hooks, table

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        module = ModuleType(spec.name)
        setattr(module, NAME, self._hooks)
        self._table.executing(self._code.co_filename, module.__dict__)
        return module

    def get_code(self, fullname: str) -> CodeType:
        return self._code

    def __reduce__(self) -> Any:
        return SourceFileLoader, (self.name, self.path)


class RewritingFinder:
    """Stands first in `sys.meta_path`. `limit` is told in one line of each module that could not be rewritten."""

    def __init__(self, reach: Reach, table: SiteTable, hooks: Any, limit: Callable[[str], object]) -> None:
        self.reach, self.table, self.hooks, self.limit = reach, table, hooks, limit
        self._foreign: set[str] = set()
        self._main: tuple[frozenset[str], dict[str, Any]] = frozenset(), {}

    def runs_as_main(self, names: Iterable[str], namespace: dict[str, Any]) -> None:
        """One of the modules `names` is not imported but run as `__main__`, in `namespace`."""
        self._main = frozenset(names), namespace

    def install(self) -> None:
        sys.meta_path.insert(0, self)

    def uninstall(self) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        top = name.partition(".")[0]
        if top in self._foreign or top in sys.builtin_module_names:
            return None
        spec = spec_of_others(name, path, target, self)
        if spec is None or spec.origin is None:
            return spec
        if not is_user_file(spec.origin):
            if "." not in name:
                self._foreign.add(top)
        elif type(spec.loader) is SourceFileLoader:
            self._rewrite(spec, spec.loader)
        return spec

    def _rewrite(self, spec: ModuleSpec, loader: SourceFileLoader) -> None:
        """Exchange the loader. Where the source has an error the loader stays, and the import raises it as ever."""
        try:
            plain = loader.get_code(spec.name)
            source = loader.get_data(loader.path)
        except Exception:
            return
        if plain is None:
            return
        try:
            self.reach.add(loader.path, package_of(spec.name, loader.path))
            code = self.rewritten(source, plain.co_filename, plain)
            if spec.name in self._main[0]:
                self.table.executing(plain.co_filename, self._main[1])
            spec.loader = RewritingLoader(loader.name, loader.path, code, self.hooks, self.table)
        except Exception as error:
            self.limit(f"could not rewrite {loader.path}: {type(error).__name__}: {error}")

    def rewritten(self, source: bytes, filename: str, plain: CodeType) -> CodeType:
        traced = None if self.reach.compiles else self.reach.traced
        return rewrite_source(source, filename, self.reach.names, self.table, limit=self.limit, traced=traced, plain=plain)


def spec_of_others(name: str, path: Sequence[str] | None, target: ModuleType | None, me: object) -> ModuleSpec | None:
    """What the finders after `me` find."""
    finders = list(sys.meta_path)
    for finder in finders[finders.index(me) + 1 :] if me in finders else finders:
        spec = finder.find_spec(name, path, target)
        if spec is not None:
            return spec
    return None


def on_import(name: str, callback: Callable[[ModuleType], object]) -> None:
    """Call `callback(module)` when the top-level module `name` has been imported; at once where it is there already."""
    module = sys.modules.get(name)
    if module is not None and not getattr(getattr(module, "__spec__", None), "_initializing", False):
        callback(module)
    else:
        sys.meta_path.insert(0, _Notice(name, callback))


class _Notice:
    """Waits for one module and then removes itself; an import that fails is waited for again."""

    def __init__(self, name: str, callback: Callable[[ModuleType], object]) -> None:
        self._name, self._callback = name, callback

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != self._name:
            return None
        spec = spec_of_others(name, path, target, self)
        loader = spec.loader if spec is not None else None
        if loader is not None and hasattr(loader, "exec_module"):
            self._call_after(loader)
        return spec

    def _call_after(self, loader: Any) -> None:
        execute = loader.exec_module

        def _call_with_frames_removed(module: ModuleType) -> None:
            del loader.exec_module
            execute(module)
            self._done(module)

        _call_with_frames_removed.__code__ = as_import_frame(_call_with_frames_removed.__code__)
        loader.exec_module = _call_with_frames_removed

    def _done(self, module: ModuleType) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        self._callback(module)


def as_import_frame(code: CodeType) -> CodeType:
    """`code` so that Python removes its frame from the traceback of an import, as it removes those of the import system."""
    return code.replace(co_filename=IMPORT_FRAME)
