"""Collects the causes from the folders of this package, when they are first asked for."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from types import ModuleType

from whynan.core.catalogue import Catalogue, Entry


@functools.cache
def catalogue() -> Catalogue:
    package = importlib.import_module("whynan.causes")
    families = [
        importlib.import_module(f"{package.__name__}.{found.name}") for found in pkgutil.iter_modules(package.__path__) if found.ispkg
    ]
    entries = [_entry(family, found.name) for family in families for found in pkgutil.iter_modules(family.__path__)]
    return tuple(sorted(entries, key=lambda entry: entry.cause.name))


def _entry(family: ModuleType, name: str) -> Entry:
    module = importlib.import_module(f"{family.__name__}.{name}")
    return Entry(
        cause=module.CAUSE,
        family=family.__name__.rpartition(".")[2],
        document=module.__doc__ or "",
        probe=module.probe,
        example=module.EXAMPLE,
        twin=module.TWIN,
    )
