import sys
import traceback
import warnings

from fake import Loss


def helper(values):
    return values["missing"]


def step(k):
    """Fails on purpose."""
    for j in range(2):
        try:
            Loss((k, j)).backward()
            helper({"a": 1})
        except KeyError:
            traceback.print_exc()
            traceback.print_exc(file=sys.stdout)
            if k:
                raise ValueError(
                    "chained",
                    k,
                ) from None
        finally:
            print("finally", j)


for k in range(2):
    try:
        step(k)
    except ValueError as error:
        print(repr(error), error.__cause__, error.__suppress_context__, [f.lineno for f in traceback.extract_tb(error.__traceback__)])

for k in range(2):
    try:
        Loss(k).backward()
        raise KeyboardInterrupt("by hand")
    except:
        print("bare", sys.exc_info()[0].__name__)
    try:
        raise SystemExit(3)
    except (ValueError, BaseException) as error:
        print("base", repr(error))
    print(sys.exc_info())

for k in range(2):
    Loss(k).backward()
    warnings.warn(f"a warning {k}")
    warnings.warn("deprecated", DeprecationWarning, stacklevel=1)
    warnings.warn("from above", stacklevel=2)

try:
    for k in range(2):
        Loss(k).backward()
        try:
            raise ExceptionGroup("group", [ValueError(1), TypeError(2)])
        except* ValueError as group:
            print("star", group.exceptions)
            Loss("in star").backward()
except ExceptionGroup as group:
    print("rest", group.exceptions)


def deep(n):
    return deep(n + 1)


try:
    deep(0)
except RecursionError as error:
    print(error)


def failing(n):
    for k in range(n):
        Loss(k).backward()
        if k == 1:
            return [
                k,
                helper(
                    {k: 1},
                ),
            ]


class Nested:
    def run(self):
        with open(__file__) as file:
            while True:
                failing(3)


Nested().run()
