"""Runs a program through `whynan.script` alone, with a backend that watches nothing: `driver.py [-m] TARGET [ARGS]...`.

Standard library only, so that it runs on every Python. `WHYNAN_TEST_NOTES` names a file for what the run noted of itself.
"""

import os
import sys

from whynan.script.launch import Program, launch
from whynan.script.runtime import Runtime


class NullBackend:
    watching = True
    given_up = None
    entered = 0

    def enter(self, attempt):
        self.entered += 1

    def leave(self, attempt, error):
        return False

    def loop_left(self):
        pass

    def give_up(self, doing, error):
        self.watching = False
        self.given_up = f"{doing}: {error!r}"


class Notes:
    def __init__(self):
        self.limits = []

    def prepare(self, table):
        self.table = table
        self.backend = NullBackend()
        return Runtime(table, self.backend)

    def write(self):
        with open(os.environ["WHYNAN_TEST_NOTES"], "w") as file:
            file.write("\n".join([f"{len(self.table)} {self.backend.entered}", *self.limits, *filter(None, [self.backend.given_up])]))


if __name__ == "__main__":
    kind, arguments = ("module", sys.argv[2:]) if sys.argv[1] == "-m" else ("script", sys.argv[1:])
    notes = Notes()
    ending = launch(Program(kind, arguments[0], tuple(arguments[1:])), notes.prepare, notes.limits.append)
    if "WHYNAN_TEST_NOTES" in os.environ:
        notes.write()
    sys.exit(ending.code)
