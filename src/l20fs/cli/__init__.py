"""The command line: one file per command; this file has the group of commands and the exit codes.

Results go to files in ``-o DIR``, a short table or ``--json`` to stdout, everything else to stderr.
Exit codes: 0 done, 1 failure, 2 usage, 3 bad input data, 4 nothing selected, 130 interrupted, 143 terminated.
"""

from __future__ import annotations

import re
import sys
from importlib import import_module
from importlib.util import find_spec

try:
    import click

    from l20fs.cli.output import drop_stdout, flush, note, stray_messages, tell_traceback, tell_usage
except ModuleNotFoundError as error:  # pragma: no cover - seen only without the extra
    raise SystemExit(f"The command line needs the extra 'cli' ({error.name} is missing): pip install 'l20fs[cli]'") from None
if find_spec("pandas") is None:  # pragma: no cover - found without loading it, which takes a second
    raise SystemExit("The command line needs the extra 'cli' (pandas is missing): pip install 'l20fs[cli]'")

from l20fs import __version__
from l20fs.cli.interruption import interruptible, message_of
from l20fs.text import did_you_mean

EXIT_FAILURE, EXIT_USAGE, EXIT_BAD_DATA, EXIT_NOTHING_SELECTED = 1, 2, 3, 4

#: The commands and what each does. Its file is loaded when it is called: NumPy, pandas and scikit-learn take seconds.
COMMANDS = {
    "select": "Select features from a table of samples, or from srbct, which is built in.",
    "predict": "Predict new samples by the panel of a selection.",
    "validate": "Judge a panel, or a list of features from elsewhere, on labelled samples.",
    "compare": "Compare methods on the same random splits of a table.",
}


#: Parameters of the library in its messages that are options of the same name, or -k.
PARAMETERS = re.compile(r"\b(n_features_to_select|min_per_class|max_per_class|budget|ridge)=")


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
@click.option("--debug", is_flag=True, expose_value=False, help="Also say where an error comes from, in any command.")
def cli() -> None:
    """Select a few features that distinguish classes, with the exact l2,0 norm."""


def main() -> None:
    """Run the command line; expected errors become one line and an exit code."""
    with interruptible():
        sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run with ``arguments`` and return the exit code; whatever goes wrong is told in one line."""
    words, is_debug = without_debug(arguments)
    with stray_messages():
        try:
            cli.main(words, prog_name="l20fs", standalone_mode=False)
            flush()
        except (SystemExit, GeneratorExit):
            raise
        except BaseException as error:  # Rust libraries panic with exceptions that are no Exception
            return end_with(error, is_debug=is_debug)
    return 0


def without_debug(arguments: list[str]) -> tuple[list[str], bool]:
    """Return the arguments without --debug, which may stand anywhere before ``--``, and whether it was there.

    Examples
    --------
    >>> without_debug(["select", "--debug", "srbct"]), without_debug(["select", "--", "--debug"])
    ((['select', 'srbct'], True), (['select', '--', '--debug'], False))
    """
    end = arguments.index("--") if "--" in arguments else len(arguments)
    words = [word for word in arguments[:end] if word != "--debug"]
    return words + arguments[end:], len(words) < end


def end_with(error: BaseException, *, is_debug: bool) -> int:
    """Say why a command ended, and return the exit code."""
    match error:
        case click.exceptions.Exit():
            return error.exit_code
        case KeyboardInterrupt() | click.Abort():
            text, code = message_of(error)
            note(text)
            return code
        case click.UsageError():
            tell_usage(error)
            return EXIT_USAGE
        case BrokenPipeError():  # the reader of stdout has had enough
            drop_stdout()
            return 0
    if is_debug:
        tell_traceback(error)
    text, code = explain(error)
    note(f"error: {text}")
    return code


def as_options(text: str) -> str:
    """Return a message of the library with the options that set its parameters.

    Examples
    --------
    >>> as_options("min_per_class=2 with 4 classes: this needs at least 8 features; n_features_to_select=5.")
    '--min-per-class 2 with 4 classes: this needs at least 8 features; -k 5.'
    """
    named = PARAMETERS.sub(lambda found: f"--{found[1].replace('_', '-')} ", text)
    return named.replace("--n-features-to-select ", "-k ")


def explain(error: BaseException) -> tuple[str, int]:
    """Return what to say about an error, and the exit code.

    Examples
    --------
    >>> explain(OSError(28, "No space left on device", "out/run.json"))
    ('No space left on device: out/run.json', 1)
    >>> explain(KeyError("rows"))
    ("unexpected KeyError: 'rows'. Run again with --debug to see where, and report it.", 1)
    """
    match error:
        case NothingSelectedError():
            return str(error), EXIT_NOTHING_SELECTED
        case MemoryError():
            reason = f" ({error})" if str(error) else ""
            way_out = "Use fewer samples or features, or read h5ad, zarr and npy files in blocks: --max-memory 4G"
            return f"There is not enough memory{reason}. {way_out}.", EXIT_FAILURE
        case OSError():
            is_named = error.strerror is not None and error.filename is not None
            return f"{error.strerror}: {error.filename}" if is_named else str(error), EXIT_FAILURE
        case ValueError() if not isinstance(error, UnicodeError):
            from l20fs.tables import UnknownColumnError

            return as_options(str(error)), EXIT_USAGE if isinstance(error, UnknownColumnError) else EXIT_BAD_DATA
    return f"unexpected {type(error).__name__}: {error}. Run again with --debug to see where, and report it.", EXIT_FAILURE
