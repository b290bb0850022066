from fake import Loss

from . import sibling

inner_value = 2


class Sub:
    pass


def train(n):
    for k in range(n):
        sibling.helper(Loss(k))
    return n
