from __future__ import annotations

import signal


def pytest_configure() -> None:
    """A suite that was started in the background is told to ignore Ctrl-C, and so would every script that it starts."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
