"""The record of a run of ``l20fs select``: samples, options and results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from l20fs import L20Selector, StabilitySelector
from l20fs.cli.load import group_names
from l20fs.cli.options import SelectOptions
from l20fs.data.readers import Samples
from l20fs.design import Part
from l20fs.estimators.base import BaseSelector
from l20fs.estimators.feature_values import class_means, target_correlations
from l20fs.estimators.panels import largest_k
from l20fs.evaluation.corrected_score import Estimate, fixed_score, fixed_scores
from l20fs.evaluation.levels import class_level, trend
from l20fs.evaluation.metrics import Metric
from l20fs.evaluation.predictions import Nested, Predictions
from l20fs.evaluation.target_summary import Classes, TargetSummary
from l20fs.inspection import NearOptimalPanels
from l20fs.objective.solution_path import SolutionPath
from l20fs.typing import Array


@dataclass(frozen=True, eq=False)
class Findings:
    """The samples and options of a run, and its results.

    ``units`` are the features that can be selected, or their groups, best first; ``k`` counts them. ``k_rule`` is a key of
    :data:`l20fs.report.sentences.RULES`. ``score`` is that of the linear judge at k, corrected for the choice of k if there
    was one. ``search_limit`` is the largest k that was tried, if the search for k ended there. ``shared``
    is a file as the fits have shared it.
    """

    samples: Samples
    options: SelectOptions
    targets: TargetSummary
    metric: Metric
    selector: BaseSelector
    units: list[Array]
    k: int
    k_rule: str
    predictions: Predictions | None = None
    score: Estimate | None = None
    nested: Nested | None = None
    stability: StabilitySelector | None = None
    atlas: NearOptimalPanels | None = None
    search_limit: int | None = None
    shared: Part | None = None
    warnings: Sequence[str] = ()
    provenance: dict[str, Any] = field(default_factory=dict)

    @property
    def is_regression(self) -> bool:
        """Whether numbers are predicted."""
        return self.targets.task == "regression"

    @property
    def classes(self) -> Classes:
        """Classes of the samples, which a regression does not have."""
        assert isinstance(self.targets, Classes)
        return self.targets

    @property
    def target_name(self) -> str:
        """Name of the target in the file."""
        return self.samples.target_name or ("target" if self.is_regression else "class")

    @property
    def is_corrected(self) -> bool:
        """Whether the number of features was chosen by the score, which is corrected for that."""
        return self.k_rule in ("best", "1se")

    @property
    def path(self) -> SolutionPath | None:
        """Solution path, of methods that have one."""
        return self.selector.path_ if isinstance(self.selector, L20Selector) else None

    @property
    def n_units(self) -> int:
        """Number of features or groups in the ranking."""
        return int(self.selector.ranking_.max())

    @property
    def has_groups(self) -> bool:
        """Whether features are selected in groups."""
        return self.n_units < len(self.samples.feature_names)

    @property
    def noun(self) -> str:
        """The noun for what k counts."""
        return "feature group" if self.has_groups else "feature"

    @property
    def k_max(self) -> int:
        """Largest number of units that the page shows."""
        return min(len(self.units), largest_k(len(self.targets)))

    def names_of(self, units: Sequence[Array]) -> list[str]:
        """Return the name of each feature, or of its group."""
        groups = group_names(self.samples, self.options.feature_groups)
        return [groups.get(int(members[0]), str(self.samples.feature_names[members[0]])) for members in units]

    @cached_property
    def means(self) -> list[list[float]]:
        """Mean z-score of each unit that is selected or shown in each class, or in each third of the target."""
        codes = thirds(self.targets.truth) if self.is_regression else self.classes.codes
        return class_means(self.samples.X, self.units[: max(self.k, self.k_max)], codes)

    @cached_property
    def levels(self) -> list[str]:
        """Level of each unit that is selected or shown: the classes in which it is high or low, or its trend."""
        if not self.is_regression:
            return [class_level(means, self.classes.sizes).text(self.classes.names) for means in self.means]
        units = self.units[: max(self.k, self.k_max)]
        found = target_correlations(self.samples.X, units, self.targets.truth)
        return [trend(correlation, self.target_name) for correlation in found]

    @cached_property
    def curves(self) -> dict[str, ScoreCurve]:
        """Scores for every size by each judge that the metric can score."""
        if self.predictions is None:
            return {}
        judges = self.predictions.judges_for(self.metric)
        return {judge: score_curve(self.predictions, judge, self.metric, self.samples.groups) for judge in judges}

    @cached_property
    def nested_score(self) -> Estimate | None:
        """Score with k chosen inside the folds, if it was measured."""
        if self.nested is None:
            return None
        folds = self.predictions.folds if self.predictions is not None else None
        return fixed_score(self.nested.outputs, self.metric, 0, folds=folds, groups=self.samples.groups)


class ScoreCurve(NamedTuple):
    """Scores for every size, arrays of shape (n_sizes,).

    ``value`` is the score of all predictions together, between the ``lower`` and ``upper`` ends of its 95 % interval for a
    given size; ``fold_mean`` the mean over the folds, by which a size is chosen, and ``error`` its standard error.
    """

    value: Array
    lower: Array
    upper: Array
    fold_mean: Array
    error: Array


def thirds(numbers: Array) -> Array:
    """Return 0, 1 or 2 for samples with numbers in the lower, middle or upper third; equal numbers are together.

    Examples
    --------
    >>> thirds(np.array([5.0, 1.0, 3.0, 9.0, 7.0, 2.0])).tolist()
    [1, 0, 1, 2, 2, 0]
    """
    return np.searchsorted(np.quantile(numbers, [1 / 3, 2 / 3]), numbers)


def score_curve(predictions: Predictions, judge: str, metric: Metric, groups: Array | None) -> ScoreCurve:
    """Return the scores of a judge for every size, as the metric gives them: losses are positive."""
    results = predictions.results(judge, metric)
    found = fixed_scores(predictions.outputs(judge, metric), metric, folds=predictions.folds, groups=groups)
    value, lower, upper = np.array(found).T
    return ScoreCurve(value, lower, upper, metric.sign * results["mean_test_score"], results["standard_error"])
