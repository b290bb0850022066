"""Programs that do unusual things end as under plain Python: same output, no word of whynan's, nothing held alive."""

from __future__ import annotations

import pytest

from tests.torch.forks import Forks

START = """
import gc, weakref
import torch
torch.manual_seed(0)
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

def shown():
    return [p.detach().numpy().tobytes().hex() for p in model.parameters()], [p.grad is None or p.grad.sum().item().hex() for p in model.parameters()]
"""

PROGRAMS = {
    "a caught exception that speaks of nan, with gradients accumulated before it": """
def train_step(step):
    model(torch.rand(4, 3)).pow(2).sum().backward()
    if step % 3 != 2:
        raise ValueError("nan found") if step % 2 else ArithmeticError("got inf")
    optimizer.step()
    optimizer.zero_grad()

for step in range(12):
    try:
        train_step(step)
    except (ValueError, ArithmeticError) as error:
        print("caught", error, shown())
print(shown())
""",
    "a closure that raises": """
lbfgs = torch.optim.LBFGS(model.parameters(), lr=0.1)
for step in range(8):
    def closure():
        lbfgs.zero_grad()
        if step == 3:
            raise KeyError("no such batch")
        loss = model(torch.rand(4, 3)).pow(2).sum()
        loss.backward()
        return loss
    try:
        lbfgs.step(closure)
    except KeyError as error:
        print("caught", error)
print(shown())
""",
    "gradients of single samples": """
from torch.func import functional_call, grad, vmap
parameters = dict(model.named_parameters())

def loss(parameters, x):
    return functional_call(model, parameters, (x[None],)).pow(2).sum()

for step in range(5):
    each = vmap(grad(loss), in_dims=(None, 0))({k: v.detach() for k, v in parameters.items()}, torch.rand(4, 3))
    with torch.no_grad():
        for name, p in parameters.items():
            p -= 0.01 * each[name].mean(0)
print(shown())
""",
    "a backward without values": """
empty = torch.nn.Linear(3, 1, device="meta")
for step in range(3):
    empty(torch.ones(2, 3, device="meta")).sum().backward()
    model(torch.rand(4, 3)).pow(2).sum().backward()
    optimizer.step()
print(shown())
""",
    "a generator made in the loop's own line": """
def losses(x):
    for k in range(3):
        yield model(x).pow(2).sum() * k

for step in range(5):
    optimizer.zero_grad()
    total = 0
    for loss in losses(torch.rand(4, 3)):
        total = total + loss
    total.backward()
    optimizer.step()
print(shown())
""",
    "everything deleted after the loop": """
for step in range(6):
    out = model(torch.rand(4, 3))
    optimizer.zero_grad()
    out.pow(2).sum().backward()
    optimizer.step()
print(shown())
alive = [weakref.ref(thing) for thing in (model, optimizer, model.weight, out)]
del model, optimizer, out
gc.collect()
print([ref() is None for ref in alive])
""",
    "a bias of -inf that switches a class off": """
classes = torch.nn.Linear(3, 3)
with torch.no_grad():
    classes.bias[2] = -torch.inf
adam = torch.optim.Adam(classes.parameters(), lr=0.01)
for step in range(6):
    adam.zero_grad()
    torch.nn.functional.cross_entropy(classes(torch.rand(8, 3)), torch.arange(8) % 2).backward()
    adam.step()
    with torch.no_grad():
        model.weight -= 0.01
print(shown(), classes.weight.sum().item())
""",
    "rows of NaN that are never looked up": """
rows = torch.nn.Embedding(5, 3)
with torch.no_grad():
    rows.weight[4] = torch.nan
for update in (torch.optim.SGD(rows.parameters(), lr=0.1), None):
    for step in range(8):
        rows.weight.grad = None
        model(rows(torch.arange(4))).pow(2).sum().backward()
        if update is not None:
            update.step()
        else:
            with torch.no_grad():
                rows.weight -= 0.1 * rows.weight.grad
print(rows.weight[:4].sum().item())
""",
    "threads that train models of their own": """
import threading
done = []

def train(k):
    own = torch.nn.Linear(3, 2)
    rate = torch.optim.SGD(own.parameters(), lr=0.01)
    for step in range(400):
        rate.zero_grad()
        own(torch.ones(4, 3)).pow(2).mean().backward()
        rate.step()
    done.append(k)

threads = [threading.Thread(target=train, args=(k,)) for k in range(4)]
[thread.start() for thread in threads], [thread.join() for thread in threads]
print(sorted(done))
""",
    "modes that count operations and draw random numbers": """
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
counts = [0, 0]

class Noise(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        counts[0] += 1
        torch.randn(1)
        return function(*args, **(kwargs or {}))

class Functions(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        counts[1] += 1
        return function(*args, **(kwargs or {}))

norm = torch.nn.BatchNorm1d(3)
with Noise(), Functions():
    for step in range(8):
        optimizer.zero_grad()
        model(norm(torch.rand(4, 3))).pow(2).sum().backward()
        optimizer.step()
print(counts, torch.rand(1).item(), shown())
""",
    "a clock that is patched": """
import time
from unittest import mock
with mock.patch("time.perf_counter", side_effect=[0.0, 1.5]), mock.patch("time.monotonic", side_effect=ZeroDivisionError):
    start = time.perf_counter()
    for step in range(5):
        optimizer.zero_grad()
        model(torch.rand(4, 3)).pow(2).sum().backward()
        optimizer.step()
    print(time.perf_counter() - start, shown())
""",
    "properties in the place of attributes": """
class Loud:
    @property
    def __dict__(self):
        print("asked")
        return {}

thing = Loud()

def train(given):
    for step in range(5):
        mine = given
        optimizer.zero_grad()
        model(torch.rand(4, 3)).pow(2).sum().backward()
        optimizer.step()

train(thing)
print(shown())
""",
    "a random generator that is exchanged": """
import numpy as np
for step in range(6):
    if step == 3:
        np.random.set_bit_generator(np.random.MT19937(7))
        gc.collect()
    x = torch.tensor(np.random.rand(4, 3), dtype=torch.float32)
    optimizer.zero_grad()
    model(x).pow(2).sum().backward()
    optimizer.step()
print(shown(), np.random.rand())
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_under_plain_python(forks: Forks, name: str) -> None:
    plain, watched = forks.plain(START + PROGRAMS[name]), forks.watched(START + PROGRAMS[name])
    assert plain.status == 0, plain.stderr
    assert (watched.status, watched.stdout) == (plain.status, plain.stdout), watched.stderr
    assert watched.stderr == plain.stderr
    assert watched.report["incidents"] == []


def test_a_loop_over_a_generator_made_in_its_line_is_placed(forks: Forks) -> None:
    source = PROGRAMS["a generator made in the loop's own line"].replace("* k", "* (k if step < 3 else torch.log(torch.zeros(())))")
    ran = forks.watched(START + source)
    assert ran.status == 3, ran.stderr
    assert (ran.report["incidents"][0]["origin"]["op"], ran.report["incidents"][0]["step"]) == ("log", 3)


OUTSIDE = """
from torch.func import functional_call, grad, grad_and_value, vmap

def loss_of(parameters, x):
    return torch.atanh(functional_call(model, parameters, (x,))).sum()

{made}
parameters = {{k: v.detach() / 10 for k, v in model.named_parameters()}}
for step in range(6):
    x = torch.rand(4, 3) * (500 if step == 3 else 0.1)
    gradients, loss = differentiate(parameters, x)
    parameters = {{k: p - 0.001 * gradients[k] for k, p in parameters.items()}}
    print(step)
"""
MADE = [
    "differentiate = grad_and_value(loss_of)",
    "differentiate = lambda p, x: grad_and_value(loss_of)(p, x)",
    "once = grad(loss_of)\ndifferentiate = lambda p, x: (once(p, x), loss_of(p, x))",
]


@pytest.mark.parametrize("options", [(), ("--trace-step", "3")])
@pytest.mark.parametrize("made", MADE)
def test_a_gradient_function_made_outside_the_loop(forks: Forks, made: str, options: tuple[str, ...]) -> None:
    ran = forks.watched(START + OUTSIDE.format(made=made), options=options)
    assert ran.status == 3, ran.stderr
    [incident] = ran.report["incidents"]
    assert (incident["step"], incident["origin"]["op"], incident["replay"]["reproduced"]) == (3, "atanh", True)
    assert (incident["phase"], incident["origin"]["direction"]) == ("loss", "forward")


HIDDEN = """
F = torch.nn.functional

def attend(x, keep):
    scores = (model(x) @ x.transpose(1, 2)[:, :1]).masked_fill(~keep[:, None], -torch.inf)
    return x + F.softmax(scores, -1) @ x

for step in range(3):
    x, target, keep = torch.rand(2, 4, 3), torch.zeros(2, 4, dtype=torch.long), torch.ones(2, 4, dtype=torch.bool)
    if step == 1:
        keep[1], target[1] = False, -100
    h = x
    for layer in range({layers}):
        h = attend(h, keep)
    optimizer.zero_grad()
    F.cross_entropy(h.flatten(0, 1), target.flatten()).backward()
    optimizer.step()
"""


@pytest.mark.parametrize("layers", [2, 3])
def test_a_selection_that_lets_the_value_through_hides_nothing(forks: Forks, layers: int) -> None:
    ran = forks.watched(START + HIDDEN.format(layers=layers))
    assert ran.status == 3, ran.stderr
    [incident] = ran.report["incidents"]
    assert (incident["step"], incident["origin"]["op"], incident["causes"][0]["name"]) == (1, "softmax", "masked-softmax-row")


SWALLOWED = """
from concurrent.futures import ThreadPoolExecutor

def train_step(step):
    optimizer.zero_grad()
    loss = model(torch.rand(4, 3)).pow(2).sum() * (torch.log(torch.zeros(())) if step == 3 else 1)
    loss.backward()
    optimizer.step()

with ThreadPoolExecutor(1) as pool:
    for step in range(6):
        error = pool.submit(train_step, step).exception()
        print(step, error is None, all(p.isfinite().all().item() for p in model.parameters()))
"""


def test_whoever_swallows_the_stop_does_not_train_on(forks: Forks) -> None:
    ran = forks.watched(START + SWALLOWED)
    assert ran.status == 3, ran.stderr
    assert ran.stdout == "0 True True\n1 True True\n2 True True\n"
    assert [line for line in ran.stderr.splitlines() if line[:2] in ("3 ", "4 ", "5 ")] == ["3 False True", "4 False True", "5 False True"]
    assert ran.report["incidents"][0]["origin"]["op"] == "log"


TRAINED = """
for step in range(8):
    {first}
    {optimizer}.zero_grad()
    loss = model(torch.rand(4, 3)).pow(2).sum() * (torch.log(torch.zeros(())) if step == 5 else 1)
    loss.backward()
    {optimizer}.step()
"""
ODD = """
class Proxy:
    @property
    def __dict__(self):
        raise RuntimeError("working outside of a request")

    def __eq__(self, other):
        raise RuntimeError("never compared")
    __hash__ = None

class Own(torch.optim.SGD):
    def __eq__(self, other):
        raise RuntimeError("never compared")
    __hash__ = None

request = Proxy()
own = Own(model.parameters(), lr=0.01)
"""


def test_objects_that_may_not_be_looked_at(forks: Forks) -> None:
    ran = forks.watched(START + ODD + TRAINED.format(first="holds = [request]", optimizer="own"))
    assert ran.status == 3, ran.stderr
    [incident] = ran.report["incidents"]
    assert (incident["step"], incident["origin"]["op"], incident["causes"][0]["name"]) == (5, "log", "log-of-zero")


def test_descriptors_that_were_closed_under_us(forks: Forks) -> None:
    ran = forks.watched(START + "import os" + TRAINED.format(first="if step == 3: os.closerange(3, 200)", optimizer="optimizer"))
    assert ran.status == 3, ran.stderr
    assert "Traceback" not in ran.stderr
    assert "torch.log was given 0" in ran.stderr


SCALED = """
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**127, growth_interval=1000)
optimizer.param_groups[0]["lr"] = 1e-9
for step in range(30):
    optimizer.zero_grad()
    scaler.scale(model(torch.rand(4, 3)).pow(2).sum() * 1e4).backward()
    scaler.step(optimizer)
    scaler.update()
print(scaler.get_scale() < 2.0**115, shown())
"""
COUNTING = """
import whynan.torch.harmful as harmful

def install(path):
    tried, original, calls = open(path, "w"), harmful.overflows_at_scale_one, []

    def counted(*args):
        calls.append(1)
        tried.seek(0)
        tried.write(str(len(calls)))
        tried.flush()
        return original(*args)

    harmful.overflows_at_scale_one = counted
"""


def test_a_scale_far_too_high_is_tried_a_few_times_only(forks: Forks) -> None:
    plain, watched = forks.plain(START + SCALED), forks.watched(START + SCALED, probe=COUNTING)
    assert (watched.status, watched.stdout) == (plain.status, plain.stdout) == (0, plain.stdout), watched.stderr
    assert "True" in plain.stdout
    assert 1 <= watched.left <= 5


def test_what_no_parameter_made_is_not_blamed_on_the_rate(forks: Forks) -> None:
    """Large updates, but the loss falls and the infinity comes of a constant."""
    source = START.replace("lr=0.01", "lr=0.1") + TRAINED.format(first="model.weight.data.mul_(1e-3)", optimizer="optimizer")
    ran = forks.watched(source)
    assert ran.report["incidents"][0]["causes"][0]["name"] == "log-of-zero"
