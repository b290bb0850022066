"""What has to be noted of a value before a body runs, told from its class alone."""

from __future__ import annotations

import sys
import types
from typing import Any, NamedTuple

from whynan.core.attributes import attributes_of
from whynan.core.user_code import is_user_file
from whynan.script import containers, generators
from whynan.script.containers import Saver

PLAIN_DATA = frozenset({("argparse", "Namespace"), ("types", "SimpleNamespace")})
RUNNING = frozenset({"threading", "multiprocessing", "concurrent", "asyncio", "socket", "io", "_io", "subprocess", "logging", "sqlite3"})


class Kind(NamedTuple):
    """`saver` copies the value itself. `attributes`: its attributes are noted, and those in `slots`. `members`: it holds
    modules below `_modules`, of which some may be the user's. `exact`: a built-in container itself, which may be asked whether
    it is empty."""

    saver: Saver | None = None
    attributes: bool = False
    slots: tuple[Any, ...] = ()
    members: bool = False
    exact: bool = False


MEMBERS = Kind(members=True)
LIST = Kind(containers.SAVERS[list], exact=True)


def kind_of(kind: type, value: Any) -> Kind | None:
    """None for what a body can't change in a way that would have to be put back: numbers, functions, tensors, installed
    objects."""
    if issubclass(kind, (type, types.ModuleType, BaseException)) or any(_root(base) in RUNNING for base in kind.__mro__):
        return None
    generator = generators.saver_of(kind)
    if generator is not None:
        return Kind(generator)
    saver = containers.saver_of(kind)
    if _is_users(kind) or (kind.__module__, kind.__name__) in PLAIN_DATA:
        slots = tuple(_slots(kind))
        return Kind(saver, bool(kind.__dictoffset__), slots, _has_members(kind, value)) if saver or kind.__dictoffset__ or slots else None
    if saver is not None:
        return LIST if kind is list else Kind(saver, exact=kind in containers.SAVERS)
    return MEMBERS if _has_members(kind, value) else None


def _has_members(kind: type, value: Any) -> bool:
    return bool(kind.__dictoffset__ and attributes_of(value).get("_modules"))


def _root(kind: type) -> str:
    return str(kind.__module__).partition(".")[0]


def _is_users(kind: type) -> bool:
    file = getattr(sys.modules.get(str(kind.__module__)), "__file__", None)
    return isinstance(file, str) and is_user_file(file)


def _slots(kind: type) -> list[Any]:
    members = [m for base in kind.__mro__ if _is_users(base) for m in vars(base).values()]
    return [m for m in members if isinstance(m, types.MemberDescriptorType)]
