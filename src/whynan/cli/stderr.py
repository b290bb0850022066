"""Words for the user, on the standard error that the process was started with."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import TextIO


@contextlib.contextmanager
def speaking() -> Iterator[TextIO | None]:
    """Standard error as it was before the script could replace it, None where the process has none.

    Where nobody reads it or its disk is full, the words go nowhere: what stays in its buffer would fail again when Python flushes
    it at the very end, and change the exit status.
    """
    stream = sys.__stderr__
    try:
        yield stream
        if stream is not None:
            stream.flush()
    except ValueError:
        pass  # the script has closed it
    except OSError:
        with contextlib.suppress(OSError, ValueError):
            if stream is not None:
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def complain(text: str) -> None:
    """Print `text` as one line."""
    from whynan.report.plain import visible

    with speaking() as stream:
        if stream is not None:
            line = f"whynan: {visible(text)}\n"
            stream.write(line.encode(stream.encoding, "backslashreplace").decode(stream.encoding))
