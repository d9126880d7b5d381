"""Content of a report: one record, and the table of selected features for every k."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from l20fs.report.confusion import Pair, confused_pairs
from l20fs.report.delimited import join_names, write_rows
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

    Examples
    --------
    >>> content = Content(
    ...     title="toy", answer="1 of 2 features.", k=1, k_rule="asked for", k_max=2, n_samples=4, n_features=2,
    ...     classes=["a", "b"], class_sizes=[2, 2], chance=0.5, curves=[], features=["x", "=y"],
    ...     columns={"rank": ["1", "2"]}, substitutes=[], heat=[],
    ... )
    >>> content.selection_tsv(2).split()
    ['feature', 'rank', 'x', '1', '=y', '2']
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

    @property
    def outputs(self) -> list[str]:
        """Names of what the weights are for: classes, or targets of a regression."""
        return self.targets if self.task == "regression" else self.classes

    @property
    def shown(self) -> int:
        """Number of selected features that the page shows."""
        return min(self.k, self.k_max)

    def selection_tsv(self, k: int) -> str:
        """Return ``selection.tsv`` for the first k features, with the weights of a panel of k."""
        return write_rows([self.header(), *(self.row(k, place) for place in range(k))])

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
