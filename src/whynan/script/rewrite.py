"""Compiles the user's source so that every loop and function body that reaches a backward pass is an attempt (see `wrap`)."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection
from types import CodeType

from whynan.core.sources import unwarned
from whynan.script.rewriter import Rewriter
from whynan.script.sites import SiteTable

NESTED = (20, 4, 3, 2, 1)  # attempts inside each other in one frame; Python allows 20 nested blocks and an attempt takes 3


def rewrite_source(
    source: str | bytes,
    filename: str,
    reaching: Collection[str],
    table: SiteTable,
    *,
    limit: Callable[[str], object] = lambda _: None,
    traced: Collection[str] | None = (),
    plain: CodeType | None = None,
) -> CodeType:
    """The code of a module, rewritten; the plain code where that fails, with one line to `limit`.

    `plain` is what plain Python compiles, where it is known already. An error in the user's source is raised as Python raises it.
    `traced` names functions whose code a compiler may read (None: any may be): unless they reach a backward pass they stay as
    they are.
    """
    plain = plain or compile(source, filename, "exec", dont_inherit=True)
    try:
        code = _rewritten(source, filename, frozenset(reaching), table, None if traced is None else frozenset(traced))
    except Exception as error:
        limit(f"could not rewrite {filename}: {type(error).__name__}: {error}")
        return plain
    table.keep_original(plain)
    return code


def original_code(code: CodeType, table: SiteTable) -> CodeType | None:
    """What plain Python would have compiled where the rewritten `code` is; None for code that was not rewritten."""
    return table.original_code(code)


def _rewritten(source: str | bytes, filename: str, reaching: frozenset[str], table: SiteTable, traced: frozenset[str] | None) -> CodeType:
    for nested in NESTED:
        with unwarned():
            tree = ast.parse(source, filename)
            Rewriter(tree, filename, reaching, table, traced, nested).rewrite(tree)
            try:
                return compile(tree, filename, "exec", dont_inherit=True)
            except SyntaxError as error:
                if "nested blocks" not in str(error) or nested == NESTED[-1]:
                    raise
    raise AssertionError("unreachable")
