"""Table of the selected features, with stability and substitutes."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_array, check_consistent_length, check_is_fitted

from l20fs.design import BLOCK_ELEMENTS, Design, Part, equality_tolerance, make_design
from l20fs.estimators.feature_values import levels
from l20fs.estimators.frames import is_lazy, opened, without_frame
from l20fs.inputs.devices import is_device_array
from l20fs.inputs.names import NamedColumns
from l20fs.inputs.targets import encode_targets
from l20fs.inputs.validation import check_number, refuse_foreign_array, refuse_other_width, validate_input
from l20fs.objective.path_ranking import RULES
from l20fs.objective.prox import order_descending
from l20fs.typing import Array

if TYPE_CHECKING:
    import pandas as pd

    from l20fs.estimators.path_selector import PathSelector
    from l20fs.objective.solution_path import SolutionPath


#: Weakest correlation with which one feature is offered as a substitute of another.
WEAKEST = 0.5
#: Correlations of at least so many features with all others are taken from a pass over X in blocks.
LINES_PER_PASS = 16


class Substitutes(NamedTuple):
    """Features most like the chosen ones: one entry per pair, the best substitute of a feature first."""

    feature: Array
    substitute: Array
    correlation: Array


def substitutes(X: Any, chosen: Any, n: int = 3, *, exclude: Any = ()) -> Substitutes:
    """Return the features with the largest absolute correlation with the chosen ones.

    Chosen and constant features replace nothing, and a chosen feature that is constant in X has no substitute. Ties go to
    the lower index. A sparse X is never made dense, and no array of features by features is made.

    Parameters
    ----------
    X : array, DataFrame, sparse matrix or matrix in blocks, of shape (n_samples, n_features)
    chosen : array of int
        Indices of the features that are to be replaced.
    n : int, default=3
        How many substitutes to find for each; fewer if there are not as many other features.
    exclude : array of int
        Indices of features that must not be offered.

    Returns
    -------
    Substitutes
        Arrays of equal length: the indices ``feature`` and ``substitute`` and their Pearson ``correlation``.

    Examples
    --------
    >>> X = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [2.0, -1.0, 5.0]])
    >>> found = substitutes(X, [0], n=1)
    >>> found.substitute.tolist(), found.correlation.round(6).tolist()
    ([1], [-1.0])
    """
    if is_device_array(X):
        refuse_foreign_array(X, "X", "substitutes")
    return likeness(X, chosen, n, exclude=exclude).outside


def worthwhile_correlation(n_samples: int, n_features: int) -> float:
    """Return the absolute correlation from which on a feature can be called a substitute of another.

    It is 0.5, or what the best of ``n_features`` features without any relation reaches by chance in ``n_samples`` samples,
    about sqrt(1 - n_features^(-2 / (n_samples - 2))), if that is more.

    Examples
    --------
    >>> round(worthwhile_correlation(83, 2308), 2), round(worthwhile_correlation(20, 10_000), 2)
    (0.5, 0.8)
    """
    if n_samples < 3:
        return math.inf  # two samples correlate in any case
    return max(WEAKEST, math.sqrt(1.0 - n_features ** (-2.0 / (n_samples - 2))))


class Likeness(NamedTuple):
    """Correlations of the chosen features: with others, and ``mutual`` (n_chosen, n_chosen), NaN with a constant one."""

    outside: Substitutes
    mutual: Array


class NearestMembers:
    """The one of the first chosen features with which each feature correlates most, found while correlations are computed.

    Attributes
    ----------
    place : array of shape (n_features,)
        Places among the chosen features, of equal ones the first; -1 for a constant feature.
    correlation : array of shape (n_features,)
    """

    def __init__(self, n_features: int, n_members: int) -> None:
        self.n_members = n_members
        self.place = np.full(n_features, -1)
        self.correlation = np.zeros(n_features)

    def add(self, place: int, row: Array) -> None:
        """Take the correlations of the chosen feature at a place with all features."""
        if place < self.n_members:
            is_stronger = np.abs(row) > np.abs(self.correlation) + equality_tolerance(row.dtype)
            self.place[is_stronger] = place
            self.correlation[is_stronger] = np.clip(row[is_stronger], -1.0, 1.0)


def likeness(X: Any, chosen: Any, n: int = 3, *, exclude: Any = (), nearest: NearestMembers | None = None) -> Likeness:
    """Return substitutes, see :func:`substitutes`, and the correlations of the chosen features with each other.

    ``nearest`` takes the correlations with all features, if it is given.

    Examples
    --------
    >>> X = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [2.0, -1.0, 5.0]])
    >>> likeness(X, [0, 2], n=1).mutual.round(3).tolist()
    [[1.0, 0.866], [0.866, 1.0]]
    """
    check_number("n", n, minimum=1, strict=False, whole=True)
    if is_lazy(X):
        X = opened(X)
    elif not isinstance(X, Part) and not is_device_array(X):
        refuse_foreign_array(X, "X", "substitutes")
        X = check_array(X, accept_sparse=["csc", "csr"], dtype=[np.float64, np.float32], ensure_min_samples=2)
    chosen = _checked_indices(chosen, X.shape[1])
    design = make_design(X, "zscore")
    is_candidate = design.varies.copy()
    is_candidate[chosen] = False
    is_candidate[_checked_indices(exclude, X.shape[1])] = False
    candidates = np.flatnonzero(is_candidate)
    places = np.flatnonzero(design.varies[chosen])
    replaceable = chosen[places]
    n = min(int(n), len(candidates))
    found, correlation = np.empty((len(replaceable), n), dtype=np.intp), np.empty((len(replaceable), n))
    rounding = equality_tolerance(design.dtype)
    mutual = np.full((len(chosen), len(chosen)), np.nan)
    for block, lines in _correlations(design, replaceable):
        mutual[places[block, None], places] = lines[:, replaceable]
        for place, row in enumerate(lines, block.start):
            if nearest is not None:
                nearest.add(int(places[place]), row)
            strengths = np.abs(row[candidates])
            strengths[strengths < rounding] = 0.0
            order = order_descending(strengths, rtol=rounding)
            found[place] = candidates[order[:n]]
            correlation[place] = row[found[place]]
    outside = Substitutes(np.repeat(replaceable, n), found.ravel(), np.clip(correlation, -1.0, 1.0).ravel())
    return Likeness(outside, np.clip(mutual, -1.0, 1.0))


def _correlations(design: Design, rows: Array) -> Iterator[tuple[slice, Array]]:
    """Yield the correlations of some features with all features, a few rows at a time, with their indices."""
    if design.matrix.is_in_blocks:  # each step is a pass
        step = max(LINES_PER_PASS, 8 * BLOCK_ELEMENTS // design.n_features)
    else:
        step = max(1, BLOCK_ELEMENTS // max(design.n_samples, design.n_features))
    for start in range(0, len(rows), step):
        block = slice(start, min(start + step, len(rows)))
        # Every feature has deviation 1, so that the products of two are N times their correlation.
        yield block, design.pull(design.push(rows[block], np.eye(block.stop - start))) / design.n_samples


def _checked_indices(chosen: Any, n_features: int) -> Array:
    indices = np.atleast_1d(np.asarray(chosen, dtype=None if np.size(chosen) else np.intp))
    if indices.dtype.kind not in "iu" or indices.ndim != 1:
        raise ValueError(
            f"chosen={chosen!r} is not valid. Give the indices of features, for example those of get_support(True)."
        )
    outside = indices[(indices < 0) | (indices >= n_features)]
    if len(outside):
        raise ValueError(f"chosen names feature {outside[0]}, but X has the features 0 to {n_features - 1}.")
    return indices


def feature_names(selector: Any) -> Array:
    """Return the names of all features that were selected from, or ``x0``, ``x1``, ... as in scikit-learn."""
    fitted = getattr(selector, "model_", selector)  # of a search, whose X may have been preprocessed
    names = getattr(fitted, "feature_names_in_", None)
    return np.array([f"x{j}" for j in range(fitted.n_features_in_)], dtype=object) if names is None else names


def without_names(selector: Any) -> Any:
    """Return a copy of a fitted selector that expects samples without names."""
    other = copy.copy(selector)
    vars(other).pop("feature_names_in_", None)
    return other


def selection_frame(selector: PathSelector, k: Any, X: Any, y: Any, stability: Any, n_substitutes: int) -> pd.DataFrame:
    """Build the table of :meth:`l20fs.L20Selector.selection_frame`, of the features selected for ``k``."""
    try:
        import pandas as pd
    except ModuleNotFoundError:
        raise ModuleNotFoundError("selection_frame() needs pandas: pip install 'l20fs[pandas]'.") from None

    check_is_fitted(selector)
    path = selector.path_
    chosen = selector.order_for(k)
    names = feature_names(selector)
    labels = selector.target_names()
    coef = np.atleast_2d(selector.coef_for(k))[:, chosen]
    if len(coef) < len(labels):  # a classifier of two classes has the weights for the second
        coef = np.vstack([-coef, coef])
    norms = np.zeros(path.n_features)
    norms[path.coef_rows] = path.stage_norms(-1)
    columns = {
        "feature": names[chosen],
        "rank": selector.ranking_[chosen],
        "score": selector.scores_[chosen],
        "norm": norms[chosen],
        "entry_alpha": path.entry_alphas[chosen],
        "rule": [RULES[rule] for rule in path.rules[chosen]],
        "failure_cost": _failure_costs(path, chosen),
    }
    if stability is not None:
        columns["stability"] = _frequencies(stability, selector)[chosen]
    if y is not None and X is None:
        raise ValueError("y tells the level of the features in X, which was not given. Give X and y, or neither of them.")
    if X is not None:
        X = _checked_samples(selector, X)
        if y is not None:
            columns["level"] = _levels(selector, X, y, chosen, labels)
        columns["could_replace"] = _could_replace(selector, X, chosen, n_substitutes)
    return pd.DataFrame(columns | {f"coef_{label}": weights for label, weights in zip(labels, coef, strict=True)})


def best_first(selector: Any) -> Array:
    """Return the indices of the selected features, best first."""
    chosen = np.flatnonzero(selector.support_)
    return chosen[np.argsort(selector.ranking_[chosen], kind="stable")]


def _failure_costs(path: SolutionPath, chosen: Array) -> Array:
    """Return by what share the loss rises without each chosen feature; NaN where the path cannot be refitted."""
    k = int(path.ranking[chosen].max(initial=0))
    return path.failure_costs(k) if 0 < k <= path.largest_refit else np.full(len(chosen), np.nan)


def _checked_samples(selector: PathSelector, X: Any) -> Any:
    """Return X after a check that it has the features of the fit."""
    if isinstance(X, NamedColumns):
        selector, X = without_names(selector), X.X
    X = without_frame(selector, X)
    if is_lazy(X):
        refuse_other_width(selector, X)
        return opened(X)
    return validate_input(
        selector, X, None, supervised=False, accept_sparse=True, dtypes=[np.float64, np.float32], reset=False
    )[0]


def _levels(selector: PathSelector, X: Any, y: Any, chosen: Array, labels: list[str]) -> list[str]:
    """Return where each chosen feature is high or low, by the classes or numbers of the samples."""
    y = np.asarray(y)
    check_consistent_length(X, y)
    has_classes = hasattr(selector, "classes_")
    targets = encode_targets(y, "classification" if has_classes else "regression")
    if targets.codes is not None and targets.classes is not None:
        labels = [str(label) for label in targets.classes]
    elif len(labels) == 1:
        labels = ["target"]
    if sp.issparse(X):
        X = X.tocsc()  # of which columns are taken
    return levels(X, list(chosen[:, None]), targets, labels)


def _could_replace(selector: PathSelector, X: Any, chosen: Array, n: int) -> list[str]:
    """Return the substitutes of each chosen feature, with a correlation that is worth it, as one line of text."""
    names = feature_names(selector)
    texts: dict[int, list[str]] = {feature: [] for feature in chosen}
    excluded = np.flatnonzero(selector.path_.rules == RULES.index("excluded"))
    least = worthwhile_correlation(*X.shape)
    for feature, substitute, correlation in zip(*substitutes(X, chosen, n, exclude=excluded), strict=True):
        if abs(correlation) >= least:
            texts[feature].append(f"{names[substitute]} ({correlation:.2f})")
    return [", ".join(texts[feature]) for feature in chosen]


def _frequencies(stability: Any, selector: PathSelector) -> Array:
    """Return the selection frequencies of a stability selection, after a check that the features match."""
    check_is_fitted(stability)
    if not hasattr(stability, "frequencies_"):
        raise TypeError(
            f"stability={type(stability).__name__} has no frequencies_. Give a fitted StabilitySelector, or None."
        )
    frequencies = np.asarray(stability.frequencies_)
    names = [getattr(fitted, "feature_names_in_", None) for fitted in (stability, selector)]
    has_other_names = names[0] is not None and names[1] is not None and not np.array_equal(names[0], names[1])
    if len(frequencies) != selector.n_features_in_ or has_other_names:
        raise ValueError(
            f"stability was fitted on {len(frequencies)} features, the selector on {selector.n_features_in_}"
            f"{' with other names' if has_other_names else ''}. Fit both on the same columns."
        )
    return frequencies
