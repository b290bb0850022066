"""`whynan show`: the report of a run again, from the run's folder."""

from __future__ import annotations

import os
from pathlib import Path

import click


@click.command("show")
@click.argument("run", required=False)
@click.option("--json", "as_json", is_flag=True, help="The document as JSON, on standard output.")
@click.option("--markdown", "as_markdown", is_flag=True, help="The report as Markdown, on standard output.")
@click.option("--html", metavar="FILE", hidden=True)
@click.option("--check", is_flag=True, help="Run the incident's repro.py and say whether it still happens here.")
@click.option("--output", metavar="DIR", help="Where runs are kept (default: $WHYNAN_OUTPUT, else whynan-runs/).")
def command(run: str | None, as_json: bool, as_markdown: bool, html: str | None, check: bool, output: str | None) -> int:
    """Show the report of RUN again (default: the latest run; of ranks that ran together, the one with the incident).

    RUN is the folder of a run or of one of its incidents, or a name below the output folder.
    """
    if html is not None:
        raise click.UsageError("--html is not in this version of whynan yet")
    if as_json + as_markdown + check > 1:
        raise click.UsageError("--json, --markdown and --check exclude one another")
    folder, number = find(run, Path(output or default_output()))
    return check_again(folder, number) if check else show(folder, as_json, as_markdown)


def default_output() -> str:
    return os.environ.get("WHYNAN_OUTPUT") or "whynan-runs"


def find(run: str | None, output: Path) -> tuple[Path, int | None]:
    """The run's folder, and the number of the incident where one was named."""
    from whynan.cli.stored import most_telling
    from whynan.record import folders

    if run is None:
        latest = folders.latest(output)
        if not latest:
            raise click.UsageError(f"no run in {output}")
        return most_telling(latest), None
    folder = next((path for path in (Path(run), output / run) if path.is_dir()), None)
    if folder is None:
        raise click.UsageError(f"no run {run}, neither as a folder nor in {output}")
    number = folder.name.removeprefix("incident-")
    return (folder.parent, int(number)) if number.isdecimal() and folder.name != number else (folder, None)


def show(folder: Path, as_json: bool, as_markdown: bool) -> int:
    import sys

    from whynan.cli.stored import load
    from whynan.record.store import mark_seen

    document = load(folder)
    if as_json:
        from whynan.report.json import render

        click.echo(render(document), nl=False)
    elif as_markdown:
        from whynan.report.markdown import render as render_markdown

        click.echo(render_markdown(document).encode(), nl=False)
    else:
        from whynan.report.terminal import render as render_terminal

        render_terminal(document, sys.stdout)
    mark_seen(folder)
    return 0


def check_again(folder: Path, number: int | None) -> int:
    """The exit status is 3 where an incident still happens here, 2 where it can't be told, 0 where all stays finite."""
    from whynan.cli.check import repeat
    from whynan.cli.stored import load

    numbers = [number] if number is not None else list(range(1, len(load(folder).incidents) + 1))
    if not numbers:
        raise click.UsageError(f"the run in {folder} has no incident")
    outcomes = [repeat(folder, one) for one in numbers]
    for outcome in outcomes:
        click.echo(outcome.text)
    return max(outcome.status for outcome in outcomes)
