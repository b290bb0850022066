"""`whynan doctor`: does everything that the watch relies on work on this machine?"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import platform
from typing import Any

import click

from whynan import __version__
from whynan.cli.backends import PIP_LINE
from whynan.report.plain import visible

PACKAGES = ("torch", "mindspore", "numpy")


@click.command("doctor")
def command() -> int:
    """Try each private hook on ten known births, and look for faults of the environment. The exit status is 1 if any is found."""
    click.echo(f"whynan {__version__}, Python {platform.python_version()}, {versions()}")
    if importlib.util.find_spec("torch") is None:
        click.echo(f"FAIL  no framework to watch is installed\n      cure: {PIP_LINE}")
        return 1
    findings = examine()
    for finding in findings:
        detail = f": {finding.detail}" if finding.detail else ""
        click.echo(visible(f"{'ok  ' if finding.ok else 'FAIL'}  {finding.name}{detail}"))
        if not finding.ok and finding.cure:
            click.echo(visible(f"      cure: {finding.cure}", lines=True))
    failed = sum(not finding.ok for finding in findings)
    click.echo(f"{len(findings) - failed} of {len(findings)} checks passed")
    return 1 if failed else 0


def versions() -> str:
    return ", ".join(f"{name} {version(name)}" for name in PACKAGES if version(name))


def version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def examine() -> list[Any]:
    from whynan.torch.doctor import examine as examine_torch

    return list(examine_torch())
