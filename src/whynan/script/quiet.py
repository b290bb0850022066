"""Reads source without the warnings that its compilation gives."""

from __future__ import annotations

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
