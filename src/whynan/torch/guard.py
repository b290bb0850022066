"""A fault of ours in a hook never reaches the user's code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from whynan.core.faults import is_ours


class Guard:
    """Calls what may fail; a failure is told to `give_up` and gives None."""

    def __init__(self, give_up: Callable[[str, BaseException], None]) -> None:
        self._give_up = give_up

    def __call__(self, doing: str, function: Callable[..., Any], *args: Any) -> Any:
        try:
            return function(*args)
        except Exception as fault:
            if not is_ours(fault):
                raise
            self._give_up(doing, fault)
            return None


def raise_it(doing: str, fault: BaseException) -> None:
    raise fault


UNGUARDED = Guard(raise_it)
