"""Objective: data term, gradients, row penalty, proximal maps and the path of solutions."""

from __future__ import annotations

from typing import Any

import numpy as np

from l20fs.design import Design, Scale, make_design
from l20fs.objective.gram_least_squares import GramLeastSquares
from l20fs.objective.least_squares import LeastSquares
from l20fs.objective.prox import squared_row_norms
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
        if design.location == "memory":
            problem.target_products = design.pull(problem.targets)  # kept for the solver
            explained = squared_row_norms(problem.target_products.T)
        else:
            explained = design.squared_lengths(problem.targets)
        if not _tell_less(design, explained):
            return problem
        return make_problem(X, Y, scale="zscore", **units, **options)
    return problem


def _tell_less(design: Design, explained: Array) -> bool:
    """Return whether features that vary more explain clearly less, by the squared products of features and targets."""
    seen = design.column_energy > 0.0  # neither constant nor so small beside the others that its square underflows
    energy = design.column_energy[seen]
    share = explained[seen] / energy
    share /= share.max() or 1.0  # the units of the targets do not matter, nor do their squares underflow
    log_deviation = 0.5 * np.log(energy) + np.log(design.scale[seen])
    if not (np.ptp(share) and np.ptp(log_deviation)):
        return False
    correlation = np.corrcoef(log_deviation, share)[0, 1]
    return bool(correlation < -max(CONTRARY_CORRELATION, 2.0 / np.sqrt(len(energy))))
