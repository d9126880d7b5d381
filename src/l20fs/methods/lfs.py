"""LFS: Fisher criterion with an l2,1 penalty, by a sequence of generalised eigenproblems."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from l20fs.design.moments import centred
from l20fs.methods._linalg import row_norms, smooth_row_norms, solve_positive
from l20fs.methods._method import POSITIVE, About, Callback, Method, Scored, Targets, follow, rules
from l20fs.typing import Array


@dataclass(eq=False, repr=False, kw_only=True)
class LFS(Method):
    r"""Rank features by their weights in a linear discriminant analysis with an l2,1 penalty.

    .. math:: \min_W \mathrm{tr}(W' S_w W) + \lambda \|W\|_{2,1} \quad \text{subject to } W' S_b W = I

    :math:`S_w` and :math:`S_b` are the scatter matrices within and between classes; the number of columns of W is the rank
    of :math:`S_b`, usually the number of classes minus 1. Each iteration majorises the row norms by quadratics with weights
    :math:`D_{jj} = 1 / (2 \|w_j\|)` and solves the generalised eigenproblem :math:`(S_w + \lambda D) w = \mu S_b w` for the
    smallest :math:`\mu`. The score of a feature is the norm of its row.

    **This is a reconstruction** from the abstract of the publication, which names the criterion, the constraint and the
    iteration; the initial weights, the smoothing and the default penalty are our choice.

    Parameters
    ----------
    n_features_to_select : int or float, default=20
        Number of features to select, or fraction of all features.
    penalty : float, default=1.0
        Penalty :math:`\lambda`, in units of X: multiplying both X and the penalty by c leaves the ranking unchanged.
    max_iter : int, default=50
        Maximum number of iterations.
    tol : float, default=1e-6
        Relative decrease of the objective below which the iterations stop.
    callback : callable or None, default=None
        Called with a :class:`~l20fs.estimators.scoring.Progress` after each iteration.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Norm of the row of W; ``-inf`` for a constant feature.
    ranking_ : array of shape (n_features,)
        Rank of each feature; 1 is best.
    support_ : array of shape (n_features,)
        Mask of the selected features.
    coef_ : array of shape (n_directions, n_features)
        W transposed. W is determined up to a rotation of its columns, which changes neither its row norms nor
        :math:`W W'`.
    objective_ : array of shape (``n_iter_``,)
        Objective after every iteration, with norms smoothed by 1e-8 of their first mean; it never rises.
    n_iter_ : int
        Number of iterations.
    classes_ : array of shape (n_classes,)
        Class labels in sorted order.

    References
    ----------
    .. [1] J. Zhang, J. Yu, J. Wan and Z. Zeng, "l2,1 norm regularized Fisher criterion for optimal feature selection",
       Neurocomputing 166 (2015).

    Examples
    --------
    >>> X = [[0.0, 1.0], [0.1, 3.0], [5.0, 2.0], [5.1, 2.5]]
    >>> LFS(1).fit(X, ["a", "a", "b", "b"]).get_support(indices=True)
    array([0])
    """

    about = About(
        "Zhang, Yu, Wan and Zeng, l2,1 norm regularized Fisher criterion for optimal feature selection (2015); "
        "reconstructed from its abstract",
        "embedded",
        "O(N^2 d) per iteration",
    )
    checks = rules(penalty=POSITIVE, tol=POSITIVE)

    penalty: float = 1.0
    max_iter: int = 50
    tol: float = 1e-6
    callback: Callback | None = None

    def _score_features(self, X: Array, targets: Targets) -> Scored:
        W, objective = follow(self, self._steps(Scatter.of(X, targets)))
        return Scored(row_norms(W), coef=W.T, objective=objective)

    def _steps(self, scatter: Scatter) -> Iterator[tuple[Array, float, float]]:
        """Yield W, the objective and its relative decrease after every eigenproblem."""
        W = scatter.directions(scatter.start_variances(self.penalty))
        epsilon = 1e-8 * float(row_norms(W).mean())
        before = scatter.objective(W, self.penalty, epsilon)
        while True:
            W = scatter.directions(2.0 * smooth_row_norms(W, epsilon) / self.penalty)
            objective = scatter.objective(W, self.penalty, epsilon)
            yield W, objective, (before - objective) / before
            before = objective


class Scatter(NamedTuple):
    """Scatter matrices in factored form, S_w = within' within and S_b = between between', which are never multiplied out.

    ``n_directions`` is the rank of S_b.
    """

    within: Array
    between: Array
    n_directions: int

    @classmethod
    def of(cls, X: Array, targets: Targets) -> Scatter:
        """Compute the factors for the classes of ``targets``."""
        sizes = targets.Y.sum(axis=0)
        deviations = centred(X)
        means = targets.Y.T @ deviations / sizes[:, None]
        between = (np.sqrt(sizes)[:, None] * means).T
        values = np.linalg.svd(between, compute_uv=False)
        # The weighted class means sum to zero, so one singular value is rounding error; so are those of equal means.
        noise = len(X) * np.finfo(np.float64).eps * np.linalg.norm(deviations)
        n_directions = min(int((values > noise).sum()), len(sizes) - 1)
        if n_directions == 0:
            raise ValueError(
                "All classes have the same mean in every feature, so there is no direction between them. Use a method that "
                "does not compare means, such as ReliefF or InformationGain."
            )
        return cls(deviations - targets.Y @ means, between, n_directions)

    def start_variances(self, penalty: float) -> Array:
        """Return equal variances for the first iteration, of the same order as the later ones."""
        n_features = len(self.between)
        total = np.sum(self.within**2) + np.sum(self.between**2)
        return np.full(n_features, 1.0 / (penalty * np.sqrt(total / n_features)))

    def directions(self, variances: Array) -> Array:
        r"""Return the W with :math:`W'S_bW = I` that minimises :math:`\mathrm{tr}\,W'(S_w + \Delta^{-1})W`.

        There is no division by ``variances``, the diagonal of Delta. With :math:`K = (S_w + \Delta^{-1})^{-1} B` and
        :math:`B'K = U \Theta U'`, W is :math:`K U \Theta^{-1}` for the largest values of Theta.
        """
        pulled = self._solve(variances)
        inner = self.between.T @ pulled
        theta, U = eigh((inner + inner.T) / 2)
        theta, U = theta[-self.n_directions :], U[:, -self.n_directions :]
        return pulled @ (U / theta)

    def _solve(self, variances: Array) -> Array:
        """Return ``(S_w + diag(1 / variances))^-1 B``, from a system of n_samples or n_features, whichever are fewer."""
        root = np.sqrt(variances)[:, None]
        within, between = self.within * root.T, self.between * root
        n_samples, n_features = within.shape
        if n_samples > n_features:
            return root * solve_positive(within.T @ within, np.ones(n_features), between)
        inner = solve_positive(within @ within.T, np.ones(n_samples), within @ between)
        return root * (between - within.T @ inner)

    def objective(self, W: Array, penalty: float, epsilon: float) -> float:
        """Return ``tr(W' S_w W)`` plus the penalty times the sum of the smoothed row norms."""
        return float(np.sum((self.within @ W) ** 2) + penalty * smooth_row_norms(W, epsilon).sum())
