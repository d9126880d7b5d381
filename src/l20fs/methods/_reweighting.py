"""Iteratively reweighted least squares with optional momentum, shared by RFS and RLSR."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from l20fs.inputs.devices import namespace_of
from l20fs.objective.prox import squared_row_norms


class Point(NamedTuple):
    """Iterate of a reweighting method.

    ``weights`` has shape (n_features, n_targets), ``intercept`` (n_targets,) and ``targets``, the regression targets,
    (n_samples, n_targets). ``norms`` are the smoothed norms that weight the terms of the next iteration. ``objective`` must
    not rise. All arrays are where X is.
    """

    weights: Any
    intercept: Any
    norms: Any
    objective: float
    targets: Any


def descend(
    point: Point, step: Callable[[Any, Point], Point], *, floor: Any, accelerate: bool
) -> Iterator[tuple[Point, float, float]]:
    """Yield the points of ``step(norms, point)`` with their objectives and relative decreases, until these are rounding.

    Reweighting converges slowly once most rows are small: such a row shrinks by a factor near 1 per step. Nesterov's
    momentum on the logarithms of the norms raises that factor to a power. A step from ``point.norms`` never raises the
    objective, so it replaces an extrapolated step that does.
    """
    xp = namespace_of(point.norms)
    previous, inertia, change = point, 1.0, math.inf
    while True:
        yield point, point.objective, change
        following = (1.0 + math.sqrt(1.0 + 4.0 * inertia * inertia)) / 2.0
        momentum = (inertia - 1.0) / following if accelerate else 0.0
        ahead = xp.maximum(point.norms * (point.norms / previous.norms) ** momentum, floor)
        trial = step(ahead if momentum else point.norms, point)
        if momentum and trial.objective > point.objective:
            trial, following = step(point.norms, point), 1.0
        if trial.objective > point.objective:
            return
        previous, point, inertia = point, trial, following
        change = (previous.objective - point.objective) / point.objective


def epsilon_for(V: Any, share: float) -> float:
    """Return the smoothing of row norms: a fraction of the mean row norm, so that units do not matter.

    Examples
    --------
    >>> import numpy as np
    >>> epsilon_for(np.array([[3.0, 4.0], [0.0, 15.0]]), 1e-8)
    1e-07
    """
    xp = namespace_of(V)
    # The lower bound matters for V = 0 only; its square does not underflow.
    return max(share * float(xp.mean(xp.sqrt(squared_row_norms(V)))), 1e-150)
