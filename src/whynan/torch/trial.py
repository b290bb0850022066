"""A trial in a child process: the parent's run stays as it is, bit for bit."""

from __future__ import annotations

import os
import select
import signal
import warnings
from typing import Any

import torch

from whynan.core.backend import Hit
from whynan.torch.incidents import Found

LIMIT = 30.0  # seconds until the child is given up


def overflows_at_scale_one(state: Any, found: Found) -> bool:
    """Run the step again in a forked child with a loss scale of 1. Without an answer (no fork beside an accelerator, too slow) the
    scale is taken for the culprit: the scaler goes on lowering it, and skips in a row are counted."""
    if torch.cuda.is_initialized() or not hasattr(os, "fork"):  # type: ignore[no-untyped-call]
        return False
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        child = os.fork()
    if child == 0:
        os.close(reader)
        _become_silent()
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(int(LIMIT))  # whatever the user's code does with the Hit, this process ends
        torch.set_num_threads(1)
        state.watching, state.trial, state.found = True, writer, found
        raise Hit("gradient")
    os.close(writer)
    try:
        return _answer(reader, child)
    finally:
        os.close(reader)


def _answer(reader: int, child: int) -> bool:
    ready, _, _ = select.select([reader], [], [], LIMIT)
    answer = os.read(reader, 1) if ready else b""
    if not ready:
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return answer == b"1"


def _become_silent() -> None:
    void = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (1, 2):
        os.dup2(void, descriptor)
