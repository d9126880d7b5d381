"""Content of a report: one record, its JSON, and the table of selected features for every k."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Literal

from l20fs.report.confusion import Pair, confused_pairs
from l20fs.report.delimited import join_names, write_tsv
from l20fs.report.measures import (
    Atlas,
    ClassRate,
    Curve,
    Lookup,
    Numbers,
    PanelNumbers,
    PathLines,
    Reliability,
    Roc,
    Stability,
    Strips,
)
from l20fs.report.records import ReportError, dump, read_value
from l20fs.report.rules import FORMAT, MOST_LINES, NUMBER, rules_of

__all__ = ["MOST_LINES", "NUMBER", "Content", "Curve", "PathLines", "Stability", "as_plain"]

#: Formats that are read: the earlier ones lack what is optional now.
READABLE = (1, 2, FORMAT)
#: Fields of earlier formats that are no longer used.
FORMER = ("strongest",)
#: Number of substitutes shown for a feature.
N_SUBSTITUTES = 3


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
    k_max, k_min : int
        The largest and the smallest number of features that the page can show.
    n_samples, n_features : int
    classes : list of str
        Empty for a regression, which has ``targets``.
    class_sizes : list of int
    chance : float or None
        The score that needs no features, such as the share of the largest class; ``chance_name`` names it.
    curves : list of Curve
        The first is the one that is quoted; entry k - 1 belongs to k features.
    features : list of str
        The first ``k_max`` of the ranking.
    columns : dict of lists of str
        Texts beside the features that do not depend on k, as in ``selection.tsv``.
    substitutes : list of lists of tuples
        For each feature (name, correlation, rank or 0 if it is not among ``features``), the most correlated first; none
        where no correlation is worth it. Empty where nobody looked for them.
    heat : list of lists of float
        For each feature its mean z-score in each class; of a regression, in the lower, middle and upper third of each
        target, target after target. May be empty.
    heat_groups : list of (str, list of int), optional
        Headings of the rows of ``heat`` that stand together, and the places of these rows, in the order of the page. If
        there are none, the rows are in the order of ``features``.
    coef : list of lists of lists of str, optional
        ``coef[k - 1][i][c]``: the weight of feature i for class, or target, c if k features are selected.
    failure_costs : list of lists of str, optional
        ``failure_costs[k - 1][i]``: by what share the loss of a panel of k rises if feature i fails to be measured; empty
        where that is not known.
    confusion : list of lists of lists of int, optional
        ``confusion[k - 1][true][predicted]``: numbers of samples.
    confused : list of lists of Pair, optional
        ``confused[k - 1]``: the most frequent confusions, where there are too many classes for a matrix; None where they
        were not measured.
    path : PathLines, optional
    stability : Stability, optional
        Frequencies of the features that are selected at ``k``.
    provenance : dict, optional
        Anything JSON can hold: arguments, versions, checksums.
    sentences, warnings : list of str, optional
        What was done and what it does not mean; what the reader should beware of.
    score_name : str, default="accuracy"
    task : {"classification", "regression"}, default="classification"
    targets : list of str, optional
        Names of the numbers that a regression predicts.
    score_format : {"percent", "number"}, default="percent"
        How scores are written.
    score_is_loss : bool, default=False
        Whether less is better.
    chance_name : str, default="always the largest class"
    further : list of Curve, optional
        Curves of other metrics, named by the metric and written as numbers; each has a picture of its own.
    rates : list of lists of ClassRate, optional
        ``rates[k - 1][c]``: sensitivity and specificity of class c.
    roc : list of Roc, optional
        For two classes; entry k - 1 belongs to k features.
    reliability : list of Reliability, optional
        Whether probabilities can be trusted; entry k - 1 belongs to k features.
    numbers : Numbers, optional
        Measured and predicted numbers of a regression, of at most 300 samples and targets.
    strips : Strips, optional
        Values of the first features in single samples.
    lookup : Lookup, optional
        All features, for the search of the page.
    panel : PanelNumbers, optional
        What the page needs to predict new samples.
    atlas : Atlas, optional
        Panels that are nearly as good as the best.
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
    >>> content.selection_tsv(2, for_spreadsheets=True).split()[1:]
    ['rank', 'x', '1', "'=y", '2']
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
    chance: float | None
    curves: list[Curve]
    features: list[str]
    columns: dict[str, list[str]]
    substitutes: list[list[tuple[str, float, int]]]
    heat: list[list[float]]
    heat_groups: list[tuple[str, list[int]]] = field(default_factory=list)
    coef: list[list[list[str]]] | None = None
    confusion: list[list[list[int]]] | None = None
    confused: list[list[Pair] | None] | None = None
    path: PathLines | None = None
    stability: Stability | None = None
    provenance: dict[str, Any] = field(default_factory=dict)
    sentences: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    score_name: str = "accuracy"
    task: Literal["classification", "regression"] = "classification"
    targets: list[str] = field(default_factory=list)
    score_format: Literal["percent", "number"] = "percent"
    score_is_loss: bool = False
    chance_name: str = "always the largest class"
    further: list[Curve] = field(default_factory=list)
    rates: list[list[ClassRate] | None] | None = None
    roc: list[Roc | None] | None = None
    reliability: list[Reliability | None] | None = None
    numbers: Numbers | None = None
    strips: Strips | None = None
    lookup: Lookup | None = None
    panel: PanelNumbers | None = None
    atlas: Atlas | None = None
    failure_costs: list[list[str]] | None = None
    k_min: int = 1
    format: int = FORMAT

    def __post_init__(self) -> None:
        for is_right, what in rules_of(self):
            if not is_right:
                raise ReportError(f"The report is not complete: {what}. Make it again with l20fs select.")

    @property
    def outputs(self) -> list[str]:
        """Names of what the weights are for: classes, or targets of a regression."""
        return self.targets if self.task == "regression" else self.classes

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
        if isinstance(stored, dict):
            if (found := stored.get("format", FORMAT)) not in READABLE or isinstance(found, bool):
                raise ReportError(
                    f"The report has format {found!r}; this version of l20fs reads {FORMAT}. "
                    "Use the version that wrote it, or make it again."
                )
            stored["format"] = FORMAT
            for name in FORMER if found != FORMAT else ():
                stored.pop(name, None)
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
            Begin with a byte order mark, by which Excel knows UTF-8, and put an apostrophe before texts that a spreadsheet
            would take for a formula, and before names that it would turn into a date or a number.
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
            *(["failure_cost"] if self.failure_costs is not None else []),
            *([f"coef_{name}" for name in self.outputs] if self.coef is not None else []),
        ]

    def row(self, k: int, place: int) -> list[str]:
        """Return the cells of the feature at an index of the ranking, in a panel of k features."""
        cells = [self.features[place], *(texts[place] for texts in self.columns.values())]
        if self.substitutes:
            cells.append(join_names(f"{name} ({value:.2f})" for name, value in self.could_replace(k, place)))
        if self.failure_costs is not None:
            cells.append(self.failure_costs[k - 1][place])
        if self.coef is not None:
            cells += self.coef[k - 1][place]
        return cells

    def could_replace(self, k: int, place: int) -> list[tuple[str, float]]:
        """Return names and correlations of the most correlated features outside a panel of k."""
        outside = [(name, value + 0.0) for name, value, rank in self.substitutes[place] if rank == 0 or rank > k]
        return outside[:N_SUBSTITUTES]  # + 0.0: no text ever says -0.00 for a plain zero

    def confusions(self, k: int) -> list[Pair] | None:
        """Return the most frequent confusions with k features, None where they were not measured."""
        if self.confusion is None:
            return self.confused[k - 1] if self.confused is not None else None
        counts = self.confusion[k - 1]
        return confused_pairs(counts) if any(map(any, counts)) else None


# ------------------------------------------------------------------------------------------------------------------- JSON


def as_plain(content: Content) -> dict[str, Any]:
    """Return the fields for JSON; the weights of a panel as one text, which is half as long as a list of texts."""
    stored = {item.name: _plain(getattr(content, item.name)) for item in fields(content)}
    if content.coef is not None:
        stored["coef"] = [";".join(" ".join(row) for row in panel) for panel in content.coef]
    return stored


def _plain(value: Any) -> Any:
    """Return records, alone or in lists, as dictionaries."""
    if is_dataclass(value):
        return vars(value)
    if isinstance(value, list) and any(isinstance(item, list) or is_dataclass(item) for item in value):
        return [_plain(item) for item in value]
    return value


def _unpack(panel: Any) -> Any:
    return [row.split(" ") for row in panel.split(";")] if isinstance(panel, str) else panel
