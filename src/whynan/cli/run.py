"""`whynan run`: a script or module as it is, watched; the report when it ends."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from whynan.cli.options import LATER, ProgramCommand, RunOptions, refuse_later
from whynan.cli.show import default_output
from whynan.cli.sizes import History


def with_later_options(function: Callable[..., Any]) -> Callable[..., Any]:
    for name, takes_value in LATER.items():
        add = click.option(name, is_flag=not takes_value, hidden=True, expose_value=False, callback=refuse_later)
        function = add(function)
    return function


@click.command("run", cls=ProgramCommand, context_settings={"allow_interspersed_args": False})
@click.argument("program", nargs=-1, type=click.UNPROCESSED, metavar="SCRIPT [ARGS]...")
@click.option("-m", "module", metavar="MODULE", help="Run a module instead of a script, as python -m does.")
@click.option("--json", metavar="FILE", help="Write the report as JSON, also for a clean run (- for standard output).")
@click.option("--markdown", metavar="FILE", help="The same as Markdown.")
@click.option("--no-prove", is_flag=True, expose_value=False, help="Do not try remedies by re-running.")
@click.option(
    "--trace-step", type=click.IntRange(min=0), metavar="N", help="Trace step N of this fresh run instead of replaying."
)
@click.option(
    "--history",
    type=History(),
    metavar="auto|off|SIZE",
    default="auto",
    help="Memory for the last steps, to make them again when a run fails: a size such as 500MB (default: auto).",
)
@click.option("--output", metavar="DIR", help="Where runs are kept (default: $WHYNAN_OUTPUT, else whynan-runs/).")
@click.option("--quiet", is_flag=True, help="The script's own output only, and one line for an incident.")
@with_later_options
def command(
    program: tuple[str, ...],
    module: str | None,
    json: str | None,
    markdown: str | None,
    trace_step: int | None,
    history: int | None,
    output: str | None,
    quiet: bool,
) -> Callable[[], int]:
    """Run SCRIPT, or -m MODULE, unmodified; stop at the first harmful NaN or Inf, before the bad update is written, and say why.

    Everything after SCRIPT or MODULE belongs to it. The exit status is the script's own; 3 where an incident stopped it; 2 for
    wrong use of whynan.
    """
    if module is None and not program:
        raise click.UsageError("nothing to run: give a SCRIPT or -m MODULE")
    if json is not None and json == markdown:
        raise click.UsageError(f"--json and --markdown both name {'standard output' if json == '-' else json}: each needs its own")
    target, argv = (module, program) if module is not None else (program[0], program[1:])
    options = RunOptions(target, module is not None, argv, json, markdown, trace_step, Path(output or default_output()), quiet, history)

    from whynan.cli.running import prepare

    return prepare(options)
