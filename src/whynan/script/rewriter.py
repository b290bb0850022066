"""Turns the tree of a module into one whose bodies that reach a backward pass are attempts. Nodes of the user keep their
positions."""

from __future__ import annotations

import ast
from typing import Literal

from whynan.script import scopes
from whynan.script.declarations import hoist_declarations
from whynan.script.names import ModuleNames
from whynan.script.references import last_name, references
from whynan.script.scopes import Function, Scope
from whynan.script.sites import MODULE, AttemptSite, SiteTable
from whynan.script.sources import iterates, takes, watched_iterable
from whynan.script.wrap import as_loop_body, hook, place, split_preamble, wrap_in_function, wrap_in_module

EXTERNAL = frozenset({"step", "reset", "get", "get_nowait", "recv", "recv_bytes"})
COMPILED = ("compile", "jit", "script")
Loop = ast.For | ast.While


class Rewriter(ast.NodeTransformer):
    """`nested`: how many attempts may lie inside each other in one frame; the outermost are left out beyond that. `traced`:
    functions whose code a compiler may read, None if any may be; unless they reach a backward pass they stay as they are.

    While a function is visited, the last of `_scopes` and of `_watched` is its own; `_watched` tells whether what it takes from
    iterators and queues is recorded. `_height` is the number of attempts inside each other in what was visited of the current
    block. `_loops`: of each loop of the current function around what is visited, whether its body is an attempt.
    """

    def __init__(
        self,
        tree: ast.Module,
        filename: str,
        reaching: frozenset[str],
        table: SiteTable,
        traced: frozenset[str] | None = frozenset(),
        nested: int = 20,
    ) -> None:
        self._file, self._reaching, self._table, self._traced, self._nested = filename, reaching, table, traced, nested
        self._names = ModuleNames.of(tree)
        self._scopes = [Scope.of_module(tree, self._names.bound, set(self._names.globals_written))]
        self._watched = [True]
        self._height = 0
        self._loops: list[bool] = []

    def rewrite(self, tree: ast.Module) -> None:
        self.generic_visit(tree)
        self._table.writes_globals(self._file, self._names.globals_written)

    # ---- scopes ----

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self._function(node)

    def _function(self, node: Function) -> ast.AST:
        if any(_compiles(decorator) for decorator in node.decorator_list):
            return node
        node.decorator_list = [self.visit(decorator) for decorator in node.decorator_list]
        node.args = self.visit(node.args)
        hoist_declarations(node)
        reaches, outer = self._reaches(node.body), self._height
        self._scopes.append(Scope.of(node, self._qualname(node.name)))
        self._watched.append(reaches or (self._traced is not None and node.name not in self._traced))
        self._height, loops, self._loops = 0, self._loops, []
        self._function_body(node, reaches)
        self._height, self._loops = outer, loops
        self._watched.pop()
        self._scopes.pop()
        return node

    def _function_body(self, node: Function, reaches: bool) -> None:
        scope = self._scopes[-1]
        first, body = split_preamble(node.body, docstring=True)
        may_be = reaches and bool(body) and scope.kind == "function" and not scopes.suspends(body)
        site = self._site(node, body, "function", scope.parameters) if may_be else None
        unbound = scopes.unbound_in(body)
        body = [self.visit(statement) for statement in body]
        if site is not None and self._height < self._nested:
            body = self._wrapped(site, body, scope.parameters - unbound, scope.unbound_at_start())
        node.body = [*first, *body]

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        if any(_compiles(decorator) for decorator in node.decorator_list):
            return node
        self._scopes.append(Scope("class", self._qualname(node.name)))
        self.generic_visit(node)
        self._scopes.pop()
        return node

    def _qualname(self, name: str) -> str:
        return f"{self._scopes[-1].qualname}.{name}".lstrip(".")

    # ---- attempts ----

    def visit_For(self, node: ast.For) -> ast.AST:
        site = self._loop(node, scopes.bound_names([node.target]))
        if self._watched[-1] and iterates(node.iter):
            node.iter = watched_iterable(node.iter)
        return site

    def visit_While(self, node: ast.While) -> ast.AST:
        return self._loop(node, set())

    def _loop(self, node: Loop, target: set[str]) -> ast.AST:
        may_be = self._scopes[-1].kind != "class" and self._reaches(node.body) and not scopes.suspends(node.body)
        site = self._site(node, node.body, "loop", target) if may_be else None
        outer, self._height = self._height, 0
        self._loops.append(site is not None)
        self.generic_visit(node)
        self._loops.pop()
        if site is not None and self._height < self._nested:
            node.body = as_loop_body(self._wrapped(site, node.body, target, set()), node.body[0])
        self._height = max(outer, self._height)
        return node

    def _wrapped(self, site: AttemptSite, body: list[ast.stmt], certain: set[str], unbound: set[str]) -> list[ast.stmt]:
        self._height += 1
        index = self._table.add(site)
        if self._scopes[-1].kind == "module":
            wrapped = wrap_in_module(index, body, site.bound)
        else:
            sure = [name for name in site.live if name in certain]
            perhaps = [name for name in site.live if name not in certain | unbound]
            wrapped = wrap_in_function(index, body, site.bound, sure, perhaps)
        return [place(statement, body[0]) for statement in wrapped]

    def _site(self, node: ast.stmt, body: list[ast.stmt], kind: Literal["loop", "function"], given: set[str]) -> AttemptSite:
        scope = self._scopes[-1]
        bound = (scopes.bound_names(body) - scopes.names_of_handlers(body)) | given | scope.shared
        around = bound.union(*(s.names | s.declared for s in self._scopes[1:]))
        touched = {name for name in scopes.touched_names(body) if name in around or self._names.may_hold_state(name)}
        dead = scopes.dead_on_entry(body) - scope.escaping - scope.declared - given
        return AttemptSite(
            file=self._file,
            line=node.lineno,
            kind=kind,
            function=scope.qualname or MODULE,
            target=tuple(sorted(given)) if kind == "loop" else (),
            given=tuple(sorted(given)),
            bound=tuple(sorted(bound)),
            touched=tuple(sorted(touched)),
            free=tuple(sorted(scopes.read_names(body))),
            live=tuple(sorted((bound | touched) - dead)),
            globals_written=self._names.globals_written,
            namespaces=self._table.namespaces,
        )

    def _reaches(self, body: list[ast.stmt]) -> bool:
        return not self._reaching.isdisjoint(references(body))

    def visit_Break(self, node: ast.Break) -> ast.AST | list[ast.stmt]:
        return self._leaving(node) if self._loops and self._loops[-1] else node

    def visit_Return(self, node: ast.Return) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        return self._leaving(node) if any(self._loops) else node

    def _leaving(self, node: ast.stmt) -> list[ast.stmt]:
        return [place(ast.Expr(hook("leaving")), node), node]

    # ---- what can't be rewound, and what catches everything ----

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if takes(node) and "next" not in self._names.rebound:
            if self._watched[-1] or self._takes_from_name(node.args[0]):
                node.args[0] = place(hook("next", node.args[0]), node.args[0])
        elif self._watched[-1] and isinstance(node.func, ast.Attribute) and node.func.attr in EXTERNAL:
            owner = node.func.value
            if scopes.root(owner) not in self._names.modules:
                node.func.value = place(hook("record", owner), owner)
        return node

    def _takes_from_name(self, taken: ast.expr) -> bool:
        """In a program that compiles, `next(self.batches)` is no part of a model, but `next(self.parameters())` is."""
        return self._traced is None and not isinstance(taken, ast.Call)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:
        self.generic_visit(node)
        if self._watched[-1] and (node.type is None or _catches_everything(node.type)):
            node.body.insert(0, place(ast.Expr(hook("passing")), node.body[0]))
        return node

    def visit_TryStar(self, node: ast.TryStar) -> ast.AST:
        """`except*` gets what it names in a group: its handlers have no exception of ours to hand on."""
        for handler in node.handlers:
            handler.body = [self.visit(statement) for statement in handler.body]
        for block in (node.body, node.orelse, node.finalbody):
            block[:] = [self.visit(statement) for statement in block]
        return node


def _catches_everything(kind: ast.expr) -> bool:
    kinds = kind.elts if isinstance(kind, ast.Tuple) else [kind]
    return any(last_name(k) == "BaseException" for k in kinds)


def _compiles(decorator: ast.expr) -> bool:
    """`@torch.compile(...)`, `@njit`, `@torch.jit.script`, `@partial(torch.compile, ...)`: its result reads or traces the
    body."""
    parts = [decorator.func, *decorator.args[:1]] if isinstance(decorator, ast.Call) else [decorator]
    return any(word in (last_name(part) or "") for part in parts for word in COMPILED)
