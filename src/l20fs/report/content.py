"""Content of a report: one record, its JSON, and the table of selected features for every k."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields
from typing import Any

from l20fs.report.records import ReportError, dump, read_value

FORMAT = 1
#: Number of substitutes shown for a feature.
N_SUBSTITUTES = 3
#: Largest number of lines in the picture of the path.
MOST_LINES = 30

#: A plain number, as a text.
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True)
class Curve:
    """Scores for 1, 2, ... features: mean and standard error, None where nothing was measured."""

    name: str
    mean: list[float | None]
    error: list[float | None]


@dataclass(frozen=True)
class PathLines:
    """Row norms of the first features along the values of lambda, and the lambda at which each came to stay."""

    alphas: list[float]
    norms: list[list[float]]
    entry: list[float | None]


@dataclass(frozen=True)
class Stability:
    """Frequencies with which the selected features were selected again, and the stability index with its 95 % interval."""

    frequencies: list[float]
    index: float | None
    lower: float | None
    upper: float | None
    n_resamples: int


@dataclass(frozen=True)
class Content:
    """Content of a report page, for every number of features k from 1 to ``k_max``.

    Parameters
    ----------
    title : str
        The file or the data set.
    answer : str
        The result in one sentence.
    k : int
        How many features were selected. More than ``k_max`` are possible; the page shows the first ``k_max`` of them.
    k_rule : str
        How k came about, such as ``"asked for"``.
    k_max : int
        The largest number of features that the page can show.
    n_samples, n_features : int
    classes : list of str
    class_sizes : list of int
    chance : float
        The share of the largest class.
    curves : list of Curve
        The first is the one that is quoted; entry k - 1 belongs to k features.
    features : list of str
        The first ``k_max`` of the ranking.
    columns : dict of lists of str
        Texts beside the features that do not depend on k, as in ``selection.tsv``.
    substitutes : list of lists of tuples
        For each feature (name, correlation, rank or 0 if it is not among ``features``), the most correlated first. Empty
        where nobody looked for them.
    heat : list of lists of float
        For each feature its mean z-score in each class. May be empty.
    coef : list of lists of lists of str, optional
        ``coef[k - 1][i][c]``: the weight of feature i for class c if k features are selected.
    strongest : list of lists of int, optional
        ``strongest[k - 1][i]``: the class with the largest weight, -1 for none. There if ``coef`` is.
    confusion : list of lists of lists of int, optional
        ``confusion[k - 1][true][predicted]``: numbers of samples.
    path : PathLines, optional
    stability : Stability, optional
        Frequencies of the features that are selected at ``k``.
    provenance : dict, optional
        Anything JSON can hold: arguments, versions, checksums.
    sentences, warnings : list of str, optional
        What was done and what it does not mean; what the reader should beware of.
    score_name : str, default="accuracy"
    format : int
        Version of the file.

    Examples
    --------
    >>> content = Content(
    ...     title="toy", answer="1 of 2 features.", k=1, k_rule="asked for", k_max=2, n_samples=4, n_features=2,
    ...     classes=["a", "b"], class_sizes=[2, 2], chance=0.5, curves=[], features=["x", "=y"],
    ...     columns={"rank": ["1", "2"]}, substitutes=[], heat=[],
    ... )
    >>> Content.from_json(content.to_json()) == content
    True
    >>> content.selection_tsv(2, for_spreadsheets=True).split()
    ['feature', 'rank', 'x', '1', "'=y", '2']
    """

    title: str
    answer: str
    k: int
    k_rule: str
    k_max: int
    n_samples: int
    n_features: int
    classes: list[str]
    class_sizes: list[int]
    chance: float
    curves: list[Curve]
    features: list[str]
    columns: dict[str, list[str]]
    substitutes: list[list[tuple[str, float, int]]]
    heat: list[list[float]]
    coef: list[list[list[str]]] | None = None
    strongest: list[list[int]] | None = None
    confusion: list[list[list[int]]] | None = None
    path: PathLines | None = None
    stability: Stability | None = None
    provenance: dict[str, Any] = field(default_factory=dict)
    sentences: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    score_name: str = "accuracy"
    format: int = FORMAT

    def __post_init__(self) -> None:
        for is_right, what in _rules(self):
            if not is_right:
                raise ReportError(f"The report is not complete: {what}. Make it again with l20fs select.")

    @property
    def shown(self) -> int:
        """Number of selected features that the page shows."""
        return min(self.k, self.k_max)

    def to_json(self) -> str:
        """Return the content of ``report.json``: the same record gives the same text."""
        try:
            return dump(as_plain(self))
        except (ValueError, TypeError) as error:
            raise ReportError(f"The report holds what JSON cannot: {error}. Use finite numbers, texts and lists.") from None

    @classmethod
    def from_json(cls, text: str | bytes) -> Content:
        """Read the output of :meth:`to_json`; anything else is a :class:`ReportError`."""
        try:
            stored = json.loads(text)
            dump(stored)
        except (ValueError, RecursionError) as error:
            raise ReportError(f"This is no report: {error}. Name a report.json that l20fs select wrote.") from None
        if isinstance(stored, dict) and stored.get("format", FORMAT) != FORMAT:
            raise ReportError(
                f"The report has format {stored['format']!r}; this version of l20fs reads {FORMAT}. "
                "Use the version that wrote it, or make it again."
            )
        if isinstance(stored, dict) and isinstance(stored.get("coef"), list):
            stored["coef"] = [_unpack(panel) for panel in stored["coef"]]
        content: Content = read_value(stored, cls, "report")
        return content

    def selection_tsv(self, k: int, *, for_spreadsheets: bool = False) -> str:
        """Return ``selection.tsv`` for the first k features, with the weights of a panel of k.

        Parameters
        ----------
        k : int
            From 0 to ``k_max``.
        for_spreadsheets : bool, default=False
            Put an apostrophe before texts that a spreadsheet would take for a formula.
        """
        if not 0 <= k <= self.k_max:
            raise ValueError(f"k={k} is not valid. The report holds 0 to {self.k_max} features.")
        rows = [self.header(), *(self.row(k, place) for place in range(k))]
        return write_tsv(rows, for_spreadsheets=for_spreadsheets)

    def header(self) -> list[str]:
        """Return the names of the columns of ``selection.tsv``."""
        return [
            "feature",
            *self.columns,
            *(["could_replace"] if self.substitutes else []),
            *(["strongest", *(f"coef_{name}" for name in self.classes)] if self.coef is not None else []),
        ]

    def row(self, k: int, place: int) -> list[str]:
        """Return the cells of the feature at an index of the ranking, in a panel of k features."""
        cells = [self.features[place], *(texts[place] for texts in self.columns.values())]
        if self.substitutes:
            cells.append(", ".join(f"{name} ({value:.2f})" for name, value in self.could_replace(k, place)))
        if self.coef is not None and self.strongest is not None:
            strongest = self.strongest[k - 1][place]
            cells += ["" if strongest < 0 else self.classes[strongest], *self.coef[k - 1][place]]
        return cells

    def could_replace(self, k: int, place: int) -> list[tuple[str, float]]:
        """Return names and correlations of the most correlated features outside a panel of k."""
        outside = [(name, value + 0.0) for name, value, rank in self.substitutes[place] if rank == 0 or rank > k]
        return outside[:N_SUBSTITUTES]  # + 0.0: no text ever says -0.00 for a plain zero


def write_tsv(rows: Iterable[Iterable[str]], *, for_spreadsheets: bool = False) -> str:
    r"""Return rows of texts as tab-separated lines.

    Examples
    --------
    >>> write_tsv([["a\tb", "=c"]]), write_tsv([["a\tb", "=c"]], for_spreadsheets=True)
    ('a b\t=c\n', "a b\t'=c\n")
    """
    guard = _guarded if for_spreadsheets else str
    return "".join("\t".join(guard(re.sub(r"[\t\r\n]", " ", text)) for text in row) + "\n" for row in rows)


def _guarded(text: str) -> str:
    """Keep a spreadsheet from reading a name as a formula; a plain number, such as a negative weight, stays a number."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@") and not NUMBER.fullmatch(text) else text


# -------------------------------------------------------------------------------------------------- what belongs together


def _rules(content: Content) -> Iterator[tuple[bool, str]]:
    """Yield conditions that must hold, each with the fault if it does not."""
    n, n_classes = content.k_max, len(content.classes)
    yield content.format == FORMAT, f"format is {content.format}, not {FORMAT}"
    yield content.k >= 0 and n >= 0, "k and k_max must not be negative"
    yield len(content.features) == n, f"{len(content.features)} features for k_max {n}"
    yield len(content.class_sizes) == n_classes, f"{len(content.class_sizes)} class sizes for {n_classes} classes"
    for curve in content.curves:
        yield len(curve.mean) == len(curve.error) == n, f"curve {curve.name!r} has not {n} means and errors"
    for name, texts in content.columns.items():
        yield len(texts) == n, f"column {name!r} has {len(texts)} texts for {n} features"
        taken = name in ("feature", "could_replace", "strongest") or name.startswith("coef_")
        yield not taken, f"{name!r} cannot be the name of a further column"
    for what, table in (("substitutes", content.substitutes), ("heat", content.heat)):
        yield len(table) in (0, n), f"{what} has {len(table)} entries for {n} features"
    ranks = (rank for entries in content.substitutes for _, _, rank in entries)
    yield all(0 <= rank <= n for rank in ranks), f"a substitute has a rank outside 0 to {n}"
    yield all(len(row) == n_classes for row in content.heat), f"a row of heat has not {n_classes} classes"
    yield from _rules_of_panels(content)
    yield from _rules_of_pictures(content)


def _rules_of_panels(content: Content) -> Iterator[tuple[bool, str]]:
    n, n_classes = content.k_max, len(content.classes)
    sizes = list(range(1, n + 1))
    yield (content.coef is None) == (content.strongest is None), "coef and strongest come together"
    if content.coef is not None:
        yield n_classes > 0, "weights need classes"
        yield [len(panel) for panel in content.coef] == sizes, "coef has not k rows for each k"
        rows = [row for panel in content.coef for row in panel]
        yield all(len(row) == n_classes for row in rows), f"a row of coef has not {n_classes} weights"
        yield all(NUMBER.fullmatch(text) for row in rows for text in row), "a weight is no number"
    if content.strongest is not None:
        yield [len(panel) for panel in content.strongest] == sizes, "strongest has not k entries for each k"
        named = {place for panel in content.strongest for place in panel}
        yield named <= set(range(-1, n_classes)), f"strongest names a class outside 0 to {n_classes - 1}"
    if content.confusion is not None:
        yield len(content.confusion) == n, f"{len(content.confusion)} confusion matrices for {n} panels"
        is_square = all(
            len(matrix) == n_classes and all(len(row) == n_classes for row in matrix) for matrix in content.confusion
        )
        yield is_square, f"a confusion matrix is not {n_classes} x {n_classes}"
        counts = (count for matrix in content.confusion for row in matrix for count in row)
        yield all(count >= 0 for count in counts), "a count is negative"


def _rules_of_pictures(content: Content) -> Iterator[tuple[bool, str]]:
    if content.path is not None:
        n_lines, n_alphas = len(content.path.norms), len(content.path.alphas)
        yield n_lines <= min(MOST_LINES, content.k_max), f"the path has {n_lines} lines"
        yield len(content.path.entry) == n_lines, "the path has not one entry for each line"
        yield all(len(line) == n_alphas for line in content.path.norms), f"a line of the path has not {n_alphas} norms"
    if content.stability is not None:
        frequencies = content.stability.frequencies
        yield len(frequencies) == content.shown, f"{len(frequencies)} frequencies for {content.shown} features"
        yield all(0.0 <= share <= 1.0 for share in frequencies), "a frequency is not between 0 and 1"


# ------------------------------------------------------------------------------------------------------------------- JSON


def as_plain(content: Content) -> dict[str, Any]:
    """Return the fields for JSON; the weights of a panel as one text, which is half as long as a list of texts."""
    stored = {item.name: getattr(content, item.name) for item in fields(content)}
    for name in ("path", "stability"):
        stored[name] = vars(stored[name]) if stored[name] is not None else None
    stored["curves"] = [vars(curve) for curve in content.curves]
    if content.coef is not None:
        stored["coef"] = [";".join(" ".join(row) for row in panel) for panel in content.coef]
    return stored


def _unpack(panel: Any) -> Any:
    return [row.split(" ") for row in panel.split(";")] if isinstance(panel, str) else panel
