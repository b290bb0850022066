"""A fault of our own, wherever it is, never stops or changes the user's run: one line says so, and watching ends."""

from __future__ import annotations

import pytest

from tests.torch.forks import Forks, Ran

PROBE = """
import importlib, os, sys


def install(path):
    met = os.open(path, os.O_RDWR | os.O_CREAT)  # opened now: a replay opens nothing for writing
    target = {target!r}
    module, _, names = target.partition(":")
    owner = importlib.import_module(module)
    *through, name = names.split(".")
    for step in through:
        owner = getattr(owner, step)

    def planted(*args, **kwargs):
        os.pwrite(met, b"true", 0)
        raise RuntimeError("planted")

    original = owner.__dict__[name]
    planted = property(planted) if isinstance(original, property) else staticmethod(planted) if isinstance(original, staticmethod) else planted
    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").startswith("whynan.") and getattr(module, name, None) is original and module is not owner:
            setattr(module, name, planted)
    setattr(owner, name, planted)
"""
HEALTHY = "from shared_everything import train\ntrain()\n"
LONG = """
import torch
torch.manual_seed(0)
model = torch.nn.Linear(3, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(200):
    optimizer.zero_grad()
    model(torch.rand(4, 3)).square().mean().backward()
    optimizer.step()
print(model.weight.tolist())
"""
COMPILED = HEALTHY.replace("train()", "train(compiled=True)")
BAD = HEALTHY.replace("train()", "train(bad=lambda step, out: out.log() if step == 4 else out)")

# what runs in a healthy step
WATCHING = """
whynan.torch.backend:TorchBackend.enter
whynan.torch.backend:TorchBackend.leave
whynan.torch.backend:TorchBackend._is_spoiled
whynan.torch.backward:BackwardWatch._before
whynan.torch.backward:BackwardWatch._after
whynan.torch.backward:BackwardWatch._counted
whynan.torch.backward:BackwardWatch.are_among_checked
whynan.torch.updates:UpdateWatch._check_gradients
whynan.torch.updates:UpdateWatch._before
whynan.torch.updates:UpdateWatch._after
whynan.torch.buffers:Buffers.bad
whynan.torch.updates:UpdateWatch._close
whynan.torch.choice:Steps.count
whynan.torch.choice:choose
whynan.torch.choice:smallest_number
whynan.torch.copies:OptimizerCopy.__init__
whynan.torch.copies:TensorCopy.take
whynan.torch.gate:Gate.suspicious
whynan.torch.loader:_plain
whynan.torch.noted:Noted.__init__
whynan.torch.origins:Origins._note
whynan.torch.policy:Character.__init__
whynan.torch.policy:Policies.of
whynan.torch.policy:Policy.close
whynan.torch.buffers:Buffers.refresh
whynan.torch.registry:Registry.character
whynan.torch.registry:Registry.forget_groups
whynan.torch.registry:Registry.learn_leaves
whynan.torch.registry:Registry.leaves
whynan.torch.registry:Registry.made_optimizer
whynan.torch.registry:Registry.met_optimizer
whynan.torch.registry:Registry.owned
whynan.torch.scaling:Scaling.optimizer_stepped
whynan.torch.scaling:Scaling.unscaled
whynan.torch.trend:TrendWatch.after_update
whynan.torch.trend:TrendWatch.close_step
whynan.torch.trend:TrendWatch.due
whynan.torch.trend:TrendWatch.measure
whynan.torch.trend:_norms
whynan.record.recorder:RunRecorder.step
whynan.script.attempts:Attempt.__init__
whynan.script.capture:Captured.capture
whynan.script.capture:Plan.learn
whynan.script.capture:_note
whynan.script.journal:Journal._is_iterator
whynan.script.random_states:take
whynan.script.tape:Tape.add
whynan.script.tape:Tape.begin
whynan.script.tape:Tape.release
whynan.script.tape:Tape.forget
""".split()

# what runs once steps take the short way
CRUISING = """
whynan.torch.cruise:Cruise.__init__
whynan.torch.cruise:Cruise.time_next
whynan.script.runtime:Runtime.settle
whynan.script.settled:SettledAttempt.__init__
whynan.torch.cruise:may_cruise
whynan.torch.cruise:clock
whynan.torch.cruise:cuda_in_use
whynan.torch.cruise:summed
whynan.torch.policy:Character.is_tame
whynan.torch.updates:UpdateWatch._learn_course
""".split()

# what puts the hooks in and takes them out
INSTALLING = """
whynan.torch.backend:TorchBackend.__init__
whynan.torch.backend:TorchBackend.install
whynan.torch.compiled:patched
whynan.torch.loader:LoaderWatch.install
whynan.torch.origins:Origins.install
whynan.torch.scaling:Scaling.install
whynan.torch.watch:Hooks.install
whynan.torch.watch:Hooks._engine
whynan.torch.watch:Hooks._optimizers
""".split()


COMPILING = ["whynan.torch.backend:TorchBackend.original_code", "whynan.torch.compiled:give_back", "whynan.torch.backend:TorchBackend.compiles"]

# what runs once something was found
REPLAYING = """
whynan.core.locate:locate
whynan.core.explain:explain
whynan.core.prescribe:prescribe
whynan.causes:catalogue
whynan.record.recorder:RunRecorder._write_incident
whynan.record.store:Store.add_incident
whynan.report.document:document
whynan.script.capture:Captured.restore
whynan.script.random_states:put
whynan.script.tape:Tape.rewind
whynan.script.tape:Tape.live
whynan.script.deadline:Deadline.__init__
whynan.record.recorder:RunRecorder.expected
whynan.torch.conclusion:Conclusion.expect
whynan.torch.conclusion:Conclusion.replayed
whynan.script.silence:Silence.__enter__
whynan.script.silence:Silence.__exit__
whynan.torch.artifacts:writer
whynan.torch.hits:Hits.harm
whynan.torch.hits:Hits.again
whynan.torch.backend:TorchBackend.begin_replay
whynan.torch.backend:TorchBackend.close_trace
whynan.torch.backend:TorchBackend.end_replay
whynan.torch.conclusion:Conclusion.conclude
whynan.torch.incidents:conclude
whynan.torch.incidents:diagnose
whynan.torch.incidents:scopes
whynan.torch.incidents:seeds
whynan.torch.measure:measure
whynan.torch.names:collect
whynan.torch.replay:put_back_state
whynan.torch.replay:Replay.__init__
whynan.torch.replay:Replay.open
whynan.torch.replay:Replay.close
whynan.torch.trace:Trace.know
whynan.torch.trace:Trace._before
whynan.torch.trace:Trace._after
whynan.torch.trace:Trace._suspect
whynan.torch.trace:Trace.finished
whynan.torch.trace:Trace.last_writer
whynan.torch.whereabouts:Whereabouts.now
whynan.torch.whereabouts:Whereabouts.__enter__
whynan.torch.whereabouts:Whereabouts.__exit__
whynan.torch.whereabouts:Whereabouts._entered
whynan.torch.whereabouts:Whereabouts._left
""".split()


def planted(forks: Forks, target: str, source: str) -> Ran:
    """The fault was met, or the test would show nothing."""
    ran = forks.watched(source, probe=PROBE.format(target=target))
    assert ran.left is True, ran.stderr
    return ran


def assert_one_line(ran: Ran, plain: Ran) -> str:
    """What whynan said, and nobody else."""
    said = [line for line in ran.stderr.splitlines() if line not in plain.stderr.splitlines()]
    assert len(said) == 1, ran.stderr
    assert said[0].startswith("whynan: ")
    assert "planted" in said[0]
    return said[0]


@pytest.fixture(scope="module")
def healthy(forks: Forks) -> Ran:
    ran = forks.plain(HEALTHY)
    assert ran.status == 0, ran.stderr
    return ran


@pytest.mark.parametrize("target", WATCHING)
def test_a_fault_while_watching(forks: Forks, healthy: Ran, target: str) -> None:
    ran = planted(forks, target, HEALTHY)
    assert (ran.status, ran.stdout) == (healthy.status, healthy.stdout), ran.stderr
    assert "watching ends" in assert_one_line(ran, healthy)
    assert any("planted" in limit for limit in ran.report["run"]["limits"])


@pytest.mark.parametrize("target", CRUISING)
def test_a_fault_on_the_short_way(forks: Forks, target: str) -> None:
    plain, ran = forks.plain(LONG), planted(forks, target, LONG)
    assert (ran.status, ran.stdout) == (plain.status, plain.stdout), ran.stderr
    assert "watching ends" in assert_one_line(ran, plain)


@pytest.mark.parametrize("target", INSTALLING)
def test_a_fault_while_hooks_go_in(forks: Forks, healthy: Ran, target: str) -> None:
    ran = planted(forks, target, HEALTHY)
    assert (ran.status, ran.stdout) == (healthy.status, healthy.stdout), ran.stderr
    assert "not watched" in assert_one_line(ran, healthy)


@pytest.mark.parametrize("target", COMPILING)
def test_a_fault_while_compiling(forks: Forks, target: str) -> None:
    plain, ran = forks.plain(COMPILED), planted(forks, target, COMPILED)
    assert (ran.status, ran.stdout) == (plain.status, plain.stdout), ran.stderr
    assert "watching ends" in assert_one_line(ran, plain)


@pytest.fixture(scope="module")
def bad(forks: Forks) -> Ran:
    plain, watched = forks.plain(BAD), forks.watched(BAD)
    assert (plain.status, watched.status) == (0, 3), watched.stderr
    return plain


@pytest.mark.parametrize("target", REPLAYING)
def test_a_fault_after_something_was_found(forks: Forks, bad: Ran, target: str) -> None:
    """The run goes on to its own end unwatched, or is stopped with an incident as far as it is known; never by our exception."""
    ran = planted(forks, target, BAD)
    assert ran.status in (bad.status, 3), ran.stderr
    assert bad.stdout.startswith(ran.stdout)
    assert ran.stdout == bad.stdout or ran.status == 3 and len(ran.stdout.splitlines()) == 4
    assert "Traceback" not in ran.stderr
    assert "planted" in ran.stderr or any("planted" in limit for limit in ran.report["run"]["limits"]), ran.stderr
