"""The command line: one file per command; this file has the group of commands and the exit codes.

Results go to files in ``-o DIR``, a short table or ``--json`` to stdout, everything else to stderr.
Exit codes: 0 done, 1 failure, 2 usage, 3 bad input data, 4 nothing selected, 130 interrupted, 143 terminated.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from importlib.util import find_spec

try:
    import click
    import rich  # noqa: F401
except ModuleNotFoundError as error:  # pragma: no cover - seen only without the extra
    raise SystemExit(f"The command line needs the extra 'cli' ({error.name} is missing): pip install 'l20fs[cli]'") from None
if find_spec("pandas") is None:  # pragma: no cover - found without loading it, which takes a second
    raise SystemExit("The command line needs the extra 'cli' (pandas is missing): pip install 'l20fs[cli]'")

from l20fs import __version__
from l20fs.cli.interruption import interruptible, message_of
from l20fs.cli.output import note
from l20fs.text import did_you_mean

EXIT_FAILURE, EXIT_USAGE, EXIT_BAD_DATA, EXIT_NOTHING_SELECTED = 1, 2, 3, 4

#: The commands and what each does. Its file is loaded when it is called: NumPy, pandas and scikit-learn take seconds.
COMMANDS = {
    "select": "Select features from a table of samples, or from srbct, the built-in set.",
    "predict": "Predict new samples by the panel of a selection.",
    "validate": "Judge a panel, or a list of features from elsewhere, on labelled samples.",
    "path": "Print a line per lambda, with the features that enter and leave.",
    "compare": "Compare methods on the same random splits of a table.",
    "report": "Write the report page again, from stored results.",
    "methods": "List the methods of this package, with reference, kind, parameters and cost.",
    "data": "List, describe and import the data sets of the paper.",
    "reproduce": "Reproduce the paper's tables and figures, beside the printed numbers.",
    "completion": "Print a script that lets a shell complete commands and options.",
}


class NothingSelectedError(Exception):
    """No feature is selected at the chosen lambda."""


class LazyGroup(click.Group):
    """Group of commands, each loaded from the file of its name when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(import_module(f"l20fs.cli.{cmd_name}"), cmd_name)
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            near = did_you_mean(args[0], COMMANDS)
            ctx.fail(f"There is no command {args[0]!r}. {near if near.startswith('Did') else 'See l20fs --help.'}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="l20fs")
def cli() -> None:
    """Select a few features that distinguish classes, with the exact l2,0 norm."""


def main() -> None:
    """Run the command line; expected errors become one line and an exit code."""
    with interruptible():
        sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run with ``arguments`` and return the exit code."""
    try:
        cli.main(arguments, prog_name="l20fs", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except (KeyboardInterrupt, click.Abort) as stop:
        text, code = message_of(stop, arguments)
        note(text)
        return code
    except click.UsageError as error:
        error.show()
        return EXIT_USAGE
    except NothingSelectedError as error:
        return fail(error, EXIT_NOTHING_SELECTED)
    except BrokenPipeError:
        # The reader of stdout has had enough; keep Python from complaining when it flushes the rest.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        return fail(error, EXIT_FAILURE)
    except ValueError as error:
        from l20fs.data.readers import UnknownColumnError

        return fail(error, EXIT_USAGE if isinstance(error, UnknownColumnError) else EXIT_BAD_DATA)
    return 0


def fail(error: Exception, code: int) -> int:
    note(f"error: {error}")
    return code
