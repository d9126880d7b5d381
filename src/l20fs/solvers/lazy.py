r"""Lazy gradients: upper bounds decide which features to evaluate, without changing the result.

A zero row enters only if :math:`\|x_j^T R\| > \sqrt{2 \lambda L}`. If feature j was last evaluated at the residual
:math:`R_j`, then

.. math:: \|x_j^T R\| \le \|x_j^T R_j\| + \|x_j\| \, \|R - R_j\|_2,

and a feature whose bound stays below the threshold need not be looked at. Each feature refers to a residual of its own:
those near the threshold are evaluated often and do not drag in the rest. For features that enter as a group the squares of
the bounds are added up.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from l20fs.objective.gradients import Gradient, may_be_heavy
from l20fs.objective.least_squares import LeastSquares
from l20fs.objective.row_penalty import RowPenalty
from l20fs.typing import Array

#: Residuals that are kept to refer to. More of them make the bounds tighter and dearer.
N_KEPT = 16

#: Share of the features above which one pass over all, by all cores, is cheaper than to fetch them one by one.
SCATTERED_SHARE = 0.25

#: Points in a row that are evaluated whole, at most, after bounds that decided too little.
LONGEST_REST = 15

#: Stored elements of X from which a pass costs more than the bounds, which are a matter of some 50 calls of NumPy.
LARGE = 1 << 19


class RowBounds:
    """Upper bounds of ``||x_j . R||`` for all features, from the last evaluation of each.

    Parameters
    ----------
    lengths : array of shape (n_features,)
        ``||x_j||``.
    shape : tuple
        That of a residual, (n_targets, n_samples).
    eps : float
        Precision of the products.

    Examples
    --------
    >>> bounds = RowBounds(np.array([1.0, 2.0]), (1, 2), eps=1e-16)
    >>> bounds.note(np.array([[3.0, 0.0]]), np.arange(2), np.array([3.0, 0.0]))
    >>> bounds.at(np.array([[3.0, 1.0]])).round(5)
    array([4., 2.])
    """

    def __init__(self, lengths: Array, shape: tuple[int, ...], eps: float) -> None:
        self._lengths = lengths
        self._norms = np.full(len(lengths), np.inf)
        self._seen = np.zeros(len(lengths), dtype=np.intp)
        self._kept = np.empty((N_KEPT, *shape))
        self._n_kept = 0
        self._size = float(np.finfo(np.float64).tiny)  # the largest norm of a residual so far
        # A sum of n products is off by n eps / 2 times the lengths of its factors at most, and the norm over the targets by
        # eps / 2 per target; this happens twice, where a product is noted and where it is bounded.
        self._rounding = 2.0 * (sum(shape) + 4) * eps

    def note(self, residual: Array, rows: Array | slice, norms: Array) -> None:
        """Store the norms of the products of the features ``rows`` with ``residual``."""
        self._size = max(self._size, float(np.linalg.norm(residual)))
        if self._n_kept == N_KEPT:
            self._make_room()
        self._kept[self._n_kept] = residual
        self._seen[rows] = self._n_kept
        self._norms[rows] = norms
        self._n_kept += 1

    def at(self, residual: Array) -> Array:
        """Return upper bounds of the norms of the products of all features with ``residual``."""
        self._size = max(self._size, float(np.linalg.norm(residual)))
        bounds = self._reach(self._kept[: self._n_kept], residual).take(self._seen)
        bounds *= self._lengths
        bounds += self._norms
        return bounds

    def _reach(self, origins: Array, ends: Array) -> Array:
        """Return an upper bound on the change of a product with a unit vector from each origin, with rounding errors."""
        # ||D||_2^8 <= ||D D' D D'||_F^2: within a few per cent of an eigenvalue, and much cheaper.
        displacements = origins - ends
        displacements /= self._size
        squares = displacements @ displacements.mT
        fourth_powers = np.linalg.norm(squares @ squares, axis=(1, 2))
        return self._size * ((1.0 + 1e-6) * fourth_powers**0.25 + self._rounding)

    def _make_room(self) -> None:
        """Drop unused residuals and, if they are few, half of the others."""
        is_used = np.bincount(self._seen, minlength=N_KEPT) > 0
        self._seen = (np.cumsum(is_used) - 1)[self._seen]
        kept = self._kept[is_used]
        if len(kept) > N_KEPT // 2:
            # The older of two neighbours leaves its features to the younger: their bounds grow by the way between the two.
            heirs = np.minimum(np.arange(len(kept)) | 1, len(kept) - 1)
            self._norms += self._lengths * self._reach(kept, kept[heirs])[self._seen]
            self._seen //= 2
            kept = kept[heirs[::2]]
        self._n_kept = len(kept)
        self._kept[: self._n_kept] = kept


class LazyGradients:
    """Factory of lazy gradients along a homotopy, called like :meth:`LeastSquares.gradient`.

    Where the bounds decide too little for the second time in a row, the next point is evaluated whole without asking them;
    after another failure the next three, then seven, up to :data:`LONGEST_REST`. A residual must stay as it is for as long
    as the gradient there is in use.

    Examples
    --------
    >>> problem = LeastSquares(np.eye(4), np.eye(4))
    >>> gradient_at = LazyGradients(problem)
    >>> nothing = np.arange(0), np.zeros((4, 0))
    >>> gradient_at(-problem.targets, *nothing).above(0.5)
    array([ True,  True,  True,  True])
    >>> gradient_at(-0.5 * problem.targets, *nothing).above(0.5)
    array([False, False, False, False])
    """

    def __init__(self, problem: LeastSquares) -> None:
        self.problem = problem
        self.bounds = RowBounds(problem.design.pull_norms(), problem.targets.shape, float(np.finfo(problem.dtype).eps))
        self._n_whole = 1  # the first point has nothing to refer to
        self._rest = 0

    def __call__(self, residual: Array, rows: Array, values: Array) -> Gradient:
        if not self._n_whole:
            return LazyGradient(self, residual, rows, values)
        self._n_whole -= 1
        return self.whole(residual, rows, values)

    def whole(self, residual: Array, rows: Array, values: Array) -> Gradient:
        """Evaluate all features, and store them unless the next point will be evaluated entirely as well."""
        gradient = self.problem.gradient(residual, rows, values)
        if not self._n_whole:
            norms = np.sqrt(gradient.squared_norms)
            norms[rows] = np.inf  # a ridge term is in there; without it they are not known
            self.bounds.note(residual, slice(None), norms)
        return gradient

    def judge(self, *, decided: bool) -> None:
        """Update whether the bounds decide enough features to pay."""
        if decided:
            self._rest = 0
        else:
            self._n_whole = self._rest
            self._rest = min(2 * self._rest + 1, LONGEST_REST)


class LazyGradient(Gradient):
    """Gradient at one point, whose features are evaluated on demand."""

    def __init__(self, gradients: LazyGradients, residual: Array, rows: Array, values: Array) -> None:
        self._gradients = gradients
        self._point = residual, rows, values
        self._squared_bounds = np.square(gradients.bounds.at(residual))
        self._squared_bounds[rows] = np.inf  # looked at in any case, and their bounds are without the ridge term
        self._is_known = np.zeros(len(self._squared_bounds), dtype=bool)
        self._is_known[rows] = True
        self._rows = rows
        self._values: Array | None = None
        self._whole: Gradient | None = None

    def above(self, threshold: float, penalty: RowPenalty | None = None) -> Array:
        """Return a mask of the features with weights and of those whose gradient may be longer than ``threshold``."""
        if self._whole is None:
            undecided = np.flatnonzero(may_be_heavy(self._squared_bounds, threshold, penalty))
            decided = len(undecided) <= SCATTERED_SHARE * len(self._squared_bounds)
            self._gradients.judge(decided=decided)
            if decided:
                self._evaluate(undecided)
                return may_be_heavy(self._squared_bounds, threshold, penalty)
            self._whole = self._gradients.whole(*self._point)
        return self._whole.above(threshold, penalty)

    def at(self, rows: Array) -> Array:
        """Return the gradient of a few features, (n_targets, n_rows), in float64."""
        if self._whole is not None:
            return self._whole.at(rows)
        values = self._evaluate(rows)
        return values.take(np.searchsorted(self._rows, rows), axis=1).astype(np.float64, copy=False)

    def likely(self) -> Array:
        return self._squared_bounds

    @property
    def squared_norms(self) -> Array:
        """The squared norm of the gradient of every feature: a pass over X."""
        if self._whole is None:
            self._whole = self._gradients.problem.gradient(*self._point)
        return self._whole.squared_norms

    def _evaluate(self, rows: Array) -> Array:
        """Return the gradient of all features evaluated so far, after adding ``rows`` and those with weights."""
        problem, bounds, residual = self._gradients.problem, self._gradients.bounds, self._point[0]
        if self._values is None:
            self._values = problem.partial_gradient(*self._point).values
        new = rows[~self._is_known[rows]]
        if len(new):
            gradient = problem.partial_gradient(residual, new)
            values, squared_norms = gradient.values, gradient.squared_norms
            bounds.note(residual, new, np.sqrt(squared_norms))
            self._squared_bounds[new] = squared_norms
            self._is_known[new] = True
            known = np.concatenate([self._rows, new])
            order = np.argsort(known)
            self._rows = known[order]
            self._values = np.hstack([self._values, values])[:, order]
        return self._values


#: What gives the gradient at a residual and the non-zero rows and weights that belong to it.
GradientRule = Callable[[Array, Array, Array], Gradient]


def laziness_pays(problem: LeastSquares) -> bool:
    """Return whether a pass over X costs so much more than the bounds that lazy evaluation pays."""
    n_stored, size_of_kept = problem.design.n_stored, N_KEPT * problem.targets.size
    return n_stored >= max(LARGE, 4 * size_of_kept)
