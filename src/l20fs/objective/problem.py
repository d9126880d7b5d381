"""Problem: least squares on X~ with an unpenalised intercept, if there is one, and an optional ridge term."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from l20fs.design.column_scale import checked_scale
from l20fs.design.driver import Walk, finish
from l20fs.design.matrix import Matrix
from l20fs.design.sample_weights import SampleWeights
from l20fs.design.samples import weigh
from l20fs.design.spectrum import largest_eigenvalue
from l20fs.design.standardised import Design, measure
from l20fs.design.tolerances import (
    equality_tolerance,
    refuse_extreme_targets,
    refuse_nothing_to_select,
    refuse_vanishing_values,
)
from l20fs.objective.scale_choice import tell_less
from l20fs.typing import Array, Scale

#: Targets of which nuisances leave a smaller share of the norm are explained altogether.
EXPLAINED_SHARE = 1e-9


class Problem:
    r"""Least squares with an unpenalised intercept and an optional ridge term.

    .. math:: f(W) = \tfrac12 \|\tilde X W - \tilde Y\|_F^2 + \tfrac\mu2 \|W\|_F^2

    ``X~`` and ``Y~`` are centred, which is equivalent to fitting an intercept (equations 5 to 7 of the paper), and every
    sample is multiplied by the square root of its weight.

    Attributes
    ----------
    design : Design
        X~.
    targets : array of shape (n_targets, n_samples)
        Y~', less what nuisances explain.
    target_products : array of shape (n_targets, n_features)
        ``Y~' X~``, where X is; not to be changed.
    y_mean, y_scale : arrays of shape (n_targets,)
        Mean of each target, and the square root of its weight.
    relative_ridge, ridge : float
        Strength of the ridge term in units of the mean squared norm of a feature that varies, and mu.
    null_loss : float
        f at W = 0.
    """

    def __init__(self, design: Design, targets: Targets, products: Any, ridge: float | Callable[[Design], float]) -> None:
        self._targets = targets
        self.design, self.targets, self.target_products = design, targets.values, products
        self.y_mean, self.y_scale = targets.mean, targets.scale
        self.targets_norm, self.is_explained = targets.norm, targets.is_explained
        self.null_loss = 0.5 * float(np.vdot(self.targets, self.targets))
        if targets.differ:  # constant targets have no deviation that could be too small
            refuse_extreme_targets(self.targets, 2.0 * self.null_loss, design)
        self.relative_ridge = float(ridge(design) if callable(ridge) else ridge)
        self.ridge = self.relative_ridge * design.mean_energy

    @property
    def n_features(self) -> int:
        return self.design.n_features

    @property
    def n_targets(self) -> int:
        return len(self.targets)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype of X, used in products with all features; sums and weights are float64."""
        return self.design.dtype

    @property
    def tie(self) -> float:
        """Relative tolerance of ties: the rounding error of products with two equal columns."""
        return equality_tolerance(self.dtype)

    def residual(self, rows: Array, values: Array) -> Array:
        """Return ``X~ W - Y~`` for the weights ``values`` of the features ``rows``, (n_targets, n_samples)."""
        return self.design.push(rows, values) - self.targets

    def value(self, residual: Array, values: Array) -> float:
        """Return f from a residual and its non-zero weights."""
        return 0.5 * float(np.vdot(residual, residual)) + 0.5 * self.ridge * float(np.vdot(values, values))

    def reweighted(self, sample_weight: Any) -> Walk[Problem]:
        """Return the problem on the same X and Y with the same units and mu, under other sample weights."""
        design, targets = self.design, self._targets
        own = design.sample_weights
        weights = SampleWeights(design.n_samples, sample_weight, fit_intercept=own.fit_intercept, nuisances=own.nuisances)
        samples = design.measured.samples
        other = yield from pose(
            design.matrix, targets.Y, weights, samples=samples, scale=design.scale, target_weights=targets.weights
        )
        other.relative_ridge, other.ridge = self.relative_ridge, self.ridge
        return other

    @property
    def lipschitz_lower(self) -> float:
        """``max_i min(1, w_i) ||x_i||^2 + mu``: the largest squared sample norm, a lower bound of the Lipschitz constant."""
        return self.design.max_sample_energy + self.ridge

    @cached_property
    def lipschitz(self) -> float:
        """Lipschitz constant of the gradient (to 1 % if X is too large for an exact eigenvalue)."""
        return min(largest_eigenvalue(self.design) + self.ridge, self.lipschitz_upper)

    @property
    def lipschitz_upper(self) -> float:
        """``||X~||_F^2 + mu``, an upper bound of the Lipschitz constant without computation."""
        return float(self.design.column_energy.sum()) + self.ridge

    def products_among(self, rows: Array, vectors: Array) -> tuple[Array, Array]:
        """Return ``vectors' X~`` and ``X~' X~`` of a few features; the vectors are columns over the samples."""
        columns = self.design.columns(rows)
        return vectors.T @ columns.T, columns @ columns.T

    def normal_equations(self, rows: Array) -> tuple[Array, Array]:
        """Return ``Y~' X~`` and ``X~' X~`` of a few features."""
        return self.products_among(rows, self.targets.T)

    def factor(self, rows: Array, *, with_ridge: bool = True) -> tuple[Array, Array]:
        """Return a triangle R and right-hand sides B for least squares on ``rows[:k]`` for every k.

        ``min_W ||X~_k W - Y~||^2 + mu ||W||^2`` has the solution of ``R[:, :k] W = B``.
        """
        return self._factor(rows, self.ridge if with_ridge else 0.0)

    def _factor(self, rows: Array, ridge: float) -> tuple[Array, Array]:
        n_rows = len(rows)
        triangle = np.sqrt(ridge) * np.eye(n_rows if ridge else 0, n_rows + self.n_targets)
        for samples, columns in self.design.sample_blocks(rows):
            block = np.hstack([columns, self.targets[:, samples].T])
            triangle = np.linalg.qr(np.vstack([triangle, block]), mode="r")
        return triangle[:n_rows, :n_rows], triangle[:n_rows, n_rows:]

    def condensed(self, rows: Array) -> tuple[Array, Array]:
        """Return lines and targets of a small problem with the same loss of all supports within ``rows``, up to a constant.

        They are the columns themselves, (n_rows, n_samples), or the triangle of their QR factorisation where that is
        shorter; the targets, (n_targets, n_samples) or (n_targets, n_rows), are ``targets`` itself in the first case.
        """
        if self.design.n_samples > len(rows) + self.n_targets:
            triangle, sides = self._factor(rows, 0.0)
            return triangle.T, sides.T
        return self.design.columns(rows), self.targets

    def dependent(self, rows: Array) -> Array:
        """Return those of ``rows`` that are constant or linear combinations of the ones before them."""
        corners = np.zeros(len(rows))
        diagonal = np.diagonal(self._factor(rows, 0.0)[0])
        corners[: len(diagonal)] = diagonal
        return rows[corners * corners <= self.design.place.fetch(self.design.least_energy)[rows]]


class Targets:
    """Centred and weighted targets of one problem, ``values`` (n_targets, n_samples)."""

    def __init__(self, Y: Array, weights: SampleWeights, target_weights: Array | None) -> None:
        self.Y, self.weights = Y, target_weights
        self.scale = np.ones(Y.shape[1]) if target_weights is None else np.sqrt(target_weights)
        counted = Y if weights.values is None else Y[weights.values > 0.0]
        self.differ = bool(np.any(counted != counted[:1]))
        with np.errstate(over="ignore", invalid="ignore"):  # raised as an error by the problem
            self.mean = weights.centre(np.asarray(Y, dtype=np.float64))
            centred = Y - self.mean
            centred = centred - weights.centre(centred)  # once more, for what rounding has left
            centred = weights.times_root((centred * self.scale).T)
            self.values = np.ascontiguousarray(centred, dtype=np.float64)
            self.norm = float(np.sqrt(np.vdot(self.values, self.values)))
        self.is_explained = np.zeros(len(self.values), dtype=bool)
        if weights.basis is not None:
            self.values = self._adjusted(weights)

    def _adjusted(self, weights: SampleWeights) -> Array:
        """Return targets less what nuisances explain; one that they explain altogether becomes zero."""
        targets = left = self.values
        for _ in range(2):  # once more, for what rounding has left
            left = weights.adjusted(left)
        is_left = np.linalg.norm(left, axis=1) > EXPLAINED_SHARE * np.linalg.norm(targets, axis=1)
        self.is_explained = ~is_left & targets.any(axis=1)
        if targets.any() and not is_left.any():
            raise ValueError(
                "adjust_for explains y altogether, so no feature can explain more: every batch holds one class, or y is a "
                "combination of its columns. Leave out the column that tells y, or give every batch several classes."
            )
        return left * is_left[:, None]


def pose(
    matrix: Matrix,
    Y: Array,
    weights: SampleWeights,
    *,
    samples: Array | None = None,
    scale: Scale | Array = "none",
    ridge: float | Callable[[Design], float] = 0.0,
    target_weights: Array | None = None,
) -> Walk[Problem]:
    """Pose the problem of one row of sample weights: a pass over X.

    ``scale="auto"`` also looks at the targets: moderated deviations rest on the assumption that features which hardly vary
    are mostly noise, and where the targets contradict it (:mod:`l20fs.objective.scale_choice`) ``"zscore"`` takes their
    place.

    Parameters
    ----------
    matrix : Matrix
    Y : array of shape (n_samples, n_targets)
    weights : SampleWeights
    samples : array of int, optional
        Samples of the problem among all of the container, to which Y and the weights belong; None: all.
    scale : {"auto", "moderated", "zscore", "none"} or array of shape (n_features,)
    ridge : float or callable
        Strength of the ridge term in units of the mean squared norm of a feature that varies, so that its effect does not
        depend on the units of X or on constant features; or a function that returns it for the design.
    target_weights : array of shape (n_targets,), optional
        Weight of the squared error of each target.
    """
    targets = Targets(Y, weights, target_weights)
    measured, raw = yield from measure(matrix, weights, samples, targets.values)
    design = Design(measured, scale)
    refuse_nothing_to_select(design)
    place = matrix.place
    products = raw * design.factor
    if isinstance(scale, str) and scale == "auto" and design.scale_rule == "moderated":
        with np.errstate(over="ignore", invalid="ignore"):  # raised as an error by the problem
            is_contrary = tell_less(design, place.xp.sum(products * products, axis=0))
        if is_contrary:
            design = Design(measured, "zscore")
            products = raw * design.factor
    refuse_vanishing_values(design)
    return Problem(design, targets, products, ridge)


def problem_on(
    X: Any,
    Y: Array,
    *,
    scale: Scale | Array = "none",
    sample_weight: Any = None,
    fit_intercept: bool = True,
    nuisances: Array | None = None,
    **options: Any,
) -> Walk[Problem]:
    """Pose the problem on an X of any kind, or on some samples of a shared one; the options are those of :func:`pose`."""
    scale = checked_scale(scale, X.shape[1])
    matrix, weights, samples = weigh(X, sample_weight, fit_intercept=fit_intercept, nuisances=nuisances)
    return (yield from pose(matrix, Y, weights, samples=samples, scale=scale, **options))


def make_problem(X: Any, Y: Array, **options: Any) -> Problem:
    """Return the problem on an X of any kind; the options are those of :func:`problem_on`.

    Examples
    --------
    >>> round(make_problem(np.eye(3), np.eye(3)).null_loss, 6)
    1.0
    """
    return finish(problem_on(X, Y, **options))
