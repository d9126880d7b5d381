"""Records that pass between the steps of reading: the request, the cells of a file, its matrix with names, the samples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from l20fs.tables.errors import DataError, UnknownColumnError
from l20fs.tables.settings import Input
from l20fs.text import did_you_mean, listed
from l20fs.typing import Array, Task

#: Ending of the name of a covariate that holds numbers.
AS_NUMBER = ":number"

#: An array, a csr_array, a csc_array, or what :func:`l20fs.open_large` returns.
Matrix = Any


@dataclass(frozen=True)
class Reading:
    """One call of :func:`~l20fs.tables.read_table`: what is asked for, the settings, and what was decided on the way."""

    file: Path
    input: Input = field(default_factory=Input)
    target: str | None = None
    labels: Path | None = None
    groups: str | None = None
    adjust_for: Sequence[str] = ()
    ignore: Sequence[str] = ()
    task: Task = "auto"
    need_labels: bool = True
    needed: frozenset[str] | None = None
    substitutes: frozenset[str] = frozenset()
    max_memory: int | None = None
    #: Names in the file of labels that may be those of samples.
    labelled: frozenset[str] = frozenset()
    #: Sentences about what was decided without being told.
    notes: list[str] = field(default_factory=list, compare=False)
    #: Whether all cells stay texts, as in a file of labels.
    verbatim: bool = False

    @property
    def name(self) -> str:
        """Name of the file, with which every message begins."""
        return self.file.name

    @property
    def table_target(self) -> str | None:
        """Column of the labels, if they are in the table itself."""
        return self.target if self.labels is None else None

    @cached_property
    def beside(self) -> list[str]:
        """Columns that say something about the samples besides the target: groups and covariates, each once."""
        covariates = [name.removesuffix(AS_NUMBER) for name in self.adjust_for]
        return list(dict.fromkeys([*([] if self.groups is None else [self.groups]), *covariates]))

    @cached_property
    def wanted(self) -> list[str]:
        """Columns that the table must have: the target, and what stands beside it unless there is a file of labels."""
        return [name for name in (self.table_target, *(self.beside if self.labels is None else [])) if name is not None]

    @cached_property
    def about(self) -> list[str]:
        """Columns that are read as texts, wherever they are."""
        return list(dict.fromkeys([*([] if self.table_target is None else [self.table_target]), *self.beside]))

    @property
    def lacks_labels(self) -> bool:
        """Whether it is not said where the labels are, and they are needed."""
        return self.need_labels and self.labels is None and self.target is None

    def say(self, text: str) -> None:
        """Keep a sentence about what was decided."""
        self.notes.append(f"{self.name}: {text}.")

    def error(self, text: str) -> DataError:
        """Return the error for unusable data, which names the file."""
        return DataError(f"{self.name}: {text}")

    def find(self, name: str, names: Sequence[str], what: str = "column") -> int:
        """Return the place of a name, or raise an error with similar names."""
        if name in names:
            return names.index(name)
        raise UnknownColumnError(f"{self.name} has no {what} {name!r}. {did_you_mean(name, names)}")

    def refuse_repeated(self, names: Sequence[str], what: str, hint: str = "") -> None:
        """Raise an error for names that occur more than once."""
        if len(set(names)) < len(names):
            repeated = [name for name, count in Counter(names).items() if count > 1]
            raise self.error(f"{what} names occur more than once: {listed(repeated)}. Make them unique.{hint}")


@dataclass(frozen=True)
class Table:
    """Cells of a file: numbers, and the texts of all cells that are none.

    ``values[i, j]`` is the number in row i below ``header[j]``, NaN where there is none. ``odd`` has the other cells of the
    columns that mostly hold numbers; ``columns`` and ``rows`` have whole columns and rows as texts, those that are asked for
    or hold texts. The first column, which may hold names, stands apart. A turned table is one whose rows were columns.
    """

    corner: str
    header: list[str]
    first: list[str]
    values: Array
    odd: dict[tuple[int, int], str]
    columns: dict[int, list[str]] = field(default_factory=dict)
    rows: dict[int, list[str]] = field(default_factory=dict)
    #: Line of each row, or of each column of a turned table.
    lines: Sequence[int] = ()
    separator: str = ""
    #: Decimal mark with which the numbers were read.
    mark: str = "."
    is_turned: bool = False
    #: Whether the first column is known to hold names.
    has_names: bool = False

    def turned(self) -> Table:
        """Return the table with its rows as columns."""
        odd = {(j, i): text for (i, j), text in self.odd.items()}
        return replace(
            self,
            header=self.first,
            first=self.header,
            values=self.values.T,
            odd=odd,
            columns=self.rows,
            rows=self.columns,
            is_turned=not self.is_turned,
            has_names=True,
        )

    def keep(self, columns: Sequence[int]) -> Table:
        """Return the table with the columns at some places."""
        if len(columns) == len(self.header):
            return self
        place = {j: new for new, j in enumerate(columns)}
        return replace(
            self,
            header=[self.header[j] for j in columns],
            values=self.values[:, list(columns)],
            odd={(i, place[j]): text for (i, j), text in self.odd.items() if j in place},
            columns={place[j]: texts for j, texts in self.columns.items() if j in place},
            rows={i: [texts[j] for j in columns] for i, texts in self.rows.items()},
            lines=[self.lines[j] for j in columns] if self.is_turned and self.lines else self.lines,
        )

    def texts(self, column: int) -> list[str]:
        """Return a column as texts."""
        if column in self.columns:
            return self.columns[column]
        return [self.odd.get((i, column)) or number_text(value) for i, value in enumerate(self.values[:, column].tolist())]

    def where(self, row: int, column: int) -> str:
        """Describe the place of a cell."""
        what = "row" if self.is_turned else "column"
        line = column if self.is_turned else row
        at = f", line {self.lines[line]}" if self.lines else ""
        sample = f", sample {self.first[row]!r}" if self.is_turned else "" if self.lines else f", sample {row + 1}"
        return f"{what} {self.header[column]!r}{at}{sample}"


def number_text(value: float) -> str:
    """Return a number as a text, whole ones without a decimal point; nothing for NaN.

    Examples
    --------
    >>> number_text(44256.0), number_text(0.5), number_text(float("nan"))
    ('44256', '0.5', '')
    """
    if value != value:
        return ""
    return str(int(value)) if abs(value) < 2**53 and value == int(value) else repr(float(value))


@dataclass(frozen=True, eq=False)
class Contents:
    """Matrix of a file with samples in rows, its names, and the columns about the samples as texts."""

    X: Matrix
    features: list[str]
    samples: list[str] | None = None
    about: Mapping[str, Sequence[str]] = field(default_factory=dict)
    target: str = ""
    lines: Sequence[int] = ()
    #: Names of columns that are no features.
    others: Sequence[str] = ()
    is_turned: bool = False
    mark: str = "."

    @property
    def y(self) -> Sequence[str] | None:
        """Labels or numbers of the target as texts."""
        return self.about.get(self.target)

    def with_features(self, kept: Sequence[int]) -> Contents:
        """Return the contents with the features at some places; the others are left out by name."""
        if len(kept) == len(self.features):
            return self
        is_kept = set(kept)
        gone = [name for place, name in enumerate(self.features) if place not in is_kept]
        names = [self.features[place] for place in kept]
        return replace(self, X=self.X[:, list(kept)], features=names, others=[*self.others, *gone])

    def with_samples(self, kept: Sequence[int]) -> Contents:
        """Return the contents with the samples at some places, in this order."""
        if list(kept) == list(range(self.X.shape[0])):
            return self
        return replace(
            self,
            X=self.X[np.asarray(kept)],
            samples=None if self.samples is None else [self.samples[i] for i in kept],
            about={name: [texts[i] for i in kept] for name, texts in self.about.items()},
            lines=[self.lines[i] for i in kept] if self.lines and not self.is_turned else self.lines,
        )

    def sample(self, place: int) -> str:
        """Return the line, the name or the number of a sample, for a message."""
        if self.lines and not self.is_turned:
            return f"line {self.lines[place]}"
        return f"sample {self.samples[place]!r}" if self.samples else f"sample {place + 1}"


class Unprepared(NamedTuple):
    """Values with gaps, and the unfitted transformer that fills them."""

    X: Matrix
    transformer: Any

    def prepared(self, train: Array | None = None) -> Matrix:
        """Return all samples, prepared by what the training samples say; by default by all of them."""
        fitted = clone(self.transformer).fit(self.X if train is None else self.X[train])
        return fitted.transform(self.X)


@dataclass(frozen=True, eq=False)
class Samples:
    """Samples with labels and names, as :func:`~l20fs.tables.read_table` returns them.

    Attributes
    ----------
    X : ndarray, csr_array or csc_array of shape (n_samples, n_features)
        Finite values, float64, or float32 if the file has float32; sparse if the file is sparse. What
        :func:`l20fs.open_large` returns, if the matrix does not fit into memory and its file may be opened so.
    y : ndarray of str or float64, shape (n_samples,)
        Label of each sample, as text; for a regression its number. Empty texts if they were neither needed nor asked for.
    feature_names : list of str
        Unique names of the features, as in the file; repeated ones are numbered.
    sha256 : str
        Digest of the file; of all files in the order of their names, if a folder was read.
    sample_names : list of str, optional
        Unique names of the samples.
    groups : ndarray of str, optional
        Group of each sample, such as its donor.
    adjust_for : dict of ndarray of str or float64
        Covariates of each sample by name: labels such as its batch, or numbers such as its age.
    target_name : str
        Name of the labels in the file.
    notes : tuple of str
        Everything that was decided without being told, one sentence each.
    format : str
        Format of the file, such as ``"CSV"`` or ``"h5ad"``.
    title : str
        Name of the file, or of the built-in set.
    others : sequence of str
        Names of the columns that were left out.
    unprepared : Unprepared, optional
        If gaps were filled: the values before that, for cross-validation.
    missing : dict of float
        Share of the samples in which a feature was missing, by its name.

    Examples
    --------
    >>> import tempfile
    >>> from l20fs.tables import read_table
    >>> file = Path(tempfile.mkdtemp()) / "tumours.csv"
    >>> _ = file.write_text("type,TP53,MYC\\nwild,1,2\\nwild,3,4\\nmutant,5,6\\nmutant,7,8\\n")
    >>> table = read_table(file, "type")
    >>> table.format, table.target_name, table.feature_names
    ('CSV', 'type', ['TP53', 'MYC'])
    """

    X: Matrix
    y: Array
    feature_names: list[str]
    sha256: str
    sample_names: list[str] | None = None
    groups: Array | None = None
    adjust_for: dict[str, Array] = field(default_factory=dict)
    target_name: str = ""
    notes: tuple[str, ...] = ()
    format: str = ""
    title: str = ""
    others: Sequence[str] = ()
    unprepared: Unprepared | None = None
    missing: dict[str, float] = field(default_factory=dict)

    @property
    def task(self) -> Task:
        """Task of the targets: ``"classification"`` or ``"regression"``."""
        return "regression" if self.y.dtype.kind == "f" else "classification"

    @property
    def X_before(self) -> Matrix:
        """Values before :attr:`preprocess`, which is fitted in every fold; X if there is none. Some may be missing (NaN)."""
        return self.X if self.unprepared is None else self.unprepared.X

    @property
    def preprocess(self) -> Any:
        """Unfitted transformer that prepares the values, None if they need none."""
        return None if self.unprepared is None else self.unprepared.transformer

    def mapped(self, function: Callable[[Matrix], Matrix]) -> Samples:
        """Return the samples with a function of all values, which are then prepared anew.

        Parameters
        ----------
        function : callable
            Called with the values, of which some may be missing (NaN), and returns others of the same shape.

        Returns
        -------
        Samples
            The samples with these values.
        """
        if self.unprepared is None:
            return replace(self, X=function(self.X))
        unprepared = self.unprepared._replace(X=function(self.unprepared.X))
        return replace(self, X=unprepared.prepared(), unprepared=unprepared)
