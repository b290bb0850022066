"""Which names reach a backward pass, over the modules of a program that is only read."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

import pytest

from whynan.script.scan import SEEDS, Reach, is_user_file


def reached(folder: Path, **files: str) -> Reach:
    """Of `main`, with the other files beside it; `__` in a name stands for a folder, `INIT` for `__init__`."""
    for name, source in files.items():
        path = folder / (name.replace("__", "/").replace("INIT", "__init__") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(source))
    reach = Reach()
    reach.add(str(folder / "main.py"))
    return reach


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


REACHING = {
    "direct": ("def step(loss): loss.backward()", {"step"}),
    "autograd.grad": ("def step(loss, w): return torch.autograd.grad(loss, w)", {"step"}),
    "attribute grad is none": ("def norm(p): return p.grad.norm()\ndef other(grad): return grad", set()),
    "handed on": ("def step(loss): run(loss.backward)", {"step"}),
    "through others": ("def a(): b()\ndef b(): self.c()\nclass X:\n    def c(self): x.backward()", {"a", "b", "c"}),
    "manual_backward": ("class M:\n    def training_step(self): self.manual_backward(loss)", {"training_step"}),
    "lambda": ("def step(): opt.step(lambda: loss.backward())", {"step"}),
    "nested function": ("def step():\n    def closure(): loss.backward()\n    opt.step(closure)", {"step", "closure"}),
    "another name": ("def step(): x.backward()\nfn = step\ndef train(): fn()", {"step", "fn", "train"}),
    "renamed import": ("from torch.autograd import grad as gradient\ndef f(): gradient(a, b)", {"f", "gradient"}),
    "factory": (
        "def make():\n    def inner(): x.backward()\n    return inner\nstep = make()\ndef train(): step()",
        {"make", "inner", "step", "train"},
    ),
    "factory that returns": (
        "def one(): x.backward()\ndef make(): return one\nstep = make()\ndef train(): step()",
        {"one", "make", "step", "train"},
    ),
    "partial attribute": (
        "def one(): x.backward()\nclass T:\n    def __init__(self): self.fn = partial(one, 1)\n    def run(self): self.fn()",
        {"T", "one", "fn", "run"},
    ),
    "instance with __call__": ("class S:\n    def __call__(self): x.backward()\ns = S()\ndef train(): s()", {"s", "train"}),
    "inherited __call__": (
        "class S:\n    def __call__(self): x.backward()\nclass R(S): pass\nr = R()\ndef train(): r()",
        {"r", "train"},
    ),
    "forward that differentiates": (
        "class P(nn.Module):\n    def forward(self, x): return grad(x, y)\nnet = P()\ndef train(): net(x)",
        {"forward", "net", "train"},
    ),
    "constructor that trains": ("class T:\n    def __init__(self): x.backward()\ndef main(): T()", {"T", "main"}),
    "given as an argument": ("def one(): x.backward()\ndef run(n, fn): fn()\nrun(3, one)", {"one", "fn", "run"}),
    "given by keyword": ("def one(): x.backward()\nclass R:\n    def go(self, fn): fn()\nR().go(fn=one)", {"one", "fn", "go"}),
    "dictionary": ("def one(): x.backward()\nsteps = {'a': one}\ndef train(): steps['a']()", {"one", "steps", "train"}),
    "result of a step": ("def step(): x.backward(); return y\nloss = step()\ndef show(): print(loss)", {"step"}),
    "other": ("def evaluate(): model(x)\ndef main(): evaluate()", set()),
}


@pytest.mark.parametrize("name", REACHING)
def test_names(name: str, folder: Path) -> None:
    source, expected = REACHING[name]
    assert reached(folder, main=source).names - SEEDS == expected


def test_modules_are_read_not_imported(folder: Path) -> None:
    reach = reached(
        folder,
        main="import engine\nfrom lib import tools\nfrom lib.deep.more import *\ndef main(): engine.epoch(); tools.t(); far()",
        engine="import os, torch\ndef epoch(): one()\nfrom other import one\nraise SystemExit('imported')",
        other="def one(): x.backward()",
        lib__INIT="from . import sub\nfrom .deep import again as b",
        lib__sub="from .. import nothing\nfrom ..lib import tools",
        lib__tools="def t(): y.backward()",
        lib__deep__more="from ..relative import far",
        lib__deep__again="",
        lib__relative="def far(): z.backward()",
    )
    assert reach.names - SEEDS == {"main", "epoch", "one", "t", "far"}
    assert not {"engine", "other", "lib"} & sys.modules.keys()
    assert reach.knows(str(folder / "lib/deep/again.py"))


@pytest.mark.parametrize(
    "line",
    [
        "sys.path.append('lib')",
        "sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), 'lib'))",
        "sys.path.append(str(Path(__file__).resolve().parent / 'lib'))",
        "ROOT = Path(__file__).parents[0]\nsys.path.insert(0, str(ROOT / 'lib'))",
        "sys.path.append(os.path.join(os.getcwd(), 'lib'))",
    ],
)
def test_folder_that_the_script_adds_to_the_path(line: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    reach = reached(
        folder, main=f"import os, sys\n{line}\nfrom away import train\ndef go(): train()", lib__away="def train(): x.backward()"
    )
    assert "go" in reach.names


def test_files_that_cannot_be_read_are_passed_over(folder: Path) -> None:
    (folder / "binary.py").write_bytes(b"\x00\xff")
    reach = reached(folder, main="import broken, binary, nowhere, os.path\ndef f(): x.backward()", broken="def (")
    assert "f" in reach.names


def test_what_a_model_may_call_is_told(folder: Path) -> None:
    reach = reached(folder, main="def norm(x): ...\ndef block(x): norm(x)\ndef other(): ...\nclass M:\n    def forward(s, x): block(x)")
    assert reach.traced == {"forward", "block", "norm"}


@pytest.mark.parametrize(
    ("line", "compiles"),
    [
        ("model = torch.compile(model)", True),
        ("model.compile()", True),
        ("@torch.compile(mode='x')\ndef f(): ...", True),
        ("from torch import compile\nf = compile(f)", True),
        ("re.compile('a')", False),
        ("compile('1', 'f', 'exec')", False),
        ("torch.compiler.reset()", False),
    ],
)
def test_program_that_compiles(line: str, compiles: bool, folder: Path) -> None:
    assert reached(folder, main=line).compiles is compiles


def test_users_files() -> None:
    import json

    import whynan.script.scan

    assert is_user_file(__file__)
    assert not is_user_file(json.__file__)
    assert not is_user_file(pytest.__file__)
    assert not is_user_file(whynan.script.scan.__file__)
    assert not is_user_file("<string>")
