"""Moves `global` and `nonlocal` statements to the start of their function.

An attempt notes the values of names where the body starts, and Python refuses a declaration after a use of its name.
"""

from __future__ import annotations

import ast

from whynan.script.scopes import FUNCTIONS, Function
from whynan.script.wrap import place, split_preamble

DECLARATIONS = (ast.Global, ast.Nonlocal)


def hoist_declarations(node: Function) -> None:
    first, body = split_preamble(node.body, docstring=True)
    moved: list[ast.stmt] = []
    body = _without(body, moved)
    node.body = [*first, *moved, *body]


def _without(block: list[ast.stmt], moved: list[ast.stmt]) -> list[ast.stmt]:
    """`block` without its declarations, which are added to `moved`."""
    kept: list[ast.stmt] = []
    for statement in block:
        if isinstance(statement, DECLARATIONS):
            moved.append(statement)
            continue
        if not isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
            _clear(statement, moved)
        kept.append(statement)
    return kept or [place(ast.Pass(), statement) for statement in block[:1]]


def _clear(node: ast.AST, moved: list[ast.stmt]) -> None:
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list) and block:
            setattr(node, name, _without(block, moved))
    for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
        _clear(part, moved)
