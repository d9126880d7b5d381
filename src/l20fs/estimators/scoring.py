"""Selectors that score every feature: one published method is one :meth:`ScoringSelector._score_features`."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from l20fs.design.moments import LEAST_RANGE, is_varying, measure
from l20fs.estimators.base import BaseSelector, ranks_of
from l20fs.inputs.devices import Place, as_numpy
from l20fs.inputs.targets import Targets
from l20fs.inputs.validation import check_number
from l20fs.objective.prox import order_descending
from l20fs.typing import Array, Size

#: Sizes of values whose products with others can be squared and added up: the fourth roots of the limits of float64.
LEAST_VALUE, LARGEST_VALUE = 1e-75, 1e75


class Scored(NamedTuple):
    """Scores of the features that a method was given.

    ``scores``: larger is better. ``order``: best first, where the ranking is not by score alone. ``coef``: weights,
    (n_targets, n_features). ``objective``: its value after every iteration of an iterative method. ``intercept``
    (n_targets,) and ``loss`` belong to ``coef``. Scores, ``coef`` and ``intercept`` may be where X is.
    """

    scores: Any
    order: Array | None = None
    coef: Any = None
    objective: Sequence[float] = ()
    intercept: Any = None
    loss: float | None = None


class Progress(NamedTuple):
    """State that a callback is told after an iteration."""

    n_iter: int
    objective: float


Callback = Callable[[Progress], object]


class ScoringSelector(BaseSelector):
    """Base of methods that score every feature once, for all numbers of features.

    A subclass stores its parameters in ``__init__``, describes itself in ``about`` and implements :meth:`_score_features`.

    Attributes
    ----------
    coef_ : array of shape (n_targets, n_features)
        Weights in units of X, of methods that have them.
    intercept_ : array of shape (n_targets,)
        The intercept that belongs to ``coef_``, of methods that have one.
    objective_ : array of shape (``n_iter_``,)
        Value after every iteration, of iterative methods.
    n_iter_ : int
        Iterations, of iterative methods.
    """

    @abstractmethod
    def _score_features(self, X: Any, targets: Targets) -> Scored:
        """Score features that all vary; X, of shape (n_samples, n_features), must not be changed.

        X is float64; on a device, which only a method with ``_takes_device_arrays`` is given, it may be float32.
        """

    def _learn(self, X: Any, targets: Targets, **extra: Any) -> None:
        varies = find_varying(self, X, targets)
        found = spread(self._score_features(columns_where(X, varies), targets), varies)
        self.scores_, self.ranking_ = found.scores, found.ranking
        if found.coef is not None:
            self.coef_ = found.coef
        if found.intercept is not None:
            self.intercept_ = found.intercept
        if len(found.objective):
            self.objective_ = found.objective
            self.n_iter_ = len(found.objective)
        if targets.classes is not None:
            self.classes_ = targets.classes


class Solution(NamedTuple):
    """Scores, ranks and weights of all features, constant ones among them."""

    scores: Array
    ranking: Array
    coef: Array | None
    objective: Array
    intercept: Array | None
    loss: float | None


class SolvesForOneK(BaseSelector):
    """Base of methods that optimise for one number of features, so that every number is a problem of its own.

    ``fit`` solves for ``n_features_to_select`` and for every number in the parameter ``sizes``; all attributes are those of
    the solution for the present ``n_features_to_select``. A number that was not solved for is an error. A subclass
    implements :meth:`_solve_for`.

    Attributes
    ----------
    solutions_ : dict of int: Solution
        One for each number of features that was solved for, at most as many as vary.
    coef_ : array of shape (n_targets, n_features)
        Weights of the selected features in units of X; zero elsewhere.
    loss_ : float
        The loss that belongs to ``coef_``.
    objective_ : array of shape (``n_iter_``,)
        Value after every iteration.
    n_iter_ : int
        Iterations.
    """

    sizes: Sequence[int] | None
    solutions_: dict[int, Solution]

    @abstractmethod
    def _solve_for(self, k: int, X: Array, targets: Targets) -> Scored:
        """Select ``k`` of the features, which all vary; X is float64 and must not be changed."""

    def _check_parameters(self) -> None:
        if self.sizes is None:
            return
        if np.ndim(self.sizes) != 1:
            raise ValueError(f"sizes={self.sizes!r} is not a list. Give numbers of features, or None.")
        for size in self.sizes:
            check_number("sizes", size, minimum=1, strict=False, whole=True)

    def _learn(self, X: Any, targets: Targets, **extra: Any) -> None:
        varies = find_varying(self, X, targets)
        X = columns_where(X, varies)
        self.solutions_ = {}
        for size in (self.n_features_to_select, *(self.sizes or ())):
            k = min(self._n_wanted(size, self.n_features_in_), X.shape[1])
            if k not in self.solutions_:
                self.solutions_[k] = spread(self._solve_for(k, X, targets), varies)
        if targets.classes is not None:
            self.classes_ = targets.classes

    def _solution_for(self, size: Size) -> Solution:
        """Return the stored solution for a number of features, or say that there is none."""
        solved = self.solutions_
        n_varying = int(np.isfinite(next(iter(solved.values())).scores).sum())
        k = min(self._n_wanted(size, self.n_features_in_), n_varying)
        if k not in solved:
            raise ValueError(
                f"n_features_to_select={size!r} was not solved for, only {', '.join(map(str, sorted(solved)))}: each number "
                f"is a problem of its own. Fit again, with sizes=[{k}] if several numbers are wanted."
            )
        return solved[k]

    def _ranked_for(self, k: Size) -> tuple[Array, Array]:
        found = self._solution_for(k)
        return found.ranking, found.scores

    @property
    def _solution(self) -> Solution:
        self._check_size(self.n_features_to_select)
        return self._solution_for(self.n_features_to_select)

    @property
    def scores_(self) -> Array:  # type: ignore[override]  # follows n_features_to_select
        """Larger is better; ``-inf`` for a constant feature."""
        return self._solution.scores

    @property
    def ranking_(self) -> Array:  # type: ignore[override]
        """1 is best."""
        return self._solution.ranking

    @property
    def coef_(self) -> Array:
        """Weights of the selected features in units of X; zero elsewhere."""
        coef = self._solution.coef
        assert coef is not None, "a method that solves for k features has weights"
        return coef

    @property
    def loss_(self) -> float | None:
        """The loss that belongs to ``coef_``."""
        return self._solution.loss

    @property
    def objective_(self) -> Array:
        """Value after every iteration."""
        return self._solution.objective

    @property
    def n_iter_(self) -> int:
        """Iterations."""
        return len(self._solution.objective)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "solutions_")


def find_varying(method: BaseSelector, X: Any, targets: Targets) -> Array:
    """Return the mask of the features that vary; there must be one, and a method that squares numbers must be able to.

    On a device no method shifts the exponents of huge and tiny values, so that all have the limits of squares there.
    """
    place = Place(X)
    low, high = _ends_of(X, place)
    varies = is_varying(low, high)
    if not varies.any():
        raise ValueError(
            f"All {X.shape[1]} features of X are constant, so none can tell the targets apart. "
            f"Check that X holds the measurements of different samples in its rows, and that they differ by {LEAST_RANGE:g}."
        )
    if not (method._takes_any_size and place.is_host):
        refuse_extreme(method, "X", np.where(varies, low, 1.0), np.where(varies, high, 0.0))
        if targets.classes is None and targets.Y.size:
            refuse_extreme(method, "y", targets.Y.min(axis=0), targets.Y.max(axis=0))
    return varies


def _ends_of(X: Any, place: Place) -> tuple[Array, Array]:
    """Return the smallest and the largest value of each feature, without its missing ones."""
    if sp.issparse(X):
        found = measure(X)
        return found.low, found.high
    if place.is_host:
        return np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0)
    low, high = (place.fetch(ends(X, axis=0)).astype(np.float64, copy=False) for ends in (place.xp.min, place.xp.max))
    return low, high


def columns_where(X: Any, mask: Array) -> Any:
    """Return the features of a mask, where X is; X itself if these are all."""
    if mask.all():
        return X
    place = Place(X)
    return X[:, mask] if place.is_host else place.xp.take(X, place.send(np.flatnonzero(mask)), axis=1)


def refuse_extreme(method: BaseSelector, name: str, low: Array, high: Array) -> None:
    """Raise an error for columns whose values, or their differences, leave the range of a method that squares products."""
    largest = np.maximum(np.abs(low), np.abs(high))
    with np.errstate(over="ignore"):
        is_bad = (np.abs(high - low) < LEAST_VALUE) | (largest > LARGEST_VALUE)
    if is_bad.any():
        column = int(np.argmax(is_bad))
        names = getattr(method, "feature_names_in_", None)
        called = "y" if name == "y" else f"Column {column} of X" if names is None else f"Feature {str(names[column])!r}"
        raise ValueError(
            f"{called} has values from {low[column]:.3g} to {high[column]:.3g}; {type(method).__name__} squares products of "
            f"values, which must be at most {LARGEST_VALUE:g} and differ by {LEAST_VALUE:g} or more. Divide {name} by a "
            "constant, such as its standard deviation."
        )


def spread(found: Scored, varies: Array) -> Solution:
    """Extend what was found about the varying features to all features; constant ones come last."""
    found = found._replace(scores=as_numpy(found.scores), coef=as_numpy(found.coef), intercept=as_numpy(found.intercept))
    kept = np.flatnonzero(varies)
    scores = np.full(len(varies), -np.inf)
    scores[kept] = np.where(np.isnan(found.scores), -np.finfo(np.float64).max, found.scores)
    order = order_descending(found.scores) if found.order is None else found.order
    ranking = ranks_of(np.concatenate([kept[order], np.flatnonzero(~varies)]))
    coef = None
    if found.coef is not None:
        coef = np.zeros((len(found.coef), len(varies)))
        coef[:, kept] = found.coef
    return Solution(scores, ranking, coef, np.asarray(found.objective, dtype=np.float64), found.intercept, found.loss)


def warn_not_converged(method: BaseSelector, reached: float, tol: float, max_iter: int) -> None:
    """Warn that an iterative method stopped at its limit."""
    warnings.warn(
        f"{type(method).__name__} stopped at max_iter={max_iter}; it did not converge: criterion {reached:.2g} > "
        f"tol={tol:.2g}. Raise max_iter or tol.",
        ConvergenceWarning,
        stacklevel=2,
    )
