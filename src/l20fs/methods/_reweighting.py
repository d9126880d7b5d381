"""Reweighted least squares: the loop that methods share whose norms are majorised by weighted squares."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from l20fs.estimators.scoring import Callback, Progress
from l20fs.objective.prox import squared_row_norms
from l20fs.typing import Array


class Point(NamedTuple):
    """One iterate of a reweighting method.

    ``weights`` is (n_features, n_targets), ``intercept`` (n_targets,); ``norms`` are the smoothed norms by which the next
    iteration weights its terms, ``objective`` is the value that must not rise, and ``targets``, (n_samples, n_targets), is
    what is regressed on.
    """

    weights: Array
    intercept: Array
    norms: Array
    objective: float
    targets: Array


def descend(
    point: Point,
    step: Callable[[Array, Point], Point],
    *,
    floor: Array,
    max_iter: int,
    tol: float,
    accelerate: bool,
    callback: Callback | None = None,
) -> tuple[Point, list[float], float]:
    """Repeat ``step(norms, point)`` until the objective falls by no more than ``tol`` of itself.

    Reweighting creeps once most rows are small: such a row shrinks by a factor near 1 per step. Nesterov's momentum on the
    logarithms of the norms raises that factor to a power. A step from ``point.norms`` itself never raises the objective, so
    an extrapolation that does is replaced by it.

    Returns
    -------
    point, objective, change
        The last iterate, the objective after every iteration (``point`` counts as the first) and its last relative fall.
    """
    objective: list[float] = []
    previous, inertia, change = point, 1.0, math.inf
    while True:
        objective.append(point.objective)
        if callback is not None:
            callback(Progress(len(objective), point.objective))
        if change <= tol or len(objective) == max_iter:
            return point, objective, change
        following = (1.0 + math.sqrt(1.0 + 4.0 * inertia * inertia)) / 2.0
        momentum = (inertia - 1.0) / following if accelerate else 0.0
        ahead = np.maximum(point.norms * (point.norms / previous.norms) ** momentum, floor)
        trial = step(ahead if momentum else point.norms, point)
        if momentum and trial.objective > point.objective:
            trial, following = step(point.norms, point), 1.0
        if trial.objective > point.objective:
            return point, objective, 0.0  # nothing is left to gain but rounding
        previous, point, inertia = point, trial, following
        change = (previous.objective - point.objective) / point.objective


def epsilon_for(V: Array, share: float) -> float:
    """Return how small a row norm counts as zero: a share of the typical one, so that units do not matter.

    Examples
    --------
    >>> epsilon_for(np.array([[3.0, 4.0], [0.0, 15.0]]), 1e-8)
    1e-07
    """
    # The floor is there for V = 0 only; its square is still a normal number.
    return max(share * float(np.sqrt(squared_row_norms(V)).mean()), 1e-150)
