"""Where the names of a module come from."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable
from dataclasses import dataclass

from whynan.script.scopes import FUNCTIONS, arguments, bound_names, own_scope

BUILTINS = frozenset(dir(builtins))


@dataclass(frozen=True, slots=True)
class ModuleNames:
    """`bound`: names of the module itself. `fixed`: those that only ever are a function, class or module. `modules`: imported
    ones. `rebound`: built-in names that the source gives another meaning anywhere."""

    bound: set[str]
    fixed: frozenset[str]
    modules: frozenset[str]
    rebound: frozenset[str]
    globals_written: tuple[str, ...]

    @classmethod
    def of(cls, tree: ast.Module) -> ModuleNames:
        nodes = list(ast.walk(tree))
        written = _globals_written(nodes)
        own = list(own_scope(tree.body))
        stored = {n.id for n in own if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)} | written
        stored |= bound_names([n for n in own if isinstance(n, (ast.ImportFrom, ast.ExceptHandler))])
        modules = {a.asname or a.name.partition(".")[0] for n in own if isinstance(n, ast.Import) for a in n.names}
        definitions = {n.name for n in own if isinstance(n, (*FUNCTIONS, ast.ClassDef))}
        return cls(
            bound_names(tree.body) | written,
            frozenset((modules | definitions) - stored),
            frozenset(modules - stored),
            frozenset(_bound_anywhere(nodes) & BUILTINS),
            tuple(sorted(written)),
        )

    def may_hold_state(self, name: str) -> bool:
        """Whether `name`, which no function around binds, may be an object that a body changes."""
        return name not in self.fixed and (name in self.bound or name not in BUILTINS)


def _globals_written(nodes: Iterable[ast.AST]) -> set[str]:
    written: set[str] = set()
    for function in nodes:
        if isinstance(function, FUNCTIONS):
            declared = {name for n in own_scope(function.body) if isinstance(n, ast.Global) for name in n.names}
            written |= declared & bound_names(function.body)
    return written


def _bound_anywhere(nodes: Iterable[ast.AST]) -> set[str]:
    names = bound_names(nodes)
    for node in nodes:
        if isinstance(node, (*FUNCTIONS, ast.Lambda)):
            names |= {a.arg for a in arguments(node.args)}
    return names
