"""`examine` finds every known birth on a healthy machine, and names what is broken on another, with its cure."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.torch.tensors import bits
from whynan.torch import _compat, births, doctor, gate
from whynan.torch.births import KNOWN, KnownBirth, find
from whynan.torch.doctor import HOOKS, Finding, examine
from whynan.torch.scaling import Scaling
from whynan.torch.trace import Trace


def broken() -> dict[str, Finding]:
    return {finding.name: finding for finding in examine() if not finding.ok}


@pytest.mark.parametrize("known", KNOWN, ids=lambda known: known.name)
def test_every_known_birth_is_found(known: KnownBirth) -> None:
    birth = find(known)
    assert birth is not None
    assert (birth.op, birth.direction) == (known.op, known.direction)


def test_known_births_are_ten_of_different_kinds() -> None:
    assert len(KNOWN) == 10
    assert len({(known.op, known.direction) for known in KNOWN}) >= 7
    assert {known.direction for known in KNOWN} == {"forward", "backward"}


def test_a_healthy_machine_has_no_fault() -> None:
    findings = examine()
    assert [finding for finding in findings if not finding.ok] == []
    assert len(findings) == 1 + len(HOOKS) + len(KNOWN)
    assert findings[0].name == "versions"
    assert torch.__version__ in findings[0].detail


def test_another_version_is_no_fault_but_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "__version__", "3.0.0")
    versions = examine()[0]
    assert versions.ok
    assert "tested with torch" in versions.cure


def fails(*_: Any, **__: Any) -> Any:
    raise AttributeError("module 'torch._C' has no attribute 'gone'")


BREAK: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "autograd sequence numbers": lambda patch: patch.setattr(_compat, "sequence_number", lambda: 0),
    "the running autograd node": lambda patch: patch.setattr(_compat, "current_node", lambda: object()),
    "the fused finite check": lambda patch: patch.setattr(_compat, "non_finite_flag", lambda tensors, flag, one: None),
    "the random state": lambda patch: patch.setattr(_compat, "random_state", lambda: torch.zeros(1)),
    "saving into memory": lambda patch: patch.setattr(_compat, "saving_nowhere", contextlib.nullcontext),
    "storage identity": lambda patch: patch.setattr(_compat, "storage_key", lambda tensor: (id(tensor), None)),
    "hooks in and out": lambda patch: patch.setattr(_compat, "set_engine", lambda function: None),
}


@pytest.mark.parametrize("name", HOOKS)
def test_a_hook_that_does_nothing_is_told(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    BREAK[name](monkeypatch)
    finding = broken()[name]
    assert finding.detail
    assert finding.cure.startswith("install a tested version: pip install")


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("autograd sequence numbers", "node_number"),
        ("the running autograd node", "current_node"),
        ("the fused finite check", "put_back_versions"),
        ("storage identity", "storage_key"),
        ("the random state", "cuda_in_use"),
        ("saving into memory", "saving_nowhere"),
        ("hooks in and out", "engine"),
    ],
)
def test_a_hook_that_is_gone_is_told_with_the_error(monkeypatch: pytest.MonkeyPatch, name: str, function: str) -> None:
    monkeypatch.setattr(_compat, function, fails)
    finding = broken()[name]
    assert finding.detail == "AttributeError: module 'torch._C' has no attribute 'gone'"


def test_a_check_that_writes_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    check = _compat.non_finite_flag

    def writes(tensors: Any, flag: torch.Tensor, one: torch.Tensor) -> None:
        check(tensors, flag, one)
        torch._foreach_mul_(list(tensors), 0.5)

    monkeypatch.setattr(_compat, "non_finite_flag", writes)
    assert "the fused finite check" in broken()


def test_a_check_that_sees_what_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate.Gate, "suspicious", lambda self, tensors: True)
    assert "the fused finite check" in broken()


def test_hooks_that_stay_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    scale = torch.amp.GradScaler.scale
    monkeypatch.setattr(Scaling, "uninstall", lambda self: None)
    try:
        assert "hooks in and out" in broken()
    finally:
        for name in ("scale", "step", "update"):
            method = getattr(torch.amp.GradScaler, name)
            setattr(torch.amp.GradScaler, name, getattr(method, "__wrapped__", method))
    assert torch.amp.GradScaler.scale is scale


def test_a_birth_that_is_misplaced_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = dataclasses.replace(KNOWN[0], op="exp")
    monkeypatch.setattr(doctor, "KNOWN", (wrong, *KNOWN[1:]))
    assert broken()["known birth: log of zero"].detail == "found log (forward)"


def test_a_birth_that_is_not_found_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(births, "locate", lambda session: None)
    findings = broken()
    assert len(findings) == len(KNOWN)
    assert all(finding.detail == "not found" for finding in findings.values())


def test_a_recorder_that_fails_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Trace, "last_writer", fails)
    assert "AttributeError" in broken()["known birth: log of zero"].detail


def test_examining_leaves_nothing_behind() -> None:
    torch.manual_seed(3)
    state, engine = bits(torch.get_rng_state()), _compat.engine()
    examine()
    assert bits(torch.get_rng_state()) == state
    assert _compat.engine() is engine
    assert torch._C._len_torch_dispatch_stack() == 0
    assert not torch.nn.modules.module._global_forward_hooks
