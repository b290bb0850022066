"""Which of the user's names reach a backward pass, over all modules of the program, without importing them.

By name: a function that mentions `backward` reaches, whatever mentions that function reaches, and so on. That finds too much
sometimes, which costs some microseconds, and rarely too little.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from pathlib import Path

from whynan.core.sources import unwarned
from whynan.core.user_code import is_user_file
from whynan.script.modules import folders_added, imported_files
from whynan.script.references import Definition, Facts, facts_of

__all__ = ["SEEDS", "Reach", "is_user_file"]

SEEDS = frozenset({"backward", "grad", "manual_backward", "grad_and_value", "value_and_grad", "vjp", "jacrev"})
CALLS_OF_AN_INSTANCE = frozenset({"__call__", "forward", "__iter__", "__next__", "__enter__", "__exit__", "__getitem__"})
CONSTRUCTORS = frozenset({"__init__", "__new__", "__post_init__"})


class Reach:
    """`names`: what reaches a backward pass when it is called or handed on. `traced`: functions that a model's `forward` may
    call: a compiler may read their code. `compiles`: some module compiles a model or function, which may be any."""

    def __init__(self) -> None:
        self.names: frozenset[str] = SEEDS
        self.traced: frozenset[str] = frozenset()
        self.compiles = False
        self._facts: dict[str, Facts] = {}
        self._folders: list[str] = []

    def add(self, file: str, package: str = "", source: bytes | None = None) -> None:
        """Take in `file`, a module inside `package`, and every module of the user that it leads to. A `source` that is given is
        not read again."""
        if self.knows(file):
            return
        pending = [(file, package, source)]
        while pending:
            file, package, source = pending.pop()
            facts = self._read(file, source)
            if facts is not None:
                files = imported_files(facts.imports, package, self._folders)
                pending += [(path, package_of(name, path), None) for name, path in files]
        modules = list(self._facts.values())
        self.names, self.traced, self.compiles = _fixpoint(modules), _traced(modules), any(f.compiles for f in modules)

    def knows(self, file: str) -> bool:
        return os.path.realpath(file) in self._facts

    def _read(self, file: str, source: bytes | None) -> Facts | None:
        """The facts of a file not read before. One that can't be parsed has none; the import will tell the user."""
        path = os.path.realpath(file)
        if path in self._facts:
            return None
        self._facts[path] = Facts()
        try:
            text = Path(path).read_bytes() if source is None else source
            with unwarned():
                tree = ast.parse(text, path)
            self._folders += folders_added(tree, os.path.abspath(file))
            self._facts[path] = facts_of(tree)
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            return None
        return self._facts[path]


def package_of(name: str, file: str) -> str:
    """The package that relative imports inside module `name` start from."""
    return name if os.path.basename(file) == "__init__.py" else name.rpartition(".")[0]


def _fixpoint(modules: list[Facts]) -> frozenset[str]:
    """`runs`: mentioning the name may run a backward. `makes`: calling it gives something whose use may."""
    runs, makes = set(SEEDS), set[str]()
    while True:
        before = len(runs) + len(makes)
        for facts in modules:
            for definition in facts.definitions:
                _learn_definition(definition, runs, makes)
            makes.update(name for name, bases in facts.bases.items() if bases & makes)
            runs.update(name for targets, mentioned, called in facts.assigned if mentioned & runs or called & makes for name in targets)
            runs.update(new for old, new in facts.renamed if old in runs)
            makes.update(new for old, new in facts.renamed if old in makes)
            runs.update(_parameters_given(facts, modules, runs))
        if len(runs) + len(makes) == before:
            return frozenset(runs)


def _traced(modules: list[Facts]) -> frozenset[str]:
    definitions = [d for facts in modules for d in facts.definitions]
    traced = {"forward"}
    while new := {d.name for d in definitions if d.name not in traced} & {u for d in definitions if d.name in traced for u in d.uses}:
        traced |= new
    return frozenset(traced)


def _learn_definition(definition: Definition, runs: set[str], makes: set[str]) -> None:
    if definition.inner & runs or definition.returned & runs:
        makes.add(definition.name)
    if not definition.uses & runs:
        return
    if not definition.name.startswith("__"):
        runs.add(definition.name)
    if definition.owner is None:
        return
    if definition.name in CONSTRUCTORS:
        runs.add(definition.owner)
    elif definition.name in CALLS_OF_AN_INSTANCE:
        makes.add(definition.owner)


def _parameters_given(facts: Facts, modules: list[Facts], runs: set[str]) -> Iterator[str]:
    """Parameters of the user's functions that are given something that reaches."""
    given = [(name, place) for name, place, mentioned in facts.passed if mentioned & runs]
    for name, place in given:
        for definition in (d for m in modules for d in m.definitions if _is_called(d, name)):
            if isinstance(place, str):
                yield from (p for p in definition.parameters if p == place)
                continue
            index = place + (definition.parameters[:1] in (("self",), ("cls",)))
            yield from definition.parameters[index : index + 1]


def _is_called(definition: Definition, name: str) -> bool:
    return definition.name == name or (definition.owner == name and definition.name in CONSTRUCTORS)
