"""One watched run from its preparation to its exit status."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from typing import Literal, NoReturn

import click

import whynan.report.json
from whynan.cli.backends import Watch, require_one
from whynan.cli.options import RunOptions
from whynan.cli.outputs import Output, render_json, render_markdown
from whynan.cli.presenting import present
from whynan.cli.ranks import Claim, launch_name, rank
from whynan.cli.stderr import complain
from whynan.core.incident import Run
from whynan.record.recorder import RunRecorder
from whynan.script.launch import Ending, Program, UsageError, launch

INCIDENT = 3
Status = Literal["clean", "incident", "error"]


def prepare(options: RunOptions) -> Callable[[], int]:
    """Everything that can be wrong use is found here, before the script starts."""
    try:
        program = Program("module" if options.is_module else "script", options.target, options.argv)
    except UsageError as error:
        raise click.UsageError(str(error)) from error
    require_one()
    outputs = [
        Output(option, target, render)
        for option, target, render in (("--json", options.json, render_json), ("--markdown", options.markdown, render_markdown))
        if target is not None
    ]
    return functools.partial(run, program, options, outputs)


def run(program: Program, options: RunOptions, outputs: list[Output]) -> int:
    shown = f"-m {options.target}" if options.is_module else options.target
    number = rank()
    started = Run(shown, options.argv, rank=number, launch=launch_name() if number is not None else None)
    tell = complain if not options.quiet and number in (None, 0) else None
    recorder = RunRecorder(started, options.output, whynan.report.json, complain, tell)
    watch, claim, owner = Watch(recorder, options.trace_step, options.history), Claim(options.output, recorder.run.rank), os.getpid()
    ending = launch(program, watch.prepare, recorder.limit)
    if not (recorder.incidents or ending.kind == "stopped"):  # else exit handlers are still to print
        watch.runtime.diversion.stop()
    if os.getpid() == owner:  # a child that the script forked ends here too, and is not the run
        try:
            conclude(ending, watch, claim, options, outputs)
        except Exception as error:
            complain(f"the report failed: {type(error).__name__}: {error}")
    if ending.kind == "interrupted":
        interrupt()
    return INCIDENT if recorder.incidents or ending.kind == "stopped" else ending.code


def conclude(ending: Ending, watch: Watch, claim: Claim, options: RunOptions, outputs: list[Output]) -> None:
    """Close the watch and the record, then present what was found."""
    recorder = watch.recorder
    watch.detach(ending.code == 0)
    failed, untraced = bool(recorder.incidents), watch.untraced
    if untraced is not None:
        recorder.limit(untraced)
    status: Status = "incident" if failed else "clean" if ending.kind != "stopped" and ending.code == 0 else "error"
    recorder.finish(status, None if failed else ending.code, watch.overhead, max(watch.steps, recorder.run.steps))
    placed = any(incident.birth is not None for incident in recorder.incidents)
    if watch.unwatched is not None and not options.quiet:
        complain(watch.unwatched)
    if claim.speaks(failed, placed, together=watch.together):
        if untraced is not None and not failed and not options.quiet:  # a report names its limits itself
            complain(untraced)
        present(recorder, outputs, quiet=options.quiet)


def interrupt() -> NoReturn:
    """End by SIGINT as plain Python does, its finalisation included; the traceback has been shown."""
    sys.excepthook = lambda *_: None
    raise KeyboardInterrupt
