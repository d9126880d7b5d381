"""One resample of a stability selection: the units that are counted, and those that a selector finds on some samples."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from l20fs.design import Walk, finish, make_design, share_samples
from l20fs.design.samples import samples_of
from l20fs.estimators.base import BaseSelector
from l20fs.estimators.path_selector import PathSelector
from l20fs.estimators.penalty import feature_penalty
from l20fs.estimators.selector import L20Selector
from l20fs.evaluation.folds import OTHER_GROUPS
from l20fs.evaluation.resampling import Pairs
from l20fs.inputs.targets import OneClassError, Targets, forget_absent_classes
from l20fs.typing import Array


class Picked(NamedTuple):
    """Result of a resample: the best features, best first, of which the selector takes the first ``size``."""

    order: Array
    size: int


class Work(NamedTuple):
    """Data and settings that every resample needs; it travels to other processes."""

    selector: Any
    X: Any
    y: Array | None
    metadata: dict[str, Array]
    pairs: Pairs
    units: Units
    n_resamples: int

    def pick(self, resample: int) -> Picked:
        """Return the features that the selector finds on the samples of a resample."""
        return finish(self.walk(resample))

    def walk(self, resample: int) -> Walk[Picked]:
        """Find them beside those of other resamples."""
        rows = self.pairs.rows(resample)
        selector = clone(self.selector)
        seed = self.pairs.selector_seed(resample)
        seedless = [name for name, value in selector.get_params().items() if _is_seed(name) and value is None]
        selector.set_params(**dict.fromkeys(seedless, seed))
        y = None if self.y is None else self.y[rows]
        forget_absent_classes(selector, y)
        metadata = {name: values[rows] for name, values in self.metadata.items()}
        X = samples_of(self.X, rows)
        try:
            if hasattr(selector, "_walk_fit"):
                yield from selector._walk_fit(share_samples(X), y, **metadata, warn=resample == 0)  # once for all
            else:
                selector.fit(X, y, **metadata)
        except ValueError as error:
            where = f"Resample {resample + 1} of {self.n_resamples}, with {len(rows)} samples,"
            if isinstance(error, OneClassError):
                raise OneClassError(error.label, where, OTHER_GROUPS) from error
            raise ValueError(f"{where} failed: {error}") from error
        return pick_best(selector, self.units)


class Units(NamedTuple):
    """Units that are counted: features, where each stands alone, and groups of features that are selected together.

    ``of`` is the unit of each feature and ``heads`` the lowest feature of each unit, by which units are numbered.
    ``is_free`` is False for units that are selected always or never, whatever the samples are.
    """

    of: Array
    heads: Array
    is_free: Array

    @property
    def are_features(self) -> bool:
        """Whether each feature stands alone."""
        return len(self.heads) == len(self.of)

    @property
    def called(self) -> str:
        return "features" if self.are_features else "features and groups"

    def count(self, mask: Array) -> int:
        """Return the number of units with a feature in a mask."""
        return int(np.count_nonzero(mask)) if self.are_features else len(np.unique(self.of[mask]))


def find_units(selector: Any, X: Any, targets: Targets) -> Units:
    """Return the units of a selector, which the parameters of an L20Selector, or of one inside it, define.

    As in a fit to all samples, a constant feature is no part of a group. One that is constant in a half alone is: the halves
    would not count the same otherwise.
    """
    n_features = X.shape[1]
    while isinstance(selector, BaseSelector) and not isinstance(selector, L20Selector):
        selector = getattr(selector, "selector", None)
    if not isinstance(selector, L20Selector):
        return Units(np.arange(n_features), np.arange(n_features), np.ones(n_features, dtype=bool))
    has_groups = selector.constraints is not None and selector.constraints.groups is not None
    varies = np.ones(n_features, dtype=bool)
    if has_groups:
        own: dict[str, Any] = {"fit_intercept": selector.fit_intercept, "nuisances": targets.nuisances}
        varies = make_design(X, "zscore", targets.sample_weight, **own).varies
    penalty = feature_penalty(selector.constraints, varies)
    heads = np.unique(penalty.unit_of, return_index=True)[1]
    return Units(penalty.unit_of, heads, (penalty.costs > 0.0) & (penalty.costs < np.inf))


def pick_best(selector: Any, units: Units) -> Picked:
    """Return the units that a fitted selector selected, best first, and behind them what else it ranked with care."""
    is_path = isinstance(selector, PathSelector)  # which sorts all features when one asks for ranking_
    if not is_path and not (hasattr(selector, "ranking_") and hasattr(selector, "support_")):
        raise TypeError(
            f"{type(selector).__name__} has no ranking_ and support_ after fit. Use a selector that ranks, for example "
            "one of l20fs.methods."
        )
    support = np.asarray(selector.support_)
    if is_path and units.are_features:
        size, n_ranked = units.count(support), selector.path_.n_ranked
    else:
        is_ranked = np.isfinite(selector.scores_) if hasattr(selector, "scores_") else np.ones(len(support), dtype=bool)
        size, n_ranked = (units.count(mask) for mask in (support, is_ranked))
    n_kept = max(size, min(getattr(selector, "max_features_to_select", None) or 0, n_ranked))
    if is_path and units.are_features:
        leading = selector.path_.leading(n_kept)
        if leading.size and support[leading[:size]].all():
            return Picked(leading.astype(np.int32), size)
    order = units.of[np.lexsort((selector.ranking_, ~support))]
    order = order[np.sort(np.unique(order, return_index=True)[1])]  # each unit where the best of its features stands
    return Picked(units.heads[order[:n_kept]].astype(np.int32), size)


def _is_seed(name: str) -> bool:
    return name == "random_state" or name.endswith("__random_state")
