"""Objective: data term, gradients, row penalty, proximal maps and the path of solutions."""

from __future__ import annotations

from typing import Any

from l20fs.design import Scale, make_design
from l20fs.objective.gram_least_squares import GramLeastSquares
from l20fs.objective.least_squares import LeastSquares
from l20fs.typing import Array

__all__ = ["LeastSquares", "make_problem"]


def make_problem(
    X: Any,
    Y: Array,
    *,
    scale: Scale | Array = "none",
    sample_weight: Any = None,
    fit_intercept: bool = True,
    **options: Any,
) -> LeastSquares:
    """Return the least-squares problem on an array, a sparse matrix or a matrix in blocks.

    The arguments are those of :class:`LeastSquares`.

    Examples
    --------
    >>> import numpy as np
    >>> from l20fs.blocks import as_blocks
    >>> problem = make_problem(as_blocks(np.eye(3)), np.eye(3))
    >>> type(problem).__name__, round(problem.null_loss, 6)
    ('GramLeastSquares', 1.0)
    """
    design = make_design(X, scale, sample_weight, fit_intercept=fit_intercept)
    kind = GramLeastSquares if design.vectors == "features" else LeastSquares
    return kind(X, Y, design=design, **options)
