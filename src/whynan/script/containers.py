"""How built-in containers are put back: exact contents of small ones; of long ones what the usual changes at their ends took or
added.

`SAVERS` maps a type to (save, put). `save(value)` gives what `put(value, saved)` needs to put it back; `put` returns why it
can't, or None. Only methods of the built-in types are called, never those of a subclass of the user's.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from itertools import islice
from typing import Any

SMALL = 256  # elements that are copied
ENDS = 8  # elements of a long deque that are noted at its left end

Saver = tuple[Callable[[Any], Any], Callable[[Any, Any], "str | None"]]


class Pairs(tuple[Any, ...]):
    """The items of an OrderedDict."""


def save_list(value: list[Any]) -> Any:
    length = list.__len__(value)
    if length <= SMALL:
        return list.copy(value)
    return length, list.__getitem__(value, 0), list.__getitem__(value, -1)


def put_list(value: list[Any], saved: Any) -> str | None:
    if type(saved) is list:
        list.__setitem__(value, slice(None), saved)
        return None
    length, first, last = saved
    if list.__len__(value) < length or list.__getitem__(value, 0) is not first or list.__getitem__(value, length - 1) is not last:
        return f"a list of {length} elements was changed other than at its end"
    list.__delitem__(value, slice(length, None))
    return None


def save_dict(value: dict[Any, Any]) -> Any:
    if dict.__len__(value) > SMALL:
        return dict.__len__(value)
    return value.copy() if type(value) is dict else dict(dict.items(value))  # `dict.copy` asks a subclass for its keys


def put_dict(value: dict[Any, Any], saved: Any) -> str | None:
    if type(saved) is dict:
        dict.clear(value)
        dict.update(value, saved)
        return None
    if dict.__len__(value) < saved:
        return f"a dict of {saved} entries lost some"
    while dict.__len__(value) > saved:
        dict.popitem(value)
    return None


def save_ordered(value: OrderedDict[Any, Any]) -> Any:
    return Pairs(OrderedDict.items(value)) if dict.__len__(value) <= SMALL else dict.__len__(value)


def put_ordered(value: OrderedDict[Any, Any], saved: Any) -> str | None:
    if type(saved) is int:
        return _same_length("an OrderedDict", dict.__len__(value), saved)
    OrderedDict.clear(value)
    for key, item in saved:
        OrderedDict.__setitem__(value, key, item)
    return None


def save_set(value: set[Any]) -> Any:
    return frozenset(value) if set.__len__(value) <= SMALL else set.__len__(value)


def put_set(value: set[Any], saved: Any) -> str | None:
    if type(saved) is int:
        return _same_length("a set", set.__len__(value), saved)
    set.clear(value)
    set.update(value, saved)
    return None


def save_bytes(value: bytearray) -> Any:
    return bytes(value) if len(value) <= SMALL else len(value)


def put_bytes(value: bytearray, saved: Any) -> str | None:
    if type(saved) is int:
        return _same_length("a bytearray", len(value), saved)
    bytearray.__setitem__(value, slice(None), saved)
    return None


def save_deque(value: deque[Any]) -> Any:
    if deque.__len__(value) <= SMALL:
        return list(deque.__iter__(value))
    return deque.__len__(value), tuple(islice(deque.__iter__(value), ENDS)), deque.__getitem__(value, -1)


def put_deque(value: deque[Any], saved: Any) -> str | None:
    """Of a long one, a memory or a queue: elements were appended at the right, and taken, or pushed out by `maxlen`, at the
    left."""
    if type(saved) is list:
        deque.clear(value)
        deque.extend(value, saved)
        return None
    length, head, last = saved
    for _ in range(ENDS):
        if value and deque.__getitem__(value, -1) is not last:
            deque.pop(value)
    gone = length - deque.__len__(value)
    if not 0 <= gone < ENDS or deque.__getitem__(value, -1) is not last or deque.__getitem__(value, 0) is not head[gone]:
        return f"a deque of {length} elements changed too much"
    deque.extendleft(value, reversed(head[:gone]))
    return None


def _same_length(what: str, now: int, before: int) -> str | None:
    return None if now == before else f"{what} of {before} elements changed its length"


SAVERS: dict[type, Saver] = {
    list: (save_list, put_list),
    dict: (save_dict, put_dict),
    defaultdict: (save_dict, put_dict),
    Counter: (save_dict, put_dict),
    OrderedDict: (save_ordered, put_ordered),
    set: (save_set, put_set),
    bytearray: (save_bytes, put_bytes),
    deque: (save_deque, put_deque),
}


def saver_of(kind: type) -> Saver | None:
    """The saver of a built-in container, or of the one that `kind` inherits from."""
    return next((SAVERS[base] for base in kind.__mro__ if base in SAVERS), None)
