"""Rules for the divisor of each column."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from l20fs.design.moments import centred, measure
from l20fs.inputs.devices import as_numpy, namespace_of
from l20fs.typing import Array, Scale

#: ``scale="auto"`` is ``"moderated"`` if the 95th percentile of the deviations is at most this many times the 5th: features
#: in one unit. benchmarks/results/defaults.md has the measurements.
COMPARABLE_RATIO = 50.0


def checked_scale(scale: Scale | Array, n_features: int) -> Scale | Array:
    """Return a rule, or one divisor per feature in float64; raise an error for anything else."""
    if isinstance(scale, str) and scale in ("auto", "moderated", "zscore", "none"):
        return scale
    if np.ndim(scale) != 1:
        raise ValueError(
            f"scale={scale!r} is unknown. Use 'auto', 'moderated' (divided by the deviation plus the median deviation), "
            "'zscore' (by the deviation), 'none' (as given) or an array with one divisor per feature."
        )
    divisors = np.array(scale, dtype=np.float64)
    if len(divisors) != n_features:
        raise ValueError(f"scale has {len(divisors)} deviations for {n_features} features. Give one per feature.")
    bad = np.flatnonzero(~((divisors > 0.0) & np.isfinite(divisors)))
    if len(bad):
        raise ValueError(
            f"scale[{bad[0]}]={divisors[bad[0]]:g} is not valid: features are divided by it. "
            "Use finite numbers above 0, for example 1 for a constant feature."
        )
    return divisors


def divisors_of(scale: Scale | Array, deviation: Any, varies: Any) -> tuple[str, Any]:
    """Return the rule that was used, and the divisor of each feature; of NumPy, or of the library of the deviations.

    ``"zscore"``: its deviation. ``"moderated"``: its deviation plus the median of the deviations of the features that vary,
    so that features which hardly vary are not amplified (Tusher et al. 2001). ``"auto"``: ``"moderated"`` if the
    deviations are comparable, else ``"zscore"``: the 95th percentile is at most ``COMPARABLE_RATIO`` times the 5th, both of
    which are deviations themselves, of up to 20 the smallest and the largest. ``"none"``: 1.

    Examples
    --------
    >>> divisors_of("auto", np.array([1.0, 2.0, 4.0, 0.0]), np.array([True, True, True, False]))
    ('moderated', array([3., 4., 6., 2.]))
    >>> divisors_of("auto", np.array([1.0, 2000.0, 0.0]), np.array([True, True, False]))
    ('zscore', array([1.e+00, 2.e+03, 1.e+00]))
    """
    if not isinstance(scale, str):
        return "given", scale
    xp = namespace_of(deviation)
    if scale == "none":
        return scale, xp.ones_like(deviation)
    if scale != "zscore":
        low, median, high = _percentiles(deviation, varies)
        if scale == "moderated" or not high > COMPARABLE_RATIO * low:
            with np.errstate(over="ignore"):  # raised as an error by the caller
                return "moderated", deviation + median if median else xp.ones_like(deviation)
    return "zscore", xp.where(varies, deviation, xp.ones_like(deviation))


def _percentiles(deviation: Any, varies: Any) -> tuple[float, float, float]:
    """Return the 5th percentile, the median and the 95th of the deviations of features that vary; 0 if none does."""
    if namespace_of(deviation) is np:
        own = deviation if varies.all() else deviation[varies]
        n_constant = 0
    else:  # sorted there: constant features come first
        xp = namespace_of(deviation)
        n_constant = deviation.shape[0] - int(xp.sum(xp.astype(varies, xp.int64)))
        own = xp.sort(xp.where(varies, deviation, xp.zeros_like(deviation)))
    last = own.shape[0] - n_constant - 1
    if last < 0:
        return 0.0, 0.0, 0.0
    places = [math.floor(0.05 * last), last // 2, (last + 1) // 2, math.ceil(0.95 * last)]
    if isinstance(own, np.ndarray):
        found = np.partition(own, places)[places]
    else:
        found = as_numpy(namespace_of(own).stack([own[n_constant + place] for place in places]))
    return float(found[0]), 0.5 * float(found[1] + found[2]), float(found[3])


def scaled(X: Array, scale: Scale | Array, weights: Array | None = None) -> Array:
    """Return a centred copy of a dense array in float64, divided by the rule ``scale``; a constant column becomes zero.

    Means and deviations are those of the samples by their ``weights``, numbers above 0.

    Examples
    --------
    >>> scaled(np.array([[1.0, 5.0], [2.0, 5.0]]), "zscore").tolist()
    [[-1.0, 0.0], [1.0, 0.0]]
    """
    found = measure(X, weights)
    return np.where(found.varies, centred(X, weights) / divisors_of(scale, found.deviation, found.varies)[1], 0.0)
