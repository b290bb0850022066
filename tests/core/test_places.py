"""The place of a running expression in the user's source: line, columns in characters, the expression and the call as written."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from whynan.core.places import site_of, user_frame
from whynan.core.records import Site

Places = Callable[[str], list[Site]]


class Value:
    """Whatever is done with it is noted with the place of the expression that did it."""

    def __init__(self, seen: list[Site]) -> None:
        self.__dict__["seen"] = seen

    def noted(self, *_: Any, **__: Any) -> Value:
        self.seen.append(site_of(sys._getframe(1)))
        return self

    __add__ = __radd__ = __sub__ = __mul__ = __truediv__ = __floordiv__ = __mod__ = __pow__ = __matmul__ = noted
    __neg__ = __pos__ = __invert__ = __and__ = __or__ = __xor__ = __iadd__ = __itruediv__ = __getitem__ = __lt__ = noted
    __setitem__ = __enter__ = log = sum = mean = noted  # type: ignore[assignment]


@pytest.fixture
def places(tmp_path: Path) -> Places:
    """Run a source of the user's, in which `f`, `x` and `y` stand for operations and tensors; where each of them was used."""

    def run(source: str | bytes) -> list[Site]:
        seen: list[Site] = []
        path = tmp_path / "user.py"
        path.write_bytes(source if isinstance(source, bytes) else source.encode())

        def f(*args: Any, **_: Any) -> Any:
            seen.append(site_of(sys._getframe(1)))
            return args[0] if args else Value(seen)

        functional = type("functional", (), {"f": staticmethod(f)})
        exec(compile(path.read_bytes(), str(path), "exec"), {"f": f, "x": Value(seen), "y": Value(seen), "F": functional})
        return seen

    return run


@pytest.fixture
def place(places: Places) -> Callable[[str | bytes], Site]:
    def run(source: str | bytes) -> Site:
        (site,) = places(source)  # type: ignore[arg-type]
        return site

    return run


Place = Callable[[str | bytes], Site]


def assert_at(site: Site, line: int, column: tuple[int, int], expression: str, call: str | None) -> None:
    assert (site.line, site.column, site.expression, site.call) == (line, column, expression, call)


@pytest.mark.parametrize(
    ("source", "expression", "call"),
    [
        ("z = f(x)", "f(x)", "f"),
        ("z = F.f(x) ", "F.f(x)", "F.f"),
        ("z = x.log()", "x.log()", "x.log"),
        ("z = f(*[x], **{'a': x})", "f(*[x], **{'a': x})", "f"),
        ("z = (w := f(x))", "f(x)", "f"),
        ("z = (lambda: f(x))()", "f(x)", "f"),
        ("z = [f(i) for i in [x]]", "f(i)", "f"),
        ("f(x); z = 1", "f(x)", "f"),
        ("def g(a=f(x)): pass", "f(x)", "f"),
        ("z = f'{f(x)!r:9}'", "f(x)", "f"),
        ("z = x + y", "x + y", "operator.add"),
        ("z = x - y", "x - y", "operator.sub"),
        ("z = x * y", "x * y", "operator.mul"),
        ("z = x / y", "x / y", "operator.truediv"),
        ("z = x // y", "x // y", "operator.floordiv"),
        ("z = x % y", "x % y", "operator.mod"),
        ("z = x ** 0.5", "x ** 0.5", "operator.pow"),
        ("z = x @ y", "x @ y", "operator.matmul"),
        ("z = x & y", "x & y", "operator.and_"),
        ("z = x | y", "x | y", "operator.or_"),
        ("z = x ^ y", "x ^ y", "operator.xor"),
        ("z = -x", "-x", "operator.neg"),
        ("z = +x", "+x", "operator.pos"),
        ("z = ~x", "~x", "operator.invert"),
        ("z = 1.0 + x", "1.0 + x", "operator.add"),
        ("x += y", "x += y", "operator.add"),
        ("x /= y", "x /= y", "operator.truediv"),
        ("z = x[0]", "x[0]", None),
        ("x[0] = 1", "x[0]", None),
        ("z = x < y", "x < y", None),
    ],
)
def test_expression_and_call(place: Place, source: str, expression: str, call: str | None) -> None:
    site = place(source + "\n")
    start = source.index(expression)
    assert_at(site, 1, (start, start + len(expression)), expression, call)
    assert site.source == source.strip()


def test_each_of_several_on_one_line(places: Places) -> None:
    inner, plus, root, outer = places("z = f((x + f(y)).log())\n")
    assert [site.expression for site in (inner, plus, root, outer)] == ["f(y)", "x + f(y)", "(x + f(y)).log()", "f((x + f(y)).log())"]
    assert [site.call for site in (inner, plus, root, outer)] == ["f", "operator.add", "log", "f"]


def test_a_call_of_what_a_call_gave_has_the_name_of_neither(places: Places) -> None:
    first, _ = places("z = F.f(f)(x)\n")
    assert_at(first, 1, (4, 10), "F.f(f)", "F.f")


# ---- columns ----


def test_tabs_count_as_one_character(place: Place) -> None:
    site = place("if 1:\n\tif 1:\n\t\tz =\tf(x)\t# f\n")
    assert_at(site, 3, (6, 10), "f(x)", "f")
    assert site.source == "z =\tf(x)\t# f"


@pytest.mark.parametrize("text", ["é", "日本", "😀 ", "e\u0301", "\u200b"])
def test_columns_are_characters_not_bytes(place: Place, text: str) -> None:
    line = f"z = '{text}'; z = f('{text}', x)  # {text}"
    site = place(line + "\n")
    assert site.column == (line.index("f("), line.index("  #"))
    assert site.expression == f"f('{text}', x)"


def test_names_may_be_any_letters(place: Place) -> None:
    assert place("größe = x\nz = größe.log()\n").call == "größe.log"


def test_a_source_in_another_encoding(place: Place) -> None:
    source = "# -*- coding: latin-1 -*-\nz = 'éé'; z = f('é', x)\n"
    assert_at(place(source.encode("latin-1")), 2, (14, 23), "f('é', x)", "f")


def test_a_byte_order_mark_is_no_column(place: Place) -> None:
    assert_at(place("\ufeffz = f(x)\n"), 1, (4, 8), "f(x)", "f")


@pytest.mark.parametrize("end", ["\r\n", "\r", ""])
def test_the_end_of_a_line_is_no_part_of_it(place: Place, end: str) -> None:
    site = place(f"z = 1{end or chr(10)}z = f(x){end}")
    assert_at(site, 2, (4, 8), "f(x)", "f")
    assert site.source == "z = f(x)"


# ---- several lines ----


def test_an_expression_over_several_lines_is_shown_by_its_first(places: Places) -> None:
    inner, outer = places("z = f(\n    x,\n    f(y),  # f\n)\n")
    assert_at(inner, 3, (4, 8), "f(y)", "f")
    assert_at(outer, 1, (4, 6), "f(", "f")


def test_an_operator_over_several_lines(places: Places) -> None:
    inner, outer = places("z = x + (\n    y *\n    y\n)\n")
    assert_at(inner, 2, (4, 7), "y *", "operator.mul")
    assert_at(outer, 1, (4, 9), "x + (", "operator.add")


def test_each_call_of_a_chain_stands_on_its_own_line(places: Places) -> None:
    log, mean = places("z = (\n    x\n    .log()\n    .mean()\n)\n")
    assert_at(log, 3, (5, 10), "log()", "x.log")
    assert_at(mean, 4, (5, 11), "mean()", "mean")


def test_a_chain_whose_arguments_span_lines(places: Places) -> None:
    log, mean = places("z = x.log(\n    1\n).mean(\n    2\n)\n")
    assert_at(log, 1, (4, 10), "x.log(", "x.log")
    assert_at(mean, 3, (2, 7), "mean(", "mean")


def test_a_line_continued_by_a_backslash(places: Places) -> None:
    call, plus = places("z = f(x) \\\n    + y\n")
    assert_at(call, 1, (4, 8), "f(x)", "f")
    assert (plus.line, plus.call) == (1, "operator.add")


# ---- statements around the expression ----


def test_a_decorator_is_placed_on_its_own_line(places: Places) -> None:
    inner, outer = places("@f\n@F.f\nclass C:\n    pass\n")
    assert_at(inner, 2, (1, 4), "F.f", None)
    assert_at(outer, 1, (1, 2), "f", None)


def test_a_decorated_function_is_placed_in_its_body(place: Place) -> None:
    source = """
        import functools

        def plain(g):
            @functools.wraps(g)
            def inner(*args):
                return g(*args)
            return inner

        class Net:
            @plain
            def forward(self):
                return F.f(
                    x)

        Net().forward()
        """
    site = place(textwrap.dedent(source))
    assert (site.line, site.function, site.call) == (13, "Net.forward", "F.f")


def test_the_function_is_named_as_it_is_nested(place: Place) -> None:
    assert place("def g():\n    def h():\n        return f(x)\n    return h()\ng()\n").function == "g.h"


def test_an_awaited_call(place: Place) -> None:
    source = "import asyncio\nasync def g():\n    return f(x)\nasync def main():\n    await g()\nasyncio.run(main())\n"
    assert_at(place(source), 3, (11, 15), "f(x)", "f")


def test_a_frame_whose_source_is_gone_still_has_its_line(tmp_path: Path) -> None:
    code = compile("\n\nsites.append(here())\n", str(tmp_path / "gone.py"), "exec")
    sites: list[Site] = []
    exec(code, {"sites": sites, "here": lambda: site_of(sys._getframe(1))})
    assert (sites[0].line, sites[0].source, sites[0].call) == (3, "", None)


def test_code_without_columns_has_its_line(tmp_path: Path) -> None:
    """As under `-X no_debug_ranges`."""
    path = tmp_path / "user.py"
    path.write_text("\n\nsites.append(here())\n")
    entry = 0x80 | 13 << 3 | 7  # eight instructions, a line and no columns
    lines = bytes([entry, 2 << 1]) + bytes([entry, 0]) * 8
    code = compile(path.read_text(), str(path), "exec").replace(co_linetable=lines)
    sites: list[Site] = []
    exec(code, {"sites": sites, "here": lambda: site_of(sys._getframe(1))})
    (site,) = sites
    assert (site.line, site.source) == (3, "sites.append(here())")
    assert (site.column, site.expression, site.call) == (None, None, None)


# ---- whose frame it is ----


def test_the_users_frame_is_the_innermost_that_is_not_installed(tmp_path: Path) -> None:
    user, library = tmp_path / "user.py", tmp_path / "site-packages" / "lib.py"
    names: dict[str, Any] = {"frame": lambda: user_frame(sys._getframe(1))}
    exec(compile("def through(): return frame()\n", str(library), "exec"), names)
    exec(compile("def step():\n    return through()\n\nfound = step()\n", str(user), "exec"), names)
    assert names["found"].f_code.co_filename == str(user)
    assert names["found"].f_code.co_name == "step"


@pytest.mark.parametrize("file", ["<string>", "<frozen runpy>", "", "/x/dist-packages/a.py", textwrap.__file__, site_of.__code__.co_filename])
def test_generated_and_installed_code_is_nobodys(file: str) -> None:
    names: dict[str, Any] = {"frame": lambda: sys._getframe(1)}
    exec(compile("found = frame()", file, "exec"), names)
    frame = names["found"]
    while frame is not None and frame.f_code.co_filename == file:
        inner = frame
        frame = frame.f_back
    assert user_frame(inner) is not inner


def test_no_frame_has_no_user() -> None:
    assert user_frame(None) is None
