"""A watched program does what plain Python does: the same bytes on standard output and error, the same exit status."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.script.harness import SCRIPTS, VERSIONS, interpreter, plainly, watched

NOT_PROGRAMS = {"fake.py", "bad_import_inside.py"}
PROGRAMS = sorted(path.name for path in SCRIPTS.glob("*.py") if path.name not in NOT_PROGRAMS)


@pytest.fixture(params=VERSIONS)
def python(request: pytest.FixtureRequest) -> str:
    path = interpreter(request.param)
    if path is None:
        pytest.skip(f"no Python {request.param} here")
    return path


def assert_same_as_plain(python: str, *arguments: str, notes: Path, **environment: str) -> None:
    """Also: every module was rewritten, and attempts ran."""
    expected = plainly(python, *arguments, **environment)
    found = watched(python, *arguments, WHYNAN_TEST_NOTES=str(notes), **environment)
    assert found.stdout == expected.stdout
    assert found.stderr == expected.stderr
    assert found.code == expected.code
    counts, *limits = notes.read_text().splitlines()
    assert limits == []
    assert all(int(number) > 0 for number in counts.split())


@pytest.mark.parametrize("program", PROGRAMS)
def test_script(python: str, program: str, tmp_path: Path) -> None:
    assert_same_as_plain(python, program, notes=tmp_path / "notes")


@pytest.mark.parametrize("arguments", [("./where_am_i.py", "a", "--b=1"), ("../scripts/where_am_i.py",)])
def test_script_given_by_another_path(python: str, arguments: tuple[str, ...], tmp_path: Path) -> None:
    assert_same_as_plain(python, *arguments, notes=tmp_path / "notes")


@pytest.mark.parametrize("arguments", [("package", "x"), ("package.tool", "--n", "2"), ("errors",), ("processes",), ("where_am_i",)])
def test_module(python: str, arguments: tuple[str, ...], tmp_path: Path) -> None:
    assert_same_as_plain(python, "-m", *arguments, notes=tmp_path / "notes")


def test_usage_message_of_the_script_names_the_script(python: str, tmp_path: Path) -> None:
    for arguments in (["--help"], ["--no-such"]):
        expected = plainly(python, "-m", "package.tool", *arguments)
        assert watched(python, "-m", "package.tool", *arguments) == expected


def test_script_behind_a_link_finds_its_neighbours(python: str, tmp_path: Path) -> None:
    link = tmp_path / "linked.py"
    link.symlink_to(SCRIPTS / "loops.py")
    assert_same_as_plain(python, str(link), notes=tmp_path / "notes")


def test_package_elsewhere_on_the_path_is_rewritten_too(python: str, tmp_path: Path) -> None:
    script = tmp_path / "main.py"
    script.write_text("from package import train\nprint(train(2))\n")
    notes = tmp_path / "notes"
    assert_same_as_plain(python, str(script), notes=notes, PYTHONPATH=str(SCRIPTS))


@pytest.mark.parametrize("source", ["x = 1\ndef f(:\n    pass\n", "def f():\n    break\n", "x = 'a\0b'\n", "x = '\xff'\n", "return 1\n"])
def test_module_with_a_syntax_error(python: str, source: str, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_bytes(source.encode("latin-1"))
    script = tmp_path / "main.py"
    script.write_text(
        "import traceback\nfor k in range(1):\n    try:\n        import broken\n    except Exception:\n"
        "        traceback.print_exc()\n    len.backward if k else None\nimport broken\n"
    )
    assert_same_as_plain(python, str(script), notes=tmp_path / "notes")


def test_recursion_too_deep_through_attempts_ends_as_ever(python: str, tmp_path: Path) -> None:
    script = tmp_path / "main.py"
    script.write_text("def down(n):\n    if n < 0:\n        n.backward()\n    return down(n + 1)\n\n\ndown(0)\n")
    expected, found = plainly(python, str(script)), watched(python, str(script))
    assert (found.code, found.stdout) == (expected.code, expected.stdout)
    first, *_, last = found.stderr.splitlines()
    assert first == "Traceback (most recent call last):"
    assert last.startswith("RecursionError: maximum recursion depth exceeded")
    assert "whynan" not in found.stderr


@pytest.mark.parametrize("warnings", ["error", "default", "ignore"])
def test_warnings_of_the_source_appear_once(python: str, warnings: str, tmp_path: Path) -> None:
    expected = plainly(python, "-W", warnings, "warned_source.py")
    assert watched(python, "warned_source.py", options=("-W", warnings)) == expected or warnings == "error"
    if warnings == "default":
        assert "SyntaxWarning" in expected.stderr
