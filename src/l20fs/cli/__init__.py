"""The command line: one file per command; this file has the group of commands and the exit codes.

Exit codes: 0 done, 1 failure, 2 usage, 3 bad data, 130 interrupted. Results go to standard output, all else to standard
error. With the environment variable ``L20FS_DEBUG`` an unexpected error is raised.
"""

from __future__ import annotations

import os
import signal
import sys
from importlib import import_module
from importlib.util import find_spec

try:
    import click
except ModuleNotFoundError:  # pragma: no cover - seen only without the extra
    raise SystemExit("The command line needs the extra 'cli' (click is missing): pip install 'l20fs[cli]'") from None
if find_spec("pandas") is None:  # pragma: no cover - found without loading it, which takes a second
    raise SystemExit("The command line needs the extra 'cli' (pandas is missing): pip install 'l20fs[cli]'")

from l20fs import __version__
from l20fs.cli.terminal import close_stdout, note, noted_warnings
from l20fs.tables.errors import SettingError, UnknownColumnError
from l20fs.text import did_you_mean

EXIT_FAILURE, EXIT_USAGE, EXIT_BAD_DATA, EXIT_INTERRUPTED = 1, 2, 3, 130

#: The commands and what each does. Its file is loaded when it is called: NumPy, pandas and scikit-learn take seconds.
COMMANDS = {
    "select": "Select features from a table of samples, and write a report.",
    "predict": "Predict new samples with the panel of a selection.",
    "validate": "Evaluate a panel on labelled samples that it has not seen.",
    "compare": "Compare methods on the same splits of a table.",
}


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
            ctx.fail(f"There is no command {args[0]!r}. {did_you_mean(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="l20fs")
def cli() -> None:
    """Select a few features that distinguish classes or predict numbers, with the exact l2,0 norm.

    Try it: l20fs select demo --open
    """


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # for LANG=C
    code = run(sys.argv[1:])
    if code == EXIT_INTERRUPTED:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second Ctrl-C does not disturb the end
    sys.exit(code)


def run(arguments: list[str]) -> int:
    """Run a command and return its exit code; whatever goes wrong is told in one line.

    Parameters
    ----------
    arguments : list of str
        The words after ``l20fs``, such as ``["select", "demo"]``.

    Returns
    -------
    int
        0 if all went well.
    """
    try:
        with noted_warnings():
            cli.main(arguments, prog_name="l20fs", standalone_mode=False)
        sys.stdout.flush()
    except (KeyboardInterrupt, click.Abort):
        note("interrupted.")
        return EXIT_INTERRUPTED
    except BrokenPipeError:  # of a command that reads only the first lines
        close_stdout()
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.UsageError as error:
        if error.ctx is not None:
            note(f"{error.ctx.get_usage()}  (l20fs {error.ctx.info_name} -h for help)")
        note(f"error: {error.format_message()}")
        return EXIT_USAGE
    except Exception as error:
        if "L20FS_DEBUG" in os.environ:
            raise
        text, code = explain(error)
        note(f"error: {text}")
        return code
    return 0


def explain(error: Exception) -> tuple[str, int]:
    """Return the line about an error, and the exit code.

    Examples
    --------
    >>> explain(OSError(28, "No space left on device", "out/report.html"))
    ('No space left on device: out/report.html', 1)
    >>> explain(ValueError("n_features_to_select=30 is more than 12 features."))
    ('-k 30 is more than 12 features.', 3)
    """
    match error:
        case MemoryError():
            return "There is not enough memory. Use fewer samples or features, or a larger machine.", EXIT_FAILURE
        case OSError():
            is_named = error.strerror is not None and error.filename is not None
            return f"{error.strerror}: {error.filename}" if is_named else str(error), EXIT_FAILURE
        case ModuleNotFoundError():
            return str(error), EXIT_FAILURE
        case SettingError() | UnknownColumnError():
            return str(error), EXIT_USAGE
        case ValueError():
            return str(error).replace("n_features_to_select=", "-k "), EXIT_BAD_DATA
    reason = f"unexpected {type(error).__name__}: {error}"
    return f"{reason}. Report it, with what L20FS_DEBUG=1 in the environment shows.", EXIT_FAILURE
