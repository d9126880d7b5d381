"""Strength of the ridge term: a number, or the value of ``"auto"`` for the shape of the data."""

from __future__ import annotations

from typing import Any

import numpy as np

from l20fs.design import Design, SampleWeights, finish, weigh
from l20fs.design.standardised import measure
from l20fs.inputs.targets import Targets
from l20fs.inputs.validation import check_number

#: Value of ``ridge="auto"`` with far more features than samples; benchmarks/results/defaults.md has the measurements.
RIDGE_FOR_LABELS, RIDGE_FOR_NUMBERS = 3.0, 1.0

#: Largest value of it for numbers.
MOST_FOR_NUMBERS = 0.1

#: Features per sample at which it has half that value.
HALFWAY = 10.0


def auto_ridge(n_features: int, n_samples: float, *, for_labels: bool) -> float:
    r"""Return the strength of the ridge term for ``ridge="auto"``.

    It is :math:`3 q / (q + 10)` for labels and :math:`q / (q + 10)`, at most 0.1, for numbers, with q the number of features
    per sample: weak on tall tables, where many samples separate correlated features, strong on wide ones
    (benchmarks/results/defaults.md).

    Parameters
    ----------
    n_features : int
        Number of features that vary.
    n_samples : float
        Number of samples, or the sum of their weights.
    for_labels : bool
        Whether the targets are labels or label indicators, and not numbers.

    Examples
    --------
    >>> auto_ridge(30, 300, for_labels=True), auto_ridge(5000, 50, for_labels=True), auto_ridge(30, 300, for_labels=False)
    (0.02970297029702971, 2.727272727272727, 0.009900990099009901)
    """
    per_sample = n_features / n_samples
    strength = (RIDGE_FOR_LABELS if for_labels else RIDGE_FOR_NUMBERS) * per_sample / (per_sample + HALFWAY)
    return strength if for_labels else min(strength, MOST_FOR_NUMBERS)


def ridge_on(ridge: float | str, targets: Targets, design: Design) -> float:
    """Return the strength of the ridge term on a design: the given number, or that of ``"auto"``."""
    if not isinstance(ridge, str):
        return float(ridge)
    return auto_ridge(design.n_varying, design.sample_weights.total, for_labels=targets.classes is not None)


def auto_ridge_for(X: Any, sample_weights: SampleWeights, *, for_labels: bool) -> float:
    """Return :func:`auto_ridge` for an X of any kind, without a problem.

    Examples
    --------
    >>> auto_ridge_for(np.array([[1.0, 5.0], [2.0, 5.0]]), SampleWeights(2, None), for_labels=False)
    0.047619047619047616
    """
    measured, _ = finish(measure(*weigh(X, sample_weights.values, fit_intercept=sample_weights.fit_intercept)))
    n_varying = np.count_nonzero(measured.matrix.place.fetch(measured.varies))
    return auto_ridge(int(n_varying), sample_weights.total, for_labels=for_labels)


def check_ridge(ridge: Any) -> None:
    """Raise an error for a strength of the ridge term that is neither "auto" nor a number from 0."""
    if isinstance(ridge, str) and ridge == "auto":
        return
    try:
        check_number("ridge", ridge, minimum=0.0, strict=False)
    except ValueError as error:
        raise ValueError(str(error).replace("Use a", "Use 'auto', or a")) from None
