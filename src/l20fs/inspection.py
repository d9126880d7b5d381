"""Inspection of a fitted selection: certificates, all near-optimal panels, and the best panel by exact search.

Like :func:`sklearn.inspection.permutation_importance`, every function takes a fitted selector and the samples of its fit.
All of them speak of the objective of the selection, least squares with the ridge term ``ridge``, under the constraints of
the selector.
"""

from __future__ import annotations

from typing import Any

from l20fs.bounds.branch_and_bound import Optimum
from l20fs.bounds.branch_and_bound import solve_exactly as search_exactly
from l20fs.bounds.certificate import Certificate, certify_selection
from l20fs.estimators.panel_atlas import PanelAtlas
from l20fs.estimators.selector import L20Selector

__all__ = ["certify", "near_optimal_panels", "solve_exactly"]


def certify(
    selector: L20Selector, X: Any, y: Any, k: int | None = None, *, sample_weight: Any = None, adjust_for: Any = None
) -> Certificate:
    """Bound how far a selection is from the best one of its size.

    Parameters
    ----------
    selector : L20Selector
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
    problem, penalty = selector.posed(X, y, sample_weight, adjust_for)
    return certify_selection(selector.path_, _n_selected(selector) if k is None else k, problem, penalty)


def near_optimal_panels(
    selector: L20Selector,
    X: Any,
    y: Any,
    k: int | None = None,
    *,
    tolerance: float | str = "auto",
    max_panels: int = 10_000,
    time_limit: float | None = 60.0,
    sample_weight: Any = None,
    adjust_for: Any = None,
) -> PanelAtlas:
    """List all panels whose loss is nearly as low as that of the best, with proof that there are no others.

    Parameters
    ----------
    selector : L20Selector
        A fitted selector.
    X, y : arrays
        The samples of its fit.
    k : int or None, default=None
        Number of features. None: the selected number.
    tolerance : float or str, default="auto"
        Panels with a loss of up to ``1 + tolerance`` times the lowest are listed; 0.001 and ``"0.1%"`` are the same.
        ``"auto"``: as much as the limits allow, but no more than the samples can tell from zero.
    max_panels : int, default=10000
        How many panels are listed at most.
    time_limit : float or None, default=60.0
        Seconds after which the search is stopped.
    sample_weight, adjust_for : arrays or None, default=None
        As in its fit.

    Returns
    -------
    PanelAtlas
        The panels, best first.

    Examples
    --------
    >>> from l20fs import L20Selector
    >>> from l20fs.data import load_srbct
    >>> X, y = load_srbct().data, load_srbct().target
    >>> near_optimal_panels(L20Selector(5, ridge=10.0).fit(X, y), X, y, tolerance="0.2%").n_panels
    13
    """
    eps = None if tolerance == "auto" else tolerance
    limits: dict[str, Any] = {"max_panels": max_panels, "time_limit": time_limit}
    return selector.near_optimal(k, eps=eps, X=X, y=y, sample_weight=sample_weight, adjust_for=adjust_for, **limits)


def solve_exactly(
    selector: L20Selector,
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
    selector : L20Selector
        A fitted selector, with a ridge term.
    X, y : arrays
        The samples of its fit.
    k : int or None, default=None
        Number of features. None: the selected number.
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
    problem, penalty = selector.posed(X, y, sample_weight, adjust_for)
    k = _n_selected(selector) if k is None else k
    return search_exactly(problem, k, penalty=penalty, support=selector.path_.support(k), time_limit=time_limit)


def _n_selected(selector: L20Selector) -> int:
    """Return the number of selected features, or of groups of them."""
    return len(set(selector.path_.unit_of[selector.support_].tolist()))
