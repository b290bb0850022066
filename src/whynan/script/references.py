"""What one source file mentions, by name: functions and what they use, assignments, calls with functions as arguments,
imports."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from whynan.script.scopes import FUNCTIONS, arguments

TRANSFORMS = frozenset({"grad_and_value", "vjp", "jvp", "jacrev", "jacfwd", "hessian"})  # of torch.func
CALLED_ONLY = "grad"  # `p.grad` is an attribute of every parameter; only a call of that name differentiates


@dataclass(slots=True)
class Definition:
    """A function: names that it mentions (`uses`), that functions inside it mention, and that it returns without calling them."""

    name: str
    owner: str | None
    uses: frozenset[str]
    inner: frozenset[str]
    returned: frozenset[str]
    parameters: tuple[str, ...]


@dataclass(slots=True)
class Facts:
    """`bases` maps a class to those it inherits from; `assigned` holds (targets, names mentioned, names called) of assignments;
    `passed` (called name, position or keyword, names mentioned) of call arguments; `imports` (level, module, names)."""

    definitions: list[Definition] = field(default_factory=list)
    bases: dict[str, frozenset[str]] = field(default_factory=dict)
    assigned: list[tuple[frozenset[str], frozenset[str], frozenset[str]]] = field(default_factory=list)
    passed: list[tuple[str, int | str, frozenset[str]]] = field(default_factory=list)
    imports: list[tuple[int, str, tuple[str, ...]]] = field(default_factory=list)
    renamed: list[tuple[str, str]] = field(default_factory=list)
    compiles: bool = False


def references(nodes: Iterable[ast.AST]) -> frozenset[str]:
    """Last names of all names and attributes that are read in `nodes`, called or not."""
    called, mentioned = _references(nodes)
    return called | mentioned


def _references(nodes: Iterable[ast.AST]) -> tuple[frozenset[str], frozenset[str]]:
    """(names called, names mentioned otherwise). Of `a.b.c` only `c` counts."""
    called: set[str] = set()
    mentioned: set[str] = set()
    pending: list[tuple[ast.AST, bool]] = [(node, False) for node in nodes]
    while pending:
        node, is_called = pending.pop()
        if isinstance(node, ast.Call):
            pending.append((node.func, True))
            pending.extend((child, False) for child in (*node.args, *node.keywords))
            continue
        name = last_name(node)
        if name is not None and isinstance(getattr(node, "ctx", None), ast.Load):
            (called if is_called else mentioned).add(name)
        while isinstance(node, ast.Attribute):
            node = node.value
        if not isinstance(node, ast.Name):
            pending.extend((child, False) for child in ([node] if name else ast.iter_child_nodes(node)))
    return frozenset(called), frozenset(mentioned - {CALLED_ONLY})


def last_name(node: ast.AST) -> str | None:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else None


def facts_of(tree: ast.Module) -> Facts:
    facts = Facts()
    _visit(tree, None, facts)
    return facts


def _visit(node: ast.AST, owner: str | None, facts: Facts) -> None:
    for child in ast.iter_child_nodes(node):
        _note(child, owner, facts)
        inside = child.name if isinstance(child, ast.ClassDef) else None if isinstance(child, FUNCTIONS) else owner
        _visit(child, inside, facts)


def _note(node: ast.AST, owner: str | None, facts: Facts) -> None:
    if isinstance(node, FUNCTIONS):
        facts.definitions.append(_definition(node, owner))
        facts.compiles |= any(_is_compile(decorator) for decorator in node.decorator_list)
    elif isinstance(node, ast.ClassDef):
        facts.bases[node.name] = references(node.bases)
    elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        called, mentioned = _references([node.value])
        if isinstance(node.value, ast.Lambda):
            mentioned |= called
        if _makes_gradient_function(node.value):
            mentioned |= TRANSFORMS
        facts.assigned.append((frozenset(_stored(targets)), mentioned, called))
    elif isinstance(node, ast.Call):
        _note_call(node, facts)
    elif isinstance(node, ast.Import):
        facts.imports += [(0, alias.name, ()) for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        facts.imports.append((node.level, node.module or "", tuple(alias.name for alias in node.names)))
        facts.renamed += [(alias.name, alias.asname) for alias in node.names if alias.asname]


def _definition(node: ast.FunctionDef | ast.AsyncFunctionDef, owner: str | None) -> Definition:
    within = [n for part in node.body for n in ast.walk(part)]
    inner = [n for n in within if isinstance(n, (*FUNCTIONS, ast.Lambda))]
    values = [n.value for n in within if isinstance(n, ast.Return) and n.value is not None]
    parameters = tuple(a.arg for a in arguments(node.args))
    return Definition(node.name, owner, references(node.body), references(inner), _references(values)[1], parameters)


def _note_call(node: ast.Call, facts: Facts) -> None:
    facts.compiles |= _is_compile(node)
    name = last_name(node.func)
    if name is None:
        return
    places: list[tuple[int | str, ast.expr]] = [*enumerate(node.args), *((k.arg, k.value) for k in node.keywords if k.arg)]
    for place, value in places:
        mentioned = _references([value])[1]
        if mentioned:
            facts.passed.append((name, place, mentioned))


def _stored(targets: Iterable[ast.AST]) -> Iterator[str]:
    for target in targets:
        if isinstance(target, (ast.Tuple, ast.List)):
            yield from _stored(target.elts)
        elif isinstance(target, ast.Starred):
            yield from _stored([target.value])
        else:
            while isinstance(target, ast.Subscript):
                target = target.value
            name = last_name(target)
            if name is not None:
                yield name


def _makes_gradient_function(node: ast.expr) -> bool:
    """Whether the value is a function that differentiates (`grad(f)`, `vmap(grad(f))`), not what one gave."""
    if not isinstance(node, ast.Call):
        return False
    name = last_name(node.func)
    if name in TRANSFORMS or (name == CALLED_ONLY and len(node.args) == 1):
        return True
    return any(map(_makes_gradient_function, node.args))


def _is_compile(node: ast.AST) -> bool:
    """Whether the expression compiles a model or function (`torch.compile(f)`, `model.compile()`, `@torch.compile`)."""
    function = node.func if isinstance(node, ast.Call) else node
    if isinstance(function, ast.Name):
        return function.id == "compile" and not (isinstance(node, ast.Call) and len(node.args) > 1)
    if not isinstance(function, ast.Attribute) or function.attr != "compile":
        return False
    return last_name(function.value) not in ("re", "regex", "ast", "builtins", "py_compile")
