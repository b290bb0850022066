"""The index leads to every cause, and to nothing else."""

from __future__ import annotations

import pytest

from whynan.causes import catalogue
from whynan.causes._index import OPERATIONS, SYMPTOMS

NAMES = {entry.cause.name for entry in catalogue()}

both = pytest.mark.parametrize("table", [SYMPTOMS, OPERATIONS], ids=["symptoms", "operations"])


def test_every_cause_stands_under_a_symptom() -> None:
    assert NAMES - {name for names in SYMPTOMS.values() for name in names} == set()


def test_every_cause_of_one_operation_stands_under_an_operation() -> None:
    of_one = {entry.cause.name for entry in catalogue() if entry.cause.level == "operation"}
    assert of_one - {name for names in OPERATIONS.values() for name in names} == set()


@both
def test_all_names_exist(table: dict[str, tuple[str, ...]]) -> None:
    assert {name for names in table.values() for name in names} - NAMES == set()


@both
def test_no_row_is_empty_or_names_a_cause_twice(table: dict[str, tuple[str, ...]]) -> None:
    assert [row for row, names in table.items() if not names or len(set(names)) < len(names)] == []
