"""Output of all commands: results to stdout; notes, warnings and progress to stderr; texts and tables to files."""

from __future__ import annotations

import io
import json
import logging
import os
import sys
import warnings
import webbrowser
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table as RichTable
from rich.text import Text

from l20fs.cli.interruption import resumable
from l20fs.text import printable

if TYPE_CHECKING:
    import pandas as pd

    from l20fs.experiments.runner import RunProgress


#: Letters of a text in a table on the terminal.
MOST_LETTERS = 500


def tsv_writer(frame: pd.DataFrame) -> Callable[[BinaryIO], object]:
    """Return a function that writes a frame into an open file, tab-separated."""
    from l20fs.report.formats import text_writer

    text = io.StringIO()
    frame.to_csv(text, sep="\t", index=False, float_format="%.10g", lineterminator="\n")
    return text_writer(text.getvalue())


def show_json(value: Any) -> None:
    """Print a value as JSON to stdout."""
    show(json.dumps(value, indent=2) + "\n")


def tell_results(folder: Path, names: Iterable[str], *, open_page: bool) -> None:
    """Say where the result files and the report page are, and open the page if asked for."""
    note(f"Results are in {folder}{os.sep}: {', '.join(names)}")
    tell_page(folder, open_page=open_page)


def tell_page(folder: Path, *, open_page: bool) -> None:
    """Say where the report page is, and open it if asked for."""
    page = folder / "report.html"
    note(f"Look at {page}")
    if open_page:
        open_in_browser(page)


def open_in_browser(page: Path) -> None:
    """Show a page that was written."""
    webbrowser.open(page.resolve().as_uri())


def plain(text: str) -> Text:
    """Escape a text so that neither rich interprets markup or emoji codes, nor the terminal control characters."""
    return Text(printable(str(text), MOST_LETTERS).replace("\n", "\\n"))


def show(text: str) -> None:
    """Print to stdout; characters that it cannot encode are replaced, a closed pipe is ignored."""
    encoding = sys.stdout.encoding or "utf-8"
    try:
        # click and rich would end the run with code 1 when the reader of stdout has had enough.
        sys.stdout.write(text.encode(encoding, errors="backslashreplace").decode(encoding))
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def show_tables(*tables: RichTable) -> None:
    """Print tables to stdout as wide as it is."""
    console = Console()
    with console.capture() as capture:
        for table in tables:
            console.print(table)
    show(capture.get())


def readable(text: str) -> str:
    """Decode the bytes of an argument as UTF-8, also where the locale knows ASCII only."""
    return os.fsencode(text).decode("utf-8", errors="backslashreplace")


def note(text: str) -> None:
    """Print a line to stderr."""
    click.echo(printable(text), err=True)


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
def log_of_blocks(X: Any) -> Iterator[None]:
    """Print log messages of a fit to a matrix in blocks: how it is read, and with how much memory."""
    from l20fs.blocks import FileBlocks

    if not isinstance(X, FileBlocks):
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
def cell_bars(folder: Path) -> Iterator[Callable[[str, RunProgress], None]]:
    """Yield a function that shows the progress of runs of cells, a bar and the time left for each; on a terminal only.

    Everything that is finished is in ``folder``, and told if the block is interrupted: the same command goes on with it.
    """
    with live(BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()) as bars:
        tasks: dict[str, TaskID] = {}
        done: dict[str, RunProgress] = {}

        def on_progress(name: str, progress: RunProgress) -> None:
            done[name] = progress
            if name not in tasks:
                tasks[name] = bars.add_task(name)
            bars.update(tasks[name], completed=progress.n_done, total=progress.n_cells)

        def kept() -> str:
            counts = [f"{each.n_done} of {each.n_cells} fits of {name!r}" for name, each in done.items() if each.n_done]
            return f"{', '.join(counts)} kept in {folder}{os.sep}" if counts else ""

        with resumable(kept):
            yield on_progress


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


def live(*columns: ProgressColumn) -> Progress:
    """Return a display on a terminal that moves by itself, also while no step ends; nothing is drawn elsewhere."""
    console = Console(stderr=True)
    first = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    return Progress(*first, *columns, console=console, transient=True, disable=not console.is_terminal)
