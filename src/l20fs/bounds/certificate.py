r"""Certificates of near-optimality: lower bounds on the loss, and features proved to be in or out.

The loss of a support S is :math:`h(S) = \min f` with weights on S only. Finding the best k of d features is NP-hard, but
:mod:`l20fs.bounds.relaxation` bounds the loss of all supports from below, and a solution whose loss is close to the bound is
close to the optimum.

Every bound holds for the X and Y that were given, in exact arithmetic: it is computed in float64 and lowered by more than
rounding can amount to, of the computation and of X~ and Y~ as they are stored. So even the bound of an optimum is below it,
as a rule by 1e-13 of the loss without features in float64 and by 1e-7 to 1e-6 in float32, and by more where features are
nearly dependent and the ridge is weak. Bounds whose difference is within :data:`ROUNDING` count as equal. A linear
combination of features that is zero up to rounding in float64 counts as zero, as in :func:`support_loss`.

The bounds depend on the ridge term: they are tight if it is strong, and loose if it is weak. Without a ridge the only lower
bound is the loss of all features together, which is zero as soon as they fit the targets.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass

import numpy as np

from l20fs.bounds.relaxation import (
    NEGLIGIBLE,
    NO_ROWS,
    Cut,
    Relaxed,
    bound_support,
    measure,
    relax,
    target_storage_error,
)
from l20fs.design import storage_errors
from l20fs.objective.least_squares import LeastSquares
from l20fs.typing import Array

#: Largest size for which the relaxation is solved; larger sizes use the bounds that its cuts give for them.
LARGEST_SIZE = 500

#: Differences of losses that may be rounding, as a fraction of the loss without features, by the dtype of X.
ROUNDING = {np.dtype(np.float64): NEGLIGIBLE, np.dtype(np.float32): 1e-5}


@dataclass(frozen=True, eq=False)
class Certificate:
    """Bounds on the optimal value, and features proved to be in or out.

    Attributes
    ----------
    lower_bound : float
        Lower bound of the optimal value.
    upper_bound : float
        Value of the given solution.
    proved_in, proved_out : arrays of feature indices
        Features that are in all, or in none, of the supports whose value is at most ``upper_bound``.
    rounding : float
        Difference of the two bounds that may be rounding: :data:`ROUNDING` times the loss without features, which is 1e-9 of
        it if X is float64, and 1e-5 if it is float32.

    Examples
    --------
    >>> round(Certificate(9.0, 10.0, proved_in=np.array([3]), proved_out=np.array([0, 1])).gap, 3)
    0.1
    """

    lower_bound: float
    upper_bound: float
    proved_in: Array
    proved_out: Array
    rounding: float = 0.0

    @property
    def gap(self) -> float:
        """Maximum relative decrease of ``upper_bound`` by the optimum; 0 if the bounds differ by ``rounding`` or less."""
        difference = self.upper_bound - self.lower_bound
        return difference / self.upper_bound if difference > self.rounding else 0.0


def support_loss(problem: LeastSquares, rows: Array) -> float:
    """Return the minimum of f over weights on the features ``rows``, in float64 whatever the dtype of X.

    Without a ridge term, columns that are linearly dependent up to rounding count as dependent.

    Examples
    --------
    >>> problem = LeastSquares(np.eye(3), np.eye(3), ridge=1.0)
    >>> round(support_loss(problem, np.array([0])), 6), round(support_loss(problem, np.arange(3)), 6)
    (0.75, 0.4)
    """
    triangle, targets = problem.factor(rows)
    columns = _unit_columns(triangle)
    explained = columns @ np.linalg.lstsq(columns, targets, rcond=None)[0]
    return max(0.0, problem.null_loss - 0.5 * float(np.vdot(explained, explained)))


def least_residual(problem: LeastSquares, rows: Array) -> float:
    """Return a lower bound on the loss of the features ``rows`` without a ridge: the residual of least squares.

    The direction of a combination of features that is nearly zero is uncertain by rounding: the bound assumes the direction
    that fits best. Of features of length 1, rounding turns the span of the combinations that are at least l long by an angle
    whose sine is at most (error of the features) / (l - error), and lowers the norm of what is left of the targets by no
    more than this share of theirs. Every l gives a bound; the largest counts. A combination that is zero up to rounding
    counts as zero.

    Examples
    --------
    >>> X = np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]]).T
    >>> round(least_residual(LeastSquares(X, np.eye(4)[:, [0]]), np.arange(2)), 6)
    0.25
    """
    without_ridge = copy(problem)
    without_ridge.ridge = 0.0
    triangle, targets = without_ridge.factor(rows)
    basis, lengths, _ = np.linalg.svd(_unit_columns(triangle), full_matrices=False)
    eps = float(np.finfo(np.float64).eps)
    n_directions = int(np.count_nonzero(lengths > max(triangle.shape) * eps))
    norms = np.sqrt(problem.design.column_energy[rows])
    shares = np.divide(storage_errors(problem.design)[rows], norms, out=np.zeros_like(norms), where=norms > 0.0)
    error = float(np.linalg.norm(shares)) + (problem.design.n_samples + len(rows)) * eps
    length, loss = float(np.linalg.norm(problem.targets)), 0.0
    for n_clear in range(max(0, n_directions - problem.n_targets + 1), n_directions + 1):
        shortest = float(lengths[n_clear - 1]) if n_clear else np.inf
        if shortest <= 2.0 * error:
            break
        explained = basis[:, :n_clear].T @ targets
        energies = np.linalg.eigvalsh(problem.targets @ problem.targets.T - explained.T @ explained)
        # Along its principal directions, of which the uncertain ones may explain the largest.
        left = np.sqrt(np.maximum(energies[: problem.n_targets - (n_directions - n_clear)], 0.0))
        left -= length * error / (shortest - error) + target_storage_error(problem)
        loss = max(loss, 0.5 * float(np.square(np.maximum(left, 0.0)).sum()))
    return max(0.0, loss - 16.0 * (problem.design.n_samples + len(rows)) * eps * problem.null_loss)


def least_loss(problem: LeastSquares, rows: Array) -> float:
    """Return a lower bound on the loss of the features ``rows``, by rounding below it.

    Examples
    --------
    >>> problem = LeastSquares(np.eye(3), np.eye(3), ridge=1.0)
    >>> 0.75 - 1e-12 < least_loss(problem, np.array([0])) < 0.75
    True
    """
    return bound_support(problem, rows) if has_ridge(problem) else least_residual(problem, rows)


def has_ridge(problem: LeastSquares) -> bool:
    """Return whether the ridge is strong enough for the relaxation: with a weaker one its bounds would be rounding."""
    return problem.ridge > NEGLIGIBLE * float(problem.design.column_energy.mean())


def _unit_columns(matrix: Array) -> Array:
    """Normalise the columns; their span is unchanged."""
    lengths = np.linalg.norm(matrix, axis=0)
    return matrix / np.where(lengths, lengths, 1.0)


class SizeBounds:
    """Lower bounds on the loss of k features for every k, tightened by each relaxation.

    Attributes
    ----------
    lower : array of shape (n_features + 1,)
        Lower bounds on the loss of k features, decreasing with k.
    largest : int
        Largest size that :meth:`solve` accepts, 0 if none.

    Examples
    --------
    >>> bounds = SizeBounds(LeastSquares(np.eye(3), np.eye(3), ridge=1.0), tol=1e-6)
    >>> round(bounds.solve(2).value, 4), bounds.lower.round(4)
    (0.5, array([1.    , 0.6667, 0.5   , 0.4   ]))
    """

    def __init__(self, problem: LeastSquares, tol: float) -> None:
        self.problem, self.tol, self.largest = problem, tol, 0
        self.lower = np.zeros(problem.n_features + 1)
        self.lower[0] = problem.null_loss
        every = np.flatnonzero(problem.design.varies)
        are_few = len(every) <= 2 * LARGEST_SIZE
        if has_ridge(problem):
            self.largest = min(LARGEST_SIZE, len(every))
            self._working_set = NO_ROWS
            self._learn(measure(problem, problem.targets))
            if are_few:  # no support beats all features together
                self._learn(next(relax(problem, len(every), start=every, tol=tol)).cut)
        elif are_few:
            self.lower[1:] = least_residual(problem, every)

    def solve(self, k: int) -> Relaxed:
        """Solve the relaxation for k features and tighten the bounds of all sizes."""
        # Sizes are mostly solved in order: the working set of the last one is a good start.
        n_rows = min(k + 32, self.problem.n_features)
        start = np.union1d(self._working_set, np.argpartition(self._scores, -n_rows)[-n_rows:])
        for relaxed in relax(self.problem, k, start=start, tol=self.tol):
            self._learn(relaxed.cut)
        self._working_set = relaxed.rows[relaxed.shares > 0.01]
        return relaxed

    def _learn(self, cut: Cut) -> None:
        self.lower = np.fmax(self.lower, cut.bounds_by_size())
        self._scores = cut.scores


def lower_bounds(problem: LeastSquares, k_max: int, *, tol: float = 1e-3) -> Array:
    """Return lower bounds on the loss of the best k features for k = 0 to ``k_max``.

    Up to :data:`LARGEST_SIZE` each is within ``tol`` of the value of the relaxation for its size; above, the bounds are
    valid but weaker.

    Parameters
    ----------
    problem : LeastSquares
        The data term, with a ridge term for bounds that are tight.
    k_max : int
        Largest number of features.
    tol : float
        Relative accuracy to which the relaxation is solved.

    Returns
    -------
    array of shape (k_max + 1,)
        Lower bounds, decreasing with k; the first is the loss without features.

    Examples
    --------
    >>> problem = LeastSquares(np.eye(3), np.eye(3), ridge=1.0)
    >>> lower_bounds(problem, 3).round(3)
    array([1.   , 0.667, 0.5  , 0.4  ])
    """
    check_size(problem, k_max)
    bounds = SizeBounds(problem, tol)
    last = min(k_max, bounds.largest)
    values = {0: problem.null_loss}
    if last:
        values[last] = bounds.solve(last).value
    spans = [(0, last)]
    while spans:
        low, high = spans.pop()
        between = np.arange(low + 1, high)
        # The value of the relaxation is convex in k: between two sizes it is below the chord, which is an upper bound.
        chord = np.interp(between, [low, high], [values[low], values[high]])
        missing = chord - bounds.lower[between]
        if np.any(missing > tol * chord + NEGLIGIBLE * problem.null_loss):
            middle = int(between[np.argmax(missing)])
            values[middle] = bounds.solve(middle).value
            spans += [(low, middle), (middle, high)]
    return bounds.lower[: k_max + 1]


def certify_size(problem: LeastSquares, k: int, upper_bound: float, *, tol: float = 1e-4) -> Certificate:
    """Certify the loss of k features: the gap to the optimum, and the features proved to be in or out.

    Parameters
    ----------
    problem : LeastSquares
        The data term, with a ridge term for bounds that are tight.
    k : int
        Maximum number of features of a support.
    upper_bound : float
        Loss of one such support, as :func:`support_loss` computes it.
    tol : float
        Relative accuracy to which the relaxation is solved.

    Returns
    -------
    Certificate
        Lower and upper bound, and the features proved to be in or out.

    Examples
    --------
    >>> X, Y = np.diag([1.0, 2.0, 1.0, 3.0]), np.eye(4)[:, [1, 3]]
    >>> problem = LeastSquares(X, Y, ridge=0.1)
    >>> certificate = certify_size(problem, 2, support_loss(problem, np.array([1, 3])))
    >>> certificate.proved_in, certificate.proved_out, round(certificate.gap, 3)
    (array([1, 3]), array([0, 2]), 0.0)
    """
    check_size(problem, k)
    bounds = SizeBounds(problem, tol)
    cuts = [bounds.solve(k).cut] if k <= bounds.largest else []
    return conclude(problem, float(bounds.lower[k]), upper_bound, {k: upper_bound}, cuts)


def certify_penalty(problem: LeastSquares, lam: float, upper_bound: float, *, tol: float = 1e-4) -> Certificate:
    """Certify ``f + lam * (number of rows)``: the gap to the minimum, and the features proved to be in or out.

    The minimum is the least over all sizes k of the optimal loss of k features plus ``lam * k``, so that the proofs for all
    sizes are combined.

    Parameters
    ----------
    problem : LeastSquares
        The data term, with a ridge term for bounds that are tight.
    lam : float
        Penalty per feature, at least 0.
    upper_bound : float
        Value of a solution: ``support_loss(problem, rows) + lam * len(rows)``.
    tol : float
        Relative accuracy to which the relaxation is solved.

    Returns
    -------
    Certificate
        Lower and upper bound, and the features proved to be in or out.

    Examples
    --------
    >>> X, Y = np.diag([1.0, 2.0, 1.0, 3.0]), np.eye(4)[:, [1, 3]]
    >>> problem = LeastSquares(X, Y, ridge=1.0)
    >>> certificate = certify_penalty(problem, 0.05, support_loss(problem, np.array([1, 3])) + 2 * 0.05)
    >>> certificate.proved_in, certificate.proved_out, round(certificate.gap, 3)
    (array([1, 3]), array([0, 2]), 0.0)
    """
    if not lam >= 0.0:
        raise ValueError(f"lam={lam!r} is not valid. Use a number of at least 0.")
    bounds = SizeBounds(problem, tol)
    price = lam * np.arange(problem.n_features + 1)
    cuts: dict[int, Cut] = {}
    value = np.inf
    # Solve for the size with the lowest bound, until that size is solved or its bound reaches the value of a solved size.
    while (k := int(np.argmin(bounds.lower + price))) not in cuts and 1 <= k <= bounds.largest:
        if bounds.lower[k] + price[k] >= (1.0 - tol) * value:
            break
        relaxed = bounds.solve(k)
        cuts[k] = relaxed.cut
        value = min(value, relaxed.value + price[k])
    lower = bounds.lower + price
    open_sizes = np.flatnonzero(lower <= upper_bound + ROUNDING[problem.dtype] * problem.null_loss)
    losses = {int(k): upper_bound - float(price[k]) for k in open_sizes}
    return conclude(problem, float(lower.min()), upper_bound, losses, list(cuts.values()))


def check_size(problem: LeastSquares, k: int) -> None:
    """Raise an error for a number of features outside the problem."""
    if not 1 <= k <= problem.n_features:
        raise ValueError(f"k={k} is outside 1 to {problem.n_features}, the number of features. Use a k in this range.")


def conclude(
    problem: LeastSquares, lower_bound: float, upper_bound: float, losses: dict[int, float], cuts: list[Cut]
) -> Certificate:
    """Build the certificate.

    ``losses`` maps the sizes that a support as good as ``upper_bound`` can have to its largest possible loss.
    """
    margin = ROUNDING[problem.dtype] * problem.null_loss
    if not upper_bound >= lower_bound - margin:
        raise ValueError(
            f"upper_bound={upper_bound:.9g} is below {lower_bound:.9g}, the lower bound of all supports. "
            "Compute it from a support with support_loss(problem, rows)."
        )
    is_in, is_out = np.ones((2, problem.n_features), dtype=bool)
    for k, loss in losses.items():
        if k == 0:
            is_in[:] = False  # the empty support contains none
            continue
        proofs = [prove(cut, k, loss + margin) for cut in cuts]
        is_in &= np.any([are_in for are_in, _ in proofs], axis=0)
        is_out &= np.any([are_out for _, are_out in proofs], axis=0)
        if not is_in.any() and not is_out.any():
            break
    lower_bound = min(lower_bound, upper_bound)
    return Certificate(lower_bound, upper_bound, np.flatnonzero(is_in), np.flatnonzero(is_out), rounding=margin)


def prove(cut: Cut, k: int, loss: float) -> tuple[Array, Array]:
    """Return masks of the features in all, and in none, of the supports of at most k features that reach ``loss``.

    A feature is in if the supports without it are bounded above ``loss``, and out if those with it are.

    Examples
    --------
    >>> prove(Cut(product=4.0, energy=2.0, scores=np.array([1.0, 3.0])), 1, loss=1.5)
    (array([False,  True]), array([ True, False]))
    """
    scores, n_others = cut.scores, len(cut.scores) - k
    is_heavy = np.zeros(len(scores), dtype=bool)
    is_heavy[np.argpartition(scores, n_others)[n_others:]] = True
    load = scores[is_heavy].sum()
    # A feature with a small score that is forced in replaces the k-th largest score; one of the k largest that is forced out
    # is replaced by the largest score of the others.
    with_it = load + np.where(is_heavy, 0.0, scores - scores[is_heavy].min())
    without_it = load - np.where(is_heavy, scores - scores[~is_heavy].max(initial=0.0), 0.0)
    return cut.bound(without_it) > loss, cut.bound(with_it) > loss
