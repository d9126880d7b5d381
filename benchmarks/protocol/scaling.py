"""The scalings that the methods are given, by training rows alone."""

from __future__ import annotations

from typing import Literal

import numpy as np

Scale = Literal["none", "zscore", "moderated"]


def varying(X: np.ndarray) -> np.ndarray:
    return X.std(axis=0) > 0.0


def spread_of_deviations(X: np.ndarray) -> float:
    """Return the 95th percentile of the deviations over the 5th, of the features that vary."""
    low, high = np.percentile(X.std(axis=0)[varying(X)], [5, 95])
    return float(high / low)


def units(X: np.ndarray, scale: Scale) -> np.ndarray:
    """Return what the columns are divided by: their deviation, or deviation + median deviation; 1 for a constant one."""
    deviation = np.ones(X.shape[1]) if scale == "none" else X.std(axis=0)
    extra = np.median(deviation[deviation > 0.0]) if scale == "moderated" else 0.0
    return np.where(deviation > 0.0, deviation + extra, 1.0)


def rescale(X: np.ndarray, scale: Scale) -> np.ndarray:
    """Centre and divide the columns; ``"none"`` leaves X as it is."""
    return X if scale == "none" else (X - X.mean(axis=0)) / units(X, scale)
