"""Reads the user's source without the warnings that its compilation gives."""

from __future__ import annotations

import ast
import functools
import linecache
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def unwarned() -> Iterator[None]:
    """No warnings about a source inside: plain Python has given them, or has the compiled file in its cache and gives none.

    The filters are exchanged without `warnings.catch_warnings`, which makes every module forget what it has warned of already.
    """
    filters = warnings.filters
    warnings.filters = [("ignore", None, Warning, None, 0)]
    try:
        yield
    finally:
        warnings.filters = filters


@functools.lru_cache(maxsize=64)
def tree_of(file: str) -> ast.Module | None:
    """The file's syntax tree, as its source was when the program began; None where it can't be had."""
    try:
        with unwarned():
            return ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
