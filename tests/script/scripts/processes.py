import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor

from fake import Loss


class Thing:
    def __init__(self, x):
        self.x = x


def work(thing):
    for k in range(2):
        Loss(k).value
        next(iter([k]))
    return Thing(thing.x + 1), __name__


def run(method):
    context = multiprocessing.get_context(method)
    with context.Pool(1) as pool:
        for result, name in pool.map(work, [Thing(1), Thing(2)]):
            Loss((result.x, isinstance(result, Thing), name)).backward()
    queue = context.Queue()
    process = context.Process(target=put, args=(queue, 3))
    process.start()
    for _ in range(1):
        Loss(queue.get()).backward()
    process.join()
    print(process.exitcode)


def put(queue, x):
    stream = iter([x])
    for _ in range(1):
        queue.put(next(stream))


if __name__ == "__main__":
    for method in ("fork", "spawn"):
        run(method)
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        print(pool.submit(work, Thing(5)).result()[0].x)
