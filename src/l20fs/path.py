"""The result of a fit: every lambda with its rows, and the order of all features that follows from it."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, BinaryIO, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from l20fs.files import write_atomically
from l20fs.problem import LeastSquares
from l20fs.prox import order_descending

Array = NDArray[Any]

#: What put a feature at its rank, best first; ``SolutionPath.rules`` holds the position in this tuple.
RULES = ("weight", "entry", "path", "gradient", "constant")

#: How the rows of the last stage are ordered: by their norm, or by how early they came to stay.
Ranking = Literal["norm", "entry"]


class Stage(NamedTuple):
    """The solution at one lambda: its non-zero rows, their norms, what it cost, and how far the last step went."""

    alpha: float
    rows: Array
    norms: Array
    loss: float
    lipschitz: float = math.nan
    n_steps: int = 1
    converged: bool = True
    squared_step: float = 0.0

    @property
    def objective(self) -> float:
        """f + lambda * (number of non-zero rows)."""
        return self.loss + self.alpha * len(self.rows)


@dataclass(frozen=True)
class Refit:
    """Least squares on exactly the selected features."""

    coef: Array
    intercept: Array
    loss: float


@dataclass(frozen=True, eq=False, repr=False)
class SolutionPath:
    """All solutions along lambda, and the order of the features for every k.

    Attributes
    ----------
    alphas : array of shape (n_stages,)
        lambda of each stage, largest first.
    n_nonzero, losses, lipschitz, n_iters, converged : arrays of shape (n_stages,)
        Number of non-zero rows; f (half the squared error, plus the ridge term); the step parameter L, of solvers that
        have one; accepted steps; and whether the stage ended by itself rather than at its step limit.
    order : array of shape (n_features,)
        Feature indices, best first. Rule ``"weight"``: non-zero in the last stage, by row norm. ``"entry"``: non-zero in
        the last stage, the one that came to stay first, by row norm at that time if several came together.
        ``"path"``: non-zero in an earlier stage, the one that stayed longest first. ``"gradient"``: never non-zero, by the
        distance to entry. ``"constant"``: last. Ties go to the lower index.
    rules : array of shape (n_features,)
        Position in :data:`RULES` of the rule that ranks each feature.
    scores : array of shape (n_features,)
        Falls along ``order``: the row norm for rule ``"weight"``, above 0 and at most 1 for ``"entry"``, between -1 and 0
        for ``"path"``, between -2 and -1 for ``"gradient"``, ``-inf`` for a constant feature. Norms are in the units in
        which the rows competed, after ``scale``.
    """

    alphas: Array
    losses: Array
    lipschitz: Array
    n_iters: Array
    converged: Array
    indptr: Array
    indices: Array
    norms: Array
    rules: Array
    scores: Array
    coef_rows: Array
    coef_values: Array
    x_mean: Array
    x_scale: Array
    y_mean: Array
    y_scale: Array
    panel_triangle: Array
    panel_targets: Array
    null_loss: Array
    tie: Array
    lower_bounds: Array

    @classmethod
    def from_stages(cls, problem: LeastSquares, stages: Sequence[Stage], values: Array, closeness: Array) -> SolutionPath:
        """Assemble a path, ranked by norm.

        Parameters
        ----------
        problem : LeastSquares
        stages : sequence of Stage
        values : array of shape (n_targets, n_rows)
            Weights of the rows of the last stage.
        closeness : array of shape (n_features,)
            What ranks the rows that were never non-zero, not negative: how close they are to entry.
        """
        n_nonzero = np.array([len(stage.rows) for stage in stages])
        indices = np.concatenate([stage.rows for stage in stages])
        norms = np.concatenate([stage.norms for stage in stages])
        rules, scores = _score(n_nonzero, indices, norms, closeness.astype(np.float64), problem.design.varies)
        return cls(
            alphas=np.array([stage.alpha for stage in stages]),
            losses=np.array([stage.loss for stage in stages]),
            lipschitz=np.array([stage.lipschitz for stage in stages]),
            n_iters=np.array([stage.n_steps for stage in stages]),
            converged=np.array([stage.converged for stage in stages]),
            indptr=np.concatenate([[0], np.cumsum(n_nonzero)]),
            indices=indices,
            norms=norms,
            rules=rules,
            scores=scores,
            coef_rows=stages[-1].rows,
            coef_values=values,
            x_mean=problem.design.mean,
            x_scale=problem.design.scale,
            y_mean=problem.y_mean,
            y_scale=problem.y_scale,
            panel_triangle=np.empty((0, 0)),
            panel_targets=np.empty((0, problem.n_targets)),
            null_loss=np.array(problem.null_loss),
            tie=np.array(problem.tie),
            lower_bounds=np.empty(0),
        )

    def __repr__(self) -> str:
        return (
            f"SolutionPath({len(self.alphas)} lambdas from {self.alphas[0]:.4g} to {self.alphas[-1]:.4g}, "
            f"{self.n_nonzero[-1]} of {self.n_features} rows non-zero at the end)"
        )

    @cached_property
    def order(self) -> Array:
        """Feature indices, best first."""
        return order_descending(self.scores, rtol=float(self.tie))

    @property
    def n_features(self) -> int:
        return len(self.scores)

    @property
    def is_nonzero(self) -> Array:
        """Mask of the rows that are non-zero in the last stage."""
        mask = np.zeros(self.n_features, dtype=bool)
        mask[self.coef_rows] = True
        return mask

    @property
    def n_nonzero(self) -> Array:
        return np.diff(self.indptr)

    @property
    def objectives(self) -> Array:
        """f + lambda * (number of non-zero rows), per stage."""
        return self.losses + self.alphas * self.n_nonzero

    def stage_rows(self, stage: int) -> Array:
        """Return the non-zero rows of a stage, ascending."""
        return self.indices[self._span(stage)]

    def stage_norms(self, stage: int) -> Array:
        """Return the row norms that belong to :meth:`stage_rows`."""
        return self.norms[self._span(stage)]

    def _span(self, stage: int) -> slice:
        stage = range(len(self.alphas))[stage]
        return slice(self.indptr[stage], self.indptr[stage + 1])

    @property
    def entry_alphas(self) -> Array:
        """The largest lambda at which each feature was non-zero; NaN if it never was."""
        entry = np.full(self.n_features, np.nan)
        stage_of = np.repeat(np.arange(len(self.alphas)), self.n_nonzero)
        entry[self.indices[::-1]] = self.alphas[stage_of[::-1]]  # the first stage is written last and stays
        return entry

    def ranked_by(self, ranking: Ranking) -> SolutionPath:
        """Return this path with the rows of its last stage ranked by their norm there, or by how early they came to stay."""
        if not len(self.coef_rows):
            return self
        rules, scores = self.rules.copy(), self.scores.copy()
        rules[self.coef_rows] = RULES.index("weight" if ranking == "norm" else "entry")
        scores[self.coef_rows] = self.stage_norms(-1) if ranking == "norm" else self._entry_scores()
        return replace(self, rules=rules, scores=scores)

    def _entry_scores(self) -> Array:
        """Score the rows of the last stage by the first stage of their last stay; the norm there decides among equals."""
        stage_of = np.repeat(np.arange(len(self.alphas)), self.n_nonzero)
        largest = np.zeros(len(self.alphas))
        np.maximum.at(largest, stage_of, self.norms)
        chosen = np.flatnonzero(self.is_nonzero[self.indices])
        chosen = chosen[np.lexsort((stage_of[chosen], self.indices[chosen]))]  # row by row, along the stages
        rows, stages = self.indices[chosen], stage_of[chosen]
        is_other = rows[1:] != rows[:-1]
        begins = np.concatenate([[True], is_other | (stages[1:] != stages[:-1] + 1)]).nonzero()[0]
        entry = begins[np.concatenate([rows[begins[1:]] != rows[begins[:-1]], [True]])]  # the last stay of each row
        share = self.norms[chosen[entry]] / (largest[stages[entry]] * (1.0 + 1e-9))
        return (len(self.alphas) - 1 - stages[entry] + share) / len(self.alphas)

    def size_at(self, alpha: float) -> int:
        """Return the number of rows that minimises f + alpha * (number of rows) over the stages; the smaller on a tie."""
        n_rows = self.n_nonzero
        values = self.losses + alpha * n_rows
        return int(n_rows[values <= values.min() * (1.0 + 1e-12)].min())

    def rows_at(self, k: int) -> Array:
        """Return the rows of the best stage with exactly ``k`` rows, ascending.

        For solvers that exchange rows these need not be the best k of the ranking.
        """
        stages = np.flatnonzero(self.n_nonzero == k)
        if not len(stages):
            raise ValueError(
                f"No stage of the path has exactly k={k} rows; the sizes are {np.unique(self.n_nonzero).tolist()}."
            )
        return self.stage_rows(int(stages[self.losses[stages].argmin()]))

    def support(self, k: int) -> Array:
        """Return the indices of the best ``k`` features, best first."""
        return self.order[: self._check_k(k)]

    def coef(self, k: int) -> Array:
        """Return the weights of the last stage on the best ``k`` features, (n_targets, n_features), in units of X.

        This is the paper's truncation: the other rows are dropped and nothing is fitted again. A feature that is not
        in the last stage has weight 0; see :meth:`refit`.
        """
        mask = np.zeros(self.n_features, dtype=bool)
        mask[self.support(k)] = True
        return self.coef_of(mask)

    def coef_of(self, mask: Array) -> Array:
        """Return the weights of the last stage on the features of ``mask``, as :meth:`coef` does."""
        chosen = mask[self.coef_rows]
        rows = self.coef_rows[chosen]
        coef = np.zeros((len(self.y_mean), self.n_features))
        coef[:, rows] = self.coef_values[:, chosen] / self.y_scale[:, None] / self.x_scale[rows]
        return coef

    def intercept(self, k: int) -> Array:
        """Return the intercept that belongs to :meth:`coef`."""
        return self.y_mean - self.coef(k) @ self.x_mean

    def with_panel(self, problem: LeastSquares, n_rows: int) -> SolutionPath:
        """Return this path with what :meth:`refit` needs for every k up to ``n_rows``."""
        triangle, targets = problem.panel_factor(self.support(n_rows))
        return replace(self, panel_triangle=triangle, panel_targets=targets)

    def refit(self, k: int) -> Refit:
        """Solve least squares (with the ridge term, if any) on exactly the best ``k`` features."""
        rows = self.support(k)
        if k > self.panel_triangle.shape[1]:
            raise ValueError(
                f"refit(k={k}): the path holds what a refit needs up to k={self.panel_triangle.shape[1]}. "
                f"Fit with max_features={k}."
            )
        triangle = self.panel_triangle[:, :k]
        values = np.linalg.lstsq(triangle, self.panel_targets, rcond=None)[0]
        explained = triangle @ values
        loss = self.null_loss - np.vdot(explained, self.panel_targets - 0.5 * explained)
        coef = np.zeros((len(self.y_mean), self.n_features))
        coef[:, rows] = values.T / self.y_scale[:, None] / self.x_scale[rows]
        return Refit(coef, self.y_mean - coef @ self.x_mean, float(loss))

    def with_bounds(self, lower_bounds: Array) -> SolutionPath:
        """Return this path with lower bounds on f for 0, 1, ... rows, made by :func:`l20fs.certificate.lower_bounds`."""
        return replace(self, lower_bounds=lower_bounds)

    def gap(self, k: int) -> float:
        """Return by what share of its f at most the best k features of the ranking miss the best k of all.

        0.01 means: no k features whatsoever have an f that is lower by more than 1 %. Needs a fit with ``certify=True``.
        """
        if self._check_k(k) >= len(self.lower_bounds):
            raise ValueError(
                f"gap(k={k}): the path has lower bounds up to k={len(self.lower_bounds) - 1}. Fit with certify=True"
                f" and max_features={k}."
                if len(self.lower_bounds)
                else f"gap(k={k}): the path has no lower bounds. Fit with certify=True."
            )
        loss = self.refit(k).loss
        return max(0.0, 1.0 - float(self.lower_bounds[k]) / loss) if loss > 0.0 else 0.0

    def _check_k(self, k: int) -> int:
        if not 1 <= k <= self.n_features:
            raise ValueError(f"k={k} is outside 1 to {self.n_features}, the number of features.")
        return int(k)

    def save(self, file: str | os.PathLike[str]) -> None:
        """Write the path as a compressed npz file, whole or not at all."""
        write_atomically(file, self.write)

    def write(self, stream: BinaryIO) -> None:
        """Write what :meth:`save` writes to an open file."""
        np.savez_compressed(stream, **{f.name: getattr(self, f.name) for f in fields(self)})

    @classmethod
    def load(cls, file: str | os.PathLike[str]) -> SolutionPath:
        """Read a path written by :meth:`save`; nothing in the file is unpickled."""
        with open(file, "rb") as stream:
            try:
                with np.load(stream, allow_pickle=False) as stored:
                    return cls(**{f.name: stored[f.name] for f in fields(cls)})
            except Exception as error:  # a damaged archive fails in a dozen ways, in zipfile, zlib, struct and numpy
                raise ValueError(f"{os.fspath(file)!r} is not a path file written by SolutionPath.save: {error}") from error


def _score(n_nonzero: Array, indices: Array, norms: Array, closeness: Array, varies: Array) -> tuple[Array, Array]:
    """Give every feature its rule and a score that falls along the ranking."""
    rules = np.where(varies, RULES.index("gradient"), RULES.index("constant")).astype(np.int8)
    scores = np.where(varies, closeness / (closeness.max() or 1.0) - 2.0, -np.inf)
    # Written stage by stage, so that what remains of a row is the last stage in which it was alive.
    n_stages, n_last = len(n_nonzero), int(n_nonzero[-1])
    stage_of = np.repeat(np.arange(n_stages), n_nonzero)
    rules[indices] = RULES.index("path")
    scores[indices] = (stage_of + norms / (norms.max(initial=0.0) * (1.0 + 1e-9) or 1.0)) / n_stages - 1.0
    last = indices[len(indices) - n_last :]
    rules[last] = RULES.index("weight")
    scores[last] = norms[len(norms) - n_last :]
    return rules, scores
