"""The import hook: only the user's own modules, no bytecode of ours, and a word when a package has been imported."""

from __future__ import annotations

import importlib
import importlib.util
import pickle
import sys
import traceback
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

import pytest

import whynan
from whynan.script.hooks import NAME, plain_hooks
from whynan.script.importer import RewritingFinder, RewritingLoader, on_import
from whynan.script.scan import Reach
from whynan.script.sites import SiteTable

PACKAGE = str(Path(whynan.__file__).parent)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    known = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - known:
        if getattr(sys.modules[name], "__file__", None) and str(tmp_path) in str(sys.modules[name].__file__):
            del sys.modules[name]


@pytest.fixture
def finder(folder: Path) -> RewritingFinder:
    finder = RewritingFinder(Reach(), SiteTable(), plain_hooks(), limits.append)
    limits.clear()
    finder.install()
    return finder


limits: list[str] = []


def test_users_module_is_rewritten_and_looks_as_ever(folder: Path, finder: RewritingFinder) -> None:
    source = "def step(x):\n    x.backward()\n"
    (folder / "mine.py").write_text(source)
    module = importlib.import_module("mine")
    loader = module.__loader__
    assert len(finder.table) == 1
    assert isinstance(loader, SourceFileLoader)
    assert loader.get_source("mine") == source
    assert module.__spec__ is not None
    assert (module.__file__, module.__spec__.origin, module.__package__) == (str(folder / "mine.py"), str(folder / "mine.py"), "")
    assert module.__cached__ == module.__spec__.cached
    assert pickle.loads(pickle.dumps(module.step)) is module.step
    assert type(pickle.loads(pickle.dumps(loader))) is SourceFileLoader
    assert importlib.reload(module) is module


def test_bytecode_in_the_cache_is_the_plain_one(folder: Path, finder: RewritingFinder) -> None:
    (folder / "mine.py").write_text("def step(x):\n    x.backward()\n")
    cached = importlib.import_module("mine").__cached__
    assert NAME.encode() not in Path(cached).read_bytes()
    finder.uninstall()
    del sys.modules["mine"]
    assert NAME not in vars(importlib.import_module("mine"))


def test_installed_modules_are_left_alone(folder: Path, finder: RewritingFinder) -> None:
    installed = folder / "site-packages"
    installed.mkdir()
    (installed / "installed.py").write_text("def step(x):\n    x.backward()\n")
    sys.path.insert(0, str(installed))
    try:
        module = importlib.import_module("installed")
    finally:
        sys.path.remove(str(installed))
    assert not isinstance(module.__loader__, RewritingLoader)
    assert len(finder.table) == 0
    spec = importlib.util.find_spec("xml.dom.minidom")
    assert spec is not None
    assert type(spec.loader) is SourceFileLoader


def test_namespace_package_and_relative_imports(folder: Path, finder: RewritingFinder) -> None:
    (folder / "space/inner").mkdir(parents=True)
    (folder / "space/inner/a.py").write_text("from .b import step\nfrom ..c import other\n")
    (folder / "space/inner/b.py").write_text("from ..c import other\ndef step(x):\n    other(x)\n")
    (folder / "space/c.py").write_text("def other(x):\n    x.backward()\n")
    module = importlib.import_module("space.inner.a")
    assert len(finder.table) == 2
    assert module.step.__module__ == "space.inner.b"


def test_module_of_another_import_hook_is_left_to_it(folder: Path, finder: RewritingFinder) -> None:
    class Loader(SourceFileLoader):
        pass

    class Finder:
        @staticmethod
        def find_spec(name: str, path: object = None, target: object = None) -> object:
            file = str(folder / "theirs.py")
            return importlib.util.spec_from_file_location(name, file, loader=Loader(name, file)) if name == "theirs" else None

    (folder / "theirs.py").write_text("def step(x):\n    x.backward()\n")
    sys.meta_path.insert(1, Finder)  # type: ignore[arg-type]
    assert type(importlib.import_module("theirs").__loader__) is Loader


def test_fault_of_ours_is_told_and_the_module_runs(folder: Path, finder: RewritingFinder, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "mine.py").write_text("def step(x):\n    x.backward()\n")
    monkeypatch.setattr(Reach, "add", lambda *_: 1 / 0)
    module = importlib.import_module("mine")
    assert NAME not in vars(module)
    assert limits == [f"could not rewrite {folder / 'mine.py'}: ZeroDivisionError: division by zero"]


def test_called_after_an_import_and_once(folder: Path) -> None:
    (folder / "late.py").write_text("import sys\nfirst = 'late' in sys.modules\nfinished = True\n")
    seen: list[ModuleType] = []
    on_import("late", lambda module: seen.append(module) or vars(module).__getitem__("finished"))
    assert importlib.util.find_spec("late") is not None
    assert seen == []
    module = importlib.import_module("late")
    assert seen == [module]
    assert "exec_module" not in vars(module.__loader__)
    importlib.import_module("late")
    importlib.reload(module)
    assert seen == [module]
    on_import("late", seen.append)
    assert seen == [module, module]


def test_import_that_fails_is_waited_for_again(folder: Path) -> None:
    (folder / "late.py").write_text("import flag\nflag.tries += 1\nif flag.tries == 1: raise ImportError('once')\n")
    (folder / "flag.py").write_text("tries = 0\n")
    seen: list[ModuleType] = []
    on_import("late", seen.append)
    with pytest.raises(ImportError, match="once") as caught:
        importlib.import_module("late")
    assert seen == []
    assert [f.name for f in traceback.extract_tb(caught.value.__traceback__) if f.filename.startswith(PACKAGE)] == []
    module = importlib.import_module("late")
    assert seen == [module]
