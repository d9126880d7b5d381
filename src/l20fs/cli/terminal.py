"""Lines on the terminal: results to standard output, notes and warnings to standard error.

Names from files may hold sequences that a terminal obeys: control characters are escaped.
"""

from __future__ import annotations

import os
import sys
import warnings
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from l20fs.text import printable

#: Letters of a line at most.
MOST_LETTERS = 2000


def show(text: str) -> None:
    """Print a line to standard output."""
    click.echo(printable(text))


def note(text: str) -> None:
    """Print a line to standard error."""
    click.echo(printable(" ".join(text.split()), MOST_LETTERS), err=True)


@contextmanager
def noted_warnings() -> Iterator[list[str]]:
    """Print each warning once, as a note; the list that is yielded has all of them."""
    texts: list[str] = []

    def tell(message: Warning | str, *where: object, **further: object) -> None:
        if (text := str(message)) not in texts:
            texts.append(text)
            note(f"warning: {text}")

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = tell
        yield texts


def close_stdout() -> None:
    """Let go of an output that nobody reads, so that Python does not complain when it flushes the rest."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def show_files(folder: Path, names: list[str], page: str, *, is_to_open: bool) -> None:
    """Say where results are, and open the page if asked for."""
    show(f"Report: {folder / page}; beside it: {', '.join(name for name in names if name != page)}")
    if is_to_open:
        webbrowser.open((folder / page).resolve().as_uri())
