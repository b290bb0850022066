"""The documents that `--json` and `--markdown` ask for, as files or on standard output after the script's last byte."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
from collections.abc import Callable
from pathlib import Path

import click

from whynan.cli.stderr import complain
from whynan.report.model import Document

Render = Callable[[Document], bytes]


class Output:
    """One document asked for. Made before the script starts: a place that can't be written to is refused then."""

    def __init__(self, option: str, target: str, render: Render) -> None:
        self.target, self.render = target, render
        self.document: Document | None = None
        if target == "-":
            self.descriptor = os.dup(1)
            # Handlers run last in, first out: registered before the script starts, this one follows all that the script prints.
            atexit.register(self.print_last, os.getpid())
        else:
            self.path = Path(target).absolute()
            require_writable(option, self.path)

    def write(self, document: Document) -> None:
        self.document = document
        if self.target != "-":
            try:
                self.path.write_bytes(self.render(document))
            except OSError as error:
                complain(f"the report could not be written to {self.target}: {error.strerror or error}")

    def print_last(self, owner: int) -> None:
        if self.document is None or os.getpid() != owner:
            return
        with contextlib.suppress(Exception):
            sys.stdout.flush()
        try:
            with open(self.descriptor, "wb") as stream:
                stream.write(self.render(self.document))
        except OSError as error:
            complain(f"the report could not be written to standard output: {error.strerror or error}")


def require_writable(option: str, path: Path) -> None:
    existed = path.exists()
    if existed and not path.is_file() and not path.is_dir():
        return  # a pipe or a device: opening it may have an effect
    try:
        with open(path, "ab"):
            pass
        if not existed:
            path.unlink()
    except OSError as error:
        raise click.UsageError(f"{option} {path} cannot be written: {error.strerror or error}") from error


def render_json(document: Document) -> bytes:
    from whynan.report.json import render

    return render(document)


def render_markdown(document: Document) -> bytes:
    from whynan.report.markdown import render

    return render(document).encode()
