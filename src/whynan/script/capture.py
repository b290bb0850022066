"""What of the program's own state is noted before a body runs, and put back before it runs again.

This happens in every step of a run that may never need it: what to look at is told from classes, once; contents are copied a
level at a time; nothing of the user's is called, compared or copied deeply. The contents of tensors are the backend's business.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import compress
from operator import is_
from time import perf_counter
from typing import Any

from whynan.core.attributes import attributes_of
from whynan.core.draws import Draws
from whynan.script import random_states
from whynan.script.containers import Pairs, put_dict, put_list, save_list
from whynan.script.kinds import LIST, MEMBERS, Kind, kind_of
from whynan.script.sites import MODULE, AttemptSite

DEPTH, SHALLOW = 4, 1  # how far below a name objects are followed: usually, and where that takes too long
SHARE = 0.005  # of a step's time
TURNS = 128  # steps after which a module is looked at again
PATIENCE = 3  # steps in a row that take more than that
MAX_OBJECTS = 512
MAX_ELEMENTS = 64  # of a container whose elements are looked at

MISSING = object()
NOTHING: dict[str, Any] = {}
_HOOKS = "_backward_pre_hooks _backward_hooks _forward_hooks _forward_hooks_with_kwargs _forward_hooks_always_called "
_HOOKS += "_forward_pre_hooks _forward_pre_hooks_with_kwargs _state_dict_hooks _state_dict_pre_hooks "
_HOOKS += "_load_state_dict_pre_hooks _load_state_dict_post_hooks _non_persistent_buffers_set"
HOOKS_OF_MODULES = frozenset(_HOOKS.split())  # a dozen containers in every module that a step does not change
Undo = tuple[Callable[[Any, Any], "str | None"], Any, Any]


class Captured:
    """The state that one run of the body at `site` may change, once it was captured and until it is let go; `live` holds the values of
    its names, or is the module's globals. `reasons`, after `restore`: what could not be put back."""

    held = shallow = False
    reasons: Sequence[str] = ()
    undo: Sequence[Undo] = ()
    random: random_states.State = ()

    def __init__(self, site: AttemptSite, live: dict[str, Any]) -> None:
        self.site, self.live = site, live

    @property
    def names(self) -> dict[str, Any]:
        """The names that the body may bind, with their values."""
        return {name: self.live[name] for name in self.site.bound if name in self.live} if self.held else {}

    def capture(self, now: float) -> None:
        """Before the run, which begins `now`. (Written out: in a step of a millisecond every further call counts.)"""
        site, live = self.site, self.live
        plan: Plan | None = site.memo.get("plan")
        if plan is None:
            plan = site.memo["plan"] = Plan()
        if site.function == MODULE:
            self.live = live = {name: live[name] for name in site.live if name in live}
        if plan.draws.pause:
            plan.draws.pause -= 1
        else:
            plan.look()
        self.random, self.held = plan.draws.last, True
        types = tuple(map(type, live.values()))
        if types != plan.types:
            plan.meet(types, live.values())
        if site.namespaces or not plan.barren.issuperset(map(id, compress(live.values(), plan.chosen))):
            self.undo, self.shallow = _noted(list(compress(live.values(), plan.chosen)), site, plan), plan.depth == SHALLOW
            plan.judge(perf_counter() - now, now)
        plan.last = now

    def let_go(self) -> None:
        """It will not be run again; what was captured would keep the values of its last run alive."""
        self.held, self.live, self.undo = False, NOTHING, ()

    def restore(self) -> None:
        reasons = ["state further inside the program's own objects was not noted: it takes too long each step"] * self.shallow
        for put, value, saved in self.undo:
            try:
                reason = put(value, saved)
            except Exception as error:
                reason = f"an object of class {type(value).__name__} could not be put back ({type(error).__name__}: {error})"
            if reason is not None:
                reasons.append(reason)
        self.reasons = reasons
        random_states.put(self.random)


class Plan:
    """What is known of a site: `kinds` what has to be noted of each class, `barren` the modules in whose trees nothing has to be. `types`:
    those of its names' values, `chosen` which of them have to be noted. `last`: when it was noted last; `late`: how often in a row that
    took long for the step."""

    __slots__ = ("barren", "chosen", "depth", "draws", "kinds", "last", "late", "turns", "types")

    def __init__(self) -> None:
        self.draws = Draws(random_states.take, is_)
        self.kinds: dict[type, Kind | None] = {}
        self.barren: set[int] = set()
        self.types: tuple[type, ...] = ()
        self.chosen: list[bool] = []
        self.depth = DEPTH
        self.late = self.turns = 0
        self.last = 0.0

    def learn(self, value: Any) -> Kind | None:
        kind = self.kinds[type(value)] = kind_of(type(value), value)
        return kind

    def meet(self, types: tuple[type, ...], values: Iterable[Any]) -> None:
        """Values of other types than the last time: which of them have to be noted?"""
        kinds = [self.kinds[kind] if kind in self.kinds else self.learn(value) for kind, value in zip(types, values, strict=True)]
        self.types, self.chosen = types, [kind is not None for kind in kinds]

    def look(self) -> None:
        """At what is not looked at in every run: random generators, and new members of modules."""
        self.draws.state()
        self.turns += 1 + self.draws.pause
        if self.turns >= TURNS:
            self.turns = 0
            self.barren.clear()

    def judge(self, seconds: float, start: float) -> None:
        """Follow objects less far where noting them is out of proportion to the step several times in a row."""
        self.late = self.late + 1 if seconds > SHARE * (start - self.last) else 0
        if self.late > PATIENCE:
            self.depth = SHALLOW


def _noted(found: list[Any], site: AttemptSite, plan: Plan) -> list[Undo]:
    undo: list[Undo] = []
    for namespace, written in site.namespaces:
        found += _note_globals(namespace, written, undo)
    _note(found, plan, undo)
    return undo


def _note(found: list[Any], plan: Plan, undo: list[Undo]) -> None:
    """Level by level, so that what lies nearest is noted where there is too much."""
    kinds, barren = plan.kinds, plan.barren
    seen: set[int] = set()
    for depth in range(plan.depth, -1, -1):
        inner: list[Any] = []
        for value in found:
            kind = kinds.get(type(value), MISSING)
            if kind is MISSING:
                kind = plan.learn(value)
            if kind is None or id(value) in seen or id(value) in barren:
                continue
            seen.add(id(value))
            if kind is MEMBERS and _is_barren(value, plan):
                barren.add(id(value))
                continue
            if kind is LIST and (not depth or not 0 < len(value) <= MAX_ELEMENTS):
                undo.append((put_list, value, save_list(value)))
                continue
            held = _note_one(value, kind, undo)
            if depth and held:
                inner += [v for v in held if kinds.get(type(v), MISSING) is not None]
        if not inner or len(seen) >= MAX_OBJECTS:
            return
        found = inner


def _is_barren(module: Any, plan: Plan) -> bool:
    """Whether a module and all below it are installed code's."""
    kind = plan.kinds.get(type(module), MISSING)
    if kind is MISSING:
        kind = plan.learn(module)
    members = attributes_of(module).get("_modules", {}).values() if kind is MEMBERS else ()
    return kind is None or kind is MEMBERS and all(_is_barren(member, plan) for member in members)


def _note_one(value: Any, kind: Any, undo: list[Undo]) -> Iterable[Any]:
    """Note one object; what it holds."""
    saver, attributes, slots, members, exact = kind
    held: Iterable[Any] = ()
    if saver is not None:
        if exact and not value:
            undo.append((_put_empty, value, None))
            return held
        saved = saver[0](value)
        undo.append((saver[1], value, saved))
        held = _elements(saved)
    if attributes:
        names = attributes_of(value)
        copy = names.copy()
        undo.append((_put_attributes, value, (names, copy)))
        own = [item for name, item in copy.items() if name not in HOOKS_OF_MODULES] if members else copy.values()
        held = [*held, *own] if held else own
    elif members:
        held = attributes_of(value).get("_modules", {}).values()
    return [*held, *_note_slots(value, slots, undo)] if slots else held


def _note_slots(value: Any, slots: tuple[Any, ...], undo: list[Undo]) -> list[Any]:
    items = [slot.__get__(value) if _is_set(slot, value) else MISSING for slot in slots]
    undo += [(_put_slot, value, pair) for pair in zip(slots, items, strict=True)]
    return [item for item in items if item is not MISSING]


def _elements(saved: Any) -> Iterable[Any]:
    """The values in what a container's saver gave, where they are few."""
    kind = type(saved)
    if kind is dict:
        return saved.values() if len(saved) <= MAX_ELEMENTS else ()
    if kind is list:
        return saved if len(saved) <= MAX_ELEMENTS else ()
    return [pair[1] for pair in saved] if kind is Pairs and len(saved) <= MAX_ELEMENTS else ()


def _put_empty(value: Any, _: Any) -> None:
    value.clear()


def _is_set(slot: Any, value: Any) -> bool:
    try:
        slot.__get__(value)
    except AttributeError:
        return False
    return True


def _put_attributes(value: Any, saved: Any) -> str | None:
    attributes, copy = saved
    if attributes_of(value) is not attributes:
        object.__setattr__(value, "__dict__", attributes)
    return put_dict(attributes, copy)


def _put_slot(value: Any, saved: Any) -> None:
    slot, item = saved
    if item is not MISSING:
        slot.__set__(value, item)
    elif _is_set(slot, value):
        slot.__delete__(value)


def _note_globals(namespace: dict[str, Any], written: tuple[str, ...], undo: list[Undo]) -> list[Any]:
    values = [(name, namespace.get(name, MISSING)) for name in written]
    undo += [(_put_global, namespace, pair) for pair in values]
    return [value for _, value in values if value is not MISSING]


def _put_global(namespace: Any, saved: Any) -> None:
    name, value = saved
    if value is MISSING:
        namespace.pop(name, None)
    else:
        namespace[name] = value
