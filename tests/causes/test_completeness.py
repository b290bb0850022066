"""A cause is refused without its text, a failing example, a healthy twin, and a remedy or a reason for none."""

from __future__ import annotations

import contextlib
import inspect
import io
import re
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

from whynan.causes import catalogue
from whynan.core.catalogue import Entry, find

ENTRIES = {entry.cause.name: entry for entry in catalogue()}
HEADINGS = (
    "What happens",
    "Why it gives NaN or Inf",
    "How to recognise it",
    "How to fix it",
    "When this diagnosis is wrong",
    "References",
)

each = pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES.keys())


def sections(document: str) -> dict[str, str]:
    """The text below each heading; a heading is a line at the margin that follows a blank one."""
    parts = re.split(r"\n\n(?=\S)", inspect.cleandoc(document))
    return {heading: body for heading, _, body in (part.partition("\n") for part in parts[1:])}


def run(source: str) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "__main__"}
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        exec(compile(source, "example.py", "exec"), names)
    return names


def is_healthy(names: dict[str, Any]) -> bool:
    model = names["model"]
    state = [names["loss"], *model.parameters(), *(p.grad for p in model.parameters()), *model.buffers()]
    return all(bool(torch.isfinite(tensor).all()) for tensor in state if tensor is not None)


@each
def test_name_is_that_of_the_file(entry: Entry) -> None:
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", entry.cause.name)
    assert Path(inspect.getfile(entry.probe)).stem.replace("_", "-") == entry.cause.name


@each
def test_document_has_every_section_in_order(entry: Entry) -> None:
    found = sections(entry.document)
    assert tuple(found) == HEADINGS
    assert all(len(body.strip()) > 20 for body in found.values())


@each
def test_document_is_short_enough_to_be_read(entry: Entry) -> None:
    lines = inspect.cleandoc(entry.document).splitlines()
    assert 18 <= len(lines) <= 40
    assert lines[0].endswith(".")
    assert len(lines[0]) <= 90


@each
def test_file_is_short_enough_to_be_read(entry: Entry) -> None:
    assert 70 <= len(Path(inspect.getfile(entry.probe)).read_text().splitlines()) <= 150


@each
def test_cause_has_its_sentences_and_a_remedy_or_a_reason(entry: Entry) -> None:
    cause = entry.cause
    assert all(text.endswith(".") for text in (cause.why, cause.doubt))
    assert cause.title
    assert not cause.title.endswith(".")
    assert bool(cause.remedies) != bool(cause.no_remedy)
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", advice.name) and advice.text.endswith(".") for advice in cause.remedies)


@each
def test_example_marks_one_culprit_that_the_twin_changes(entry: Entry) -> None:
    assert entry.example.count("# culprit") == 1
    assert entry.twin != entry.example


@each
def test_example_fails(entry: Entry) -> None:
    assert not is_healthy(run(entry.example))


@each
def test_twin_is_healthy(entry: Entry) -> None:
    assert is_healthy(run(entry.twin))


def test_names_are_unique_and_sorted() -> None:
    names = [entry.cause.name for entry in catalogue()]
    assert names == sorted(set(names))


def test_find() -> None:
    found = find(catalogue(), "log-of-zero")
    assert found is not None
    assert found.cause.name == "log-of-zero"
    assert find(catalogue(), "no-such-cause") is None
