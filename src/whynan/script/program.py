"""What is to be run: a script or a module with its arguments, found wanting before anything of it runs."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from typing import Literal

from whynan.core.sources import unwarned
from whynan.script import modules


class UsageError(Exception):
    """What was asked for can't be run; the message is one sentence for the user."""


@dataclass(frozen=True, slots=True)
class Program:
    """A script (`target` is its path) or a module (its dotted name), as it would follow `python` or `python -m`.

    It is checked when it is made: an unusable one raises `UsageError`. `file` is the path of its source, as plain Python shows
    it, and None for a module that only the import system can find.
    """

    kind: Literal["script", "module"]
    target: str
    args: tuple[str, ...] = ()
    file: str | None = field(init=False, default=None)
    source: bytes = field(init=False, default=b"", repr=False)

    def __post_init__(self) -> None:
        if not self.target:
            raise UsageError(f"the name of the {self.kind} is empty")
        file = os.path.join(os.getcwd(), self.target) if self.kind == "script" else _module_file(self.target)
        if file is None:
            return
        source = _read(file, self.target if self.kind == "script" else file)
        _compiles(source, file)
        object.__setattr__(self, "file", file)
        object.__setattr__(self, "source", source)

    @property
    def folder(self) -> str:
        """The first entry of `sys.path`: the script's folder, links resolved, or the working folder."""
        if self.kind == "script" and self.file is not None:
            return os.path.dirname(os.path.realpath(self.file))
        return os.getcwd()

    @property
    def main_names(self) -> tuple[str, str]:
        """The names under which the module that runs as `__main__` is looked for."""
        return self.target, f"{self.target}.__main__"


def _module_file(name: str) -> str | None:
    """The source that `python -m name` runs; None where a package in the way computes its own path."""
    if not all(part.isidentifier() for part in name.split(".")):
        raise UsageError(f"{name!r} is not the name of a module")
    here = [os.getcwd()]
    found = modules.find(name, first=here)
    if found is None:
        parent = name.rpartition(".")[0]
        if parent and modules.find(parent, first=here) is not None and _computes_path(parent, here):
            return None
        raise UsageError(f"there is no module named {name}")
    file, folders = found
    if folders is None:
        return file if file is not None and file.endswith(".py") else None
    main = modules.find(f"{name}.__main__", first=here)
    if main is None or main[0] is None:
        raise UsageError(f"{name} is a package without a __main__ module")
    return main[0] if main[0].endswith(".py") else None


def _computes_path(package: str, first: list[str]) -> bool:
    """Whether a package says itself where its modules are, which can't be told without importing it."""
    found = modules.find(package, first=first)
    if found is None or found[0] is None:
        return False
    try:
        with open(found[0], "rb") as file:
            return b"__path__" in file.read()
    except OSError:
        return False


def _read(file: str, shown: str) -> bytes:
    if os.path.isdir(file):
        raise UsageError(f"{shown} is a folder, not a script")
    try:
        with open(file, "rb") as source:
            text = source.read()
    except FileNotFoundError:
        raise UsageError(f"there is no script {shown}") from None
    except OSError as error:
        raise UsageError(f"{shown} can't be read: {error.strerror}") from None
    if text.startswith(b"PK\x03\x04"):
        raise UsageError(f"{shown} is a zip archive, not a script")
    return text


def _compiles(source: bytes, file: str) -> None:
    try:
        with unwarned():
            compile(source, file, "exec", dont_inherit=True)
    except SyntaxError as error:
        raise UsageError(f"{error.filename}, line {error.lineno}: {type(error).__name__}: {error.msg}") from None
    except (ValueError, OverflowError, RecursionError, MemoryError) as error:
        raise UsageError(f"{file} is not Python {sys.version_info.major} source: {error}") from None
