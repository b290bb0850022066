"""Splits a command line into our options and the program: everything from the script or module on belongs to the program."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

LATER = {"--prove": False, "--time-limit": True, "--keep-going": False, "--fix": True, "--html": True}


@dataclass(frozen=True, slots=True)
class RunOptions:
    target: str
    is_module: bool
    argv: tuple[str, ...]
    json: str | None
    markdown: str | None
    trace_step: int | None
    output: Path
    quiet: bool
    history: int | None = None


class ProgramCommand(click.Command):
    """`-m MODULE` ends our options as it does for Python itself; click alone would look for more of them behind it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        taking = {name for option in self.params if takes_value(option) for name in option.opts}
        return super().parse_args(ctx, ended_after_module(args, taking))


def takes_value(option: click.Parameter) -> bool:
    return isinstance(option, click.Option) and not option.is_flag


def ended_after_module(args: list[str], taking: set[str]) -> list[str]:
    index = 0
    while index < len(args) and args[index].startswith("-") and args[index] not in ("-", "--"):
        if args[index].startswith("-m"):
            after = index + (2 if args[index] == "-m" else 1)
            return args if after > len(args) else [*args[:after], "--", *args[after:]]
        index += 2 if args[index] in taking else 1
    return args


def refuse_later(ctx: click.Context, option: click.Parameter, value: object) -> None:
    if value:
        raise click.UsageError(f"{option.opts[0]} is not in this version of whynan yet")
