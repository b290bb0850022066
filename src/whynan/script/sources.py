"""Finds, in the user's code, the places that take from something that can't be rewound: `for` over an iterator, `next`."""

from __future__ import annotations

import ast

from whynan.script.references import last_name
from whynan.script.wrap import hook, place

_PASSING_ON = "enumerate zip map filter iter list tuple islice chain tqdm takewhile"
_FRESH = (
    "iter parameters named_parameters buffers named_buffers modules named_modules children named_children "
    "keys values items enumerate zip map filter reversed range"
)
PASSING_ON = frozenset(_PASSING_ON.split())  # calls that take from their arguments
FRESH = frozenset(_FRESH.split())  # calls whose iterator did not exist before
LITERALS = (ast.Constant, ast.List, ast.Tuple, ast.Set, ast.Dict, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def takes(node: ast.Call) -> bool:
    """Whether `node` is `next(x)` or `next(x, default)` of an `x` that may have been there before."""
    if not (isinstance(node.func, ast.Name) and node.func.id == "next") or node.keywords or len(node.args) not in (1, 2):
        return False
    taken = node.args[0]
    if any(isinstance(arg, ast.Starred) for arg in node.args) or isinstance(taken, LITERALS):
        return False
    return not (isinstance(taken, ast.Call) and last_name(taken.func) in FRESH)


def iterates(iterable: ast.expr) -> bool:
    """Whether a loop over `iterable` may take from an iterator that was there before; `range(...)` and displays do not."""
    if isinstance(iterable, LITERALS):
        return False
    return not (isinstance(iterable, ast.Call) and last_name(iterable.func) in FRESH - PASSING_ON)


def watched_iterable(iterable: ast.expr) -> ast.expr:
    """`__whynan__.iterate(x)` for `x`; of `enumerate(x)` and its like the arguments instead, for they alone outlive the loop."""
    if isinstance(iterable, ast.Starred) or not iterates(iterable):
        return iterable
    if isinstance(iterable, ast.Call) and last_name(iterable.func) in PASSING_ON:
        iterable.args = [watched_iterable(arg) for arg in iterable.args]
        return iterable
    return place(hook("iterate", iterable), iterable)
