"""Which source files are the user's own: everything that is neither installed nor part of Python or of this package."""

from __future__ import annotations

import functools
import os
import sysconfig

INSTALLED = ("site-packages", "dist-packages")


@functools.cache
def _library_folders() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    folders = {os.path.realpath(paths[key]) for key in ("stdlib", "platstdlib") if key in paths}
    here = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    return (*(folder + os.sep for folder in folders), here + os.sep)


@functools.cache
def is_user_file(filename: str) -> bool:
    """`filename` as in a code object; generated code (`<string>`, `<frozen ...>`) is nobody's."""
    if not filename or filename.startswith("<"):
        return False
    if any(part in INSTALLED for part in filename.replace("\\", "/").split("/")):
        return False
    path = os.path.realpath(filename)
    return not path.startswith(_library_folders()) and not any(part in INSTALLED for part in path.split(os.sep))
