"""One report for the first rank that fails."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from whynan.cli import ranks
from whynan.cli.ranks import Claim


@pytest.mark.parametrize(
    ("value", "world", "expected"),
    [("3", "4", 3), ("0", "2", 0), ("0", "1", None), ("", "4", None), ("../x", "4", None), ("-1", "4", None)],
)
def test_the_rank_is_read_where_there_are_several(
    value: str, world: str, expected: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", value)
    monkeypatch.setenv("WORLD_SIZE", world)
    assert ranks.rank() == expected


def test_only_the_first_that_fails_speaks(tmp_path: Path) -> None:
    first, second, third = (Claim(tmp_path / "runs", rank) for rank in (2, 0, 1))
    assert first.speaks(failed=True)
    assert not second.speaks(failed=True)
    assert not third.speaks(failed=False)


def test_rank_0_speaks_for_a_clean_run_unless_another_has_failed(tmp_path: Path) -> None:
    assert Claim(tmp_path, 0).speaks(failed=False)
    assert not Claim(tmp_path, 1).speaks(failed=False)
    assert Claim(tmp_path, 1).speaks(failed=True)
    assert not Claim(tmp_path, 0).speaks(failed=False)


def test_a_single_process_always_speaks_and_leaves_no_file(tmp_path: Path) -> None:
    assert Claim(tmp_path, None).speaks(failed=True)
    assert Claim(tmp_path, None).speaks(failed=False)
    assert list(tmp_path.iterdir()) == []


def test_the_claim_of_an_earlier_launch_counts_no_more(tmp_path: Path) -> None:
    claim = Claim(tmp_path, 0)
    assert claim.take()
    old = time.time() - 3600
    os.utime(claim.file, (old, old))
    assert Claim(tmp_path, 1).take()
    assert not Claim(tmp_path, 0).take()


def test_where_no_file_can_be_made_every_rank_speaks(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert Claim(tmp_path / "file" / "runs", 0).speaks(failed=True)
    assert Claim(tmp_path / "file" / "runs", 1).speaks(failed=True)


def test_launches_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    names = set()
    for port in ("29500", "29501"):
        monkeypatch.setenv("MASTER_PORT", port)
        names.add(ranks.launch_name())
    assert len(names) == 2


def test_ranks_that_did_not_train_together_each_speak(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """RANK and WORLD_SIZE set by hand: a second run must not take the first for its neighbour, nor wait for it."""
    monkeypatch.delenv("TORCHELASTIC_RUN_ID", raising=False)
    start = time.monotonic()
    for rank in (0, 1, 1, 0):
        assert Claim(tmp_path, rank).speaks(failed=True, placed=False, together=False)
        assert Claim(tmp_path, rank).speaks(failed=False, together=False)
    assert time.monotonic() - start < 1


def test_a_launcher_s_ranks_are_together_even_before_they_meet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "7")
    assert Claim(tmp_path, 1).speaks(failed=True, together=False)
    assert not Claim(tmp_path, 0).speaks(failed=True, together=False)
