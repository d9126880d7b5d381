"""What the commands share: results to stdout, everything else to stderr."""

from __future__ import annotations

import io
import logging
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO

import click
import pandas as pd
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table as RichTable
from rich.text import Text

from l20fs.blocks import FileBlocks

if TYPE_CHECKING:
    from l20fs.experiments.runner import RunProgress


def as_tsv(frame: pd.DataFrame) -> Callable[[BinaryIO], object]:
    text = io.StringIO()
    frame.to_csv(text, sep="\t", index=False, float_format="%.10g", lineterminator="\n")
    return lambda stream: stream.write(text.getvalue().encode())


def plain(text: str) -> Text:
    """Keep rich from reading a feature name such as ``[red]`` as markup, or ``:boy:`` as a picture."""
    return Text(str(text))


def show(text: str) -> None:
    """Print to stdout, whatever it can encode, and be content if nobody reads it."""
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
    """Return what the bytes of an argument say as UTF-8, where the locale does not know more than ASCII."""
    return os.fsencode(text).decode("utf-8", errors="backslashreplace")


def note(text: str) -> None:
    click.echo(text, err=True)


@contextmanager
def stated_warnings() -> Iterator[list[str]]:
    """Turn warnings into one line each on stderr; the list that is given holds them afterwards."""
    texts: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield texts
    texts += dict.fromkeys(str(warning.message) for warning in caught)
    for text in texts:
        note(f"warning: {text}")


class _Notes(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        note(record.getMessage())


@contextmanager
def log_of_blocks(X: Any) -> Iterator[None]:
    """Pass on what the log says of a fit to a matrix in blocks: how it is read, and with how much memory."""
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
def cell_bars() -> Iterator[Callable[[str, RunProgress], None]]:
    """Yield what shows how far a run of cells is, with a bar and the time left for each name; on a terminal only."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        tasks: dict[str, TaskID] = {}

        def on_progress(name: str, progress: RunProgress) -> None:
            if name not in tasks:
                tasks[name] = bars.add_task(name)
            bars.update(tasks[name], completed=progress.n_done, total=progress.n_cells)

        yield on_progress


@contextmanager
def progress(description: str, total: int) -> Iterator[Callable[[], None]]:
    """Draw a bar on a terminal; what is given moves it on by one."""
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bars:
        task = bars.add_task(description, total=total)
        yield lambda: bars.advance(task)
