"""Data term: least squares with an unpenalised intercept, if there is one, and an optional ridge term."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from l20fs.design import (
    Design,
    Likely,
    Scale,
    equality_tolerance,
    make_design,
    refuse_extreme_targets,
    smallest_rooms,
)
from l20fs.design.meeting import computed_once
from l20fs.objective.gradients import BlockGradient, DeviceGradient, Gradient, HostGradient
from l20fs.objective.prox import squared_row_norms
from l20fs.typing import Array

#: Targets of which nuisances leave a smaller share of the norm are explained altogether.
EXPLAINED_SHARE = 1e-9


class LeastSquares:
    r"""Least squares with an unpenalised intercept and an optional ridge term.

    .. math:: f(W) = \tfrac12 \|\tilde X W - \tilde Y\|_F^2 + \tfrac\mu2 \|W\|_F^2

    ``X~`` and ``Y~`` are centred, which is equivalent to fitting an intercept (equations 5 to 7 of the paper). With sample
    weights they are centred by the weighted means and each sample is multiplied by the square root of its weight, so that a
    sample of weight 2 is equivalent to the sample twice. Without an intercept nothing is centred.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
    Y : array of shape (n_samples, n_targets)
    ridge : float or callable
        Strength of the ridge term in units of the mean squared norm of a (centred) feature that varies,
        ``mu = ridge * mean_j ||x_j||^2``, so that its effect does not depend on the units of X or on constant features; or a
        function that returns it for the design.
    scale : {"auto", "moderated", "zscore", "none"} or array of shape (n_features,)
        Rule for the divisor of each feature, or the divisors, see :func:`~l20fs.design.make_design`.
    target_weights : array of shape (n_targets,), optional
        Weight of the squared error of each target; the columns of Y are multiplied by its square root.
    sample_weight : array of shape (n_samples,), optional
        Weights of the samples; a weight of 0 leaves a sample out.
    fit_intercept : bool
        Whether X and Y are centred.
    nuisances : array of shape (n_samples, n_nuisances), optional
        Columns that are projected out of X~ and Y~, which is equivalent to fitting their effects without a penalty.

    Examples
    --------
    >>> problem = LeastSquares(np.eye(3), np.eye(3))
    >>> round(problem.null_loss, 6)
    1.0
    """

    def __init__(
        self,
        X: Any,
        Y: Array,
        *,
        ridge: float | Callable[[Design], float] = 0.0,
        scale: Scale | Array = "none",
        target_weights: Array | None = None,
        sample_weight: Any = None,
        fit_intercept: bool = True,
        nuisances: Array | None = None,
        design: Design | None = None,
    ) -> None:
        self._X, self._Y, self._target_weights = X, Y, target_weights
        if design is None:
            design = make_design(X, scale, sample_weight, fit_intercept=fit_intercept, nuisances=nuisances)
        self.design = design
        weights = design.sample_weights
        self.y_scale = np.ones(Y.shape[1]) if target_weights is None else np.sqrt(target_weights)
        with np.errstate(over="ignore", invalid="ignore"):  # raised as an error below
            self.y_mean = weights.centre(np.asarray(Y, dtype=np.float64))
            self.targets = np.ascontiguousarray(weights.times_root(((Y - self.y_mean) * self.y_scale).T), dtype=np.float64)
            #: Norm of the centred targets, before nuisances are projected out of them.
            self.targets_norm = float(np.sqrt(np.vdot(self.targets, self.targets)))
            #: Mask of the targets that nuisances explain altogether.
            self.is_explained = np.zeros(len(self.targets), dtype=bool)
            if weights.basis is not None:
                self.targets = self._adjusted(self.targets)
            self.null_loss = 0.5 * float(np.vdot(self.targets, self.targets))
        if np.any(Y != Y[:1]):  # constant targets have no deviation that could be too small
            refuse_extreme_targets(self.targets, 2.0 * self.null_loss, self.design)
        #: Strength of the ridge term in units of the mean squared norm of a feature, and mu.
        self.relative_ridge = float(ridge(self.design) if callable(ridge) else ridge)
        self.ridge = self.relative_ridge * self.design.summary.mean_energy

    def _adjusted(self, targets: Array) -> Array:
        """Project nuisances out of centred targets; a target that they explain altogether becomes zero."""
        weights, left = self.design.sample_weights, targets
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

    def reweighted(self, sample_weight: Any) -> LeastSquares:
        """Return the problem on the same X and Y with the same units and mu, under other sample weights.

        X and Y are kept by reference and read again: their values must not change in between.

        Examples
        --------
        >>> problem = LeastSquares(np.eye(3), np.eye(3))
        >>> problem.reweighted([1.0, 1.0, 0.0]).y_mean.tolist()
        [0.5, 0.5, 0.0]
        """
        other = LeastSquares(
            self._X,
            self._Y,
            scale=self.design.scale,
            target_weights=self._target_weights,
            sample_weight=sample_weight,
            fit_intercept=self.design.sample_weights.fit_intercept,
            nuisances=self.design.sample_weights.nuisances,
        )
        other.relative_ridge, other.ridge = self.relative_ridge, self.ridge
        return other

    @property
    def n_features(self) -> int:
        return self.design.n_features

    @property
    def n_targets(self) -> int:
        return len(self.targets)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype of X, used in passes over it; sums and weights are float64."""
        return self.design.dtype

    @property
    def tie(self) -> float:
        """Relative tolerance of ties: the rounding error of products with two equal columns."""
        return equality_tolerance(self.dtype)

    def residual(self, rows: Array, values: Array) -> Array:
        """Return ``X~ W - Y~`` for the weights ``values`` of the features ``rows``, (n_targets, n_samples)."""
        return self.image(rows, values) - self.targets if len(rows) else -self.targets

    def image(self, rows: Array, values: Array, likely: Likely | None = None) -> Array:
        """Return ``X~ W`` for the weights ``values`` of the features ``rows``; reads these columns only."""
        return self.design.push(rows, values, likely=likely).astype(np.float64, copy=False)

    def value(self, residual: Array, values: Array) -> float:
        """Return f from a residual and its non-zero weights."""
        loss = 0.5 * float(np.vdot(residual, residual))
        return loss + 0.5 * self.ridge * float(np.vdot(values, values)) if self.ridge else loss

    def curvature(self, image: Array, values: Array) -> float:
        """Return ``||X~ D||^2 + mu ||D||^2`` for a step D with weights ``values`` and predictions ``image``."""
        bend = float(np.vdot(image, image))
        return bend + self.ridge * float(np.vdot(values, values)) if self.ridge else bend

    @computed_once
    def target_products(self) -> Any:
        """``Y~' X~``, (n_targets, n_features), in the precision of X and where X is; takes one pass over X, once.

        It is not to be changed.
        """
        design = self.design
        return design.products(design.place.send(self.targets) if design.location == "device" else self.targets)

    def squared_target_products(self) -> Callable[[], Any]:
        """Return a function for the squared norm of the products of each feature with the targets.

        A device computes them before they are asked for, while the host goes on, and keeps them.
        """
        if self.design.location == "blocks":
            return lambda: self.design.squared_lengths(self.targets)
        if self.design.location == "memory":
            return lambda: squared_row_norms(self.target_products.T)
        products = self.target_products
        squares = self.design.place.xp.sum(products * products, axis=0)
        return lambda: squares

    def gradient(self, residual: Array, rows: Array, values: Array) -> Gradient:
        """Return the gradient of f at the weights ``values`` of the features ``rows``; takes one pass over X."""
        design, ridge_term = self.design, self._ridge_term(values)
        if design.location == "device":
            products = design.products(design.place.send(residual)) if len(rows) else -self.target_products
            return DeviceGradient(design.place, products, rows, ridge_term)
        if design.location == "blocks":
            return BlockGradient(design, residual, rows, ridge_term)
        products = design.pull(residual)
        if self.ridge:
            products[:, rows] += ridge_term
        return HostGradient(products)

    def partial_gradient(self, residual: Array, rows: Array, values: Array | None = None) -> HostGradient:
        """Return the gradient of the features ``rows`` alone, which have the weights ``values`` or zero."""
        products = self.design.pull(residual, rows)
        if self.ridge and values is not None:
            products += self._ridge_term(values)
        return HostGradient(products)

    def _ridge_term(self, values: Array) -> Array:
        return (self.ridge * values).astype(self.dtype, copy=False)

    @property
    def lipschitz_lower(self) -> float:
        """``max_i min(1, w_i) ||x_i||^2 + mu``: the largest squared sample norm, a lower bound of the Lipschitz constant."""
        return self.design.max_sample_energy + self.ridge

    @computed_once
    def lipschitz(self) -> float:
        """Lipschitz constant of the gradient (to 1 % if X is too large for an exact eigenvalue)."""
        return min(self.design.gram_top() + self.ridge, self.lipschitz_upper)

    @property
    def lipschitz_upper(self) -> float:
        """``||X~||_F^2 + mu``, an upper bound of the Lipschitz constant without computation."""
        return float(self.design.column_energy.sum()) + self.ridge

    def products_among(self, rows: Array, vectors: Array) -> tuple[Array, Array]:
        """Return ``vectors' X~`` and ``X~' X~`` of a few features; the vectors are columns over the samples."""
        products, gram = np.zeros((vectors.shape[1], len(rows))), np.zeros((len(rows), len(rows)))
        for samples, columns in self.design.sample_blocks(rows):
            products += vectors[samples].T @ columns
            gram += columns.T @ columns
        return products, gram

    def normal_equations(self, rows: Array) -> tuple[Array, Array]:
        """Return ``Y~' X~`` and ``X~' X~`` of a few features."""
        return self.products_among(rows, self.targets.T)

    def factor(self, rows: Array) -> tuple[Array, Array]:
        """Return a triangle R and right-hand sides B for least squares on ``rows[:k]`` for every k.

        ``min_W ||X~_k W - Y~||^2 + mu ||W||^2`` has the solution of ``R[:, :k] W = B``.
        """
        return self._factor(rows, self.ridge)

    def condensed(self, rows: Array) -> tuple[Array, Array]:
        """Return lines and targets of a small problem with the same loss of all supports within ``rows``, up to a constant.

        They are the columns themselves, (n_rows, n_samples), or the triangle of their QR factorisation where that is
        shorter; the targets, (n_targets, n_samples) or (n_targets, n_rows), are ``targets`` itself in the first case.

        Examples
        --------
        >>> problem = LeastSquares(np.diag([3.0, 4.0, 0.0]), np.eye(3)[:, :1], fit_intercept=False)
        >>> np.abs(problem.condensed(np.array([1]))[0])
        array([[4.]])
        """
        if self.design.vectors == "features" or self.design.n_samples > len(rows) + self.n_targets:
            triangle, sides = self._factor(rows, 0.0)
            return triangle.T, sides.T
        lines = np.empty((len(rows), self.design.n_samples))
        for samples, columns in self.design.sample_blocks(rows):
            lines[:, samples] = columns.T
        return lines, self.targets

    def dependent(self, rows: Array) -> Array:
        """Return those of ``rows`` that are constant or linear combinations of the ones before them.

        Examples
        --------
        >>> LeastSquares(np.array([[1, 2, 0], [2, 4, 1], [3, 6, 0.0]]), np.eye(3)).dependent(np.arange(3))
        array([1])
        """
        corners = np.zeros(len(rows))
        diagonal = np.diagonal(self._factor(rows, 0.0)[0])
        corners[: len(diagonal)] = diagonal
        return rows[corners * corners <= smallest_rooms(self.design)[rows]]

    def _factor(self, rows: Array, ridge: float) -> tuple[Array, Array]:
        n_rows = len(rows)
        whole = self.design.triangle(rows, self.targets, ridge)
        return whole[:n_rows, :n_rows], whole[:n_rows, n_rows:]
