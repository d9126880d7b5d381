"""DATA and other inputs of a command: files, standard input (``-``) and pipes, each of which is read once."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path

import click

from l20fs.blocks import format_bytes
from l20fs.blocks.memory import available_memory
from l20fs.cli.output import readable, working
from l20fs.data.readers import DataError, detect
from l20fs.data.readers.limits import MEMORY_PER_BYTE
from l20fs.storage.regular_files import LargeFileError, NotAFileError, not_a_file
from l20fs.storage.streams import copied, descriptor_of, is_stream, title_of

#: Place in the context of a command for the copies of what it has read, by the names that were given.
COPIES = "l20fs.copies"


def is_there(given: str | Path) -> bool:
    """Return whether a name stands for something that may be read; False for impossible names, too."""
    return is_stream(given) or os.path.exists(given)


def refuse_twice(*given: str | Path | None) -> None:
    """Raise an error if standard input is asked for more than once."""
    if sum(descriptor_of(each) == 0 for each in given if each is not None) > 1:
        raise click.UsageError("Standard input (-) is given twice, and can be read once. Save one of the two to a file.")


def as_file(given: str | Path, max_memory: int | None = None, most_bytes: int | None = None) -> Path:
    """Return a file or folder that can be read as often as needed.

    A pipe is copied, once, to a temporary file of its name, which is removed when the command ends, however it ends. It may
    have as many bytes as fit into memory, unless ``most_bytes`` says otherwise.
    """
    if not is_stream(given):
        mode = os.stat(given).st_mode
        if not (os.path.isfile(given) or os.path.isdir(given)):
            raise DataError(str(not_a_file(given, mode)))
        return Path(given)
    copies: dict[str, tuple[Path, ExitStack]] = click.get_current_context().meta.setdefault(COPIES, {})
    name = os.fspath(given)
    if name not in copies:
        if descriptor_of(name) == 0 and os.isatty(0):
            raise click.UsageError("Standard input (-) is a terminal. Send a table into it: zcat table.csv.gz | l20fs ... -")
        stack = click.get_current_context().with_resource(ExitStack())
        copies[name] = _copied(name, max_memory, most_bytes, stack), stack
    return copies[name][0]


def _copied(name: str, max_memory: int | None, most_bytes: int | None, stack: ExitStack) -> Path:
    most = 0

    def limit(head: bytes) -> int | None:
        nonlocal most
        found = most_bytes if most_bytes is not None else most_for(head, max_memory)
        most = found or 0
        return found

    try:
        with working(f"Reading {readable(title_of(name))}"):
            return stack.enter_context(copied(name, limit))
    except NotAFileError as error:
        raise DataError(str(error)) from error
    except LargeFileError as error:
        what = "no such file has" if most_bytes is not None else "does not fit into memory as a table"
        way_out = "Look at what comes" if most_bytes is not None else "Send less, or allow more (--max-memory)"
        raise DataError(f"{title_of(name)}: more than {format_bytes(most)} came, which {what}. {way_out}.") from error


def most_for(head: bytes, max_memory: int | None) -> int | None:
    """Return the maximum number of bytes of a table that begins with ``head``; None: it may be larger than memory.

    Examples
    --------
    >>> most_for(b"type,TP53", 2**30) < most_for(b"PAR1", 2**30), most_for(b"\\x93NUMPY", 2**30)
    (True, None)
    """
    most = available_memory() if max_memory is None else max_memory
    kind = next((kind for pattern, kind in detect.BEGINNINGS if pattern.match(head)), None)
    if most is None or kind in (detect.H5AD, detect.NPY):  # can be read in blocks
        return None
    is_binary = head[:2] in (detect.GZIP, b"PK") or (kind is not None and not kind.is_text)
    return most if is_binary else most // MEMORY_PER_BYTE


def forget(*given: str | Path | None) -> None:
    """Remove the copies of streams that are in memory now."""
    context = click.get_current_context(silent=True)
    copies = {} if context is None else context.meta.get(COPIES, {})
    for each in given:
        if each is not None and os.fspath(each) in copies:
            copies[os.fspath(each)][1].close()
