"""The command line: one file per command; this file has the group of commands and the exit codes.

Results go to files in ``-o DIR``, a short table or ``--json`` to stdout, everything else to stderr.
Exit codes: 0 done, 1 failure, 2 usage, 3 bad input data, 4 nothing selected, 130 interrupted.
"""

from __future__ import annotations

import os
import sys
from importlib.metadata import version

try:
    import click
    import pandas  # noqa: F401
    import rich  # noqa: F401
except ModuleNotFoundError as error:  # pragma: no cover - seen only without the extra
    raise SystemExit(f"The command line needs the extra 'cli' ({error.name} is missing): pip install 'l20fs[cli]'") from None

from l20fs.cli import compare, completion, data, methods, path, predict, report, reproduce, select, validate
from l20fs.cli.output import note
from l20fs.cli.select_pipeline import NothingSelectedError
from l20fs.data.readers import UnknownColumnError

EXIT_FAILURE, EXIT_USAGE, EXIT_BAD_DATA, EXIT_NOTHING_SELECTED, EXIT_INTERRUPTED = 1, 2, 3, 4, 130


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(version("l20fs"), prog_name="l20fs")
def cli() -> None:
    """Select a few features that distinguish classes, with the exact l2,0 norm."""


for command in (
    select.select,
    predict.predict,
    validate.validate,
    path.path,
    compare.compare,
    report.report,
    methods.methods,
    data.data,
    reproduce.reproduce,
    completion.completion,
):
    cli.add_command(command)


def main() -> None:
    """Run the command line; expected errors become one line and an exit code."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run with ``arguments`` and return the exit code."""
    try:
        cli.main(arguments, prog_name="l20fs", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except (KeyboardInterrupt, click.Abort):
        note("interrupted")
        return EXIT_INTERRUPTED
    except click.UsageError as error:
        error.show()
        return EXIT_USAGE
    except UnknownColumnError as error:
        return fail(error, EXIT_USAGE)
    except NothingSelectedError as error:
        return fail(error, EXIT_NOTHING_SELECTED)
    except BrokenPipeError:
        # The reader of stdout has had enough; keep Python from complaining when it flushes the rest.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        return fail(error, EXIT_FAILURE)
    except ValueError as error:
        return fail(error, EXIT_BAD_DATA)
    return 0


def fail(error: Exception, code: int) -> int:
    note(f"error: {error}")
    return code
