"""Whether the user's code further out will catch an exception that leaves an attempt and go on.

It is read from the source of the frames around: no handler is run, and nothing that might run code of the user's is looked up.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import os
from collections.abc import Iterator
from dataclasses import dataclass
from inspect import getattr_static
from types import FrameType
from typing import Any

from whynan.core.sources import tree_of
from whynan.core.user_code import is_user_file
from whynan.script.references import last_name

LAUNCH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "launch.py")  # below it are frames of whoever started the run
OWN_SCOPE = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
LOOPS = (ast.For, ast.AsyncFor, ast.While)
EXITS = frozenset({"exit", "quit", "_exit"})
Trying = ast.Try | ast.TryStar
Entering = ast.With | ast.AsyncWith


class Left(BaseException):
    """Stands for the loop that a handler leaves: the exception ends what it was raised in."""


@dataclass(frozen=True, slots=True)
class Guard:
    """A statement that may catch what its body raises. `in_loop`: a `return` in it leaves a loop."""

    node: Trying | Entering
    in_loop: bool


def will_be_caught(error: BaseException, frame: FrameType, line: int | None) -> bool:
    """`frame` is the attempt's own; `line` is where its loop begins, None for the body of a function, around which is nothing."""
    kind: type[BaseException] = type(error)
    for around, at in _outwards(frame, line):
        for guard in reversed(_guards(around.f_code.co_filename, at)):
            after = _after(guard, kind, around)
            if after is None or after is Left:
                return after is None
            kind = after
    return False


def _outwards(frame: FrameType, line: int | None) -> Iterator[tuple[FrameType, int]]:
    """The user's frames and the lines at which they stand. A lambda or a comprehension has no statements."""
    here: FrameType | None = frame
    while here is not None and here.f_code.co_filename != LAUNCH:
        at = here.f_lineno if here is not frame else line
        code = here.f_code
        if at is not None and is_user_file(code.co_filename) and (code.co_name == "<module>" or not code.co_name.startswith("<")):
            yield here, at
        here = here.f_back


# ---- what stands around a line ----


@functools.lru_cache(maxsize=1024)
def _guards(file: str, line: int) -> tuple[Guard, ...]:
    """Those of the function that the line is in, outermost first."""
    found: list[Guard] = []
    in_loop = False
    tree = tree_of(file)
    block: list[Any] = tree.body if tree is not None else []
    while node := next((n for n in block if n.lineno <= line <= n.end_lineno), None):
        block = next((b for b in _blocks(node) if b[0].lineno <= line <= b[-1].end_lineno), [])
        in_body = bool(block) and block is getattr(node, "body", None)
        if isinstance(node, OWN_SCOPE) and in_body:
            found, in_loop = [], False
        in_loop = in_loop or in_body and isinstance(node, LOOPS)
        if in_body and isinstance(node, Trying | Entering):
            found.append(Guard(node, in_loop))
    return tuple(found)


def _blocks(node: ast.AST) -> Iterator[list[Any]]:
    for name in ("body", "handlers", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list) and block:
            yield block
    for case in getattr(node, "cases", ()):
        yield case.body


# ---- what a guard lets through ----


def _after(guard: Guard, kind: type[BaseException], frame: FrameType) -> type[BaseException] | None:
    """What goes on outwards where a `kind` was raised in the guard's body; None if the script goes on after the guard."""
    if isinstance(guard.node, Entering):
        return None if any(_suppresses(item.context_expr, kind, frame) for item in guard.node.items) else kind
    for handler in guard.node.handlers:
        if handler.type is None or _matches(kind, _value(handler.type, frame)):
            return _out_of(handler, guard.in_loop, kind, frame)
    return kind


def _suppresses(made: ast.expr, kind: type[BaseException], frame: FrameType) -> bool:
    if not isinstance(made, ast.Call) or _value(made.func, frame) is not contextlib.suppress:
        return False
    return any(_matches(kind, _value(named, frame)) for named in made.args)


def _out_of(handler: ast.ExceptHandler, in_loop: bool, kind: type[BaseException], frame: FrameType) -> type[BaseException] | None:
    raised = next((part for part in _own_parts(handler.body) if isinstance(part, ast.Raise)), None)
    if raised is not None:
        return _raised(raised.exc, handler.name, kind, frame)
    for statement in handler.body:
        if isinstance(statement, ast.Break) or in_loop and isinstance(statement, ast.Return):
            return Left
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call) and last_name(statement.value.func) in EXITS:
            return SystemExit
    return None


def _own_parts(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """Without what stands in functions and classes that the body defines."""
    pending: list[ast.AST] = list(reversed(body))
    while pending:
        part = pending.pop()
        yield part
        if not isinstance(part, (*OWN_SCOPE, ast.expr)):
            pending.extend(reversed(list(ast.iter_child_nodes(part))))


def _raised(raised: ast.expr | None, caught: str | None, kind: type[BaseException], frame: FrameType) -> type[BaseException]:
    """The type of what a handler raises; of one that can't be told only that it is an exception."""
    if raised is None or isinstance(raised, ast.Name) and raised.id == caught:
        return kind
    value = _value(raised.func if isinstance(raised, ast.Call) else raised, frame)
    return value if isinstance(value, type) and issubclass(value, BaseException) else Exception


def _matches(kind: type[BaseException], named: Any) -> bool:
    """As Python matches a handler: by the bases, whatever a metaclass says."""
    if isinstance(named, tuple):
        return any(_matches(kind, part) for part in named)
    return any(base is named for base in kind.__mro__)


def _value(node: ast.expr, frame: FrameType) -> Any:
    """What a name, attribute or tuple of them stands for; None for what can't be told without running it."""
    if isinstance(node, ast.Name):
        return _named(node.id, frame)
    if isinstance(node, ast.Attribute):
        return getattr_static(_value(node.value, frame), node.attr, None)
    if isinstance(node, ast.Tuple):
        return tuple(_value(part, frame) for part in node.elts)
    return None


def _named(name: str, frame: FrameType) -> Any:
    """Reading a function's `f_locals` refreshes what an earlier `locals()` of the user's gave, so only for what is local there."""
    code = frame.f_code
    if name in code.co_varnames or name in code.co_cellvars or name in code.co_freevars:
        return frame.f_locals.get(name)
    return frame.f_globals.get(name, frame.f_builtins.get(name))
