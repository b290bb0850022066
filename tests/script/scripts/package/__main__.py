"""Run as `-m package`."""

import sys

from . import train
from .inner import Sub

print(__name__, __file__, __package__, __spec__.name, __spec__.parent, __spec__.origin, __cached__, __doc__, sys.argv)
print([n for n in globals() if n != "__whynan__"], sys.path[0])
print(train(2), Sub.__module__)
for k in range(2):
    train(k)
    if k:
        raise RuntimeError(k)
