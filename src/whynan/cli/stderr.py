"""One line for the user, on the standard error that the process was started with."""

from __future__ import annotations

import contextlib
import sys
from typing import TextIO


def started_with() -> TextIO | None:
    """Standard error as it was before the script could replace it; None where the process has none."""
    return sys.__stderr__


def complain(text: str) -> None:
    """Print `text` as one line. Never raises: a closed or full standard error costs the line, not the run."""
    from whynan.report.plain import visible

    stream = started_with()
    with contextlib.suppress(Exception):
        if stream is not None:
            line = f"whynan: {visible(text)}\n"
            stream.write(line.encode(stream.encoding, "backslashreplace").decode(stream.encoding))
            stream.flush()
