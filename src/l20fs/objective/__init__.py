"""Objective: data term, gradients, row penalty, proximal maps and the path of solutions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from l20fs.design import Design, Scale, make_design
from l20fs.inputs.devices import as_numpy
from l20fs.objective.gram_least_squares import GramLeastSquares
from l20fs.objective.least_squares import LeastSquares
from l20fs.typing import Array

__all__ = ["LeastSquares", "make_problem"]

#: ``scale="auto"`` takes no moderated deviations if the features that vary more explain clearly less of the targets: if the
#: correlation of log deviation and explained share is below minus this, and below minus two standard errors.
#: docs/defaults.md has the measurements.
CONTRARY_CORRELATION = 0.1


def make_problem(
    X: Any,
    Y: Array,
    *,
    scale: Scale | Array = "none",
    sample_weight: Any = None,
    fit_intercept: bool = True,
    nuisances: Array | None = None,
    **options: Any,
) -> LeastSquares:
    """Return the least-squares problem on an array, a sparse matrix or a matrix in blocks.

    The arguments are those of :class:`LeastSquares`. ``scale="auto"`` also looks at the targets: moderated deviations rest
    on the assumption that features which hardly vary are mostly noise, and where the targets contradict it
    (:data:`CONTRARY_CORRELATION`) ``"zscore"`` takes their place. This costs one product with X.

    Examples
    --------
    >>> import numpy as np
    >>> from l20fs.blocks import as_blocks
    >>> problem = make_problem(as_blocks(np.eye(3)), np.eye(3))
    >>> type(problem).__name__, round(problem.null_loss, 6)
    ('GramLeastSquares', 1.0)
    """
    units: dict[str, Any] = {"sample_weight": sample_weight, "fit_intercept": fit_intercept, "nuisances": nuisances}
    design = make_design(X, scale, **units)
    kind = GramLeastSquares if design.vectors == "features" else LeastSquares
    problem = kind(X, Y, design=design, **options)
    if isinstance(scale, str) and scale == "auto" and design.scale_rule == "moderated":
        if not _tell_less(design, problem.squared_target_products()):
            return problem
        return make_problem(X, Y, scale="zscore", **units, **options)
    return problem


def _tell_less(design: Design, explained: Callable[[], Any]) -> bool:
    """Return whether features that vary more explain clearly less, by the squared products of features and targets.

    ``explained`` returns these products, where the columns of the design are; from a device come six numbers.
    """
    columns = design.columns
    xp, scale, energy = columns.xp, columns.scale, columns.energy
    seen = energy > 0.0  # neither constant nor so small beside the others that its square underflows
    nothing, ones = xp.zeros_like(energy), xp.ones_like(energy)
    energy, n_seen = xp.where(seen, energy, ones), xp.sum(xp.where(seen, ones, nothing))
    share = xp.where(seen, explained() / energy, nothing)
    top = xp.max(share)
    share = share / xp.where(top > 0.0, top, xp.ones_like(top))  # the units of the targets do not matter, nor their squares
    found, spreads = [n_seen], []
    for vector in (share, xp.where(seen, xp.log(xp.sqrt(energy) * scale), nothing)):
        highest = xp.max(xp.where(seen, vector, nothing - np.inf))
        found.append(xp.sum(xp.where(seen & (vector != highest), ones, nothing)))
        spreads.append(xp.where(seen, vector - xp.sum(vector) / n_seen, nothing))
    share, log_deviation = spreads
    found += [xp.sum(share * log_deviation), xp.sum(share * share), xp.sum(log_deviation * log_deviation)]
    n_seen, n_shares, n_deviations, product, *squares = as_numpy(xp.stack(found)).tolist()
    if not n_shares or not n_deviations:  # they are all the same
        return False
    return bool(product / math.sqrt(squares[0] * squares[1]) < -max(CONTRARY_CORRELATION, 2.0 / math.sqrt(n_seen)))
