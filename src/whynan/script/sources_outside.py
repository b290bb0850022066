"""Which objects are sources outside the program's own state: queues, connections, sockets, environments."""

from __future__ import annotations

RECORDED = frozenset({"step", "reset", "get", "get_nowait", "recv", "recv_bytes"})
KNOWN = frozenset(
    {
        ("queue", "Queue"),
        ("_queue", "SimpleQueue"),
        ("queue", "_PySimpleQueue"),
        ("multiprocessing.queues", "Queue"),
        ("multiprocessing.queues", "SimpleQueue"),
        ("multiprocessing.connection", "_ConnectionBase"),
        ("socket", "socket"),
        ("_socket", "socket"),
    }
)
FRAMEWORKS = frozenset({"torch", "torchvision", "torchaudio", "accelerate", "transformers", "lightning", "pytorch_lightning"})


def is_external(kind: type) -> bool:
    """By the names in the class and its bases alone. Something with `reset` and `step` is an environment, unless a framework
    made it: optimizers, schedulers, profilers and metrics have state that is put back instead."""
    mro = kind.__mro__
    if any((base.__module__, base.__qualname__) in KNOWN for base in mro):
        return True
    if any(base.__module__.partition(".")[0] in FRAMEWORKS for base in mro if isinstance(base.__module__, str)):
        return False
    return all(any(name in base.__dict__ for base in mro) for name in ("reset", "step"))
