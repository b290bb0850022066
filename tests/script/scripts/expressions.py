import re
from contextlib import contextmanager, suppress

from fake import Loss

losses = {}
for i in range(3):
    x = [y := k for k in range(i + 1)]
    z = {k: v for k, v in enumerate(x)}
    g = sum(k for k in x if (w := k) is not None)
    if (n := len(x)) > 1:
        Loss((x, y, z, g, n)).backward()
    losses[i] = losses.get(i, 0) + n
print(i, x, y, z, g, n, losses)


def classify(thing):
    for _ in range(1):
        match thing:
            case [first, *others]:
                result = ("list", first, others)
            case {"a": value, **rest}:
                result = ("dict", value, rest)
            case Loss(value=inner) as whole:
                whole.backward()
                result = ("loss", inner)
            case str() | int() as simple:
                result = ("simple", simple)
            case _:
                continue
        Loss(result).backward()
        return result


for thing in ([1, 2, 3], {"a": 1, "b": 2}, Loss(7), "s", 3, 4.0):
    print(classify(thing))


@contextmanager
def managed(name):
    print("enter", name)
    try:
        yield name
    finally:
        print("exit", name)


def several():
    for k in range(3):
        with managed("a") as a, managed("b") as b, suppress(ZeroDivisionError):
            Loss((a, b, k)).backward()
            if k == 1:
                continue
            if k == 2:
                return "from with"
            1 / 0
        print("after with", k)


print(several())


def deleting():
    things = {"a": 1}
    for k in range(2):
        value = k
        import os.path as path, sys

        def nested():
            return value

        class Inner:
            attribute = k

        Loss((nested(), Inner.attribute, path.sep)).backward()
        del value, things["a"]
        things["a"] = 2
        try:
            nested()
        except NameError as error:
            print(type(error).__name__)
    try:
        error
    except NameError as missing:
        print("no error left")


deleting()
print(f"{Loss(1).backward()!r:>5} {'nested'!s} {[Loss(k).value for k in range(2)]}")
print(*(Loss(k).backward() for k in range(2)), sep=",")
print((lambda v, *, w=2: Loss((v, w)).backward())(1))
for losses[0], other in [(5, 6)]:
    Loss(other).backward()
print(losses)
for letter in re.findall("[a-c]", "xaybzc"):
    Loss(letter).backward()
value: int = 3
for value in range(2): Loss(value).backward(); print("one line", value)
if value: [Loss(k).backward() for k in range(2)]
print(value)
