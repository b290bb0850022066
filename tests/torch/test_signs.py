"""Warnings of real runs: told in time, once a kind, in words; training goes on as it would, bit for bit."""

from __future__ import annotations

import gc
import weakref
from collections import Counter
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

from tests.torch.forks import Forks, Ran
from whynan.core.places import user_frame
from whynan.torch.signs_graph import GraphReader
from whynan.torch.signs_terms import terms_of

HEAD = """
import torch
import torch.nn.functional as F
from torch import nn
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
other = nn.Linear(4, 4)
centres = torch.randn(3, 4)
def batch():
    y = torch.randint(0, 3, (32,))
    return centres[y] + torch.randn(32, 4), y
"""
STEP = """
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
END = "print([p.double().sum().item().hex() for p in net.parameters()], torch.rand(1).item())\n"


def script(body: str, optimizer: str = "torch.optim.SGD(net.parameters(), lr=0.01)", steps: int = 320) -> str:
    lines = "\n".join(f"    {line}" for line in body.strip("\n").splitlines())
    return f"{HEAD}\nopt = {optimizer}\nfor step in range({steps}):\n{lines}\n{STEP}{END}"


CLASSES = "x, y = batch()\nloss = F.cross_entropy(net(x), y)"
UNHEALTHY = {
    "rate-rising": script(CLASSES + "\nopt.param_groups[0]['lr'] = 1e-5 * 1.03**step"),
    "update-ratio-high": script(CLASSES, "torch.optim.RMSprop(net.parameters(), lr=0.5, weight_decay=1.0)", 100),
    "loss-growing": script("x, y = batch()\nw = net[0].weight\nloss = w.square().sum()", "torch.optim.SGD([net[0].weight], lr=1.03)", 700),
    "gradient-norm-growing": script("w = net[0].weight\nloss = -w.square().sum()", "torch.optim.SGD([net[0].weight], lr=0.03)"),
    "loss-unbounded": script("w = net[0].weight\nloss = -w.square().sum()", "torch.optim.SGD([net[0].weight], lr=0.03)"),
    "parameter-running-away": script("loss = net[0].bias.sum()", "torch.optim.Adam(net.parameters(), lr=0.2)"),
    "parameter-without-gradient": script(CLASSES, "torch.optim.SGD([*net.parameters(), *other.parameters()], lr=0.01)"),
    "dead-layer": script(CLASSES.replace("net(x)", "net(x) + torch.relu(other(x) - 100).sum()"), "torch.optim.SGD([*net.parameters(), *other.parameters()], lr=0.01)"),
    "one-class-batches": script("x, y = batch()\ny = torch.full((32,), step % 3)\nloss = F.cross_entropy(net(x), y)"),
    "loss-component-dominates": script("x, y = batch()\nout = net(x)\ncls, box = F.cross_entropy(out, y), (out - 300).square().mean()\nloss = cls + box", "torch.optim.SGD(net.parameters(), lr=1e-7)"),
    "headroom-shrinking": script("loss = -net[0].weight.mean().half().exp().float().log()", "torch.optim.Adam([net[0].weight], lr=0.07)", 140),
}  # fmt: skip
GAN = """
opt_d = torch.optim.Adam(other.parameters(), lr=1e-3)
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
bce = F.binary_cross_entropy_with_logits
for step in range(300):
    x, y = batch()
    fake = F.pad(net(x), (0, 1))
    opt_d.zero_grad()
    bce(other(x)[:, 0], torch.ones(32)).backward()
    bce(other(fake.detach())[:, 0], torch.zeros(32)).backward()
    opt_d.step()
    loss = bce(other(fake)[:, 0], torch.ones(32))
"""
HEALTHY = {
    "classes": script(CLASSES, "torch.optim.Adam(net.parameters(), lr=1e-3)", 600),
    "warm-up": script(CLASSES + "\nopt.param_groups[0]['lr'] = 1e-2 * min(1, (step + 1) / 200)", "torch.optim.Adam(net.parameters())"),
    "a GAN": HEAD + GAN + STEP + END,
    "a phase": script(CLASSES + "\nif step > 90: loss = loss + other(x).square().mean()", "torch.optim.SGD([*net.parameters(), *other.parameters()], lr=0.01)"),
    "frozen": script("other.requires_grad_(False)\nnet[0].requires_grad_(False)\n" + CLASSES, "torch.optim.SGD([*net.parameters(), *other.parameters()], lr=0.01)"),
    "small penalty": script(CLASSES + "\nreg = sum(p.square().sum() for p in net.parameters())\ncls = loss\nloss = cls + 1e-6 * reg"),
}  # fmt: skip


def names(ran: Ran) -> list[str]:
    return [warning["name"] for warning in ran.report["warnings"]]


@pytest.mark.parametrize("name", UNHEALTHY)
def test_is_told_once_in_time_and_changes_nothing(forks: Forks, name: str) -> None:
    plain, ran = forks.plain(UNHEALTHY[name]), forks.watched(UNHEALTHY[name])
    assert name in names(ran), (names(ran), ran.report["run"]["limits"], ran.stderr)
    lines = [line for line in ran.stderr.splitlines() if line.startswith("whynan: warning: step ")]
    assert [line.rsplit("[", 1)[1].rstrip("]") for line in lines] == names(ran)
    assert len(set(names(ran))) == len(lines)
    if ran.report["incidents"]:
        assert ran.report["warnings"][names(ran).index(name)]["step"] <= ran.report["incidents"][0]["step"] - 20
    else:
        assert (ran.status, ran.stdout) == (0, plain.stdout), ran.stderr


@pytest.mark.parametrize("name", HEALTHY)
def test_silent(forks: Forks, name: str) -> None:
    plain, ran = forks.plain(HEALTHY[name]), forks.watched(HEALTHY[name])
    assert ran.stderr == plain.stderr
    assert (ran.status, ran.stdout, names(ran)) == (0, plain.stdout, [])


def test_the_graph_is_read_on_the_short_way_too(forks: Forks) -> None:
    body = "opt.param_groups[0]['lr'] = 0.03 if step > 140 else 1e-9\nloss = -net[0].weight.mean().half().exp().float().log()"
    ran = forks.watched(script(body, "torch.optim.Adam([net[0].weight], lr=0.03)", 470))
    assert names(ran) == ["headroom-shrinking"], ran.stderr
    assert ran.report["warnings"][0]["step"] > 200


def test_names_are_those_of_the_model(forks: Forks) -> None:
    source = script("x, y = batch()\nloss = F.cross_entropy(net[:2](x), y)", "torch.optim.SGD(net.parameters(), lr=0.01)")
    (warning,) = forks.watched(source).report["warnings"]
    assert warning["text"].startswith("2.weight, 2.bias have never had a gradient")


def test_quiet_keeps_them_for_the_report(forks: Forks) -> None:
    ran = forks.watched(UNHEALTHY["one-class-batches"], options=["--quiet"])
    assert ran.stderr == ""
    assert names(ran) == ["one-class-batches"]


def test_a_forked_child_says_nothing(forks: Forks) -> None:
    source = UNHEALTHY["one-class-batches"].replace("for step", "import os\nif os.fork() == 0:\n    centres *= 1\nelse:\n    os.wait()\n    os._exit(0)\nfor step")
    assert "warning" not in forks.watched(source).stderr


def test_a_fault_of_our_own_ends_the_warnings_alone(forks: Forks) -> None:
    probe = "def install(path):\n    import whynan.torch.signs_optimizer as module\n    module.OptimizerSigns.measure = None\n"
    source = script("x, y = batch()\nloss = net(x).square().mean() * (torch.log(torch.tensor(0.0)) if step == 200 else 1)")
    ran = forks.watched(source, probe=probe)
    assert [incident["step"] for incident in ran.report["incidents"]] == [200]
    assert any(limit.startswith("warnings ended at a fault") for limit in ran.report["run"]["limits"])
    assert "Traceback" not in ran.stderr


# ---- what is read of the graph ----


def labels_of(loss: torch.Tensor) -> Counter[float]:
    reader = GraphReader()
    reader.read(loss)
    return reader.labels


def logits(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, requires_grad=True) * 1.5


def test_labels_of_usual_losses() -> None:
    y = torch.tensor([0, 2, 2, 1])
    assert labels_of(F.cross_entropy(logits(4, 3), y)) == Counter({0: 1, 2: 2, 1: 1})
    assert labels_of(3 * F.nll_loss(logits(4, 3).log_softmax(1), y) + logits(2).sum()) == Counter({0: 1, 2: 2, 1: 1})
    assert labels_of(F.cross_entropy(logits(4, 3), torch.tensor([0, -100, -100, 1]))) == Counter({0: 1, 1: 1})
    ones = torch.tensor([1.0, 1.0, 0.0])
    assert labels_of(F.binary_cross_entropy_with_logits(logits(3), ones)) == Counter({1: 2, 0: 1})
    assert labels_of(F.binary_cross_entropy(logits(3, 1).sigmoid(), ones[:, None])) == Counter({1: 2, 0: 1})


def test_what_are_no_labels_of_rows() -> None:
    assert not labels_of(F.binary_cross_entropy_with_logits(logits(3), torch.rand(3)))
    assert not labels_of(F.binary_cross_entropy_with_logits(logits(3, 5), torch.zeros(3, 5)))
    assert not labels_of(F.cross_entropy(logits(2, 3, 4, 4), torch.zeros(2, 4, 4, dtype=torch.long)))
    assert not labels_of(F.mse_loss(logits(3), torch.ones(3)))


def test_what_hooks_have_packed_is_not_unpacked() -> None:
    unpacked: list[Any] = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: unpacked.append(t) or t):
        loss = F.cross_entropy(logits(4, 3).half().float(), torch.tensor([0, 0, 1, 2])) + (logits(3).half() ** 2).sum()
    assert not labels_of(loss)
    inner = checkpoint(lambda x: unpacked.append(x) or (x.half() ** 2).sum(), logits(3), use_reentrant=False)
    unpacked.clear()
    labels_of(inner.float() * 2)
    assert not unpacked


def test_a_freed_graph_is_read_as_nothing() -> None:
    loss = F.cross_entropy(logits(4, 3), torch.tensor([0, 2, 2, 1]))
    loss.backward()
    assert not labels_of(loss)


def test_the_largest_value_in_float16() -> None:
    reader = GraphReader()
    reader.read((torch.tensor([3.0, -500.0], requires_grad=True).half() ** 2).float().sum())
    assert reader.largest == 500
    reader.read(logits(3).square().sum())
    assert reader.largest is None


def terms_here(loss: torch.Tensor, **variables: Any) -> list[tuple[str, float, float]]:
    """Of a function's frame that holds `variables`."""
    source = f"def held({', '.join(variables)}):\n    return terms_of(loss, user_frame(sys._getframe()))"
    scope = {"terms_of": terms_of, "loss": loss, "user_frame": user_frame, "sys": __import__("sys")}
    exec(compile(source, "/user/train.py", "exec"), scope)
    return scope["held"](**variables)  # type: ignore[operator, no-any-return]


def test_terms_with_their_weights() -> None:
    a, b, c = (torch.tensor(value, requires_grad=True) * 1 for value in (1.0, 2.0, 3.0))
    assert terms_here(a + 100 * b - c / 2, a=a, b=b, c=c) == [("a", 1, 1), ("b", 200, 100), ("c", -1.5, -0.5)]
    losses = {"a": a, "b": b}
    assert sorted(terms_here(sum(losses.values()) * 4, losses=losses)) == [("losses['a']", 4, 4), ("losses['b']", 8, 4)]
    assert terms_here(torch.stack([a, b]).mean(), a=a, b=b) == [("a", 0.5, 0.5), ("b", 1, 0.5)]
    total = a + b
    assert terms_here(total / 2, a=a, b=b, total=total) == [("a", 0.5, 0.5), ("b", 1, 0.5)]


def test_unknown_terms_are_none() -> None:
    a, b = (torch.tensor(value, requires_grad=True) * 1 for value in (1.0, 2.0))
    assert terms_here(a + b.square(), a=a, b=b) == []
    assert terms_here(a * b, a=a, b=b) == []
    assert terms_here(a * 2, a=a) == []


def test_no_graph_is_kept_alive() -> None:
    scope: dict[str, Any] = {"terms_of": terms_of, "user_frame": user_frame, "sys": __import__("sys"), "torch": torch, "weakref": weakref, "gc": gc}
    source = """
def train():
    w = torch.ones(3, requires_grad=True)
    a, b = w.sum(), (w * 2).sum()
    loss = a + b
    assert len(terms_of(loss, user_frame(sys._getframe()))) == 2
    gone = weakref.ref(a)
    del a, b, loss
    return gone() is None
"""
    exec(compile(source, "/user/train.py", "exec"), scope)
    assert scope["train"]()
