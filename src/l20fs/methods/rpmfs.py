"""RPMFS: l2,1 loss with an l2,0 constraint, by an augmented Lagrangian method."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from sklearn.utils import check_random_state

from l20fs.design.moments import centred
from l20fs.estimators.base import About
from l20fs.estimators.scoring import Callback, Progress, Scored, SolvesForOneK, warn_not_converged
from l20fs.inputs.targets import Targets
from l20fs.inputs.validation import check_choice, check_number
from l20fs.methods._linalg import Form, smooth_row_norms, squared_spectral_norm
from l20fs.objective.prox import keep_best_rows, order_descending, shrink_rows, squared_row_norms
from l20fs.typing import Array, Task

#: Spectral norm to which centred X is scaled: both constraints share one mu, so neither may dominate the other.
SPECTRAL_NORM = 10.0
#: Upper limit of the penalty mu.
LARGEST_MU = 1e10


class RPMFS(SolvesForOneK):
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
        Other numbers of features to solve for in ``fit``, for :meth:`at`.
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
        reference="Cai, Nie and Huang, Exact top-k feature selection via l2,0-norm constraint (2013)",
        kind="embedded",
        cost="O(N^2 d), then O(N d C) per iteration",
    )
    _needs_labels = False

    def __init__(
        self,
        n_features_to_select: int | float = 20,
        *,
        mu: float = 0.01,
        rho: float = 1.02,
        init: Literal["zeros", "random"] = "zeros",
        random_state: Any = 0,
        refit: bool = True,
        max_iter: int = 1000,
        tol: float = 1e-4,
        sizes: Sequence[int] | None = None,
        task: Task = "auto",
        callback: Callback | None = None,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.mu = mu
        self.rho = rho
        self.init = init
        self.random_state = random_state
        self.refit = refit
        self.max_iter = max_iter
        self.tol = tol
        self.sizes = sizes
        self.task = task
        self.callback = callback

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("mu", self.mu, minimum=0, below=LARGEST_MU)
        check_number("rho", self.rho, minimum=1, strict=False)
        check_choice("init", self.init, ("zeros", "random"))
        check_number("max_iter", self.max_iter, minimum=1, strict=False, whole=True)
        check_number("tol", self.tol, minimum=0)
        check_choice("task", self.task, get_args(Task))

    def _solve_for(self, k: int, X: Array, targets: Targets) -> Scored:
        problem, V, E = self._start(X, targets.Y)
        objective: list[float] = []
        for iterate in islice(alm_iterates(problem, k, V, E, mu=self.mu, rho=self.rho), self.max_iter):
            objective.append(problem.y_scale * iterate.loss)
            if self.callback is not None:
                self.callback(Progress(len(objective), objective[-1]))
            if iterate.gap < self.tol:
                break
        else:
            warn_not_converged(self, iterate.gap, self.tol, self.max_iter)
        support, rest = split_rows(iterate.norms, iterate.V, k)
        W = problem.unscale(iterate.V)
        model = self._refitted(X[:, support], targets.Y, W[support], problem.y_mean + problem.y_scale * iterate.bias)
        W[support] = model.weights
        order = np.concatenate([support, rest])
        return Scored(problem.unscale(iterate.norms), order, W.T, objective, intercept=model.intercept, loss=model.loss)

    def _start(self, X: Array, Y: Array) -> tuple[Centred, Array, Array]:
        """Return the problem and the first V and E."""
        problem = Centred.of(X, Y, scaled=self.init == "zeros")
        shape = X.shape[1], Y.shape[1]
        if self.init == "zeros":
            return problem, np.zeros(shape), -problem.Y
        random = check_random_state(self.random_state)
        return problem, random.uniform(size=shape), random.uniform(size=Y.shape)

    def _refitted(self, X: Array, Y: Array, V: Array, bias: Array) -> Model:
        """Return the weights of the k features and what goes with them; ``bias`` belongs to centred X."""
        intercept = bias - X.mean(axis=0) @ V
        if self.refit:
            V, intercept = l21_regression(X, Y, X @ V + intercept - Y)
        return Model(V, intercept, sum_of_norms(X @ V + intercept - Y))

    @property
    def intercept_(self) -> Array | None:
        """The intercept that belongs to ``coef_``."""
        return self._solution.intercept


class Model(NamedTuple):
    """Weights of k features, their intercept and the loss of both."""

    weights: Array
    intercept: Array
    loss: float


class Centred(NamedTuple):
    """Centred data, scaled so that one mu suits both constraints, with the scales to undo it."""

    X: Array
    Y: Array
    x_scale: float
    y_scale: float
    y_mean: Array
    form: Form

    @classmethod
    def of(cls, X: Array, Y: Array, *, scaled: bool) -> Centred:
        """Centre X; with ``scaled`` centre Y as well and scale both."""
        form: Form = "dual" if X.shape[0] <= X.shape[1] else "primal"
        X = centred(X)
        if not scaled:
            return cls(X, Y, 1.0, 1.0, np.zeros(Y.shape[1]), form)
        y_mean = Y.mean(axis=0)
        Y = Y - y_mean
        x_scale = np.sqrt(squared_spectral_norm(X)) / SPECTRAL_NORM
        y_scale = float(np.sqrt(squared_row_norms(Y).mean()))
        return cls(X / x_scale, Y / y_scale, x_scale, y_scale, y_mean, form)

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
    solve = ridge_solver(X, problem.form)
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
            norms=np.sqrt(squared_row_norms(candidate)),
            loss=sum_of_norms(X[:, rows] @ V[rows] + bias - Y),
            gap=max(relative_gap(W - V, V), float(np.linalg.norm(residual - E)) / len(Y) ** 0.5),
        )


def ridge_solver(X: Array, form: Form) -> Callable[[Array, Array], tuple[Array, Array]]:
    r"""Return a function that solves :math:`\min_W \|W - U\|^2 + \|XW - T\|^2` for U and T and returns W and XW.

    The matrix is inverted here, once. Dual: :math:`XW = (XX' + I)^{-1} (XU + XX'T)` and :math:`W = U + X'(T - XW)`, which
    is two products with X.
    """
    kernel = gram(X, form)
    inverse = np.linalg.inv(kernel + np.eye(len(kernel)))  # far from singular: every eigenvalue is at least 1

    def solve_dual(U: Array, T: Array) -> tuple[Array, Array]:
        fitted = inverse @ (X @ U + kernel @ T)
        return U + X.T @ (T - fitted), fitted

    def solve_primal(U: Array, T: Array) -> tuple[Array, Array]:
        W = inverse @ (U + X.T @ T)
        return W, X @ W

    return solve_dual if form == "dual" else solve_primal


def gram(X: Array, form: Form) -> Array:
    """Return ``X X'`` for the dual form, ``X' X`` for the primal one."""
    return X @ X.T if form == "dual" else X.T @ X


def relative_gap(difference: Array, V: Array) -> float:
    """Return the norm of a difference relative to V; infinity while V is zero."""
    norm = float(np.linalg.norm(V))
    return float(np.linalg.norm(difference)) / norm if norm > 0 else np.inf


def sum_of_norms(residual: Array) -> float:
    """Return the l2,1 norm: the sum of the norms of the rows."""
    return float(np.sqrt(squared_row_norms(residual)).sum())


def split_rows(norms: Array, V: Array, k: int) -> tuple[Array, Array]:
    """Return the k features with a row in V and the other features, each ordered by norm."""
    order = order_descending(norms)
    # Rows of V first: the tie tolerance must not exchange a row of V with a tied row outside V.
    order = order[np.argsort(~V[order].any(axis=1), kind="stable")]
    return order[:k], order[k:]


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
