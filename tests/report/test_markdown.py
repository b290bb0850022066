"""Markdown for a bug report: the same parts, and text from the user's run is only text."""

from __future__ import annotations

import re

import pytest

from tests.report.samples import HOSTILE, as_markdown, built, diagnosis, incident, operation, site, unplaced
from whynan.core.incident import Remedy, Run
from whynan.report.document import document
from whynan.report.markdown import code


def test_the_parts_stand_in_the_fixed_order() -> None:
    text = as_markdown(built(incident()))
    assert re.findall("^#+ (.*)$", text, re.M)[1:] == ["Where", "Evidence", "Why", "Help", "Note", "Next"]
    assert "```python\nd = torch.log(p)\n    ^^^^^^^^^^^^\n```" in text
    assert "```diff\n- torch.log(p)\n+ torch.log_softmax(z, -1)\n```" in text
    assert "```sh\nwhynan show --check whynan-runs/x/incident-1\nwhynan explain log-of-zero\n```" in text
    assert "Script `train.py --lr 3`" in text


def outside_code(text: str) -> str:
    text = re.sub(r"^(`{3,})\w*\n.*?\n\1$", "", text, flags=re.S | re.M)
    return re.sub(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", "", text)


def test_nothing_from_the_user_acts() -> None:
    hostile = diagnosis(summary=HOSTILE, evidence=(HOSTILE,), why=HOSTILE, doubt=HOSTILE, cause=HOSTILE)
    one = operation(site(source=HOSTILE, function=HOSTILE, file=HOSTILE, column=None, expression=None), module=HOSTILE)
    found = incident(one, diagnoses=(hostile,), remedies=(Remedy(HOSTILE, HOSTILE, HOSTILE),), folder=HOSTILE)
    text = as_markdown(built(found, script=HOSTILE, limits=[HOSTILE]))
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", text)
    outside = outside_code(text)
    assert not re.search(r"(?<!\\)[<>`|@*\[]", outside)
    assert "&lt;/script&gt;" in outside


def test_a_fence_is_longer_than_any_in_the_source_line() -> None:
    one = operation(site(source="x = '````'", column=None, expression=None))
    assert "`````python\nx = '````'\n`````" in as_markdown(built(incident(one)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a", "`a`"), ("a`b``c", "```a`b``c```"), ("`a", "`` `a ``"), ("a\nb", "`a b`"), ("", "")],
)
def test_inline_code_holds_any_text(text: str, expected: str) -> None:
    assert code(text) == expected


def test_clean_and_unplaced_runs_are_told() -> None:
    assert as_markdown(document(Run("t.py", steps=3, status="clean"), [])).startswith("`t.py`: nothing went bad in 3 steps.")
    assert "No place was found" in as_markdown(built(unplaced()))
