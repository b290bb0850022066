"""`whynan explain`: the catalogue's text about a cause."""

from __future__ import annotations

import difflib
import sys

import click


@click.command("explain")
@click.argument("name", required=False)
@click.option("--list", "as_list", is_flag=True, help="List all causes.")
def command(name: str | None, as_list: bool) -> int:
    """Explain the cause NAME: what happens, how to recognise it, how to fix it, and when the diagnosis is wrong."""
    from whynan.causes import catalogue

    documents = {entry.cause.name: entry.document for entry in catalogue()}
    if as_list:
        width = max(map(len, documents), default=0)
        for known, document in documents.items():
            click.echo(f"{known:<{width}}  {title(document)}")
        return 0
    if name is None:
        raise click.UsageError("name a cause, or give --list")
    if name not in documents:
        near = difflib.get_close_matches(name, documents, n=1)
        hint = f"did you mean {near[0]}?" if near else "see whynan explain --list"
        raise click.UsageError(f"no cause {name!r} in the catalogue; {hint}")
    print_text(name, documents[name])
    return 0


def title(document: str) -> str:
    return next((line.strip() for line in document.splitlines() if line.strip()), "")


def print_text(name: str, document: str) -> None:
    from whynan.report.explanation import render

    render(name, document, sys.stdout)
