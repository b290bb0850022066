"""Runs a program as `python` would, with the user's own modules rewritten."""

from __future__ import annotations

import ast
import builtins
import os
import runpy
import sys
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from types import CodeType, ModuleType
from typing import Any

from whynan.script.ending import BELOW, Ending, ending_of, wait_for_threads
from whynan.script.hooks import NAME, Hooks
from whynan.script.importer import RewritingFinder
from whynan.script.program import Program, UsageError
from whynan.script.scan import Reach, package_of
from whynan.script.shadowed import set_aside
from whynan.script.sites import SiteTable

__all__ = ["Ending", "Program", "UsageError", "launch"]

C_CALLS_COUNT = sys.version_info < (3, 12)  # against the recursion limit


def launch(program: Program, prepare: Callable[[SiteTable], Any], limit: Callable[[str], object] = lambda _: None) -> Ending:
    """Run `program` to its end. `__main__`, `sys.argv` and `sys.path` are its own from then on.

    `prepare(table)` gives the runtime that the rewritten code calls; it sees `table` fill while modules are imported. `limit`
    is told in one line of each module that could not be rewritten.
    """
    table = SiteTable()
    main = _main_module()
    hooks = Hooks(prepare(table))
    begin = _script if program.kind == "script" else _module
    with set_aside(program.folder):
        start = begin(program, main, RewritingFinder(Reach(), table, hooks, limit), hooks)
        ending = ending_of(_started(start))
        wait_for_threads()
    return ending


def _started(start: Callable[[], object]) -> BaseException | None:
    try:
        start()
    except BaseException as error:
        return error
    return None


def _main_module() -> ModuleType:
    """A new `__main__`, as empty as plain Python's before its script runs."""
    main = ModuleType("__main__")
    main.__dict__.update(__annotations__={}, __builtins__=builtins)
    sys.modules["__main__"] = main
    return main


def _make_room(to_come: int) -> None:
    """The frames below the program's own do not count against its recursion limit: those there are and those to come."""
    depth, frame = to_come, sys._getframe(1)
    while frame.f_back is not None:
        depth, frame = depth + 1, frame.f_back
    sys.setrecursionlimit(sys.getrecursionlimit() + depth)


def _enter(program: Program, finder: RewritingFinder, hooks: Hooks, main: ModuleType, argv0: str) -> None:
    sys.argv = [argv0, *program.args]
    if not sys.flags.safe_path:
        sys.path[0:1] = [program.folder]
    setattr(builtins, NAME, hooks)
    setattr(main, NAME, hooks)
    if program.file is not None:
        finder.reach.add(program.file, package_of(_name(program), program.file), program.source)
    finder.install()


def _name(program: Program) -> str:
    """The dotted name from which the main module's relative imports start."""
    if program.kind == "script":
        return "__main__"
    return program.main_names[os.path.basename(program.file or "") == "__main__.py" and not program.target.endswith("__main__")]


def _script(program: Program, main: ModuleType, finder: RewritingFinder, hooks: Hooks) -> Callable[[], object]:
    assert program.file is not None
    _enter(program, finder, hooks, main, program.target)
    plain = compile(program.source, program.file, "exec", dont_inherit=True)
    code = finder.rewritten(program.source, program.file, plain)
    main.__dict__.update(__file__=program.file, __cached__=None, __loader__=SourceFileLoader("__main__", program.file))
    finder.table.executing(program.file, main.__dict__)

    def start() -> None:
        _make_room(2 + 2 * C_CALLS_COUNT)
        _execute(code, main.__dict__)

    return start


def _module(program: Program, main: ModuleType, finder: RewritingFinder, hooks: Hooks) -> Callable[[], object]:
    finder.runs_as_main(program.main_names, main.__dict__)
    _enter(program, finder, hooks, main, "-m")

    def start() -> None:
        _make_room(1 + C_CALLS_COUNT)
        runpy._run_module_as_main(program.target)  # type: ignore[attr-defined]

    return start


def _frame_below() -> Callable[[CodeType, dict[str, Any]], None]:
    """Runs the main module. A warning that points above the program's first frame shows this one, as plain Python does:
    `sys:1`."""
    tree = ast.parse("lambda code, names: exec(code, names)", mode="eval")
    for node in ast.walk(tree):
        if isinstance(node, ast.expr):
            node.lineno = node.end_lineno = int(BELOW == "sys")
    run: Callable[[CodeType, dict[str, Any]], None] = eval(compile(tree, BELOW, "eval"), {"__name__": "sys"})
    return run


_execute = _frame_below()
