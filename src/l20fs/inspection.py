"""Inspection of a fitted selection: certificates, all near-optimal panels, and the best panel by exact search.

Like :func:`sklearn.inspection.permutation_importance`, every function takes a fitted selector, or a fitted search for the
number of features, and the samples of its fit. All of them speak of the objective of the selection, least squares with the
ridge term ``ridge``, under the constraints of the selector.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from l20fs.bounds.branch_and_bound import Optimum
from l20fs.bounds.branch_and_bound import solve_exactly as search_exactly
from l20fs.bounds.certificate import Certificate, certify_selection
from l20fs.estimators.near_optimal import NearOptimalPanels, find_panels
from l20fs.estimators.searched_selector import SearchedSelector
from l20fs.estimators.selection_table import feature_names
from l20fs.estimators.selector import L20Selector, posed_again
from l20fs.evaluation.preprocessing import values_of
from l20fs.inputs.frames import collected
from l20fs.inputs.names import NamedColumns
from l20fs.inputs.validation import check_number

__all__ = ["NearOptimalPanels", "certify", "near_optimal_panels", "solve_exactly"]


def certify(
    selector: Any, X: Any, y: Any, k: int | None = None, *, sample_weight: Any = None, adjust_for: Any = None
) -> Certificate:
    """Bound how far a selection is from the best one of its size.

    Parameters
    ----------
    selector : L20Selector, L20SelectorCV or a model
        A fitted selector.
    X, y : arrays
        The samples of its fit.
    k : int or None, default=None
        Number of features; of groups, where the selector has groups. None: the selected number.
    sample_weight, adjust_for : arrays or None, default=None
        As in its fit.

    Returns
    -------
    Certificate
        ``lower_bound``, ``upper_bound`` and ``gap`` of the objective, and the features that are proved to be in or out.

    Examples
    --------
    >>> from l20fs import L20Selector
    >>> from l20fs.data import make_planted
    >>> X, y, informative = make_planted(n_samples=200, n_features=50, n_informative=3, random_state=0)
    >>> selector = L20Selector(3, ridge=1.0).fit(X, y)
    >>> certify(selector, X, y).gap < 0.02
    True
    """
    selector, X, k = _read(selector, X, k)
    problem, penalty = posed_again(selector, X, y, sample_weight, adjust_for)
    return certify_selection(selector.path_, k, problem, penalty)


def near_optimal_panels(
    selector: Any,
    X: Any,
    y: Any,
    k: int | None = None,
    *,
    tolerance: float | str = "auto",
    max_panels: int = 10_000,
    time_limit: float | None = 60.0,
    sample_weight: Any = None,
    adjust_for: Any = None,
) -> NearOptimalPanels:
    """List all panels whose loss is nearly as low as that of the best, with proof that there are no others.

    Parameters
    ----------
    selector : L20Selector, L20SelectorCV or a model
        A fitted selector.
    X, y : arrays
        The samples of its fit.
    k : int or None, default=None
        Number of features; of groups, where the selector has groups. None: the selected number.
    tolerance : float or str, default="auto"
        Panels with a loss of up to ``1 + tolerance`` times the lowest are listed; 0.001 and ``"0.1%"`` are the same.
        ``"auto"``: as much as the limits allow, but no more than the samples can tell from zero.
    max_panels : int, default=10000
        How many panels are listed at most. Further ones are counted.
    time_limit : float or None, default=60.0
        Seconds after which the search is stopped; the result says what is proved then.
    sample_weight, adjust_for : arrays or None, default=None
        As in its fit.

    Returns
    -------
    NearOptimalPanels
        The panels, best first, what they share, and what is proved.

    Examples
    --------
    >>> from l20fs import L20Selector
    >>> from l20fs.data import load_srbct
    >>> X, y = load_srbct().data, load_srbct().target
    >>> near_optimal_panels(L20Selector(5, ridge=10.0).fit(X, y), X, y, tolerance="0.2%").n_panels
    13
    """
    check_number("max_panels", max_panels, minimum=1, strict=False, whole=True)
    if time_limit is not None:
        check_number("time_limit", time_limit, minimum=0.0, strict=False)
    share = share_of(tolerance)
    selector, X, k = _read(selector, X, k)
    problem, penalty = posed_again(selector, X, y, sample_weight, adjust_for)
    if problem.design.matrix.is_in_blocks:
        raise ValueError("near_optimal_panels is not available for X in blocks. Load X into memory.")
    return find_panels(
        problem,
        penalty,
        penalty.unit_of[selector.path_.support(k)],
        tolerance=share,
        max_panels=int(max_panels),
        time_limit=time_limit,
        names=getattr(selector, "feature_names_in_", None),
    )


def solve_exactly(
    selector: Any,
    X: Any,
    y: Any,
    k: int | None = None,
    *,
    time_limit: float | None = None,
    sample_weight: Any = None,
    adjust_for: Any = None,
) -> Optimum:
    """Find the best panel of a size by branch and bound, starting from that of a fitted selector.

    Parameters
    ----------
    selector : L20Selector, L20SelectorCV or a model
        A fitted selector, with a ridge term.
    X, y : arrays
        The samples of its fit.
    k : int or None, default=None
        Number of features; of groups, where the selector has groups. None: the selected number.
    time_limit : float or None, default=None
        Seconds after which the search is stopped; the certificate then has a gap.
    sample_weight, adjust_for : arrays or None, default=None
        As in its fit.

    Returns
    -------
    Optimum
        The best panel that was found, and its certificate.

    Examples
    --------
    >>> from l20fs import L20Selector
    >>> from l20fs.data import make_planted
    >>> X, y, informative = make_planted(n_samples=200, n_features=50, n_informative=3, random_state=0)
    >>> optimum = solve_exactly(L20Selector(3, ridge=1.0).fit(X, y), X, y)
    >>> bool((optimum.support == informative).all()), optimum.certificate.gap < 1e-6
    (True, True)
    """
    selector, X, k = _read(selector, X, k)
    problem, penalty = posed_again(selector, X, y, sample_weight, adjust_for)
    return search_exactly(problem, k, penalty=penalty, support=selector.path_.support(k), time_limit=time_limit)


def _read(selector: Any, X: Any, k: int | None) -> tuple[L20Selector, Any, int]:
    """Return the selector with the path, X as it takes it, and the number of features, or of groups of them."""
    check_is_fitted(selector)
    support = selector.support_
    if isinstance(selector, SearchedSelector):
        if selector.preprocess_ is not None:
            values = values_of(selector.preprocess_.transform(collected(X)), selector.preprocess_)
            X = NamedColumns(values, feature_names(selector))
        selector = selector.model_
    if not isinstance(selector, L20Selector):
        raise TypeError(
            f"{type(selector).__name__} has no path. Use a fitted L20Selector, L20SelectorCV or a model of them."
        )
    if selector.loss != "squared_error":
        raise ValueError(f"loss={selector.loss!r} has no bounds, which are those of squares. Fit with loss='squared_error'.")
    n_selected = len(np.unique(selector.path_.unit_of[support]))
    if k is None and not n_selected:
        raise ValueError("No feature is selected, so there is nothing to compare. Ask for more features.")
    return selector, X, n_selected if k is None else k


def share_of(tolerance: float | str) -> float | None:
    """Return a tolerance as a share: a number, or a text such as ``"0.1%"``; None for ``"auto"``.

    Examples
    --------
    >>> share_of(0.001), share_of("0.1%"), share_of("0.1 %"), share_of("auto")
    (0.001, 0.001, 0.001, None)
    """
    share: Any = tolerance
    if isinstance(tolerance, str):
        number = tolerance.strip().removesuffix("%")
        if number == "auto":
            return None
        try:
            share = float(number) / (100.0 if number != tolerance.strip() else 1.0)
        except ValueError:
            raise ValueError(
                f"tolerance={tolerance!r} is not valid. Use a number such as 0.001, a text such as '0.1%', or 'auto'."
            ) from None
    check_number("tolerance", share, minimum=0.0, strict=False, most=10.0)
    return float(share)
