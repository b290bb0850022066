"""Watching changes nothing: weights, gradients, optimizer state and every random state end the same, bit for bit; no hook stays."""

from __future__ import annotations

import pytest

from tests.torch.forks import SCRIPTS, Forks

PROGRAMS = sorted(path.stem for path in SCRIPTS.glob("*.py") if not path.stem.startswith("shared_"))
HEALTHY = (SCRIPTS / "groups.py").read_text()
FAILS = HEALTHY.replace("    loss.backward()\n", "    loss.backward()\n    if step == 5:\n        raise LookupError('no such thing')\n")
LEAVES = HEALTHY.replace("    loss.backward()\n", "    loss.backward()\n    if step == 5:\n        raise SystemExit(7)\n")
TWICE = HEALTHY.replace("    loss.backward()\n", "    loss.backward()\n    if step == 5:\n        loss.backward()\n")
BAD = HEALTHY.replace("    loss = nn", "    out = out.log() if step == 5 else out\n    loss = nn")

PROBE = """
import atexit, json, sys
import torch
from torch.utils.data import dataloader

optimizers = sys.modules["torch.optim.optimizer"]
OWNERS = (torch, torch.autograd, torch.autograd.graph, torch.Tensor, torch.nn.Module, torch.nn.init, torch.nn.utils, torch.nn.modules.module,
          torch.optim.Optimizer, optimizers, torch.amp.GradScaler, dataloader, dataloader.DataLoader,
          dataloader._BaseDataLoaderIter, dataloader._SingleProcessDataLoaderIter, torch.distributed, torch.compiler, torch.utils.checkpoint)


def state():
    found = {f"{owner.__name__}.{name}": value for owner in OWNERS for name, value in list(vars(owner).items())}
    return found


def counts():
    module = torch.nn.modules.module
    tables = {name: len(value) for owner in (module, optimizers) for name, value in vars(owner).items() if name.startswith("_global") and hasattr(value, "__len__")}
    tables["dispatch modes"] = torch._C._len_torch_dispatch_stack()
    tables["function modes"] = torch._C._len_torch_function_stack()
    tables["anomaly"], tables["grad"] = torch.is_anomaly_enabled(), torch.is_grad_enabled()
    tables["threads"] = torch.get_num_threads()
    return tables


def install(path):
    before, tables = state(), counts()

    def compare():
        now = state()
        changed = [name for name, value in before.items() if now.get(name) is not value]
        changed += [name for name, value in now.items() if name not in before and str(getattr(value, "__module__", "")).startswith("whynan")]
        changed += [f"{name}: {value}" for name, value in counts().items() if tables[name] != value]
        with open(path, "w") as file:
            json.dump({"changed": changed, "watched": "whynan" in str(sys.argv) or hasattr(__import__("builtins"), "__whynan__")}, file)

    atexit.register(compare)
"""


@pytest.mark.parametrize("program", PROGRAMS)
def test_training_is_unchanged(forks: Forks, program: str) -> None:
    source = (SCRIPTS / f"{program}.py").read_text()
    plain, watched = forks.plain(source), forks.watched(source)
    assert plain.status == 0, plain.stderr
    assert "python" in plain.stdout.splitlines()[-1]
    assert watched.stdout == plain.stdout
    assert watched.stderr == plain.stderr
    assert watched.status == plain.status
    assert watched.report["run"]["status"] == "clean"
    assert watched.report["run"]["steps"] > 0
    assert not any("fault" in limit or "ended" in limit for limit in watched.report["run"]["limits"])


@pytest.mark.parametrize("source", [FAILS, TWICE, LEAVES], ids=["by an exception", "by an error inside backward", "by SystemExit"])
def test_a_run_that_ends_early_ends_the_same(forks: Forks, source: str) -> None:
    plain, watched = forks.plain(source), forks.watched(source)
    assert plain.status in (1, 7)
    assert (watched.stdout, watched.stderr, watched.status) == (plain.stdout, plain.stderr, plain.status)


@pytest.mark.parametrize(("source", "status"), [(HEALTHY, 0), (FAILS, 1), (LEAVES, 7), (BAD, 3)], ids=["clean", "raises", "exits", "incident"])
def test_no_hook_is_left_behind(forks: Forks, source: str, status: int) -> None:
    watched = forks.watched(source, probe=PROBE)
    assert watched.status == status, watched.stderr
    assert watched.report["run"]["steps"] > 0
    assert watched.left["changed"] == []


def test_the_probe_sees_hooks_that_are_left(forks: Forks) -> None:
    """The script puts some in itself."""
    leaves = "import torch\ntorch.nn.Module.register_buffer = print\nfrom torch.optim.optimizer import register_optimizer_step_pre_hook\nregister_optimizer_step_pre_hook(print)\n"
    left = forks.plain(leaves, probe=PROBE).left["changed"]
    assert left == ["Module.register_buffer", "_global_optimizer_pre_hooks: 1"]
