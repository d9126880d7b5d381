"""Data frames that are not yet computed: LazyFrames of polars, and the names of Dask data frames."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from l20fs.typing import Array


def collected(X: Any) -> Any:
    """Compute a LazyFrame of polars; anything else is returned unchanged.

    Examples
    --------
    >>> import polars as pl
    >>> collected(pl.LazyFrame({"TP53": [1.0, 2.0]})).shape
    (2, 1)
    """
    return X.collect() if _is_lazy(X) else X


def collected_targets(y: Any) -> Any:
    """Compute targets in a LazyFrame of polars; its only column is a series.

    Examples
    --------
    >>> import polars as pl
    >>> collected_targets(pl.LazyFrame({"type": ["a", "b"]})).to_list()
    ['a', 'b']
    """
    found = collected(y)
    return found.to_series() if found is not y and found.width == 1 else found


def _is_lazy(value: Any) -> bool:
    polars = sys.modules.get("polars")  # a module that is not imported cannot have made it
    return polars is not None and isinstance(value, polars.LazyFrame)


def is_dask_frame(X: Any) -> bool:
    """Return whether X is a Dask data frame."""
    frames = sys.modules.get("dask.dataframe")
    return frames is not None and isinstance(X, frames.DataFrame)


def names_of_columns(X: Any) -> Array | None:
    """Return the names of the columns of a Dask data frame as scikit-learn takes them: None unless they are texts."""
    names = list(X.columns)
    are_texts = [isinstance(name, str) for name in names]
    if any(are_texts) and not all(are_texts):
        raise TypeError("X has names of columns that are texts and others that are not. Use X.rename(columns=str).")
    return np.array(names, dtype=object) if any(are_texts) else None
