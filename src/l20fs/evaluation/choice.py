"""Sizes to try, tables of their cross-validation scores and errors, and the choice of a size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from l20fs.typing import Array

#: ``"best"``: the lowest error. ``"auto"``: the fewest features whose error is near it, from :func:`least_size` on.
SizeRule = Literal["auto", "best"]

#: Errors that are higher by no more than this share are near the lowest.
NEAR = 0.05

#: Errors closer than this are tied: they differ by rounding errors.
TIE = 1e-10

#: ``"auto"`` chooses so many features at least, or this share of all: what a few promise on few samples they seldom keep.
LEAST, LEAST_SHARE = 10, 0.1

#: A search tries all sizes up to this limit first.
FIRST_LIMIT = 100


def least_size(n_units: int) -> float:
    """Return the smallest number of features that ``"auto"`` chooses.

    Examples
    --------
    >>> least_size(4), least_size(30), least_size(5000)
    (0.4, 3.0, 10)
    """
    return min(LEAST, LEAST_SHARE * n_units)


def search_limits(n_units: int, n_samples: int) -> list[int]:
    """Return the largest sizes of a search, one after the other while the choice is the limit.

    The first is 100; each is twice the one before, as long as there are as many samples, and never more than the
    ``n_units`` that can be selected.

    Examples
    --------
    >>> search_limits(30, 60), search_limits(5000, 60), search_limits(300, 1000)
    ([30], [100], [100, 200, 300])
    """
    limits = [min(FIRST_LIMIT, n_units)]
    while limits[-1] < n_units and 2 * limits[-1] <= n_samples:
        limits.append(min(2 * limits[-1], n_units))
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


def tabulate(
    settings: Sequence[Setting], sizes: Sequence[int | None], scores: Array, n_features: Array, errors: Errors
) -> dict[str, Array]:
    """Arrange scores as scikit-learn does, one entry per setting and size.

    Parameters
    ----------
    settings : sequence of Setting
    sizes : sequence of int or None
    scores, n_features : arrays of shape (n_settings, n_folds, n_sizes)
        Test scores, and numbers of selected features.
    errors : Errors

    Returns
    -------
    dict of arrays
        See ``L20SelectorCV.cv_results_``.
    """
    n_splits, n_sizes = scores.shape[1:]
    per_fold = scores.transpose(0, 2, 1).reshape(-1, n_splits)
    means = per_fold.mean(axis=1)
    ranks = 1 + np.count_nonzero(means[None, :] > means[:, None] + TIE, axis=1)
    alphas = [np.nan if setting.alpha is None else setting.alpha for setting in settings]
    return {
        "ridge": np.repeat([setting.ridge for setting in settings], n_sizes),
        "alpha": np.repeat(alphas, n_sizes),
        "n_features_to_select": np.tile([np.nan if size is None else float(size) for size in sizes], len(settings)),
        "n_features": n_features.mean(axis=1).ravel(),
        "error": errors.values,
        "skill": 1.0 - errors.values / errors.of_guessing,
        **{f"split{number}_test_score": per_fold[:, number] for number in range(n_splits)},
        "mean_test_score": means,
        "std_test_score": per_fold.std(axis=1),
        "standard_error": per_fold.std(axis=1, ddof=1) / np.sqrt(n_splits) if n_splits > 1 else np.zeros(len(means)),
        "rank_test_score": ranks,
    }


class Errors(NamedTuple):
    """Error of each setting and size, (n_settings * n_sizes,), and that of guessing, NaN if it is not known."""

    values: Array
    of_guessing: float

    @classmethod
    def of_scores(cls, means: Array, perfect: float, of_guessing: float = np.nan) -> Errors:
        """Return distances of mean scores, larger is better, to the perfect one, and that of the score of guessing."""
        return cls(perfect - means, perfect - of_guessing)

    @classmethod
    def of_unknown_scores(cls, means: Array) -> Errors:
        """Return distances of mean scores of unknown kind: to 1 if some are above 0, to the best if some are above 1."""
        highest = float(means.max())
        return cls.of_scores(means, 0.0 if highest <= 0.0 else max(1.0, highest))


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


def choose(results: dict[str, Array], rule: Any, least: float = 0.0, among: Array | None = None) -> int:
    """Return the index of the entry chosen by a rule.

    ``"auto"``: the fewest features, from ``least`` on, whose error is at most 5 % above the lowest. ``"best"`` and anything
    else: the lowest error. If no entry predicts better than guessing, the fewest features. Ties are decided by the lower
    error, fewer features, the stronger ridge and the larger lambda, in this order.

    Parameters
    ----------
    results : dict
        Result of :func:`tabulate`.
    rule : {"auto", "best"} or None
    least : float
        See :func:`least_size`.
    among : array of bool, optional
        Mask of the entries to choose from.

    Examples
    --------
    >>> results = {
    ...     "n_features": np.array([1.0, 2.0, 3.0]), "ridge": np.ones(3), "alpha": np.full(3, np.nan),
    ...     "error": np.array([0.2, 0.103, 0.1]), "skill": np.array([0.6, 0.794, 0.8]),
    ... }
    >>> choose(results, "best"), choose(results, "auto"), choose(results, "auto", least=3)
    (2, 1, 2)
    """
    if not np.isfinite(errors := results["error"]).all():
        raise ValueError(
            f"{np.count_nonzero(~np.isfinite(errors))} of {len(errors)} mean scores are not finite: no size can be chosen. "
            "Use another scoring, or folds in which it is defined."
        )
    candidates = np.arange(len(errors)) if among is None else np.flatnonzero(among)
    n_features, ridge, alpha = (results[name][candidates] for name in ("n_features", "ridge", "alpha"))
    order = np.lexsort((-alpha, -ridge, n_features))  # of tied entries the first is chosen
    candidates, n_features = candidates[order], n_features[order]
    if rule in ("auto", "best") and results["skill"][candidates].max() <= 0.0:
        is_chosen = n_features == n_features[0]
    elif rule == "auto":
        is_enough = n_features >= min(least, n_features[-1])
        is_near = is_enough & (errors[candidates] <= (1.0 + NEAR) * errors[candidates][is_enough].min() + TIE)
        is_chosen = is_near & (n_features == n_features[is_near][0])
    else:
        is_chosen = np.ones(len(candidates), dtype=bool)
    left = np.where(is_chosen, errors[candidates], np.inf)
    return int(candidates[np.argmax(left <= left.min() + TIE)])


def is_at_limit(results: dict[str, Array], chosen: int, least: float = 0.0) -> bool:
    """Return whether the search may have ended too early: the largest size is chosen.

    It is not so if there are no further features to select, or a limit below ``least`` leaves no other choice.

    Parameters
    ----------
    results : dict
        Result of :func:`tabulate`.
    chosen : int
        Index of the entry that a rule chose.
    least : float
        See :func:`least_size`.

    Examples
    --------
    >>> results = {"n_features_to_select": np.arange(1.0, 4.0), "n_features": np.arange(1.0, 4.0)}
    >>> is_at_limit(results, 2), is_at_limit(results, 1), is_at_limit(results | {"n_features": np.full(3, 2.0)}, 2)
    (True, False, False)
    """
    sizes = results["n_features_to_select"]
    # Otherwise all features that vary are selected, or lambda decides.
    return bool(results["n_features"].max() >= sizes.max() == sizes[chosen] > least)
