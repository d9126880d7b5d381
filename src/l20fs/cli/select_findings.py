"""The record of a run of ``l20fs select``: samples, options and results."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from l20fs import L20Selector, StabilitySelector
from l20fs.cli.load import group_names
from l20fs.cli.options import SelectOptions
from l20fs.data.readers import Samples
from l20fs.estimators.base import BaseSelector
from l20fs.estimators.panels import largest_k
from l20fs.evaluation.data_checks import Classes
from l20fs.evaluation.predictions import Nested, Predictions
from l20fs.objective.solution_path import SolutionPath
from l20fs.typing import Array


@dataclass(frozen=True, eq=False)
class Findings:
    """The samples and options of a run, and its results.

    ``units`` are the features that can be selected, or their groups, best first; ``k`` counts them. ``k_rule`` is a key of
    :data:`l20fs.report.sentences.RULES`. ``search_limit`` is the largest k that was tried, if the search for k ended there.
    """

    samples: Samples
    options: SelectOptions
    classes: Classes
    selector: BaseSelector
    units: list[Array]
    k: int
    k_rule: str
    predictions: Predictions | None = None
    nested: Nested | None = None
    stability: StabilitySelector | None = None
    search_limit: int | None = None
    warnings: Sequence[str] = ()
    provenance: dict[str, Any] = field(default_factory=dict)

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
        return min(len(self.units), largest_k(len(self.classes)))

    def names_of(self, units: Sequence[Array]) -> list[str]:
        """Return the name of each feature, or of its group."""
        groups = group_names(self.samples, self.options.feature_groups)
        return [groups.get(int(members[0]), str(self.samples.feature_names[members[0]])) for members in units]

    def score(self) -> tuple[float, float] | None:
        """Return the mean accuracy at k and its standard error, if it was measured."""
        if self.predictions is None:
            return None
        results = self.predictions.results()
        place = self.predictions.sizes.index(self.k)
        return float(results["mean_test_score"][place]), float(results["standard_error"][place])

    def nested_score(self) -> tuple[float, float] | None:
        """Return the mean accuracy with k chosen inside the folds and its standard error, if it was measured."""
        if self.nested is None:
            return None
        accuracies = self.nested.accuracies
        return accuracies.mean(), accuracies.std(ddof=1) / math.sqrt(len(accuracies))
