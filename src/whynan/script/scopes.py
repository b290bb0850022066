"""What a piece of the user's code binds, reads and may change, seen from the scope that it runs in."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

Function = ast.FunctionDef | ast.AsyncFunctionDef
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
SUSPENDING = (ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith)


def own_scope(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Every node that is evaluated in the scope of `nodes`.

    Of a nested function or class these are its name, defaults and decorators, of a comprehension its first iterable, its walrus
    targets and its suspensions.
    """
    pending = list(nodes)
    while pending:
        node = pending.pop()
        yield node
        pending.extend(_evaluated_here(node))


def _evaluated_here(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, FUNCTIONS):
        yield from node.decorator_list
        yield from _outer_parts(node.args)
        if node.returns is not None:
            yield node.returns
    elif isinstance(node, ast.Lambda):
        yield from _outer_parts(node.args)
    elif isinstance(node, ast.ClassDef):
        yield from (*node.decorator_list, *node.bases, *node.keywords)
    elif isinstance(node, COMPREHENSIONS):
        yield node.generators[0].iter
        yield from _escaping(node)
    else:
        yield from ast.iter_child_nodes(node)


def _outer_parts(args: ast.arguments) -> Iterator[ast.AST]:
    yield from args.defaults
    yield from (default for default in args.kw_defaults if default is not None)
    yield from (a.annotation for a in arguments(args) if a.annotation is not None)


def _escaping(comprehension: ast.AST) -> Iterator[ast.AST]:
    pending = list(ast.iter_child_nodes(comprehension))
    while pending:
        node = pending.pop()
        if isinstance(node, ast.NamedExpr):
            yield node.target
        elif isinstance(node, SUSPENDING):
            yield node
        if not isinstance(node, ast.Lambda):
            pending.extend(ast.iter_child_nodes(node))


def suspends(body: Iterable[ast.AST]) -> bool:
    """Whether the body gives up control in the middle: such a frame can't be run again on its own."""
    return any(
        isinstance(node, SUSPENDING) or (isinstance(node, COMPREHENSIONS) and any(g.is_async for g in node.generators))
        for node in own_scope(body)
    )


def bound_names(body: Iterable[ast.AST]) -> set[str]:
    """Names that running `body` may bind or unbind in its own scope."""
    names: set[str] = set()
    for node in own_scope(body):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names.add(node.id)
        elif isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.alias):
            names.add(node.asname or node.name.partition(".")[0])
        elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
            names.add(node.name)
        elif isinstance(node, ast.MatchMapping) and node.rest:
            names.add(node.rest)
    return names - {"*"}


def read_names(body: Iterable[ast.AST]) -> set[str]:
    """Names read anywhere in `body`, nested functions included."""
    return {n.id for part in body for n in ast.walk(part) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def touched_names(body: Iterable[ast.AST]) -> set[str]:
    """Names of the scope whose object the body may change: a store into it, a call of it or with it, an iteration, another
    name."""
    nodes = list(body)
    roots = (root(part) for node in nodes for inner in ast.walk(node) for part in _changed_by(inner))
    return {name for name in roots if name is not None} & (_names_outside_functions(nodes) | free_names(nodes))


def _changed_by(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load):
        yield node
    elif isinstance(node, ast.AugAssign):
        yield node.target
    elif isinstance(node, ast.Call):
        yield node.func
        yield from (arg.value if isinstance(arg, ast.Starred) else arg for arg in node.args)
        yield from (keyword.value for keyword in node.keywords)
    elif isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
        yield node.iter
    elif isinstance(node, ast.withitem):
        yield node.context_expr
    elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
        yield node.value


def root(expression: ast.AST) -> str | None:
    """`a` of `a.b[0].c()`; None where the expression does not start with a name."""
    while isinstance(expression, (ast.Attribute, ast.Subscript, ast.Call)):
        expression = expression.func if isinstance(expression, ast.Call) else expression.value
    return expression.id if isinstance(expression, ast.Name) else None


def arguments(args: ast.arguments) -> list[ast.arg]:
    extra = [a for a in (args.vararg, args.kwarg) if a is not None]
    return [*args.posonlyargs, *args.args, *args.kwonlyargs, *extra]


def names_of_handlers(body: Iterable[ast.AST]) -> set[str]:
    """Names that only `except ... as name` binds: they have no value outside their handler."""
    nodes = list(own_scope(body))
    handlers = {n.name for n in nodes if isinstance(n, ast.ExceptHandler) and n.name}
    others = bound_names([n for n in nodes if isinstance(n, ast.Name)])
    return handlers - others


def free_names(nodes: Iterable[ast.AST]) -> set[str]:
    """Names that functions and lambdas in `nodes` read from outside themselves, at whatever time they are called."""
    free: set[str] = set()
    pending = list(nodes)
    while pending:
        node = pending.pop()
        if isinstance(node, (*FUNCTIONS, ast.Lambda)):
            free |= _free_in(node)
        else:
            pending.extend(ast.iter_child_nodes(node))
    return free


def _free_in(node: Function | ast.Lambda) -> set[str]:
    body = [node.body] if isinstance(node, ast.Lambda) else node.body
    own = list(own_scope(body))
    declared = {name for n in own if isinstance(n, (ast.Global, ast.Nonlocal)) for name in n.names}
    local = ({a.arg for a in arguments(node.args)} | bound_names(body)) - declared
    return (_names_outside_functions(body) | free_names(body)) - local


def _names_outside_functions(nodes: Iterable[ast.AST]) -> set[str]:
    """Names in `nodes`, without what lies in functions and without the variables of comprehensions."""
    names: set[str] = set()
    pending: list[tuple[ast.AST, frozenset[str]]] = [(node, frozenset()) for node in nodes]
    while pending:
        node, variables = pending.pop()
        if isinstance(node, (*FUNCTIONS, ast.Lambda)):
            pending.extend((part, variables) for part in _evaluated_here(node))
            continue
        if isinstance(node, ast.Name) and node.id not in variables:
            names.add(node.id)
        if isinstance(node, COMPREHENSIONS):
            targets = [n for g in node.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)]
            variables |= {n.id for n in targets}
        pending.extend((child, variables) for child in ast.iter_child_nodes(node))
    return names


def unbound_in(body: Iterable[ast.AST]) -> set[str]:
    """Names that the body may leave without a value."""
    nodes = [node for statement in body for node in ast.walk(statement)]
    deleted = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Del)}
    return deleted | {n.name for n in nodes if isinstance(n, ast.ExceptHandler) and n.name}


def dead_on_entry(body: Iterable[ast.stmt]) -> set[str]:
    """Names that the body's plain assignments bind before anything in it reads them. Holding their old values would keep the last
    step's tensors alive."""
    seen: set[str] = set()
    dead: set[str] = set()
    for statement in body:
        if isinstance(statement, ast.Assign):
            seen |= read_names([statement])
            dead |= {n.id for t in statement.targets for n in _plain_targets(t) if n.id not in seen}
        seen |= read_names([statement]) | bound_names([statement])
    return dead


def _plain_targets(target: ast.expr) -> Iterator[ast.Name]:
    if isinstance(target, ast.Name):
        yield target
    elif isinstance(target, (ast.Tuple, ast.List)):
        for element in target.elts:
            yield from _plain_targets(element)


@dataclass(slots=True)
class Scope:
    """A function or module: `names` are bound in it; `parameters` from its start; `declared` are its own `global` and `nonlocal`
    names, `shared` those that functions inside it declare `nonlocal`, `escaping` those that functions inside it read."""

    kind: str
    qualname: str = ""
    names: set[str] = field(default_factory=set)
    parameters: set[str] = field(default_factory=set)
    declared: set[str] = field(default_factory=set)
    shared: set[str] = field(default_factory=set)
    escaping: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, node: Function, qualname: str) -> Scope:
        inner = [n for n in ast.walk(node) if isinstance(n, (ast.Global, ast.Nonlocal))]
        own = [n for n in own_scope(node.body) if isinstance(n, (ast.Global, ast.Nonlocal))]
        declared = {name for statement in own for name in statement.names}
        shared = {name for n in inner if isinstance(n, ast.Nonlocal) and n not in own for name in n.names}
        parameters = {a.arg for a in arguments(node.args)}
        kind = "async" if isinstance(node, ast.AsyncFunctionDef) else "function"
        names = (parameters | bound_names(node.body)) - declared
        return cls(kind, qualname, names, parameters, declared, shared & names, free_names(node.body))

    @classmethod
    def of_module(cls, tree: ast.Module, names: set[str], written: set[str]) -> Scope:
        return cls("module", "", names, shared=written, escaping=free_names(tree.body))

    def unbound_at_start(self) -> set[str]:
        return self.names - self.parameters
