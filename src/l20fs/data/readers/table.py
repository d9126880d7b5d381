"""Types and errors shared by the readers: request, contents, table."""

from __future__ import annotations

import importlib
import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from sklearn.base import clone

from l20fs.text import MOST, did_you_mean, listed
from l20fs.typing import Array, Decimal, Duplicates, Join, Missing, Task

#: Ending of the name of a nuisance that holds numbers.
AS_NUMBER = ":number"

#: An array, a csr_array, a csc_array or a Dask array; SciPy has no types that could say so.
Matrix = Any
SamplesIn = Literal["rows", "columns"]


class DataError(ValueError):
    """Unusable data; the message says what to change."""


class UnknownColumnError(ValueError):
    """Missing column, sheet, layer or variable: not in the file, or required but not named."""


class MissingPackageError(DataError):
    """Missing package that is required to read a format."""


class Unprepared(NamedTuple):
    """Values with gaps or repeated features, and the unfitted transformer that prepares them."""

    X: Matrix
    transformer: Any

    def prepared(self, train: Array | None = None) -> Matrix:
        """Return all samples, prepared by what the training samples say; by default by all of them."""
        fitted = clone(self.transformer).fit(self.X if train is None else self.X[train])
        return fitted.transform(self.X)


@dataclass(frozen=True, eq=False)
class Samples:
    """Samples with labels and names, as :func:`~l20fs.data.readers.read_table` returns them.

    Attributes
    ----------
    X : ndarray, csr_array or csc_array of shape (n_samples, n_features)
        Finite values, float64, or float32 if the file has float32; sparse if the file is sparse. A
        Dask array if it exceeds the memory limit and may stay in the file.
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
        Nuisances of each sample by the names of their columns: labels such as its batch, or numbers such as its age.
    target_name : str
        Name of the labels in the file.
    notes : tuple of str
        Notes for the user, one line each.
    format : str
        Format of the file, such as ``"CSV"`` or ``"h5ad"``.
    title : str
        Name of the file, or of the built-in set.
    others : list of str
        Names of the columns that were left out.
    choices : dict of dict
        What the readers chose by themselves, by file name and option, such as ``{"a.csv": {"decimal": ","}}``.
    unprepared : Unprepared, optional
        If ``X`` was prepared by something that is learned from samples: the values before that, for cross-validation.
    missing : dict of float
        Share of the samples in which a feature was missing, by its name.

    Examples
    --------
    >>> import tempfile
    >>> from l20fs.data.readers import read_table
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
    choices: dict[str, dict[str, Any]] = field(default_factory=dict)
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


@dataclass
class ReadingLog:
    """Notes for the user about how files are read, and what was chosen without being asked for."""

    notes: list[str] = field(default_factory=list)
    #: By file name and option.
    choices: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: By file name: the names in the file of features that were numbered, since their name occurs more than once.
    numbered: dict[str, dict[str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Request:
    """Options of a reader, see :func:`l20fs.data.readers.read_table`; None: detected, or the default."""

    file: Path
    target: str | None = None
    labels: Path | None = None
    groups: str | None = None
    #: Columns of nuisances; a name followed by ``:number`` says that the column holds numbers.
    adjust_for: Sequence[str] = ()
    samples_in: SamplesIn | None = None
    layer: str | None = None
    sheet: str | None = None
    max_memory: int | None = None
    #: Whether a matrix that exceeds the memory limit may stay in its file.
    in_blocks: bool = False
    #: Bytes of the memory limit that are in use before anything is read.
    in_use: int = 0
    #: Whether the targets are labels or numbers; "auto": labels, unless they are many different numbers.
    task: Task = "auto"
    #: Whether a file without labels is refused.
    need_labels: bool = True
    #: The features that a panel needs, whose values may be missing; None: all.
    needed: frozenset[str] | None = None
    #: Those of them that can replace others.
    substitutes: frozenset[str] = frozenset()
    labels_sheet: str | None = None
    encoding: str | None = None
    decimal: Decimal | None = None
    skip_rows: int | None = None
    #: Texts that stand for a missing value, besides the usual ones.
    na: Sequence[str] = ()
    #: Names or patterns of columns to leave out, and of the features to read.
    ignore: Sequence[str] = ()
    features: Sequence[str] | None = None
    duplicates: Duplicates | None = None
    missing: Missing | None = None
    join: Join | None = None
    strict: bool = False
    #: Names in the first column of the file of labels; empty if it has none.
    labelled_samples: frozenset[str] = frozenset()
    #: Shared by all files of a request.
    log: ReadingLog = field(default_factory=ReadingLog, compare=False)

    @property
    def name(self) -> str:
        """Name of the file, with which every message begins."""
        return self.file.name

    @property
    def lacks_labels(self) -> bool:
        """Whether it is not said where the labels are, and they are needed."""
        return self.need_labels and self.labels is None and self.target is None

    @property
    def expects_labels(self) -> bool:
        """Whether the labels have to be in the file itself."""
        return self.labels is None and (self.need_labels or self.target is not None)

    def asked_name(self, name: str) -> str:
        """Return the name of a column without blanks around it, if it is that of the target or stands beside it."""
        return name.strip() if name.strip() in (self.target, *self.beside) else name

    @property
    def beside(self) -> list[str]:
        """Columns that say something about the samples besides the target: groups and nuisances, each once."""
        nuisances = [name.removesuffix(AS_NUMBER) for name in self.adjust_for]
        return list(dict.fromkeys([*([] if self.groups is None else [self.groups]), *nuisances]))

    def note(self, text: str) -> None:
        """Keep a note for the user, which names the file."""
        self.log.notes.append(f"{self.name}: {text}")

    def guess(self, option: str | None, value: Any, text: str) -> None:
        """Keep a guess about the file and a note that says so, or raise an error if guesses are forbidden.

        Parameters
        ----------
        option : str or None
            The option that would say the same, such as ``"decimal"``; None if there is none.
        value : object
            Its value.
        text : str
            What was found and done, without the name of the file and the full stop.

        Examples
        --------
        >>> request = Request(Path("a.csv"))
        >>> request.guess("decimal", ",", "numbers have a decimal comma")
        >>> request.log.notes, request.log.choices
        (['a.csv: numbers have a decimal comma (--decimal ,).'], {'a.csv': {'decimal': ','}})
        """
        said = "" if option is None else f"--{option.replace('_', '-')}"
        can_show = isinstance(value, list) and len(value) <= MOST and not any("," in each for each in value)
        shown = ",".join(value) if can_show else value
        said += f" {shlex.quote(str(shown))}" if said and isinstance(shown, str | int) else ""
        if self.strict:
            way_out = f"Say so with {said}" if said else "Correct the file"
            raise DataError(f"{self.name}: {text}, and --strict forbids to guess. {way_out}, or leave --strict out.")
        self.note(f"{text} ({said})." if said else f"{text}.")
        if option is not None:
            self.log.choices.setdefault(self.name, {})[option] = value

    def tell(self, option: str, value: Any, text: str) -> None:
        """Keep a note about what is done by an option: a guess, unless the option is given."""
        if getattr(self, option) is None:
            self.guess(option, value, text)
        else:
            self.note(f"{text}.")

    @property
    def numbered(self) -> dict[str, str]:
        """Names in the file of features that were numbered, since their name occurs more than once."""
        return self.log.numbered.setdefault(self.name, {})

    def needs(self, name: str) -> bool:
        """Return whether a feature is needed, under its own name or that of the features which stand for one."""
        if self.needed is None or name in self.needed:
            return True
        return self.duplicates_rule != "number" and self.numbered.get(name) in self.needed

    @property
    def missing_rule(self) -> Missing:
        """Rule for missing values."""
        return self.missing or ("refuse" if self.strict else "median")

    @property
    def duplicates_rule(self) -> Duplicates:
        """Rule for features of the same name."""
        return self.duplicates or ("refuse" if self.strict else "number")

    @property
    def table_target(self) -> str | None:
        """Column of the labels, if they are in the table itself."""
        return self.target if self.labels is None else None


@dataclass(frozen=True, eq=False)
class Contents:
    """Content of a file before validation. Labels are None if a separate file has them, or if none are needed."""

    X: Matrix
    feature_names: list[str]
    sample_names: list[str] | None = None
    y: Sequence[str] | None = None
    #: By name: what the columns of :attr:`Request.beside` say about each sample, as text.
    beside: Mapping[str, Sequence[str]] = field(default_factory=dict)
    target_name: str = ""
    #: Line of each sample in a text file, for messages.
    lines: Sequence[int] | None = None
    notes: tuple[str, ...] = ()
    format: str = ""
    #: Names of the columns that are no requested features.
    others: Sequence[str] = ()
    #: Whether the file has its samples in columns.
    is_turned: bool = False
    #: Decimal mark of the targets, if they are numbers as text.
    decimal: Decimal = "."

    def with_features(self, kept: Sequence[int]) -> Contents:
        """Return the contents with the features at some places; a matrix in blocks stays in its file."""
        names, is_kept = self.feature_names, set(kept)
        return replace(
            self,
            X=self.X[:, list(kept)],
            feature_names=[names[place] for place in kept],
            others=[*self.others, *(name for place, name in enumerate(names) if place not in is_kept)],
        )

    def with_samples(self, kept: Sequence[int]) -> Contents:
        """Return the contents with the samples at some places, in the same order."""
        if len(kept) == self.X.shape[0]:
            return self
        of_samples = {name: getattr(self, name) for name in ("sample_names", "y", "lines")}
        parts: dict[str, Any] = {name: [part[i] for i in kept] for name, part in of_samples.items() if part is not None}
        beside = {name: [part[i] for i in kept] for name, part in self.beside.items()}
        return replace(self, X=self.X[np.asarray(kept)], beside=beside, **parts)


def require(package: str, extra: str, request: Request) -> Any:
    """Import an optional package, or raise an error that says how to install it."""
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError:
        raise MissingPackageError(
            f"{request.name}: files of this kind are read with {package.partition('.')[0]}, which is not installed. "
            f"Install it: pip install 'l20fs[{extra}]'"
        ) from None


def find(name: str, names: Sequence[str], what: str, request: Request) -> int:
    """Return the position of a name, or raise an error with similar names."""
    if name in names:
        return names.index(name)
    raise UnknownColumnError(f"{request.name} has no {what} {name!r}. {did_you_mean(name, names)}")


def refuse_repeated(names: Sequence[str], what: str, request: Request, hint: str = "") -> None:
    """Raise an error for duplicate names."""
    if len(set(names)) < len(names):
        repeated = [name for name, count in Counter(names).items() if count > 1]
        raise DataError(f"{request.name}: {what} names occur more than once: {listed(repeated)}. Make them unique.{hint}")


def first_line(error: Exception) -> str:
    """Return the first line of the message of an exception, shortened."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200].rstrip(".")
