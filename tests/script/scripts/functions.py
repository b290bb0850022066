"""The module's own words."""

from __future__ import annotations

import functools
import inspect

from fake import Loss


def step(a, b=2, /, c=3, *rest, d, e=5, **named):
    """The step's own words."""
    Loss((a, b, c, rest, d, e, named)).backward()
    return a, b, c, rest, d, e, named


print(step(1, d=4), step(1, 2, 3, 4, 5, d=6, f=7))
print(step.__doc__, __doc__, step.__name__, step.__qualname__, step.__defaults__, step.__kwdefaults__, step.__annotations__)
print(inspect.signature(step), inspect.getsource(step))
print(step.__code__.co_argcount, step.__code__.co_freevars, step.__code__.co_cellvars, step.__code__.co_firstlineno)


def outer(n: int) -> list[int]:
    total, seen = 0, []

    def inner(k):
        nonlocal total
        total += k
        seen.append(k)
        Loss(k).backward()
        return lambda: (total, k)

    late = [inner(k) for k in range(n)]
    for k in range(n, n + 2):
        late.append(inner(k))
    return [f() for f in late], seen


print(outer(2), outer.__annotations__)

count = 0


def counting():
    for _ in range(2):
        global count
        count += 1
        Loss(count).backward()
    return count


print(counting(), count)


def fact(n):
    Loss(n).backward()
    return 1 if n < 2 else n * fact(n - 1)


print(fact(4))


def logged(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        print("call", function.__name__, args[1:], kwargs)
        return function(*args, **kwargs)

    return wrapper


class Trainer:
    """A trainer."""

    __slots__ = ("__hidden", "step")
    loss = Loss(0)
    for k in range(2):
        loss.backward()

    def __init__(self):
        self.step = 0
        self.__hidden = 0

    @logged
    def fit(self, n):
        while self.step < n:
            self.step += 1
            self.__hidden += 1
            __private = self.__hidden
            Loss(__private).backward()
        return self

    @property
    def hidden(self):
        return self.__hidden

    @staticmethod
    def one():
        Loss("static").backward()

    @classmethod
    def two(cls):
        Loss(cls.__name__).backward()
        return cls()

    def __call__(self, x):
        Loss(x).backward()
        return super().__hash__() is not None and __class__.__name__


print(Trainer().fit(2).hidden, Trainer.one(), Trainer.two().step, Trainer()(3), Trainer.k)
print([n for n in vars(Trainer) if "whynan" in n])


def configured(lr, epochs=2):
    config = locals()
    for epoch in range(epochs):
        model = epoch
        Loss(model).backward()
    return config, sorted(locals())


print(configured(0.1))


def dynamic():
    exec("made = 3")
    for i in range(1):
        Loss(eval("i + 1")).backward()
        print(sorted(vars()), dir())


dynamic()


def unbound():
    for i in range(2):
        try:
            print(value)
        except NameError as error:
            print(type(error).__name__, error)
        Loss(i).backward()
        value = i
        del value


unbound()


def empty_declarations():
    """Only a declaration in a branch."""
    if count:
        global other
    for i in range(1):
        global another
        another = other = Loss(i).backward()


empty_declarations()
print(other, another)
