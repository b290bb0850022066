"""The `whynan` command. A subcommand's module is imported when it is asked for; what it returns runs after click has let go,

so that a watched script neither runs under click's exception handling nor deeper in the stack than need be.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Sequence

import click

from whynan import __version__
from whynan.cli.stderr import complain

COMMANDS = ("run", "show", "explain", "doctor")
Action = Callable[[], int]


class Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"whynan.cli.{name}").command
        return command


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="whynan", message="%(prog)s %(version)s")
def commands() -> None:
    """Runs a training script, stops at the first harmful NaN or Inf, and says where it was born and why."""


def main(args: Sequence[str] | None = None) -> None:
    sys.exit(status_of(list(sys.argv[1:] if args is None else args)))


def status_of(args: list[str]) -> int:
    try:
        action = commands.main(args or ["--help"], prog_name="whynan", standalone_mode=False)
    except click.ClickException as error:
        complain(error.format_message())
        return 2
    except click.Abort:
        return 130
    except BrokenPipeError:  # whoever read what was printed has had enough
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115  what is left in the buffer would fail again at the very end
        return 1  # as click does where its own functions print
    return action() if callable(action) else int(action or 0)
