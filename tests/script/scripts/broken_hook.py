import sys

from fake import Loss


def hook(kind, value, trace):
    raise OSError("the hook fails")


sys.excepthook = hook
for k in range(2):
    Loss(k).backward()
    {}[k]
