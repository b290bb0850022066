"""Where a divisor is made, if more than one place divides by it: a floor at one of them would leave the others."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from whynan.core.records import Site
from whynan.core.sources import tree_of

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Module
SINGULAR = frozenset("div divide true_divide log log2 log10 rsqrt reciprocal".split())


@dataclass(frozen=True, slots=True)
class Making:
    """The line that binds the name, and the other lines that fail where it is 0."""

    name: str
    line: int
    others: tuple[int, ...]


def making(site: Site) -> Making | None:
    """None where the divisor is no variable, is used once, or is not made in the same function."""
    name = _divisor(site.expression or "")
    around = _around(site) if name is not None else None
    if name is None or around is None:
        return None
    bound = [line for line in _bindings(around, name) if line < site.line]
    uses = _uses(around, name)
    others = tuple(sorted({line for line in uses if line != site.line and line > max(bound, default=0)}))
    return Making(name, max(bound), others) if bound and (others or uses.count(site.line) > 1) else None


def _divisor(expression: str) -> str | None:
    try:
        tree = ast.parse(expression, mode="eval").body
    except (SyntaxError, ValueError):
        return None
    by = tree.right if isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.Div) else None
    return by.id if isinstance(by, ast.Name) else None


def _around(site: Site) -> Function | None:
    """The innermost function around the line, or the module."""
    tree = tree_of(site.file)
    if tree is None:
        return None
    found: Function = tree
    for node in ast.walk(tree):  # from the outside in
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.lineno <= site.line <= (node.end_lineno or 0):
            found = node
    return found


def _own(function: Function) -> Iterator[ast.AST]:
    """The function's nodes without those of functions and classes inside it, whose variables are others."""
    pending: list[ast.AST] = list(function.body)
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            pending.extend(ast.iter_child_nodes(node))


def _bindings(function: Function, name: str) -> list[int]:
    """Lines that assign the name, plainly or as one of several."""
    targets = [t for node in _own(function) if isinstance(node, ast.Assign) for t in node.targets]
    return [n.lineno for t in targets for n in ast.walk(t) if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store)]


def _uses(function: Function, name: str) -> list[int]:
    """Lines on which a 0 in the variable would do harm, one entry a use."""
    return [by.lineno for node in _own(function) for by in _harmed(node) if isinstance(by, ast.Name) and by.id == name]


def _harmed(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        return [node.right]
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Div):
        return [node.value]
    if not isinstance(node, ast.Call):
        return []
    called = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id if isinstance(node.func, ast.Name) else ""
    return [*node.args, *([node.func.value] if isinstance(node.func, ast.Attribute) else [])] if called in SINGULAR else []
