"""The rewritten code has the shape of the plain one: positions, scopes, signatures; where rewriting fails the plain code runs."""

from __future__ import annotations

import ast
import inspect
import linecache
import pickle
import sys
import sysconfig
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

from tests.script.harness import SOURCES, plainly, watched
from whynan.script import rewrite
from whynan.script.hooks import NAME, Hooks, plain_hooks
from whynan.script.references import references
from whynan.script.rewrite import original_code, rewrite_source
from whynan.script.sites import SiteTable, nested_codes

LIBRARY = Path(sysconfig.get_paths()["stdlib"])
PART_OF_IT = ("a", "c", "d", "h", "p", "s", "t", "u")
MODULES = sorted(p for p in LIBRARY.glob("*.py") if p.name.startswith(PART_OF_IT) and p.name not in ("this.py", "antigravity.py"))
PACKAGES = [LIBRARY / name for name in ("asyncio/tasks.py", "email/_header_value_parser.py", "json/decoder.py", "unittest/mock.py")]


def rewritten(source: str, *reaching: str, limits: list[str] | None = None, **options: Any) -> tuple[CodeType, SiteTable]:
    table = SiteTable()
    noted: list[str] = []
    code = rewrite_source(source, "user.py", reaching or {"backward"}, table, limit=noted.append, **options)
    assert noted == [] if limits is None else limits.extend(noted) is None
    return code, table


def of_one_name(code: CodeType) -> dict[tuple[str, int], CodeType]:
    codes = nested_codes(code)
    keys = [(c.co_qualname, c.co_firstlineno) for c in codes]
    return {key: c for key, c in zip(keys, codes, strict=True) if keys.count(key) == 1}


def docstring(code: CodeType) -> str | None:
    """Up to Python 3.12 a function's docstring is its first constant."""
    first = code.co_consts[0] if code.co_consts else None
    return first if isinstance(first, str) else None


@pytest.mark.parametrize("path", [*MODULES[::3], *PACKAGES], ids=lambda path: path.name)
def test_code_of_the_library_keeps_its_shape(path: Path) -> None:
    """With every name taken for one that reaches a backward pass, so that all bodies become attempts."""
    source = path.read_bytes()
    table, limits = SiteTable(), []
    everything = references([ast.parse(source)])
    code = rewrite_source(source, str(path), everything, table, limit=limits.append)
    assert limits == []
    assert len(table) > 0 or path.stat().st_size < 5000
    plain, ours = (of_one_name(c) for c in (compile(source, str(path), "exec", dont_inherit=True), code))
    assert plain.keys() == ours.keys()
    for key, before in plain.items():
        after = ours[key]
        assert set(after.co_freevars) == set(before.co_freevars), key
        assert set(after.co_cellvars) == set(before.co_cellvars), key
        assert after.co_flags == before.co_flags, key
        assert after.co_varnames[: after.co_argcount] == before.co_varnames[: before.co_argcount], key
        assert {line for *_, line in after.co_lines()} >= {line for *_, line in before.co_lines()} - {None}, key
        assert docstring(after) == docstring(before), key
        assert table.original_code(after) is not None, key


def test_names_of_nested_functions_do_not_become_free_in_the_attempt() -> None:
    source = """
def outer(x, v):
    def step(n):
        def inner():
            x = []
            x.append(n)
            return [v.clear() for v in x]
        inner()
        n.backward()
    return step
"""
    code, _ = rewritten(source)
    assert {c.co_name: c.co_freevars for c in nested_codes(code)}["step"] == ()


def test_expressions_of_the_user_keep_their_positions() -> None:
    source = "for k in range(2):\n    value = next(stream) + env.step(k)\n    value.backward()\n    for j in stream:\n        use(j)\n"
    code, _ = rewritten(source)
    plain = {p for p in compile(source, "user.py", "exec").co_positions() if None not in p}
    assert plain <= set(code.co_positions())
    assert {p for p in code.co_positions() if None not in p} <= plain | {
        (2, 2, 4, 38),
        (2, 2, 17, 23),
        (2, 2, 27, 30),
        (4, 4, 13, 19),
    }


def test_original_code_fits_into_the_rewritten_function() -> None:
    source = "def make(n):\n    def step(x):\n        n.backward()\n        return x + n\n    return step\n"
    code, table = rewritten(source)
    names: dict[str, Any] = {NAME: plain_hooks()}
    exec(code, names)
    step = names["make"](3)
    plain = original_code(step.__code__, table)
    assert plain is not None
    assert NAME not in plain.co_names
    assert NAME in step.__code__.co_names
    step.__code__ = plain
    assert original_code(test_original_code_fits_into_the_rewritten_function.__code__, table) is None


@pytest.mark.parametrize(
    "decorator",
    ["torch.compile", "torch.compile(fullgraph=True)", "compile", "njit", "torch.jit.script", "partial(torch.compile, mode='x')"],
)
def test_compiled_function_keeps_its_code(decorator: str) -> None:
    source = f"@{decorator}\ndef step(x):\n    for k in x:\n        k.backward()\n        next(x)\n"
    code, table = rewritten(source)
    assert len(table) == 0
    assert [c.co_code for c in nested_codes(code)] == [c.co_code for c in nested_codes(compile(source, "user.py", "exec"))]


def test_functions_that_may_be_traced_keep_their_code() -> None:
    source = """
def forward(self, x):
    for layer in self.layers:
        x = layer(x) + next(self.parameters()) + self.cfg.get("a")
    try:
        return x
    except:
        return 0
def batch(self):
    return next(self.stream)
"""
    plain = {c.co_name: c.co_code for c in nested_codes(compile(source, "user.py", "exec"))}
    for traced, unchanged in ((["forward"], {"forward"}), (None, {"forward"}), ([], set())):
        code, _ = rewritten(source, traced=traced)
        assert {c.co_name for c in nested_codes(code)[1:] if c.co_code == plain[c.co_name]} == unchanged


def test_twenty_nested_blocks_of_the_user_still_compile() -> None:
    depth = 15
    lines = ["    " * k + f"for k{k} in range(1):" for k in range(depth)]
    source = "\n".join([*lines, "    " * depth + "seen.append(k3); backward()"])
    code, table = rewritten(source)
    seen: list[int] = []
    exec(code, {NAME: plain_hooks(), "seen": seen, "backward": list})
    assert seen == [0]
    assert [site.line for site in map(table.__getitem__, range(len(table)))][-1] == depth


def test_fault_of_ours_leaves_the_plain_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rewrite.Rewriter, "rewrite", lambda *_: 1 / 0)
    limits: list[str] = []
    code, _ = rewritten("for k in x:\n    k.backward()\n", limits=limits)
    assert NAME not in code.co_names
    assert limits == ["could not rewrite user.py: ZeroDivisionError: division by zero"]


@pytest.mark.parametrize("source", ["def f():\n    break\n", "def f(a, a): backward()", "x = (", "return backward()"])
def test_error_of_the_user_is_raised_as_ever(source: str) -> None:
    with pytest.raises(SyntaxError) as found:
        rewritten(source)
    with pytest.raises(SyntaxError) as expected:
        compile(source, "user.py", "exec")
    assert str(found.value) == str(expected.value)
    assert found.value.args == expected.value.args


def test_source_in_another_encoding() -> None:
    code, _ = rewritten("# -*- coding: latin-1 -*-\nname = '\xe9'\nfor k in (): k.backward()\n".encode("latin-1"))  # type: ignore[arg-type]
    names: dict[str, Any] = {NAME: plain_hooks()}
    exec(code, names)
    assert names["name"] == "\xe9"


def test_next_that_is_the_users_own_stays() -> None:
    for source in ("def next(x):\n    return 1\nnext(x)", "def f(next):\n    return next(x)", "from a import next\nnext(x)"):
        code, _ = rewritten(source)
        assert all(NAME not in c.co_names for c in nested_codes(code))


def test_what_is_made_on_the_spot_is_not_recorded() -> None:
    source = "for k in range(3): next(iter(x)); next(k for k in x)\nfor a, b in enumerate([1]): pass\nfor k in (1, 2): pass\n"
    code, _ = rewritten(source)
    assert NAME not in code.co_names


def test_function_pickled_by_value_runs_plainly_elsewhere() -> None:
    cloudpickle = pytest.importorskip("cloudpickle")
    source = "def work(x):\n    for k in x:\n        if not k: k.backward()\n    return next(iter(x)), next(x[0])\n"
    code, _ = rewritten(source)
    names: dict[str, Any] = {NAME: Hooks(plain_hooks()), "__name__": "__main__"}
    exec(code, names)
    loaded = pickle.loads(cloudpickle.dumps(names["work"]))
    assert loaded([iter("ab")])[1] == "a"


def test_function_sent_to_a_pool_that_pickles_by_value(tmp_path: Path) -> None:
    pytest.importorskip("joblib")
    (tmp_path / "main.py").write_text(
        "from joblib import Parallel, delayed\n"
        "def work(x):\n    stream = iter([x])\n    for k in stream:\n        x += k\n    return x, next(iter([1]))\n"
        "for k in range(2):\n    len.backward if k > 5 else None\n    print(Parallel(n_jobs=2)(delayed(work)(j) for j in range(3)))\n"
    )
    expected = plainly(sys.executable, "main.py", cwd=tmp_path)
    assert expected.code == 0
    assert watched(sys.executable, "main.py", cwd=tmp_path, PYTHONPATH=str(SOURCES)) == expected


def test_source_of_a_function_is_found(tmp_path: Path) -> None:
    source = "def step(x):\n    '''Words.'''\n    for k in x:\n        k.backward()\n"
    path = tmp_path / "user.py"
    path.write_text(source)
    linecache.checkcache(str(path))
    names: dict[str, Any] = {NAME: plain_hooks()}
    exec(rewrite_source(source, str(path), {"backward"}, SiteTable()), names)
    assert inspect.getsource(names["step"]) == source
    assert names["step"].__doc__ == "Words."


def test_sites_say_what_a_body_binds_reads_and_touches() -> None:
    source = """
import numpy as np
from x import *
def helper(): pass
class Trainer:
    def fit(self, loader, n, *, scale=1):
        total = 0
        for i, (a, b) in enumerate(loader):
            try:
                with open(a) as f:
                    import os.path as path
            except OSError as error:
                print(error)
            self.losses.append(b)
            total += scale
            q[i], helper().x = np.zeros(n), [c for c in b]
            loss = self.model(a)
            loss.backward()
        return total
def write():
    global counter, other
    counter = 1
"""
    _, table = rewritten(source)
    loop = next(site for site in map(table.__getitem__, range(len(table))) if site.kind == "loop")
    assert (loop.file, loop.line, loop.function) == ("user.py", 8, "Trainer.fit")
    assert loop.target == ("a", "b", "i")
    assert loop.bound == ("a", "b", "f", "i", "loss", "path", "total")
    assert loop.touched == ("a", "b", "loss", "n", "q", "scale", "self", "total") or set(loop.touched) >= {
        "self",
        "q",
        "b",
        "total",
    }
    assert "np" not in loop.touched
    assert "helper" not in loop.touched
    assert "loss" not in loop.live
    assert set(loop.free) >= {"self", "scale", "np", "error"}
    assert loop.globals_written == ("counter",)
    function = next(site for site in map(table.__getitem__, range(len(table))) if site.kind == "function")
    assert (function.function, function.line) == ("Trainer.fit", 6)
