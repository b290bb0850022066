import inspect
import os
import pickle
import sys

import package.inner
from fake import Loss
from package import value
from package.inner import *

print(__name__, __file__, __doc__, __package__, __spec__ and __spec__.name, __cached__, __builtins__ is sys.modules["builtins"])
print(sys.argv, sys.path[0], os.getcwd(), isinstance(__loader__, __import__("importlib.machinery").machinery.SourceFileLoader), sys.modules["__main__"].__dict__ is globals())
print([n for n in globals() if n != "__whynan__"])
for module in (package, package.inner, sys.modules["fake"]):
    spec = module.__spec__
    print(module.__name__, module.__file__, module.__cached__, module.__package__, spec.name, spec.origin, spec.cached, spec.parent)
    print(inspect.getsource(module), isinstance(module.__loader__, __import__("importlib.machinery").machinery.SourceFileLoader))
    print(module.__loader__.get_source(module.__name__) == inspect.getsource(module), module.__loader__.name)
print(value, inner_value)


class Thing:
    def __init__(self, x):
        self.x = x

    def step(self):
        Loss(self.x).backward()
        return self


for k in range(2):
    copy = pickle.loads(pickle.dumps(Thing(k).step()))
    print(type(copy) is Thing, copy.x, Thing.__module__, pickle.loads(pickle.dumps(Thing.step)) is Thing.step)
    print(pickle.loads(pickle.dumps(package.inner.Sub)) is package.inner.Sub)
    assert inspect.getsource(Thing).startswith("class Thing")
