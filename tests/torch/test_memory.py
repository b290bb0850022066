"""Watching holds at most a twentieth of the parameters' memory beside what the program holds itself; a history what it is granted."""

from __future__ import annotations

import pytest

from tests.torch.forks import Forks

PROGRAM = """
import gc, sys
import torch
torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Sequential(*[torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.{layer}) for _ in range(8)], torch.nn.Linear(512, 1))
parameters = sum(p.nbytes for p in model.parameters())
optimizer = torch.optim.{optimizer}(model.parameters(), lr=1e-4)


def held():
    storages = {{}}
    for thing in gc.get_objects():
        if type(thing) in (torch.Tensor, torch.nn.Parameter):
            storages[thing.untyped_storage().data_ptr()] = thing.untyped_storage().nbytes()
    return sum(storages.values())


hook = model[3].register_full_backward_hook(lambda *_: peaks.append(held()))
peaks = []
for step in range({steps}):
    optimizer.zero_grad()
    model(torch.rand(4, 512)).pow(2).mean().backward()
    peaks.append(held())
    optimizer.step()
    peaks.append(held())
print(max(peaks[-30:]) / parameters)
"""


@pytest.mark.parametrize("optimizer", ["SGD", "Adam"])
@pytest.mark.parametrize("layer", ["Tanh()", "BatchNorm1d(512)"])
def test_what_is_held_beside_the_program_s_own(forks: Forks, layer: str, optimizer: str) -> None:
    source = PROGRAM.format(layer=layer, optimizer=optimizer, steps=60)
    plain, watched = forks.plain(source), forks.watched(source, options=("--history", "off"))
    assert (plain.status, watched.status) == (0, 0), watched.stderr
    assert float(watched.stdout) - float(plain.stdout) < 0.05


def test_a_history_holds_what_it_is_granted(forks: Forks) -> None:
    source = PROGRAM.format(layer="Tanh()", optimizer="SGD", steps=60)
    parameters = 8 * (512 * 512 + 512) * 4
    plain, watched = forks.plain(source), forks.watched(source, options=("--history", str(5 * parameters)))
    assert 1 < float(watched.stdout) - float(plain.stdout) < 5
    less = forks.watched(source, options=("--history", str(parameters)))
    assert float(less.stdout) - float(plain.stdout) < 0.05
    assert "more than the history may hold" in str(less.report["run"]["limits"])
