"""RPMFS: l2,1 loss with an l2,0 constraint, by an augmented Lagrangian method."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from l20fs.design.moments import centred
from l20fs.methods._linalg import row_norms, smooth_row_norms, squared_spectral_norm
from l20fs.methods._method import POSITIVE, About, Callback, MethodForOneK, Scored, Targets, choice, follow, number, rules
from l20fs.objective.prox import keep_best_rows, order_descending, shrink_rows
from l20fs.typing import Array, Task

#: Spectral norm to which centred X is scaled: both constraints share one mu, so neither may dominate the other.
SPECTRAL_NORM = 10.0
#: Upper limit of the penalty mu.
LARGEST_MU = 1e10


@dataclass(eq=False, repr=False, kw_only=True)
class RPMFS(MethodForOneK):
    r"""Select exactly k features by robust regression with an :math:`l_{2,0}` constraint.

    .. math:: \min_{W, b} \sum_i \|x_i W + b - y_i\| \quad \text{subject to } \|W\|_{2,0} = k

    The loss is a sum of norms, not of squares, so that single outliers have little influence. The augmented Lagrangian
    method introduces a copy V of W with k non-zero rows and a copy E of the residual, and enforces both constraints with a
    growing penalty mu. The problem is not convex: the support depends on the initial values and on the schedule of mu, and
    ``objective_``, the loss of V after every iteration, need not be monotone.

    The k rows of V are ranked first, by norm; the other features follow, by the norm of their row of W when the k rows were
    chosen.

    Parameters
    ----------
    n_features_to_select : int or float, default=20
        Number k of features to select, or fraction of all features. Each number is a separate problem: after ``fit``,
        numbers other than this one and ``sizes`` are an error.
    mu : float, default=0.01
        Penalty of the constraints in the first iteration.
    rho : float, default=1.02
        Factor by which mu grows; 1 keeps it constant. Faster growth fixes the support earlier.
    init : {"zeros", "random"}, default="zeros"
        ``"zeros"`` starts from V = 0 and E = -Y, with centred X scaled to spectral norm 10 and centred Y to mean squared row
        norm 1, so that mu does not depend on the units of the data. ``"random"`` starts from uniform random V and E on
        unscaled data, as in the authors' public code; it is slower and ends at larger losses.
    random_state : int, RandomState or None, default=0
        Seed of the random initial values.
    refit : bool, default=True
        Whether to minimise the loss on the k features again; otherwise ``coef_`` is V.
    max_iter : int, default=1000
        Maximum number of iterations.
    tol : float, default=1e-4
        Tolerance of both constraints: the distance of W and V relative to V, and the root mean square distance of the
        residual and E.
    sizes : sequence of int or None, default=None
        Other numbers of features to solve for in ``fit``, for ``support_for`` and ``n_features_to_select``.
    task : {"auto", "classification", "regression"}, default="auto"
        Whether y holds labels or numbers; ``"auto"`` takes whole numbers in one column for labels.
    callback : callable or None, default=None
        Called with a :class:`~l20fs.estimators.scoring.Progress` after each iteration.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Norm of the row of W when the k rows of V were last chosen; ``-inf`` for a constant feature.
    ranking_ : array of shape (n_features,)
        Rank of each feature; 1 is best.
    support_ : array of shape (n_features,)
        Mask of the selected features.
    coef_ : array of shape (n_targets, n_features)
        Weights of the k features in units of X; zero elsewhere.
    intercept_ : array of shape (n_targets,)
        Intercept.
    loss_ : float
        Sum of the norms of the residuals of ``coef_`` and ``intercept_``.
    objective_ : array of shape (``n_iter_``,)
        Sum of the norms of the residuals of V after every iteration; not monotone.
    n_iter_ : int
        Number of iterations.
    solutions_ : dict of int to Solution
        Solution for each number of features, of which the attributes above are those for ``n_features_to_select``.
    classes_ : array of shape (n_classes,)
        Class labels in sorted order, if y holds labels.

    References
    ----------
    .. [1] X. Cai, F. Nie and H. Huang, "Exact top-k feature selection via l2,0-norm constraint", International Joint
       Conference on Artificial Intelligence (2013).

    Examples
    --------
    >>> X = [[0.0, 1.0], [0.1, 3.0], [5.0, 2.0], [5.1, 2.5]]
    >>> RPMFS(1).fit(X, ["a", "a", "b", "b"]).get_support(indices=True)
    array([0])
    """

    about = About(
        "Cai, Nie and Huang, Exact top-k feature selection via l2,0-norm constraint (2013)",
        "embedded",
        "O(N^2 d), then O(N d C) per iteration",
    )
    needs_labels = False
    checks = rules(mu=number(strict=True, below=LARGEST_MU), rho=number(1), init=choice("zeros", "random"), tol=POSITIVE)

    mu: float = 0.01
    rho: float = 1.02
    init: Literal["zeros", "random"] = "zeros"
    random_state: Any = 0
    refit: bool = True
    max_iter: int = 1000
    tol: float = 1e-4
    sizes: Sequence[int] | None = None
    task: Task = "auto"
    callback: Callback | None = None

    def _solve_for(self, k: int, X: Array, targets: Targets) -> Scored:
        problem = Centred.of(X, targets.Y, scaled=self.init == "zeros")
        shape, random = (X.shape[1], targets.Y.shape[1]), check_random_state(self.random_state)
        V, E = np.zeros(shape), -problem.Y
        if self.init == "random":
            V, E = random.uniform(size=shape), random.uniform(size=E.shape)
        iterates = alm_iterates(problem, k, V, E, mu=self.mu, rho=self.rho)
        found, objective = follow(self, ((each, problem.y_scale * each.loss, each.gap) for each in iterates))
        # Rows of V first: the tie tolerance must not exchange a row of V with a tied row outside V.
        order = order_descending(found.norms)
        order = order[np.argsort(~found.V[order].any(axis=1), kind="stable")]
        support = order[:k]
        W, own = problem.unscale(found.V), X[:, support]
        bias = problem.y_mean + problem.y_scale * found.bias - own.mean(axis=0) @ W[support]
        if self.refit:
            W[support], bias = l21_regression(own, targets.Y, own @ W[support] + bias - targets.Y)
        loss = sum_of_norms(own @ W[support] + bias - targets.Y)
        return Scored(problem.unscale(found.norms), order, W.T, objective, intercept=bias, loss=loss)

    @property
    def intercept_(self) -> Array | None:
        """The intercept that belongs to ``coef_``."""
        return self._solution.intercept


class Centred(NamedTuple):
    """Centred data, scaled so that one mu suits both constraints, with the scales to undo it."""

    X: Array
    Y: Array
    x_scale: float
    y_scale: float
    y_mean: Array

    @classmethod
    def of(cls, X: Array, Y: Array, *, scaled: bool) -> Centred:
        """Centre X; with ``scaled`` centre Y as well and scale both."""
        X = centred(X)
        if not scaled:
            return cls(X, Y, 1.0, 1.0, np.zeros(Y.shape[1]))
        y_mean = Y.mean(axis=0)
        Y = Y - y_mean
        x_scale, y_scale = np.sqrt(squared_spectral_norm(X)) / SPECTRAL_NORM, float(np.sqrt(np.square(Y).sum(axis=1).mean()))
        return cls(X / x_scale, Y / y_scale, x_scale, y_scale, y_mean)

    def unscale(self, weights: Array) -> Array:
        """Return weights, or norms of weights, in the units of the data."""
        return weights * (self.y_scale / self.x_scale)


class Iterate(NamedTuple):
    """Iterate: V with its bias and loss, the row norms by which its rows were chosen, and the constraint violation."""

    V: Array
    bias: Array
    norms: Array
    loss: float
    gap: float


def alm_iterates(problem: Centred, k: int, V: Array, E: Array, *, mu: float, rho: float) -> Iterator[Iterate]:
    """Yield the iterates of the augmented Lagrangian method indefinitely."""
    X, Y = problem.X, problem.Y
    solve = ridge_solver(X)
    dual_W, dual_E = np.zeros_like(V), np.zeros_like(E)
    while True:
        target = Y + E - dual_E / mu
        bias = target.mean(axis=0)
        W, fitted = solve(V - dual_W / mu, target - bias)
        candidate = W + dual_W / mu
        V = keep_best_rows(candidate, k)
        residual = fitted + bias - Y
        E = shrink_rows(residual + dual_E / mu, 1 / mu)
        dual_W += mu * (W - V)
        dual_E += mu * (residual - E)
        mu = min(rho * mu, LARGEST_MU)
        rows = V.any(axis=1)
        yield Iterate(
            V=V,
            bias=bias,
            norms=row_norms(candidate),
            loss=sum_of_norms(X[:, rows] @ V[rows] + bias - Y),
            gap=max(relative_gap(W - V, V), float(np.linalg.norm(residual - E)) / len(Y) ** 0.5),
        )


def ridge_solver(X: Array) -> Callable[[Array, Array], tuple[Array, Array]]:
    r"""Return a function that solves :math:`\min_W \|W - U\|^2 + \|XW - T\|^2` for U and T and returns W and XW.

    The matrix is inverted here, once. Dual: :math:`XW = (XX' + I)^{-1} (XU + XX'T)` and :math:`W = U + X'(T - XW)`, which
    is two products with X.
    """
    is_dual = X.shape[0] <= X.shape[1]
    gram = X @ X.T if is_dual else X.T @ X
    inverse = np.linalg.inv(gram + np.eye(len(gram)))  # far from singular: every eigenvalue is at least 1

    def solve(U: Array, T: Array) -> tuple[Array, Array]:
        if is_dual:
            fitted = inverse @ (X @ U + gram @ T)
            return U + X.T @ (T - fitted), fitted
        W = inverse @ (U + X.T @ T)
        return W, X @ W

    return solve


def relative_gap(difference: Array, V: Array) -> float:
    """Return the norm of a difference relative to V; infinity while V is zero."""
    norm = float(np.linalg.norm(V))
    return float(np.linalg.norm(difference)) / norm if norm > 0 else np.inf


def sum_of_norms(residual: Array) -> float:
    """Return the l2,1 norm: the sum of the norms of the rows."""
    return float(row_norms(residual).sum())


def l21_regression(X: Array, Y: Array, residual: Array, *, max_iter: int = 200, tol: float = 1e-8) -> tuple[Array, Array]:
    r"""Minimise :math:`\sum_i \|x_i W + b - y_i\|` by reweighted least squares, from the residual of a start.

    The norms are smoothed by 1e-8 of a typical target. Of several minimisers of a step, the one of least norm is taken.

    Returns
    -------
    W : array of shape (n_features, n_targets)
    b : array of shape (n_targets,)
    """
    epsilon = 1e-8 * float(np.std(Y, axis=0).max())
    norms = smooth_row_norms(residual, epsilon)
    for _ in range(max_iter):
        before, weights = norms.sum(), 1 / norms
        x_mean, y_mean = (weights @ X) / weights.sum(), (weights @ Y) / weights.sum()
        root = np.sqrt(weights)[:, None]
        W = np.linalg.lstsq(root * (X - x_mean), root * (Y - y_mean), rcond=None)[0]
        bias = y_mean - x_mean @ W
        norms = smooth_row_norms(X @ W + bias - Y, epsilon)
        if before - norms.sum() <= tol * before:
            break
    return W, bias
