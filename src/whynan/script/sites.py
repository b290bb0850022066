"""Where the attempts of a program are: one `AttemptSite` for every loop or function body that can be run again."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import CodeType
from typing import Any, Literal

FINITE_CHECKS = frozenset({"isfinite", "isnan", "isinf", "nan_to_num", "nan_to_num_"})
MODULE = "<module>"
Namespace = tuple[dict[str, Any], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class AttemptSite:
    """One body, as the rewriting found it.

    `target`: names of the `for` TARGET; `given`: these, or the parameters of a function. `bound`: names that a run of the body may bind
    anew, or is given. `touched`: names whose object it may change. `free`: names it reads. `live`: those of `bound` and `touched` whose
    value on entry a run may need. `globals_written`: names that some function of the file declares `global` and binds. `namespaces` is
    shared by all sites of a table: the globals of every executed module with such names. `memo` belongs to `capture`.
    """

    file: str
    line: int
    kind: Literal["loop", "function"]
    function: str
    target: tuple[str, ...] = ()
    given: tuple[str, ...] = ()
    bound: tuple[str, ...] = ()
    touched: tuple[str, ...] = ()
    free: tuple[str, ...] = ()
    live: tuple[str, ...] = ()
    globals_written: tuple[str, ...] = ()
    namespaces: list[Namespace] = field(default_factory=list, compare=False, repr=False)
    memo: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)


class SiteTable:
    """All attempts of one program by the number that stands in the rewritten code, and its code as it was before.

    `touches_gradients`: some of it mentions `.grad`, and may change what a backward pass has left there in ways that do not show
    (through `.data`, numpy, or a new tensor). `clips`: some of it may clip gradients. `checks_finite`: some of it looks for values that
    are not finite.
    """

    def __init__(self) -> None:
        self.namespaces: list[Namespace] = []
        self.touches_gradients = False
        self.clips = False
        self.checks_finite = False
        self.all: list[AttemptSite] = []
        self._globals_written: dict[str, tuple[str, ...]] = {}
        self._originals: dict[str, dict[tuple[str, int], CodeType]] = {}

    def add(self, site: AttemptSite) -> int:
        self.all.append(site)
        return len(self.all) - 1

    def __getitem__(self, index: int) -> AttemptSite:
        return self.all[index]

    def __len__(self) -> int:
        return len(self.all)

    def writes_globals(self, filename: str, names: tuple[str, ...]) -> None:
        """Functions of `filename` declare `names` global and bind them."""
        self._globals_written[filename] = names

    def executing(self, filename: str, namespace: dict[str, Any]) -> None:
        """The module of `filename` is about to run with `namespace` as its globals."""
        written = self._globals_written.get(filename, ())
        if written and not any(known is namespace for known, _ in self.namespaces):
            self.namespaces.append((namespace, written))

    def keep_original(self, code: CodeType) -> None:
        """Remember the code of a module as plain Python compiles it."""
        codes = nested_codes(code)
        self._originals[code.co_filename] = {(c.co_qualname, c.co_firstlineno): c for c in codes}
        self.touches_gradients |= any("grad" in c.co_names for c in codes)
        self.clips |= any("clip" in name for c in codes for name in c.co_names)
        self.checks_finite |= any(not FINITE_CHECKS.isdisjoint(c.co_names) for c in codes)

    def original_code(self, code: CodeType) -> CodeType | None:
        """What plain Python would have compiled where `code` is, or None for code that was not rewritten.

        Functions of the same name on one line (two lambdas) can't be told apart; they are never rewritten into attempts.
        """
        return self._originals.get(code.co_filename, {}).get((code.co_qualname, code.co_firstlineno))


def nested_codes(code: CodeType) -> list[CodeType]:
    """`code` and all code inside it, in order."""
    found = [code]
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found += nested_codes(constant)
    return found
