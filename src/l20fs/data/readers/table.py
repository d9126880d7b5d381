"""What readers take and give: the table, what was asked for, and how everything else is refused."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from l20fs.text import did_you_mean, listed
from l20fs.typing import Array

#: An array, a csr_array, a csc_array or FileBlocks; SciPy has no types that could say so.
Matrix = Any
SamplesIn = Literal["rows", "columns"]


class DataError(ValueError):
    """The data cannot be used as they are; the message says what to change."""


class UnknownColumnError(ValueError):
    """A column, sheet or layer that was asked for is not in the file, or none was asked for where one is needed."""


class MissingPackageError(DataError):
    """A package that reads this kind of file is not installed."""


@dataclass(frozen=True, eq=False)
class Samples:
    """Samples with labels and names.

    Attributes
    ----------
    X : ndarray, csr_array or csc_array of shape (n_samples, n_features)
        float64, or float32 where the file has float32. All values are finite. What is sparse in the file is sparse here.
        A :class:`~l20fs.blocks.FileBlocks` if it is too large for the memory and was allowed to stay in the file.
    y : ndarray of str, shape (n_samples,)
        The label of each sample, as text.
    feature_names : list of str
        As they stand in the file, no two alike.
    sha256 : str
        Of the file; of all files, in the order of their names, where a folder was read.
    sample_names : list of str, optional
        No two alike.
    groups : ndarray of str, optional
        What the column named by ``groups`` says, such as the donor of each sample.
    target_name : str
        What the labels are called in the file.
    notes : tuple of str
        What the user should know, one line each.
    format : str
        ``"CSV"``, ``"h5ad"``...
    title : str
        The name of the file, or of the built-in set.
    """

    X: Matrix
    y: Array
    feature_names: list[str]
    sha256: str
    sample_names: list[str] | None = None
    groups: Array | None = None
    target_name: str = ""
    notes: tuple[str, ...] = ()
    format: str = ""
    title: str = ""


@dataclass(frozen=True)
class Request:
    """What is to be read from a file; see :func:`l20fs.data.readers.read_table`."""

    file: Path
    target: str | None = None
    labels: Path | None = None
    groups: str | None = None
    samples_in: SamplesIn = "rows"
    layer: str | None = None
    sheet: str | None = None
    max_memory: int | None = None
    #: Whether a matrix that is too large for the memory may stay in its file.
    in_blocks: bool = False
    #: How much of the memory is taken before anything is read.
    in_use: int = 0

    @property
    def name(self) -> str:
        """The name of the file, with which every message begins."""
        return self.file.name

    @property
    def table_target(self) -> str | None:
        """The column of the labels, if it is to be in the table itself."""
        return self.target if self.labels is None else None


@dataclass(frozen=True, eq=False)
class Contents:
    """What a reader found in a file. Labels are None where a separate file has them."""

    X: Matrix
    feature_names: list[str]
    sample_names: list[str] | None = None
    y: Sequence[str] | None = None
    groups: Sequence[str] | None = None
    target_name: str = ""
    #: The line of each sample, for messages, if the file has lines.
    lines: Sequence[int] | None = None
    notes: tuple[str, ...] = ()
    format: str = ""


def require(package: str, extra: str, request: Request) -> Any:
    """Import an optional package, or say how to get it."""
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError:
        raise MissingPackageError(
            f"{request.name}: files of this kind are read with {package.partition('.')[0]}, which is not installed. "
            f"Install it: pip install 'l20fs[{extra}]'"
        ) from None


def find(name: str, names: Sequence[str], what: str, request: Request) -> int:
    """Return the position of a name, or say which one may have been meant."""
    if name in names:
        return names.index(name)
    raise UnknownColumnError(f"{request.name} has no {what} {name!r}. {did_you_mean(name, names)}")


def refuse_repeated(names: Sequence[str], what: str, request: Request, hint: str = "") -> None:
    """Refuse names of which one stands for two things."""
    if len(set(names)) < len(names):
        repeated = [name for name, count in Counter(names).items() if count > 1]
        raise DataError(f"{request.name}: {what} names occur more than once: {listed(repeated)}. Make them unique.{hint}")


def first_line(error: Exception) -> str:
    """Return what another package says about a fault, short enough for a line."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200].rstrip(".")
