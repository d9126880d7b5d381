"""SVMRFE: recursive feature elimination with linear support vector machines."""

from __future__ import annotations

import numbers
import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC, SVR

from l20fs.design import Scale
from l20fs.design.column_scale import divisors_of, scaled
from l20fs.design.moments import measure
from l20fs.inputs.validation import check_number
from l20fs.methods._method import POSITIVE, About, Callback, Method, Scored, Targets, number, rules, tell, warn_above
from l20fs.objective.prox import order_descending, squared_row_norms
from l20fs.typing import Array, Task

#: Minimum of the default of ``max_features``.
FINE_FEATURES = 100
#: Relative trace below which the Gram matrix is recomputed, since rounding errors of the subtractions add up.
STALE_SHARE = 0.01


@dataclass(eq=False, repr=False, kw_only=True)
class SVMRFE(Method):
    r"""Rank features by recursive elimination with linear support vector machines.

    On the remaining features, one machine per class (one versus rest; a single machine for two classes) solves

    .. math:: \min_{w_c, b_c} \tfrac12 \|w_c\|^2 + C \sum_i \max(0, 1 - y_{ic} (x_i' w_c + b_c)), \qquad y_{ic} = \pm 1

    and the features with the smallest :math:`c_j = \sum_c w_{jc}^2` are eliminated. The machines are fitted on the Gram
    matrix of the samples, so that their cost does not depend on the number of features. Where y holds numbers, which are
    divided by their deviation, there is one machine, for the loss :math:`\max(0, |y_i - x_i' w - b| - \epsilon)`. A sparse
    X stays sparse.

    Parameters
    ----------
    n_features_to_select : int or float, default=20
        Number of features to select, or fraction of all features.
    C : float, default=1.0
        Cost of a violated margin.
    scale : {"zscore", "moderated", "auto", "none"}, default="zscore"
        ``"zscore"`` scales every feature to standard deviation 1; ``"moderated"`` and ``"auto"`` as in
        :class:`~l20fs.L20Selector`. With ``"none"`` a feature of small variance needs a large weight, and the machines may
        need many iterations.
    max_features : int or None, default=None
        Half of the features are eliminated per round while more than twice this number remain, then one per round. None:
        100, or ``n_features_to_select`` at the time of the fit if that is larger.
    step : int, float or None, default=None
        Number of features to eliminate per round, throughout, or a share of all features below 1; 1 is the slowest and most
        careful. None: the schedule of ``max_features``.
    task : {"auto", "classification", "regression"}, default="auto"
        What y holds: labels, or numbers. ``"auto"``: numbers if it has fractions, else labels; with a warning if it takes
        numbers for labels and most of these classes have one or two samples.
    epsilon : float, default=0.1
        Error of a number that costs nothing, in deviations of y.
    tol : float, default=1e-4
        Tolerance of the optimality conditions of a machine. Its kernel is stored in single precision, so that less than
        1e-5 is rarely reached.
    max_iter : int, default=100000
        Maximum number of iterations of a machine.
    callback : callable or None, default=None
        Called with a :class:`~l20fs.estimators.scoring.Progress` after each round, in which ``objective`` is the number of
        remaining features.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Reversed rank, so that larger is better; ``-inf`` for a constant feature.
    ranking_ : array of shape (n_features,)
        Rank of each feature; 1 is best.
    support_ : array of shape (n_features,)
        Mask of the selected features.
    n_survivors_ : array of shape (n_rounds,)
        Number of features in each round.
    criteria_ : array of shape (n_varying_features,)
        :math:`c_j` of each feature in the round that eliminated it, best feature first. Values of different rounds come
        from different machines and are not comparable.
    n_iter_ : int
        Largest number of iterations of a machine.
    classes_ : array of shape (n_classes,)
        Class labels in sorted order, if y holds labels.

    References
    ----------
    .. [1] I. Guyon, J. Weston, S. Barnhill and V. Vapnik, "Gene selection for cancer classification using support vector
       machines", Machine Learning 46 (2002).

    Examples
    --------
    >>> X = [[0.0, 1.0], [0.1, 3.0], [5.0, 2.0], [5.1, 2.5]]
    >>> SVMRFE(1).fit(X, ["a", "a", "b", "b"]).get_support(indices=True)
    array([0])
    """

    about = About(
        "Guyon, Weston, Barnhill and Vapnik, Gene selection for cancer classification using SVMs (2002)",
        "wrapper",
        "O(N^2 d), then O(N d C) and C fits of O(N^2) to O(N^3) per round",
    )
    takes_sparse = True
    takes_numbers = True
    checks = rules(C=POSITIVE, epsilon=number(), tol=number(1e-12))

    C: float = 1.0
    scale: Scale = "zscore"
    max_features: int | None = None
    step: int | float | None = None
    task: Task = "auto"
    epsilon: float = 0.1
    tol: float = 1e-4
    max_iter: int = 100_000
    callback: Callback | None = None

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the selector: eliminate features until two are left.

        Parameters
        ----------
        X : array, DataFrame or sparse matrix of shape (n_samples, n_features)
            Finite numbers.
        y : array of shape (n_samples,)
            Class labels of any type, or numbers; see ``task``.
        sample_weight : array of shape (n_samples,), optional
            How often each sample counts: weight 2 is the same as the sample twice, 0 leaves it out.

        Returns
        -------
        self
            The fitted selector.
        """
        with self._fitting():
            self._learn(*self._prepare(X, y, sample_weight))
            self._warn_if_short()
        return self

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if isinstance(self.step, numbers.Real) and not isinstance(self.step, numbers.Integral):
            check_number("step", self.step, minimum=0.0, below=1.0)
        elif self.step is not None:
            check_number("step", self.step, minimum=1, strict=False, whole=True)

    def _learn(self, X: Any, targets: Targets, **extra: Any) -> None:
        weights = targets.sample_weight
        if weights is not None and not weights.all():  # samples of weight 0 are not there
            kept = np.flatnonzero(weights)
            X, codes = X[kept], None if targets.codes is None else targets.codes[kept]
            targets = targets._replace(Y=targets.Y[kept], codes=codes, sample_weight=weights[kept])
        super()._learn(X, targets, **extra)

    def _score_features(self, X: Any, targets: Targets) -> Scored:
        weights = targets.sample_weight
        # The bias is not penalised, so centring does not change the machines; it keeps the Gram matrix accurate.
        survivors = Survivors(divided_rows(X, self.scale, weights))
        if targets.codes is None:
            goals, epsilon = divided_rows(targets.Y[:, :1], "zscore", weights), self.epsilon  # mean 0 and deviation 1
        else:
            goals, epsilon = class_signs(targets), None
        machine = Machine(self.C, epsilon, self.tol, self.max_iter)
        rounds: list[tuple[Array, Array, float, int]] = []
        sizes: list[int] = []
        while len(survivors.index):
            sizes.append(len(survivors.index))
            dual, violation, n_iter = fit_machines(survivors.gram, goals, machine, weights)
            criteria = squared_row_norms(survivors.columns @ dual)
            order = order_descending(criteria)
            n_kept = self._n_kept(sizes[-1])
            rounds.append((survivors.index[order[n_kept:]], criteria[order[n_kept:]], violation, n_iter))
            survivors.keep(np.sort(order[:n_kept]))
            tell(self, [float(n_kept)] * len(sizes))
        dropped, criteria_of, violations, n_iters = zip(*reversed(rounds), strict=True)
        warn_above(self, max(violations))
        self.n_iter_, self.n_survivors_, self.criteria_ = max(n_iters), np.array(sizes), np.concatenate(criteria_of)
        best_first = np.concatenate(dropped)
        return Scored(scores=np.arange(len(best_first), 0, -1.0)[np.argsort(best_first)], order=best_first)

    def _n_kept(self, n_features: int) -> int:
        """Return the number of features to keep for the next round; 0 ends the elimination."""
        max_features = self.max_features or max(
            FINE_FEATURES, self._n_wanted(self.n_features_to_select, self.n_features_in_)
        )
        if self.step is not None:
            n_kept = n_features - (int(self.step) if self.step >= 1 else max(1, int(self.step * self.n_features_in_)))
        elif n_features > 2 * max_features:
            n_kept = n_features // 2
        else:
            n_kept = n_features - 1
        # A single feature needs no machine: the last two are ordered within their round.
        return n_kept if n_kept > 1 else 0


def divided_rows(X: Any, scale: Scale, weights: Array | None) -> Any:
    """Return the features as rows, divided by the rule ``scale``: centred if X is dense, as they are if it is sparse."""
    if not sp.issparse(X):
        return np.ascontiguousarray(scaled(X, scale, weights).T)
    found = measure(X, weights)
    divisors = divisors_of(scale, found.deviation, found.varies)[1]
    rows = sp.csr_array(X.T, dtype=np.float64, copy=True)
    rows.data /= np.repeat(divisors, np.diff(rows.indptr))
    return rows


class Survivors:
    """Remaining features: their indices, their columns stored as rows, and the Gram matrix of the samples.

    An eliminated column x is subtracted from the Gram matrix as x x', so that the cost of an update does not depend on the
    number of remaining features. Sparse columns are not centred, but their Gram matrix is, which comes to the same.
    """

    def __init__(self, columns: Any) -> None:
        self.index = np.arange(columns.shape[0])
        self.columns = columns
        self._compute_gram()

    def _compute_gram(self) -> None:
        self.gram = _gram_of(self.columns)
        self._fresh_trace = np.trace(self.gram)

    def keep(self, kept: Array) -> None:
        """Eliminate all features except those at the positions ``kept``."""
        is_dropped = np.ones(len(self.index), dtype=bool)
        is_dropped[kept] = False
        dropped = self.columns[is_dropped]
        self.index, self.columns = self.index[kept], self.columns[kept]
        # Subtracting more columns than remain costs more than a new product.
        n_dropped = int(is_dropped.sum())
        if n_dropped < len(kept):
            self.gram -= _gram_of(dropped)
        if n_dropped >= len(kept) or np.trace(self.gram) < STALE_SHARE * self._fresh_trace:
            self._compute_gram()


def _gram_of(columns: Any) -> Array:
    """Return the Gram matrix of the samples of columns stored as rows; of sparse ones, as if they were centred."""
    if not sp.issparse(columns):
        return columns.T @ columns
    gram = (columns.T @ columns).toarray()
    means = gram.mean(axis=0)
    return gram - means - (means - means.mean())[:, None]


class Machine(NamedTuple):
    """Settings of a machine; ``epsilon`` is None for a class versus the rest."""

    C: float
    epsilon: float | None
    tol: float
    max_iter: int

    def fit(self, gram: Array, goal: Array, weights: Array | None) -> Any:
        """Fit it on the Gram matrix of the samples."""
        settings = {"kernel": "precomputed", "C": self.C, "tol": self.tol, "max_iter": self.max_iter}
        machine = SVC(**settings) if self.epsilon is None else SVR(epsilon=self.epsilon, **settings)
        with warnings.catch_warnings():
            # The selector warns once for all rounds, with the largest violation.
            warnings.simplefilter("ignore", ConvergenceWarning)
            return machine.fit(gram, goal, sample_weight=weights)

    def violation(self, gram: Array, goal: Array, dual: Array, weights: Array | None) -> float:
        """Return the violation of the Karush-Kuhn-Tucker conditions by a dual solution; not positive at an optimum.

        With e = goal - gram @ dual, it is the largest e among the samples whose dual weight can increase minus the smallest
        among those whose dual weight can decrease; of numbers, less what the change of its size costs.
        """
        error, most = goal - gram @ dual, np.full(len(goal), self.C) if weights is None else self.C * weights
        is_own, width = goal > 0.0, self.epsilon or 0.0
        low, high = np.where(is_own, 0.0, -most), np.where(is_own, most, 0.0)
        if self.epsilon is not None:
            low, high = -most, most
        rising = error - np.where(dual >= 0.0, width, -width)
        falling = error + np.where(dual <= 0.0, width, -width)
        return float(rising[dual < high].max() - falling[dual > low].min())


def class_signs(targets: Targets) -> Array:
    """Return a row of signs per machine: 1 for the class, -1 for the rest.

    Two classes share one machine, for the class of the first sample, so that renaming the classes changes nothing. A class
    without samples has none.
    """
    signs = np.where(targets.Y.T > 0.0, 1.0, -1.0)
    signs = signs[(signs > 0.0).any(axis=1)]
    return signs[signs[:, 0] > 0.0] if len(signs) == 2 else signs


def fit_machines(gram: Array, goals: Array, machine: Machine, weights: Array | None = None) -> tuple[Array, float, int]:
    """Fit a support vector machine per row of ``goals``, signs or numbers, on the Gram matrix of the samples.

    Return the dual weights (n_samples, n_machines), such that the feature weights are ``X.T @ dual``, the largest violation
    of those that were stopped early, and the most iterations.
    """
    dual = np.zeros((len(gram), len(goals)))
    violation, n_iter = 0.0, 1
    for column, goal in enumerate(goals):
        fitted = machine.fit(gram, goal, weights)
        dual[fitted.support_, column] = fitted.dual_coef_[0]
        n_iter = max(n_iter, int(np.max(fitted.n_iter_)))
        if fitted.fit_status_ != 0:
            violation = max(violation, machine.violation(gram, goal, dual[:, column], weights))
    return dual, violation, n_iter
