"""Executors that nobody shuts down."""

import atexit
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

from fake import Loss


def work(k):
    for _ in range(2):
        k += next(iter([1]))
    return k


if __name__ == "__main__":
    atexit.register(lambda: print("at exit", threads._shutdown, processes._shutdown_thread))
    threads, processes = ThreadPoolExecutor(2), ProcessPoolExecutor(1)
    for k in range(2):
        Loss(threads.submit(work, k).result()).backward()
        Loss(processes.submit(work, k).result()).backward()
