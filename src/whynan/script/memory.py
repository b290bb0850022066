"""What one run of a body captured, kept so that the run can be made again after later ones.

It keeps nothing of the program's alive but values: numbers, texts, small containers of these, and tensors without a history.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from whynan.core.attributes import attributes_of
from whynan.script import random_states

if TYPE_CHECKING:
    from whynan.script.attempts import Attempt

PLAIN = frozenset({int, float, complex, bool, str, bytes, type(None)})
DEPTH, MOST = 3, 64  # of containers; elements in them
OTHER = object()
Clone = Callable[[Any], Any]


@dataclass(slots=True)
class Memory:
    """`names`: the values of the names that the body may bind, as they were on entry; `objects`: of objects that it may change the plain
    attributes; `answers`: what iterators and external sources gave it, once it has run. What is not kept is then as it was when the last
    run began."""

    names: dict[str, Any]
    objects: list[tuple[weakref.ref[Any], dict[str, Any]]]
    random: random_states.State
    answers: Sequence[Any] = ()

    @classmethod
    def of(cls, attempt: Attempt, clone: Clone) -> Memory:
        """`clone` gives a copy of a tensor that may be kept, and OTHER for what is none."""
        names = {name: kept for name, value in attempt.names.items() if (kept := plain(value, clone)) is not OTHER}
        return cls(names, list(_objects(attempt)), attempt.random)

    def recall(self, attempt: Attempt, undo: Sequence[Any], names: Mapping[str, Any]) -> None:
        """The next run of `attempt` begins as this one did. `undo` and `names`: what the attempt captured itself."""
        known = [(value, attributes) for reference, attributes in self.objects if (value := reference()) is not None]
        attempt.undo = [*undo, *((_put_attributes, value, attributes) for value, attributes in known)]
        attempt.live = {**names, **self.names}
        attempt.random, attempt.held, attempt.onward = self.random, True, None
        attempt.position = attempt.tape.load(self.answers)


def go_on(attempt: Attempt, values: Mapping[str, Any], random: random_states.State, answers: Sequence[Any]) -> None:
    """The next run of `attempt` goes on from where its last one ended; `values`: what it is given, by name."""
    attempt.onward = dict(values)
    attempt.random = random
    attempt.position = attempt.tape.load(answers)


def plain(value: Any, clone: Clone, depth: int = DEPTH) -> Any:
    """A copy of a value that refers to nothing of the program's; OTHER where there is none."""
    kind = type(value)
    if kind in PLAIN:
        return value
    if kind not in (list, tuple, dict):
        return clone(value)
    if not depth or len(value) > MOST:
        return OTHER
    parts = [plain(part, clone, depth - 1) for part in (value.values() if kind is dict else value)]
    if any(part is OTHER for part in parts) or kind is dict and not PLAIN.issuperset(map(type, value)):
        return OTHER
    return dict(zip(value, parts, strict=True)) if kind is dict else kind(parts)


def _objects(attempt: Attempt) -> Iterator[tuple[weakref.ref[Any], dict[str, Any]]]:
    for _, value, _ in attempt.undo:
        attributes = {} if type(value) in (list, dict) else attributes_of(value)
        kept = {name: copy for name, held in list(attributes.items()) if (copy := plain(held, _no_copy, 1)) is not OTHER}
        if kept:
            try:
                yield weakref.ref(value), kept
            except TypeError:  # its class has no room for weak references
                continue


def _no_copy(value: Any) -> Any:
    """What an object holds of others is found there, or put back by itself."""
    return OTHER


def _put_attributes(value: Any, attributes: Mapping[str, Any]) -> None:
    attributes_of(value).update(attributes)
