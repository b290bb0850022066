"""A step that is run again may end in any way: what was found before it is never lost, and nothing of the user's is harmed."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.torch.forks import Forks, Ran

BEGIN = """
import torch
torch.manual_seed(0)
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
"""
# `tick` is memory that no second run puts back: the fourth step fails, and running it again takes another way
PROGRAM = f"""
import contextlib, ctypes, os, signal, sys, threading, time
{BEGIN}
tick = ctypes.c_int(0)
for step in range(6):
    tick.value += 1
    x = torch.rand(4, 3)
    if tick.value > 4:
        {{second}}
    optimizer.zero_grad()
    loss = model(x).sum()
    if step == 3:
        loss = loss * torch.log(torch.zeros(1)).sum()
    loss.backward()
    optimizer.step()
    print(step)
"""

ENDS = {
    "exit": "sys.exit(5)",
    "exit_of_the_process": "os._exit(5)",
    "exception": "raise LookupError('gone')",
    "end_of_input": "input()",
    "another_value": "x, step = x + 1, 0",
    "signal_to_itself": "signal.raise_signal(signal.SIGINT)",
}


@pytest.mark.parametrize("end", ENDS)
def test_however_it_ends_the_incident_is_reported(forks: Forks, end: str) -> None:
    ran = forks.watched(PROGRAM.format(second=ENDS[end]))
    assert ran.stdout == "0\n1\n2\n"
    assert (ran.status == 3) or end == "signal_to_itself", ran.stderr
    incident = ran.report["incidents"][0]
    assert (incident["step"], incident["replay"]["reproduced"]) == (3, False)
    assert "--trace-step 3" in incident["replay"]["command"]


def stored_incident(forks: Forks) -> str:
    """The one of the run that was made last."""
    [file] = Path(forks.base, str(forks.number - 1), "runs").glob("*/run.sqlite")
    with closing(sqlite3.connect(file)) as stored:
        [(document,)] = stored.execute("SELECT document FROM incident").fetchall()
    return str(document)


@pytest.mark.parametrize("end", ["SIGTERM", "SIGKILL"])
def test_killed_in_it_the_incident_is_on_disk(forks: Forks, end: str) -> None:
    ran = forks.watched(PROGRAM.format(second=f"os.kill(os.getpid(), signal.{end})"))
    assert ran.status != 0
    document = stored_incident(forks)
    assert '"step":3' in document.replace(" ", "")
    assert "--trace-step 3" in document


SOON = "def install(path):\n    import whynan.script.deadline as d\n    d.LEAST, d.TIMES, d.GRACE = 3.0, 1, 1.0\n"


@pytest.mark.parametrize("where", ["main", "thread"])
@pytest.mark.parametrize("wait", ["threading.Event().wait()", "while True: pass"])
def test_one_that_does_not_end_is_ended(forks: Forks, wait: str, where: str) -> None:
    source = PROGRAM.format(second=wait)
    if where == "thread":
        loop, rest = source.split("for step in")
        body = ("for step in" + rest).replace("\n", "\n    ")
        source = f"{loop}def train():\n    {body}\nthread = threading.Thread(target=train)\nthread.start()\nthread.join()\n"
        if "Event" in wait:
            source = source.replace("threading.Event().wait()", "time.sleep(3.5)")  # no signal reaches it there
    ran = forks.watched(source, probe=SOON)
    assert ran.status == 3, ran.stderr
    assert "had not ended after" in ran.report["incidents"][0]["replay"]["reason"]
    assert "Traceback" not in ran.stderr


def test_one_that_waits_where_no_signal_reaches_it_ends_the_process(forks: Forks) -> None:
    """As in a program that was started in the background, which ignores SIGINT."""
    ran = forks.watched(PROGRAM.format(second="signal.signal(signal.SIGINT, signal.SIG_IGN); threading.Event().wait()"), probe=SOON, limit=30)
    assert ran.status == 3, ran.stderr
    assert '"step":3' in stored_incident(forks).replace(" ", "")


SWALLOWING = (
    BEGIN
    + """
import contextlib

class Everything:
    def __enter__(self): return self
    def __exit__(self, *_): return True

for step in range(6):
    x = torch.rand(4, 3)
    {around}
        optimizer.zero_grad()
        loss = model(x).sum() * torch.log(torch.zeros(()) if step == 3 else torch.ones(()) + 1)
        loss.backward()
        optimizer.step()
    {after}
    print(step)
"""
)


@pytest.mark.parametrize(
    ("around", "after"),
    [
        ("with contextlib.suppress(BaseException):", "pass"),
        ("with Everything():", "pass"),
        ("try:", "except BaseException: pass"),
        ("try:", "finally: continue"),
    ],
)
def test_a_body_that_swallows_everything_is_placed(forks: Forks, around: str, after: str) -> None:
    ran = forks.watched(SWALLOWING.format(around=around, after=after))
    assert ran.status == 3, ran.stderr
    incident = ran.report["incidents"][0]
    assert (incident["step"], incident["origin"]["op"]) == (3, "log")


def test_a_checkpoint_is_not_saved_a_second_time(forks: Forks) -> None:
    source = PROGRAM.format(second="pass").replace("    optimizer.zero_grad()", "    torch.save(model, f'at-{tick.value}.pt')")
    ran = forks.watched(source)
    folder = Path(forks.base, str(forks.number - 1))
    assert ran.status == 3, ran.stderr
    assert sorted(path.name for path in folder.glob("*.pt")) == [f"at-{n}.pt" for n in (1, 2, 3, 4)]


def test_the_exception_that_ends_a_thread_is_not_shown(forks: Forks) -> None:
    loop, rest = PROGRAM.format(second="pass").split("for step in")
    body = ("for step in" + rest).replace("\n", "\n    ")
    ran = forks.watched(f"{loop}def train():\n    {body}\nthread = threading.Thread(target=train)\nthread.start()\nthread.join()\n")
    assert ran.status == 3
    assert "Exception in thread" not in ran.stderr
    assert ran.report["incidents"][0]["origin"]["op"] == "log"


# ---- exceptions of the user's that arrive in our hooks ----

ARRIVES = """
import importlib, signal


def install(path):
    module, _, names = {target!r}.partition(":")
    owner = importlib.import_module(module)
    *through, name = names.split(".")
    for part in through:
        owner = getattr(owner, part)
    original, calls = getattr(owner, name), []

    def interrupted(*args, **kwargs):
        calls.append(1)
        if len(calls) == 3:
            signal.raise_signal(signal.SIGUSR1)
        return original(*args, **kwargs)

    setattr(owner, name, interrupted)
"""
HANDLED = (
    BEGIN
    + """
import functools, signal

class Timeout(Exception): pass

def handler(number, frame, *more):
    raise Timeout("too slow")

class Handler:
    def __call__(self, number, frame):
        handler(number, frame)

signal.signal(signal.SIGUSR1, {handler})
for step in range(8):
    try:
        x = torch.rand(4, 3)
        optimizer.zero_grad()
        loss = model(x).sum()
        if step == 6:
            loss = loss * torch.log(torch.zeros(1)).sum()
        loss.backward()
        optimizer.step()
    except Timeout as error:
        print("caught", error)
print("end")
"""
)
HOOKS = ["whynan.torch.registry:Registry.leaves", "whynan.torch.trend:TrendWatch.due", "whynan.torch.choice:Steps.count"]


@pytest.mark.parametrize("target", HOOKS)
@pytest.mark.parametrize("kind", ["handler", "Handler()", "functools.partial(handler)"])
def test_what_a_signal_handler_raises_is_the_users(forks: Forks, target: str, kind: str) -> None:
    ran = forks.watched(HANDLED.format(handler=kind), probe=ARRIVES.format(target=target))
    assert ran.stdout == "caught too slow\n"
    assert "a fault of its own" not in ran.stderr
    assert ran.status == 3, ran.stderr
    assert ran.report["incidents"][0]["origin"]["op"] == "log"


DEEP = """
import torch
model = torch.nn.Linear(3, 1)
deepest = 0

def down(depth):
    global deepest
    deepest = depth
    model(torch.rand(2, 3)).sum().backward()
    down(depth + 1)

for _ in range(2):
    try:
        down(0)
    except RecursionError:
        print("too deep", deepest > 100)
"""


def test_the_end_of_a_recursion_is_the_users(forks: Forks) -> None:
    plain, watched = forks.plain(DEEP), forks.watched(DEEP)
    assert (watched.status, watched.stdout) == (plain.status, plain.stdout)
    assert "whynan" not in watched.stderr


# ---- processes ----

CHILDREN = """
import multiprocessing, torch

def train():
    model = torch.nn.Linear(3, 1)
    model(torch.rand(2, 3)).log().sum().backward()

if __name__ == "__main__":
    process = multiprocessing.get_context({how!r}).Process(target=train)
    process.start()
    process.join()
    print(process.exitcode)
"""


@pytest.mark.parametrize("how", ["fork", "spawn"])
def test_training_in_other_processes_is_said_to_be_unwatched(forks: Forks, how: str) -> None:
    ran: Ran = forks.watched(CHILDREN.format(how=how))
    assert (ran.status, ran.stdout) == (0, "0\n"), ran.stderr
    assert "not watched" in ran.stderr
    assert any("not watched" in limit for limit in ran.report["run"]["limits"])
