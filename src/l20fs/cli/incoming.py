"""DATA and other inputs of a command: files, standard input (``-``) and pipes, each of which is read once."""

from __future__ import annotations

import math
import os
import tempfile
from pathlib import Path

import click

from l20fs.cli.output import readable, working
from l20fs.tables import DataError
from l20fs.tables.memory import format_bytes, free

#: Names of standard input.
STANDARD_INPUT = ("-", "/dev/stdin")

#: Place in the context of a command for the copies of what it has read, by the names that were given.
COPIES = "l20fs.copies"

#: Bytes that are copied at a time.
CHUNK = 2**20


def title_of(given: str | Path) -> str:
    """Return the name of a file or stream for messages.

    Examples
    --------
    >>> title_of("-"), title_of("/dev/fd/63"), title_of("data/table.csv")
    ('standard input', 'pipe 63', 'table.csv')
    """
    place = Path(given)
    if str(place) in STANDARD_INPUT:
        return "standard input"
    return f"pipe {place.name}" if str(place.parent) in ("/dev/fd", "/proc/self/fd") else place.name


def is_there(given: str | Path) -> bool:
    """Return whether a name stands for something that may be read; False for impossible names, too."""
    return str(given) == "-" or os.path.exists(given)


def refuse_twice(*given: str | Path | None) -> None:
    """Raise an error if standard input is asked for more than once."""
    if sum(str(each) in STANDARD_INPUT for each in given) > 1:
        raise click.UsageError("Standard input (-) is given twice, and can be read once. Save one of the two to a file.")


def as_file(given: str | Path, max_memory: int | None = None) -> Path:
    """Return a file or folder that can be read as often as needed.

    Standard input or a pipe is copied, once, into a temporary file, which is removed when the command ends, however it ends.
    It may have as many bytes as fit into memory.
    """
    name = os.fspath(given)
    if name != "-" and not Path(name).is_fifo():
        return Path(name)
    if name == "-" and os.isatty(0):
        raise click.UsageError("Standard input (-) is a terminal. Send a table into it: zcat table.csv.gz | l20fs ... -")
    context = click.get_current_context()
    copies: dict[str, Path] = context.meta.setdefault(COPIES, {})
    if name not in copies:
        folder = context.with_resource(tempfile.TemporaryDirectory(prefix="l20fs-input-"))
        copies[name] = Path(folder, title_of(name))
        with working(f"Reading {readable(title_of(name))}"):
            _copy(name, copies[name], max_memory or free() or math.inf)
    return copies[name]


def _copy(name: str, place: Path, most_bytes: float) -> None:
    """Copy a stream to a file."""
    size = 0
    try:
        with open(0 if name == "-" else name, "rb", closefd=name != "-") as stream, open(place, "wb") as copy:
            while piece := stream.read(CHUNK):
                size += copy.write(piece)
                if size > most_bytes:
                    raise DataError(
                        f"{title_of(name)}: more than {format_bytes(int(most_bytes))} came, which does not fit into memory. "
                        "Send less, save it to a file, or allow more (--max-memory)."
                    )
    except OSError as error:
        raise OSError(
            f"{title_of(name)} cannot be copied to {place.parent.parent} ({error.strerror}). Save it to a file first, or "
            "name another folder in the environment variable TMPDIR."
        ) from error
