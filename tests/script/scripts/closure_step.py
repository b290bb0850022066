"""Steps made by factories, callables, closures handed to an optimizer."""

import functools

from fake import Loss


class Optimizer:
    def step(self, closure=None):
        return [closure() for _ in range(2)] if closure else None


def make_step(scale):
    def step(x):
        loss = Loss(x * scale)
        loss.backward()
        return loss

    return step


class Runner:
    def __init__(self, n):
        self.step_fn = functools.partial(make_step(n), 2)
        self.losses = []

    def run(self):
        while len(self.losses) < 2:
            self.losses.append(self.step_fn())
        return [loss.value for loss in self.losses]


print(Runner(3).run())
optimizer = Optimizer()
for k in range(2):

    def closure():
        print("closure", k)
        Loss(k).backward()
        return k

    print(optimizer.step(closure), optimizer.step(lambda: Loss("lambda").backward()))
step = make_step(2)
for k in range(2):
    step(k)
steps = {"a": step, "b": make_step(5)}
for k, name in enumerate(steps):
    steps[name](k)
