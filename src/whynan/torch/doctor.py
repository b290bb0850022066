"""Is this machine fit for the watch: the versions, every private hook, and the recorder on known births."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from whynan.torch import _compat
from whynan.torch.births import KNOWN, KnownBirth, find
from whynan.torch.gate import Gate
from whynan.torch.loader import LoaderWatch
from whynan.torch.registry import Registry
from whynan.torch.scaling import Scaling
from whynan.torch.watch import Hooks

TESTED = "2.13"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was tried: `detail` says what was seen, `cure` what to do where it is not `ok`."""

    name: str
    ok: bool
    detail: str
    cure: str = ""


def examine() -> list[Finding]:
    findings = [_versions()]
    findings += [_tried(name, check) for name, check in HOOKS.items()]
    findings += [_birth(known) for known in KNOWN]
    return findings


def _versions() -> Finding:
    version = str(torch.__version__)
    cure = "" if version.startswith(TESTED) else f"tested with torch {TESTED}; every hook below is tried on this version"
    return Finding("versions", True, f"Python {sys.version.split()[0]}, torch {version}", cure)


def _tried(name: str, check: Callable[[], bool]) -> Finding:
    try:
        ok, detail = check(), ""
    except Exception as error:
        ok, detail = False, f"{type(error).__name__}: {error}"
    return Finding(name, ok, detail or ("works" if ok else "does not behave as expected"), "" if ok else CURE)


CURE = f'install a tested version: pip install "torch=={TESTED}.0"'


def _birth(known: KnownBirth) -> Finding:
    birth = None
    try:
        birth = find(known)
        ok = birth is not None and birth.op == known.op and birth.direction == known.direction
        detail = f"found {birth.op} ({birth.direction})" if birth is not None else "not found"
    except Exception as error:
        ok, detail = False, f"{type(error).__name__}: {error}"
    return Finding(f"known birth: {known.name}", ok, detail, "" if ok else CURE)


def _sequence_numbers() -> bool:
    before = _compat.sequence_number()
    value = torch.ones(1, requires_grad=True) * 2
    node = value.grad_fn
    return _compat.sequence_number() == before + 1 and node is not None and _compat.node_number(node) == before


def _running_node() -> bool:
    seen: list[str] = []
    value = torch.ones(1, requires_grad=True)
    product = value * 2
    product.register_hook(lambda grad: seen.append(str(_compat.current_node())))  # type: ignore[no-untyped-call]
    product.sum().backward()  # type: ignore[no-untyped-call]
    return _compat.current_node() is None and len(seen) == 1


def _finite_check() -> bool:
    return _is_checked(torch.tensor([0.0, -0.0, 1e-45, 3e38])) and _is_checked(torch.tensor([0.0, -0.0, 6e-8, 6e4], dtype=torch.float16))


def _is_checked(good: torch.Tensor) -> bool:
    bad = torch.tensor([1.0, torch.inf], dtype=good.dtype)
    before, version = good.clone(), good._version
    quiet = not Gate().suspicious([good])
    unchanged = torch.equal(good.view(torch.uint8), before.view(torch.uint8)) and good._version == version
    return quiet and unchanged and Gate().suspicious([good, bad])


def _random_state() -> bool:
    return torch.equal(_compat.random_state(), torch.get_rng_state()) and _compat.cuda_in_use() == torch.cuda.is_initialized()  # type: ignore[no-untyped-call]


def _saving() -> bool:
    with tempfile.TemporaryDirectory() as folder:
        kept, left_out = Path(folder, "kept"), Path(folder, "left out")
        with _compat.saving_nowhere():
            torch.save(torch.ones(1), left_out)
        torch.save(torch.ones(1), kept)
        return kept.exists() and not left_out.exists()


def _storage_identity() -> bool:
    tensor = torch.zeros(4)
    return _compat.storage_key(tensor)[0] == _compat.storage_key(tensor[1:].view(3))[0] != _compat.storage_key(torch.zeros(4))[0]


def _hooks() -> bool:
    """Every hook goes in, sees what it should, and leaves nothing behind."""
    before = (_compat.engine(), torch.optim.Optimizer.add_param_group, torch.amp.GradScaler.scale, torch.nn.Module.register_buffer)
    seen: list[str] = []

    class Watcher:
        def engine(self, outputs, *args, **kwargs):  # type: ignore[no-untyped-def]
            seen.append("engine")
            return before[0](outputs, *args, **kwargs)

        def compiles(self) -> None:
            pass

        def original_code(self, code):  # type: ignore[no-untyped-def]
            return None

        def before_step(self, *_: object) -> None:
            seen.append("before")

        def after_step(self, *_: object) -> None:
            seen.append("after")

    hooks = Hooks(Watcher(), Registry(), Scaling(lambda scaler: None), LoaderWatch())
    hooks.install()
    try:
        leaf = torch.ones(1, requires_grad=True)
        leaf.sum().backward()  # type: ignore[no-untyped-call]
        torch.optim.SGD([leaf], lr=0.0).step()
    finally:
        hooks.uninstall()
    after = (_compat.engine(), torch.optim.Optimizer.add_param_group, torch.amp.GradScaler.scale, torch.nn.Module.register_buffer)
    return seen == ["engine", "before", "after"] and before == after


HOOKS = {
    "autograd sequence numbers": _sequence_numbers,
    "the running autograd node": _running_node,
    "the fused finite check": _finite_check,
    "storage identity": _storage_identity,
    "the random state": _random_state,
    "saving into memory": _saving,
    "hooks in and out": _hooks,
}
