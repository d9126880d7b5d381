"""Trial reading of files in a process of its own, before they are opened in this one.

The HDF5 library trusts the structure of a file: of 100 files of anndata with a few damaged bytes, one crashes the
interpreter or keeps it busy for ever. Arrow ends the process at some damaged descriptions of Parquet columns. The trial
reads names, attributes, texts, small data sets and the places of all chunks of HDF5, and what Parquet says about its
columns, but not the values of large matrices. What it survives can be opened here; other damage raises an exception.

The trial needs h5py or pyarrow alone, which takes a tenth of the time of importing anndata, and runs meanwhile.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from typing import Any

#: Seconds of processor time that the trial may take, whatever the size of the file, and bytes for one more second; and bytes
#: of memory. The structure of a file of some gigabytes takes a second, its texts some more, and little memory.
LEAST_WORK, PER_SECOND, MOST_MEMORY = 10, 2**26, 2**30

#: Exit code of a trial that needs more memory.
NO_MEMORY = 9

#: Data sets of up to so many bytes are read; texts in parts of so many, until they have so many bytes. The same long text
#: may be named many times: that is counted later, without reading them.
SMALL, N_TEXTS, MOST_TEXT = 2**24, 2**8, 2**28

#: Names of elements and attributes that are looked up, whether a group lists them or not.
KNOWN = ("X", "obs", "var", "layers", "data", "indices", "indptr", "codes", "categories", "values", "mask", "_index")
KNOWN_ATTRIBUTES = ("encoding-type", "encoding-version", "_index", "column-order", "shape", "ordered", "h5sparse_format")


#: Files that were read on trial, as they were before it.
_PASSED: set[tuple[int, ...]] = set()


def start_trial(file: str | os.PathLike[str]) -> Any:
    """Start to read a file in another process, unless it was tried before and has not changed since."""
    if getattr(sys, "frozen", False):  # then this interpreter runs a program, not a file
        return None
    with suppress(OSError):
        if _version_of(file) in _PASSED:
            return None
    # -P: the folder of this file is not searched for modules.
    command = [sys.executable, "-P", __file__, os.fspath(file)]
    nothing, environment = subprocess.DEVNULL, os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    with suppress(OSError):
        return subprocess.Popen(command, env=environment, stdin=nothing, stdout=nothing, stderr=nothing)
    return None


def finish_trial(trial: Any, file: str | os.PathLike[str]) -> None:
    """Wait for a trial; raise an error if a signal or its limits ended it."""
    if trial is None:
        return
    version = _version_of(file)
    try:
        code = trial.wait(10 * work_for(file))
    except subprocess.TimeoutExpired:
        code = -1
    finally:
        stop_trial(trial)
    if code < 0 or code == NO_MEMORY:
        from l20fs.data.readers.hdf5_layout import LayoutError  # not in the trial itself, which loads h5py alone

        raise LayoutError("so damaged that the library which reads it crashes, or takes all memory or time. Copy it again.")
    _PASSED.add(version)


def _version_of(file: str | os.PathLike[str]) -> tuple[int, ...]:
    """Return what changes with every change of a file; the time of its inode cannot be set back."""
    found = os.stat(file)
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def stop_trial(trial: Any) -> None:
    """End a trial, whether it is done or not."""
    if trial is None:
        return
    with suppress(OSError):
        trial.kill()
    trial.wait()


def work_for(file: str | os.PathLike[str]) -> int:
    """Return the seconds of processor time that the trial of a file may take."""
    return LEAST_WORK + os.stat(file).st_size // PER_SECOND


def limit_work(file: str | os.PathLike[str], seconds: int) -> None:
    """Let the system end this process when it takes too much time, and refuse it more memory than it has and may take.

    Arrow reserves addresses without using them, and reads a few kilobytes here: it may have any number of them.
    """
    with suppress(ImportError, ValueError, OSError):  # not on every system
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
        if is_parquet(file):
            return
        with open("/proc/self/statm", encoding="ascii") as stream:
            most = int(stream.read().split()[0]) * resource.getpagesize() + MOST_MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


@contextmanager
def _going_on() -> Iterator[None]:
    """Go on after every error, unless the library asks for more memory than the structure of a file takes."""
    try:
        yield
    except Exception as error:
        if isinstance(error, MemoryError) or "alloc" in str(error):
            raise SystemExit(NO_MEMORY) from error


def is_parquet(file: str | os.PathLike[str]) -> bool:
    """Return whether a file begins as Parquet files do."""
    with open(file, "rb") as stream:
        return stream.read(4) == b"PAR1"


def read_on_trial(file: str | os.PathLike[str]) -> None:
    """Read the structure and the small parts of a file."""
    (_read_parquet if is_parquet(file) else _read_hdf5)(file)


def _read_parquet(file: str | os.PathLike[str]) -> None:
    from pyarrow.parquet import ParquetFile

    with _going_on(), ParquetFile(file) as stored:
        for group in map(stored.metadata.row_group, range(stored.metadata.num_row_groups)):
            for column in range(group.num_columns):
                with _going_on():
                    group.column(column)


def _read_hdf5(file: str | os.PathLike[str]) -> None:
    import h5py

    # Texts of one chunk are read in many parts: it must stay in the cache, or is unpacked for each of them.
    with _going_on(), h5py.File(file, "r", rdcc_nbytes=2 * SMALL) as stored:
        for element in _elements(stored, h5py):
            for read in (_read_attributes, _read_values):
                with _going_on():
                    read(element)


def _elements(stored: Any, h5py: Any) -> Iterator[Any]:
    """Yield every group and data set once; links are not followed."""
    waiting, seen = [stored], set()
    while waiting:
        element, place = waiting.pop(), None
        with _going_on():
            place = h5py.h5o.get_info(element.id).addr
        if place in seen:
            continue
        if place is not None:
            seen.add(place)
        yield element
        with _going_on():
            for name in chain(KNOWN, element) if isinstance(element, h5py.Group) else ():
                with _going_on():
                    if name in element and isinstance(element.get(name, getlink=True), h5py.HardLink):
                        waiting.append(element[name])


def _read_attributes(element: Any) -> None:
    for name in chain(KNOWN_ATTRIBUTES, element.attrs):
        with _going_on():
            if name in element.attrs:
                element.attrs[name]


def _read_values(element: Any) -> None:
    if not hasattr(element, "dtype") or element.external or element.is_virtual:
        return
    if element.chunks is not None:
        element.id.get_num_chunks()
        element.id.chunk_iter(lambda found: None)
        if math.prod(element.chunks) * element.dtype.itemsize > SMALL:
            return
    if element.dtype.kind == "O" and element.ndim == 1:
        n_bytes = 0
        for start in range(0, len(element), N_TEXTS):
            n_bytes += sum(map(len, element[start : start + N_TEXTS]))
            if n_bytes > MOST_TEXT:
                return
    elif math.prod(element.shape or ()) * element.dtype.itemsize <= SMALL:
        element[()]


if __name__ == "__main__":
    # The libraries map memory of their own, which does not count.
    __import__("pyarrow.parquet" if is_parquet(sys.argv[1]) else "h5py")
    limit_work(sys.argv[1], work_for(sys.argv[1]))
    read_on_trial(sys.argv[1])
