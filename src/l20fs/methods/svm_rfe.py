"""SVMRFE: fit linear support vector machines, drop the features of least weight, and again with the rest."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from l20fs.design import Scale
from l20fs.estimators.base import About
from l20fs.estimators.scoring import Callback, Progress, Scored, ScoringSelector, warn_not_converged
from l20fs.inputs.targets import Targets
from l20fs.inputs.validation import check_choice, check_number
from l20fs.objective.prox import order_descending, squared_row_norms
from l20fs.typing import Array

#: Until how many features, at least, the elimination goes one by one if ``max_features`` is not given.
FINE_FEATURES = 100
#: A Gram matrix is computed afresh once its trace has fallen below this share: what was subtracted left its rounding.
STALE_SHARE = 0.01


class SVMRFE(ScoringSelector):
    r"""Rank features by the reverse order in which a linear support vector machine gives them up.

    On the surviving features, one machine per class (the class against the rest; one machine in all for two classes) solves

    .. math:: \min_{w_c, b_c} \tfrac12 \|w_c\|^2 + C \sum_i \max(0, 1 - y_{ic} (x_i' w_c + b_c)), \qquad y_{ic} = \pm 1

    and the features with the least :math:`c_j = \sum_c w_{jc}^2` are dropped. The machines see the samples through their
    Gram matrix only, so that the time of a fit does not depend on the number of features.

    Parameters
    ----------
    n_features_to_select : int or float, default=20
        A number or a share of all features.
    C : float, default=1.0
        Cost of a violated margin.
    scale : {"zscore", "none"}, default="zscore"
        ``"zscore"`` gives every feature deviation 1. With ``"none"`` a feature of small variance needs a large weight, and
        the machines may need very many iterations.
    max_features : int or None, default=None
        Half of the features are dropped per round until at most twice this many survive, from there on one per round. None:
        100, or ``n_features_to_select`` at the time of the fit if that is more.
    step : int or None, default=None
        Drop this many features per round, throughout. ``step=1`` is the slow and most careful way. None: the schedule of
        ``max_features``.
    tol : float, default=1e-4
        How far the optimality conditions of a machine may be violated; a margin has width 1. The solver keeps its kernel in
        single precision, so that less than 1e-5 is rarely reached.
    max_iter : int, default=100000
        Iterations of one machine at most.
    callback : callable or None, default=None
        Called with a :class:`~l20fs.estimators.scoring.Progress` after each round; the number of features that are left
        takes the place of the objective.

    Attributes
    ----------
    n_survivors_ : array of shape (n_rounds,)
        The number of features that each round was fitted on.
    criteria_ : array of shape (n_varying_features,)
        :math:`c_j` of each feature in the round that dropped it, best feature first; numbers of different rounds come from
        different machines and need not fall.
    n_iter_ : int
        Iterations of the machine that took most.

    Examples
    --------
    >>> X = [[0.0, 1.0], [0.1, 3.0], [5.0, 2.0], [5.1, 2.5]]
    >>> SVMRFE(1).fit(X, ["a", "a", "b", "b"]).get_support(indices=True)
    array([0])
    """

    about = About(
        reference="Guyon, Weston, Barnhill and Vapnik, Gene selection for cancer classification using SVMs (2002)",
        kind="wrapper",
        cost="O(N^2 d), then O(N d C) and C fits of O(N^2) to O(N^3) per round",
    )

    n_survivors_: Array
    criteria_: Array
    n_iter_: int

    def __init__(
        self,
        n_features_to_select: int | float = 20,
        *,
        C: float = 1.0,
        scale: Scale = "zscore",
        max_features: int | None = None,
        step: int | None = None,
        tol: float = 1e-4,
        max_iter: int = 100_000,
        callback: Callback | None = None,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.C = C
        self.scale = scale
        self.max_features = max_features
        self.step = step
        self.tol = tol
        self.max_iter = max_iter
        self.callback = callback

    def _check_parameters(self) -> None:
        check_number("C", self.C, minimum=0.0)
        check_choice("scale", self.scale, ("zscore", "none"))
        check_number("tol", self.tol, minimum=0.0)
        check_number("max_iter", self.max_iter, minimum=1, strict=False, whole=True)
        for name in ("max_features", "step"):
            if getattr(self, name) is not None:
                check_number(name, getattr(self, name), minimum=1, strict=False, whole=True)

    def _score_features(self, X: Array, targets: Targets) -> Scored:
        # The bias is free, so that centring changes no machine; it keeps digits in the Gram matrix.
        survivors = Survivors(StandardScaler(with_std=self.scale == "zscore").fit_transform(X))
        signs = class_signs(targets)
        chunks: list[tuple[Array, Array]] = []
        sizes: list[int] = []
        violation, self.n_iter_ = 0.0, 1
        while len(survivors.index):
            sizes.append(len(survivors.index))
            machines = fit_machines(survivors.gram, signs, C=self.C, tol=self.tol, max_iter=self.max_iter)
            violation, self.n_iter_ = max(violation, machines.violation), max(self.n_iter_, machines.n_iter)
            criteria = squared_row_norms(survivors.columns @ machines.dual)
            order = order_descending(criteria)
            n_kept = self._n_kept(sizes[-1])
            chunks.append((survivors.index[order[n_kept:]], criteria[order[n_kept:]]))
            survivors.keep(np.sort(order[:n_kept]))
            if self.callback is not None:
                self.callback(Progress(len(sizes), float(n_kept)))
        if violation > self.tol:
            warn_not_converged(self, violation, self.tol, self.max_iter)
        self.n_survivors_ = np.array(sizes)
        self.criteria_ = np.concatenate([criteria for _, criteria in reversed(chunks)])
        best_first = np.concatenate([index for index, _ in reversed(chunks)])
        scores = np.empty(len(best_first))
        scores[best_first] = np.arange(len(best_first), 0, -1)
        return Scored(scores=scores, order=best_first)

    def _n_kept(self, n_features: int) -> int:
        """Return how many of the present features the next round is fitted on; 0 ends it."""
        max_features = self.max_features or max(
            FINE_FEATURES, self._n_wanted(self.n_features_to_select, self.n_features_in_)
        )
        if self.step is not None:
            n_kept = n_features - self.step
        elif n_features > 2 * max_features:
            n_kept = n_features // 2
        else:
            n_kept = n_features - 1
        # One feature needs no machine to be told from itself: the last two are ordered by their round.
        return n_kept if n_kept > 1 else 0


class Survivors:
    """The features still in play: their positions, their columns as rows, and the Gram matrix of the samples.

    A dropped column x is subtracted from the Gram matrix as x x', so that an update does not depend on the number of
    features that stay.
    """

    def __init__(self, X: Array) -> None:
        self.index = np.arange(X.shape[1])
        self.columns = np.ascontiguousarray(X.T)
        self._compute_gram()

    def _compute_gram(self) -> None:
        self.gram = self.columns.T @ self.columns
        self._fresh_trace = np.trace(self.gram)

    def keep(self, kept: Array) -> None:
        """Drop all features but those at the positions ``kept``."""
        is_dropped = np.ones(len(self.index), dtype=bool)
        is_dropped[kept] = False
        dropped = self.columns[is_dropped]
        self.index, self.columns = self.index[kept], self.columns[kept]
        # A subtraction of more than what stays costs more than a new product.
        if len(dropped) < len(kept):
            self.gram -= dropped.T @ dropped
        if len(dropped) >= len(kept) or np.trace(self.gram) < STALE_SHARE * self._fresh_trace:
            self._compute_gram()


class Machines(NamedTuple):
    """Machines of one round: dual weights (n_samples, n_machines), worst violation where one stopped early, iterations.

    The weights of the features are ``X.T @ dual``.
    """

    dual: Array
    violation: float
    n_iter: int


def class_signs(targets: Targets) -> Array:
    """Return a row of signs per machine: 1 for the class, -1 for the rest.

    Two classes share one machine, for the class of the first sample: the names of the classes decide nothing.
    """
    signs = np.where(targets.Y.T > 0.0, 1.0, -1.0)
    return signs[signs[:, 0] > 0.0] if len(signs) == 2 else signs


def fit_machines(gram: Array, signs: Array, *, C: float, tol: float, max_iter: int) -> Machines:
    """Fit a support vector machine per row of ``signs`` on the Gram matrix of the samples."""
    dual = np.zeros((len(gram), len(signs)))
    violation, n_iter = 0.0, 0
    for column, sign in enumerate(signs):
        machine = SVC(kernel="precomputed", C=C, tol=tol, max_iter=max_iter)
        with warnings.catch_warnings():
            # The violation says the same, once for all rounds and with a number.
            warnings.simplefilter("ignore", ConvergenceWarning)
            machine.fit(gram, sign)
        dual[machine.support_, column] = machine.dual_coef_[0]
        n_iter = max(n_iter, int(machine.n_iter_[0]))
        if machine.fit_status_ != 0:
            violation = max(violation, optimality_violation(gram, sign, dual[:, column], C))
    return Machines(dual, violation, n_iter)


def optimality_violation(gram: Array, sign: Array, dual: Array, C: float) -> float:
    """Return by how much a dual solution fails the conditions of Karush, Kuhn and Tucker; not positive at a solution.

    With e = sign - gram @ dual, that is the largest e among the samples whose dual weight may rise, minus the smallest
    among those whose may fall; a free bias asks that no rise can be paired with a fall at a profit.
    """
    error = sign - gram @ dual
    may_rise = np.where(sign > 0.0, dual < C, dual < 0.0)
    may_fall = np.where(sign > 0.0, dual > 0.0, dual > -C)
    return float(error[may_rise].max() - error[may_fall].min())
