"""Parts of the standard library work as before when each of their bodies is an attempt that is noted, and recorded from."""

from __future__ import annotations

import ast
import importlib.util
import io
import random
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.script.driver import NullBackend
from whynan.script.hooks import NAME, Hooks
from whynan.script.references import references
from whynan.script.rewrite import rewrite_source
from whynan.script.runtime import Runtime
from whynan.script.sites import SiteTable

TEXT = "The quick brown fox\njumps over the lazy dog, 'again and again' -- see (below).\n" * 5


def use_difflib(m: Any) -> Any:
    other = TEXT.replace("fox", "cat").splitlines()
    return (
        list(m.unified_diff(TEXT.splitlines(), other)),
        list(m.ndiff(["a", "b"], ["b", "c"])),
        m.get_close_matches("ape", ["apple"]),
    )


def use_textwrap(m: Any) -> Any:
    return m.wrap(TEXT, 17), m.dedent("  a\n   b"), m.shorten(TEXT, 20)


def use_shlex(m: Any) -> Any:
    return m.split(TEXT), list(m.shlex(io.StringIO("a 'b c' # d\n e=f"))), m.quote("a b")


def use_configparser(m: Any) -> Any:
    parser = m.ConfigParser()
    parser.read_string("[a]\nx = 1\n y\n[b]\nz: %(w)s\nw=3")
    with pytest.raises(m.ParsingError):
        m.ConfigParser().read_string("[a]\nnonsense")
    out = io.StringIO()
    parser.write(out)
    return out.getvalue(), dict(parser["b"])


def use_statistics(m: Any) -> Any:
    return (
        m.fmean([1, 2, 5]),
        m.quantiles(range(20)),
        m.mode("aab"),
        m.linear_regression([1, 2, 3], [2, 4, 6.5]),
        m.NormalDist(0, 1).cdf(1),
    )


def use_fractions(m: Any) -> Any:
    return str(m.Fraction("3/7") ** 2 - m.Fraction(1.5)), m.Fraction(22, 7).limit_denominator(3) == 3, hash(m.Fraction(1, 3))


def use_argparse(m: Any) -> Any:
    parser = m.ArgumentParser("prog")
    parser.add_argument("x", type=int, nargs="+")
    parser.add_argument("--y", choices="ab", default="a")
    return vars(parser.parse_args(["1", "2", "--y", "b"])), parser.format_help()


def use_string(m: Any) -> Any:
    return (
        m.Template("$a ${b} $$").substitute(a=1, b=2),
        m.Formatter().vformat("{0!r:>5} {x[1]}", ("a",), {"x": "yz"}),
        m.capwords("a b"),
    )


def use_dataclasses(m: Any) -> Any:
    @m.dataclass(order=True)
    class Point:
        x: int
        y: list[int] = m.field(default_factory=list)

    return repr(Point(1)), Point(1) < Point(2), m.asdict(Point(3, [4])), m.replace(Point(1), x=2).x


def use_heapq(m: Any) -> Any:
    heap: list[int] = []
    for k in random.Random(0).sample(range(100), 20):
        m.heappush(heap, k)
    return [m.heappop(heap) for _ in range(20)], list(m.merge([1, 4], [2, 3])), m.nsmallest(2, [3, 1, 2])


def use_csv(m: Any) -> Any:
    rows = list(m.DictReader(io.StringIO("a,b\n1,2\n3,4\n")))
    return rows, m.Sniffer().sniff("a;b\n1;2\n").delimiter


USES: dict[str, Callable[[Any], Any]] = {name.removeprefix("use_"): f for name, f in list(globals().items()) if name.startswith("use_")}


@pytest.fixture
def forgotten() -> Iterator[set[str]]:
    names: set[str] = set()
    yield names
    for name in names:
        sys.modules.pop(name, None)


@pytest.mark.parametrize("name", USES)
def test_library_with_every_body_an_attempt(name: str, forgotten: set[str]) -> None:
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    with open(spec.origin, "rb") as file:
        source = file.read()
    table, limits, backend = SiteTable(), [], NullBackend()
    code = rewrite_source(source, spec.origin, references([ast.parse(source)]), table, limit=limits.append)
    module = types.ModuleType(f"rewritten_{name}")
    module.__dict__[NAME] = Hooks(Runtime(table, backend))
    forgotten.add(module.__name__)
    sys.modules[module.__name__] = module
    exec(code, module.__dict__)
    assert USES[name](module) == USES[name](importlib.import_module(name))
    assert (limits, backend.given_up) == ([], None)
    assert len(table) > 3
