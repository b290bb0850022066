"""The nodes that make a body an attempt.

Of a loop body inside a function (of a function body without the last three lines; at module level the live names are
`globals()` and the attempt stands in `__whynan__.here.attempt`, so that no name of ours is among the user's):

    __whynan_7__ = {'i': i}                                         names that certainly have a value
    try: __whynan_7__['x'] = x                                      and one that may have none
    except NameError: pass
    for __whynan_7__ in __whynan__.attempts(7, __whynan_7__):
        try:
            with __whynan_7__:
                if __whynan_7__.replaying:
                    if 'x' in __whynan_7__.names: x = __whynan_7__.names['x']
                    else:
                        try: del x
                        except NameError: pass
                del __whynan_7__
                BODY
        except __whynan__.Again: pass
    else:
        continue
    break                                                           the user's own `break`

Reading the names one by one instead of by `locals()` matters: up to Python 3.12 a call of `locals()` refreshes the dictionary
that an earlier `config = locals()` of the user holds.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import TypeVar

from whynan.script.hooks import NAME

Node = TypeVar("Node", bound=ast.AST)


def hook(name: str, *args: ast.expr) -> ast.Call:
    """`__whynan__.name(*args)`"""
    return ast.Call(ast.Attribute(_load(NAME), name, ast.Load()), list(args), [])


def place(node: Node, where: ast.AST) -> Node:
    """Give `node`, and whatever in it has no position yet, the position of `where`."""
    for part in _without_position(node):
        ast.copy_location(part, where)
    return node


def _without_position(node: ast.AST) -> Iterable[ast.AST]:
    pending = [node]
    while pending:
        part = pending.pop()
        if not hasattr(part, "lineno"):
            if "lineno" in part._attributes:
                yield part
            pending.extend(ast.iter_child_nodes(part))


def wrap_in_function(
    site: int, body: list[ast.stmt], bound: Iterable[str], certain: Iterable[str], perhaps: Iterable[str]
) -> list[ast.stmt]:
    """`certain` and `perhaps`: live names with and maybe without a value."""
    local = f"__whynan_{site}__"
    values: list[ast.expr] = [_load(name) for name in certain]
    keys: list[ast.expr | None] = [ast.Constant(name) for name in certain]
    live: list[ast.stmt] = [ast.Assign([_store(local)], ast.Dict(keys, values))]
    live += [_try_name(_assign(ast.Subscript(_load(local), ast.Constant(name), ast.Store()), _load(name))) for name in perhaps]
    restore = _restore(_load(local), bound)
    inner = [*restore, ast.Delete([ast.Name(local, ast.Del())]), *body]
    return [*live, _attempts(site, _store(local), _load(local), _load(local), inner)]


def wrap_in_module(site: int, body: list[ast.stmt], bound: Iterable[str]) -> list[ast.stmt]:
    here = ast.Attribute(_load(NAME), "here", ast.Load())
    attempt = ast.Attribute(here, "attempt", ast.Load())
    target = ast.Attribute(here, "attempt", ast.Store())
    return [_attempts(site, target, hook("globals"), attempt, [*_restore(attempt, bound), *body])]


def as_loop_body(wrapped: list[ast.stmt], where: ast.AST) -> list[ast.stmt]:
    """The `continue` and `break` of the user's loop, which now run inside a loop of ours."""
    attempts = wrapped[-1]
    assert isinstance(attempts, ast.For)
    attempts.orelse = [place(ast.Continue(), where)]
    return [*wrapped, place(ast.Break(), where)]


def _attempts(site: int, target: ast.expr, live: ast.expr, attempt: ast.expr, body: list[ast.stmt]) -> ast.For:
    entered = ast.With([ast.withitem(attempt)], body)
    again = ast.ExceptHandler(ast.Attribute(_load(NAME), "Again", ast.Load()), None, [ast.Pass()])
    guarded = ast.Try([entered], [again], [], [])
    return ast.For(target, hook("attempts", ast.Constant(site), live), [guarded], [])


def _restore(attempt: ast.expr, bound: Iterable[str]) -> list[ast.stmt]:
    names = ast.Attribute(attempt, "names", ast.Load())
    steps: list[ast.stmt] = []
    for name in bound:
        known = ast.Compare(ast.Constant(name), [ast.In()], [names])
        put = _assign(_store(name), ast.Subscript(names, ast.Constant(name), ast.Load()))
        steps.append(ast.If(known, [put], [_try_name(ast.Delete([ast.Name(name, ast.Del())]))]))
    return [ast.If(ast.Attribute(attempt, "replaying", ast.Load()), steps, [])] if steps else []


def _try_name(statement: ast.stmt) -> ast.Try:
    return ast.Try([statement], [ast.ExceptHandler(_load("NameError"), None, [ast.Pass()])], [], [])


def _assign(target: ast.expr, value: ast.expr) -> ast.Assign:
    return ast.Assign([target], value)


def _load(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _store(name: str) -> ast.Name:
    return ast.Name(name, ast.Store())


def split_preamble(body: Sequence[ast.stmt], docstring: bool) -> tuple[list[ast.stmt], list[ast.stmt]]:
    """(what has to stay first: the docstring of a function, `global` and `nonlocal` statements; the rest)."""
    first = 0
    if docstring and body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        first = isinstance(body[0].value.value, str)
    while first < len(body) and isinstance(body[first], (ast.Global, ast.Nonlocal)):
        first += 1
    return list(body[:first]), list(body[first:])
