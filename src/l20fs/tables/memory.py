"""Memory that is free, sizes of files, and the hand-over of matrices that do not fit."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from l20fs.tables.errors import DataError
from l20fs.tables.table import Reading

#: Less memory than this is not asked for.
ALWAYS_FREE = 2**26

#: Limits of a control group (Docker, Slurm, systemd), and what it uses.
GROUPS = (("memory.max", "memory.current"), ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"))


def format_bytes(size: float) -> str:
    """Format a number of bytes with a binary unit.

    Examples
    --------
    >>> format_bytes(3_000_000_000), format_bytes(10)
    ('2.8 GiB', '10 bytes')
    """
    for unit, letter in ((2**40, "T"), (2**30, "G"), (2**20, "M"), (2**10, "K")):
        if size >= unit:
            return f"{size / unit:.1f} {letter}iB"
    return f"{size:.0f} bytes"


def free() -> int | None:
    """Return the bytes of memory that are free on this machine and in its control group; None if it is not known."""
    found = []
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        found += [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
    except (OSError, ValueError):
        pass
    for most, used in GROUPS:
        try:
            found.append(int(Path("/sys/fs/cgroup", most).read_text()) - int(Path("/sys/fs/cgroup", used).read_text()))
        except (OSError, ValueError):  # not there, or "max"
            continue
    return min((max(0, size) for size in found), default=None)


def limit(reading: Reading) -> int | None:
    """Return the memory that reading may take."""
    return free() if reading.max_memory is None else reading.max_memory


def check(needed: int, reading: Reading) -> None:
    """Raise an error if reading needs more memory than is allowed; ``needed`` is an estimate from the size of the file."""
    if reading.max_memory is None and needed < ALWAYS_FREE:
        return
    most = limit(reading)
    if most is not None and needed > most:
        which = "are free" if reading.max_memory is None else "are allowed"
        raise reading.error(
            f"needs about {format_bytes(needed)} of memory, but {format_bytes(most)} {which}. Remove features that hardly "
            "vary, keep it sparse (h5ad, .mtx), or use a larger machine."
        )


def files_of(place: Path) -> list[Path]:
    """Return a file, or the files below a folder in the order in which they are hashed."""
    return sorted(file for file in place.rglob("*") if file.is_file()) if place.is_dir() else [place]


def sha256_of(files: Iterable[Path]) -> str:
    """Return the SHA-256 of the content of files, one after the other."""
    found = hashlib.sha256()
    for file in files:
        with open(file, "rb") as stream:
            while piece := stream.read(2**20):
                found.update(piece)
    return found.hexdigest()


def open_in_place(reading: Reading, shape: tuple[int, ...], **options: Any) -> Any:
    """Return a matrix that does not fit into memory as it is in its file: the one place that knows of larger files."""
    from l20fs import open_large

    try:
        X = open_large(reading.file, **options)
    except ValueError as error:
        raise DataError(str(error)) from error
    if tuple(X.shape) != shape:
        raise reading.error(f"the matrix has the shape {tuple(X.shape)}, for {shape[0]} samples and {shape[1]} features.")
    return X


def is_large(X: Any) -> bool:
    """Return whether a matrix stays in its file."""
    return not isinstance(X, np.ndarray) and not sp.issparse(X)
