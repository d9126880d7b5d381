"""Output of all commands: results to stdout; notes, warnings and progress to stderr.

Nothing else in this package prints, and nothing is printed as it came: names from files may hold sequences that a terminal
obeys, or that rich takes for markup. What programs are to read verbatim goes to files.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import traceback
import warnings
import webbrowser
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Column
from rich.table import Table as RichTable
from rich.text import Text

from l20fs.text import printable

#: Letters of a text in a table on the terminal, and of a line on stderr.
MOST_LETTERS, MOST_OF_A_NOTE = 500, 2000

# ----------------------------------------------------------------------------------------------------------------- stdout


class Table:
    """Table for the terminal: title, names of columns and cells are texts, shown as they are.

    ``look`` are options of rich's tables and columns.
    """

    def __init__(self, *headers: str, title: str = "", caption: str = "", **look: Any) -> None:
        above, below = (
            plain(text, style) if text else None for text, style in ((title, "table.title"), (caption, "table.caption"))
        )
        self.drawn = RichTable(title=above, caption=below, **look)
        for header in headers:
            self.add_column(header)

    def add_column(self, header: str, **look: Any) -> None:
        """Add a column on the right."""
        self.drawn.add_column(plain(header), **look)

    def add_row(self, *cells: str, style: str | None = None) -> None:
        """Add a row at the end."""
        self.drawn.add_row(*map(plain, cells), style=style)


def plain(text: str, style: str = "") -> Text:
    """Escape a text so that neither rich interprets markup or emoji codes, nor the terminal control characters."""
    return Text(printable(text, MOST_LETTERS), style)


def show(text: str) -> None:
    """Print a line to stdout; control characters in it are escaped, ends of lines too."""
    _write(f"{printable(text)}\n")


def show_json(value: Any) -> None:
    """Print a value as JSON to stdout, in ASCII and without control characters."""
    _write(json.dumps(value, indent=2).replace("\x7f", "\\u007f") + "\n")


def show_tables(*tables: Table) -> None:
    """Print tables to stdout as wide as it is."""
    console = Console()
    with _to_stdout(), console.capture() as capture:  # rich writes to stdout at the end of a capture, too
        for table in tables:
            console.print(table.drawn)
    _write(capture.get())


def flush() -> None:
    """Hand over what was printed by others."""
    _write("")


def _write(text: str) -> None:
    """Write to stdout; characters that it cannot encode are replaced, a closed pipe is ignored."""
    encoding = sys.stdout.encoding or "utf-8"
    with _to_stdout():
        # click and rich would end the run with code 1 when the reader of stdout has had enough.
        sys.stdout.write(text.encode(encoding, errors="backslashreplace").decode(encoding))
        sys.stdout.flush()


@contextmanager
def _to_stdout() -> Iterator[None]:
    """Ignore a closed pipe, and name standard output in other errors."""
    try:
        yield
    except BrokenPipeError:
        drop_stdout()
    except OSError as error:
        drop_stdout()
        raise OSError(error.errno, error.strerror, "standard output") from error


def drop_stdout() -> None:
    """Let go of a stdout that nobody reads, so that Python does not complain when it flushes the rest."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


# ----------------------------------------------------------------------------------------------------------------- stderr


def note(text: str) -> None:
    """Print a line to stderr; ends of lines in it become blanks, other control characters are escaped."""
    one_line = text if "\n" not in text else " ".join(part.strip() for part in text.split("\n"))
    click.echo(printable(one_line, MOST_OF_A_NOTE), err=True)


def tell_usage(error: click.UsageError) -> None:
    """Print how a command is used, and what is wrong."""
    if error.ctx is not None:
        for line in error.ctx.get_usage().split("\n"):
            note(line)
        note(f"Try '{error.ctx.command_path} {max(error.ctx.help_option_names, key=len)}' for help.")
        note("")
    note(f"Error: {error.format_message()}")


def tell_traceback(error: BaseException) -> None:
    """Print where an error comes from."""
    for part in traceback.format_exception(error):
        for line in part.split("\n"):
            note(line)


def tell_results(folder: Path, names: Iterable[str], *, open_page: bool) -> None:
    """Say where the result files and the report page are, and open the page if asked for."""
    page = folder / "report.html"
    note(f"Results are in {folder}{os.sep}: {', '.join(names)}")
    note(f"Look at {page}")
    if open_page:
        open_in_browser(page)


def open_in_browser(page: Path) -> None:
    """Show a page that was written."""
    webbrowser.open(page.resolve().as_uri())


def readable(text: str) -> str:
    """Decode the bytes of an argument as UTF-8, also where the locale knows ASCII only."""
    return os.fsencode(text).decode("utf-8", errors="backslashreplace")


@contextmanager
def stated_warnings() -> Iterator[list[str]]:
    """Print warnings on stderr, one line each, when the block ends; the list that is yielded holds them afterwards."""
    texts: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield texts
    texts += dict.fromkeys(str(warning.message) for warning in caught)
    for text in texts:
        note(f"warning: {text}")


class WarningLog:
    """Warnings of a run, each once and in order.

    Examples
    --------
    >>> log = WarningLog(["first"])
    >>> with log.step():
    ...     pass
    >>> log.texts
    ['first']
    """

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._texts = dict.fromkeys(texts)

    @property
    def texts(self) -> list[str]:
        """All warnings so far."""
        return list(self._texts)

    @contextmanager
    def step(self) -> Iterator[None]:
        """Print the warnings of a step when it ends, and keep them."""
        with stated_warnings() as texts:
            yield
        self._texts |= dict.fromkeys(texts)


class _Notes(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        note(record.getMessage())


@contextmanager
def stray_messages() -> Iterator[None]:
    """Print warnings and log messages that nobody else takes on stderr as well, one line each."""
    last = logging.lastResort
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *where, **further: note(f"warning: {message}")
        logging.lastResort = _Notes(logging.WARNING)
        try:
            yield
        finally:
            logging.lastResort = last


@contextmanager
def log_of_blocks(X: Any) -> Iterator[None]:
    """Print log messages of a fit to a matrix in blocks: how it is read, and with how much memory."""
    from l20fs.inputs.devices import is_dask

    if not is_dask(X):
        yield
        return
    logger, handler = logging.getLogger("l20fs"), _Notes(logging.INFO)
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


@contextmanager
def bar(description: str) -> Iterator[Callable[[int, int], None]]:
    """Yield a function that shows how many of how many steps are done, and the time left; on a terminal only."""
    with live(BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()) as bars:
        task = bars.add_task(description, total=None)
        yield lambda n_done, n_steps: bars.update(task, completed=n_done, total=n_steps)


@contextmanager
def progress(description: str, total: int) -> Iterator[Callable[[], None]]:
    """Draw a bar on a terminal; the function that is yielded advances it by one."""
    with live(BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()) as bars:
        task = bars.add_task(description, total=total)
        yield lambda: bars.advance(task)


@contextmanager
def working(description: str) -> Iterator[None]:
    """Show on a terminal that a step of unknown length goes on, and for how long."""
    with live() as bars:
        bars.add_task(description, total=None)
        yield


class _Description(ProgressColumn):
    """Subject of a bar."""

    def render(self, task: Task) -> Text:
        return plain(task.description)


def live(*columns: ProgressColumn) -> Progress:
    """Return a display on a terminal that moves by itself, also while no step ends; nothing is drawn elsewhere."""
    console = Console(stderr=True)
    first = (SpinnerColumn(), _Description(Column(no_wrap=True)), TimeElapsedColumn())
    return Progress(*first, *columns, console=console, transient=True, disable=not console.is_terminal)
