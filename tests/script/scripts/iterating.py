import itertools
import queue

from fake import Loss


def endless():
    for k in itertools.count():
        Loss(k).backward()
        yield k


def delegating(n):
    result = yield from (Loss(k).backward() for k in range(n))
    for k in range(2):
        received = yield k
        Loss(received).backward()
    return "done"


stream = endless()
print(next(stream), next(stream))
for k in stream:
    Loss(("outer", k)).backward()
    if k > 3:
        break
print(next(stream))

generator = delegating(2)
try:
    print(next(generator), next(generator), next(generator), generator.send("sent"))
    next(generator)
except StopIteration as stop:
    print("stopped", stop.value)

short = iter([1, 2])
for epoch in range(3):
    try:
        batch = next(short)
    except StopIteration:
        print("again")
        short = iter([1, 2])
        batch = next(short)
    Loss(batch).backward()
print(next(short, "default"), next(iter([]), None))

pairs = iter([(1, 2), (3, 4), (5, 6)])
for epoch in range(1):
    for index, (a, b) in enumerate(pairs):
        Loss((index, a, b)).backward()
        if index == 1:
            break
    for (a, b), c in zip(pairs, "xyz"):
        Loss((a, b, c)).backward()
print(list(pairs))


class Resetting:
    def __init__(self):
        self.n = 9

    def __iter__(self):
        self.n = 0
        return self

    def __next__(self):
        self.n += 1
        if self.n > 2:
            raise StopIteration
        return self.n


resetting = Resetting()
for epoch in range(2):
    print([k for k in resetting])
    for k in resetting:
        Loss(k).backward()
    try:
        print(next(resetting))
    except StopIteration as stop:
        print(repr(stop))


class Broken:
    def __iter__(self):
        return self

    def __next__(self):
        raise RuntimeError("no more")


class OnlyNext:
    def __next__(self):
        return 5


for attempt in range(1):
    print(next(OnlyNext()))
    for wrong in (3, [1], None, OnlyNext):
        try:
            next(wrong)
        except TypeError as error:
            print(error)
        try:
            for _ in wrong:
                pass
        except TypeError as error:
            print(error)
    try:
        for _ in Broken():
            pass
    except RuntimeError as error:
        print(error, error.__traceback__.tb_next.tb_frame.f_code.co_name, error.__traceback__.tb_next.tb_next)
    broken = Broken()
    try:
        next(broken)
    except RuntimeError as error:
        print(error, error.__traceback__.tb_next.tb_frame.f_code.co_name, error.__traceback__.tb_next.tb_next)
    try:
        for _ in broken:
            pass
    except RuntimeError as error:
        print(error, error.__traceback__.tb_next.tb_frame.f_code.co_name, error.__traceback__.tb_next.tb_next)
    q = queue.Queue()
    q.put(1)
    print(q.get(), q.get_nowait if False else None, {"a": 1}.get("a"), {}.get("b", 2))
    try:
        q.get_nowait()
    except queue.Empty as error:
        print(type(error))
    Loss("end").backward()


class Env:
    def reset(self):
        self.t = 0
        return self.t

    def step(self, action):
        self.t += action
        return self.t, self.t > 3


env = Env()
for episode in range(2):
    state, done = env.reset(), False
    while not done:
        state, done = env.step(2)
    Loss(state).backward()
