"""The catalogue's text on a terminal."""

from __future__ import annotations

import io

import pytest

from whynan.report import explanation

TEXT = """The title [red] of it.

How to fix it
    Use a very_long_name_that_does_not_fit_into_a_line_of_sixty_columns_and_is_never_broken in place
    of another.

        d = torch.log(p)
        e = 1

    - the first item, which is so long that it does not stand on one line only
    - the second

References
    https://example.org/a
    Somebody: A paper
"""


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("COLUMNS", "60")
    stream = io.StringIO()
    explanation.render("a-cause", TEXT, stream)
    return stream.getvalue().splitlines()


def test_headings_and_title_stand_alone(shown: list[str]) -> None:
    assert shown[:5] == ["a-cause", "", "The title [red] of it.", "", "How to fix it"]


def test_long_words_are_never_broken(shown: list[str]) -> None:
    assert "  very_long_name_that_does_not_fit_into_a_line_of_sixty_columns_and_is_never_broken" in shown


def test_code_keeps_its_lines(shown: list[str]) -> None:
    at = shown.index("      d = torch.log(p)")
    assert shown[at + 1] == "      e = 1"


def test_items_are_filled_one_by_one(shown: list[str]) -> None:
    at = shown.index("  - the first item, which is so long that it does not stand")
    assert shown[at + 1 : at + 3] == ["    on one line only", "  - the second"]


def test_references_keep_their_lines(shown: list[str]) -> None:
    assert shown[-3:] == ["References", "  https://example.org/a", "  Somebody: A paper"]
