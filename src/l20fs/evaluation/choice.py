"""Sizes to try, tables of their cross-validation scores, and the choice of a size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from l20fs.typing import Array

#: ``"best"``: the highest mean score. ``"1se"``: the fewest features at most one standard error below it.
SizeRule = Literal["best", "1se"]

#: Mean scores closer than this are tied: they differ by rounding errors.
TIE = 1e-10

#: A search tries all sizes up to the first limit, and goes no further than the last: models of more features take long.
FIRST_LIMIT, LAST_LIMIT = 100, 800


def search_limits(n_units: int) -> list[int]:
    """Return the largest sizes of a search, one after the other while :func:`is_at_limit` holds.

    The first is 100; each is twice the one before, up to 800, and never more than the ``n_units`` that can be selected.

    Examples
    --------
    >>> search_limits(30), search_limits(150), search_limits(5000)
    ([30], [100, 150], [100, 200, 400, 800])
    """
    last = min(n_units, LAST_LIMIT)
    limits = [min(FIRST_LIMIT, last)]
    while limits[-1] < last:
        limits.append(min(2 * limits[-1], last))
    return limits


def search_sizes(limit: int) -> list[int]:
    """Return the sizes to try up to a limit: all up to 100, every second up to 200, every fourth up to 400, and so on.

    Examples
    --------
    >>> search_sizes(3), search_sizes(205)[97:102], search_sizes(205)[-3:]
    ([1, 2, 3], [98, 99, 100, 102, 104], [200, 204, 205])
    """
    sizes = list(range(1, min(limit, FIRST_LIMIT) + 1))
    step = 1
    while sizes[-1] < limit:
        step *= 2
        sizes += range(sizes[-1] + step, min(2 * sizes[-1], limit) + 1, step)
        if sizes[-1] + step > limit > sizes[-1]:
            sizes.append(limit)
    return sizes


class Setting(NamedTuple):
    """Setting of a path: its ridge, and the lambda at which it ends, None for the largest size."""

    ridge: float
    alpha: float | None


def tabulate(settings: Sequence[Setting], sizes: Sequence[int | None], scores: Array, n_features: Array) -> dict[str, Array]:
    """Arrange scores as scikit-learn does, one entry per setting and size.

    Parameters
    ----------
    settings : sequence of Setting
    sizes : sequence of int or None
    scores, n_features : arrays of shape (n_settings, n_folds, n_sizes)
        Test scores, and numbers of selected features.

    Returns
    -------
    dict of arrays
        See ``L20SelectorCV.cv_results_``.
    """
    n_splits, n_sizes = scores.shape[1:]
    per_fold = scores.transpose(0, 2, 1).reshape(-1, n_splits)
    ridges = np.repeat([setting.ridge for setting in settings], n_sizes)
    alphas = np.repeat([np.nan if setting.alpha is None else setting.alpha for setting in settings], n_sizes)
    means = per_fold.mean(axis=1)
    error = per_fold.std(axis=1, ddof=1) / np.sqrt(n_splits) if n_splits > 1 else np.zeros(len(means))
    ranks = 1 + np.count_nonzero(means[None, :] > means[:, None] + TIE, axis=1)
    return {
        "ridge": ridges,
        "alpha": alphas,
        "n_features_to_select": np.tile([np.nan if size is None else float(size) for size in sizes], len(settings)),
        "n_features": n_features.mean(axis=1).ravel(),
        **{f"split{number}_test_score": per_fold[:, number] for number in range(n_splits)},
        "mean_test_score": means,
        "std_test_score": per_fold.std(axis=1),
        "standard_error": error,
        "rank_test_score": ranks,
    }


def tabulate_selections(support: Array, ranking: Array) -> dict[str, Array]:
    """Arrange what was selected in each fold as scikit-learn's ``RFECV`` does, one row per setting and size.

    Parameters
    ----------
    support : array of shape (n_folds, n_settings, n_sizes, n_features)
        Masks of the selected features.
    ranking : array of shape (n_folds, n_settings, n_features)
        Ranks of the features, which the sizes of a setting share; with one setting they share the memory as well.

    Returns
    -------
    dict of arrays
        See ``L20SelectorCV.cv_results_``.

    Examples
    --------
    >>> table = tabulate_selections(np.array([[[[True, False], [True, True]]]]), np.array([[[1, 2]]]))
    >>> table["split0_support"].tolist(), table["split0_ranking"].tolist()
    ([[True, False], [True, True]], [[1, 2], [1, 2]])
    """
    ranks = np.broadcast_to(ranking[:, :, None, :], support.shape)
    n_features = support.shape[-1]
    return {
        **{f"split{number}_ranking": each.reshape(-1, n_features) for number, each in enumerate(ranks)},
        **{f"split{number}_support": each.reshape(-1, n_features) for number, each in enumerate(support)},
    }


def choose(results: dict[str, Array], rule: SizeRule | None, among: Array | None = None) -> int:
    """Return the index of the entry chosen by a rule.

    ``"best"`` and None: the highest mean score. ``"1se"``: the fewest features among the entries at most one standard error
    of the best below it. Ties are decided by the higher score, fewer features, the stronger ridge and the larger lambda, in
    this order.

    Parameters
    ----------
    results : dict
        Result of :func:`tabulate`.
    rule : {"best", "1se"} or None
    among : array of bool, optional
        Mask of the entries to choose from.

    Examples
    --------
    >>> results = {
    ...     "n_features": np.array([1.0, 2.0, 3.0]), "ridge": np.ones(3), "alpha": np.full(3, np.nan),
    ...     "mean_test_score": np.array([0.7, 0.85, 0.9]), "standard_error": np.array([0.1, 0.06, 0.06]),
    ... }
    >>> choose(results, "best"), choose(results, "1se")
    (2, 1)
    """
    means = results["mean_test_score"]
    if not np.isfinite(means).all():
        raise ValueError(
            f"{np.count_nonzero(~np.isfinite(means))} of {len(means)} mean scores are not finite, so no size can be chosen. "
            "Use another scoring, or folds in which it is defined."
        )
    return int(choose_each(results, rule, means[None], among)[0])


def choose_each(results: dict[str, Array], rule: SizeRule | None, means: Array, among: Array | None = None) -> Array:
    """Return the indices of the entries that a rule chooses by several rows of mean scores, see :func:`choose`.

    Parameters
    ----------
    results : dict
        Result of :func:`tabulate`; its standard errors hold for all rows.
    rule : {"best", "1se"} or None
    means : array of shape (n_rows, n_entries)
        Mean scores, in place of those of the results.
    among : array of bool, optional
        Mask of the entries to choose from.
    """
    candidates = np.arange(means.shape[1]) if among is None else np.flatnonzero(among)
    n_features, ridge, alpha = (results[name][candidates] for name in ("n_features", "ridge", "alpha"))
    order = np.lexsort((-alpha, -ridge, n_features))  # of tied entries the first is chosen
    candidates, n_features = candidates[order], n_features[order]
    means = means[:, candidates]
    best = _first_highest(means)
    if rule == "1se":
        limit = means[np.arange(len(means)), best] - results["standard_error"][candidates[best]] - TIE
        is_near = means >= limit[:, None]
        fewest = n_features[is_near.argmax(axis=1)]
        best = _first_highest(np.where(is_near & (n_features == fewest[:, None]), means, -np.inf))
    return np.asarray(candidates[best])


def is_at_limit(results: dict[str, Array], chosen: int) -> bool:
    """Return whether the search may have ended too early: the scores still rise where the sizes end.

    That is so if the best size is among the last tenth of the range, and the chosen one in its upper half: where scores
    are level, ``"1se"`` chooses a small size. It is not so if there are no further features to select.

    Parameters
    ----------
    results : dict
        Result of :func:`tabulate`.
    chosen : int
        Index of the entry that a rule chose.

    Examples
    --------
    >>> results = {
    ...     "n_features_to_select": np.arange(1.0, 5.0), "n_features": np.arange(1.0, 5.0), "ridge": np.ones(4),
    ...     "alpha": np.full(4, np.nan), "mean_test_score": np.array([0.4, 0.6, 0.7, 0.8]),
    ...     "standard_error": np.full(4, 0.15),
    ... }
    >>> is_at_limit(results, choose(results, "1se")), is_at_limit(results, 1)
    (True, False)
    """
    sizes = results["n_features_to_select"]
    largest = sizes.max()
    if not results["n_features"].max() >= largest:  # all features that vary are selected, or lambda decides
        return False
    return bool(sizes[choose(results, "best")] > 0.9 * largest and sizes[chosen] > 0.5 * largest)


def _first_highest(means: Array) -> Array:
    return np.asarray((means >= means.max(axis=1, keepdims=True) - TIE).argmax(axis=1))
