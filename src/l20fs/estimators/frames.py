"""Frames on their way into a fitted estimator: LazyFrames of polars are computed, Dask data frames become Dask arrays."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import validate_data

from l20fs.design.large import open_large
from l20fs.inputs.devices import is_dask, is_stored
from l20fs.inputs.frames import collected, is_dask_frame
from l20fs.inputs.validation import refuse_non_numbers, refuse_repeated_names


def is_lazy(X: Any) -> bool:
    """Return whether X is read in blocks: a Dask array or data frame, or an array in a file."""
    return is_dask(X) or is_dask_frame(X) or is_stored(X)


def opened(X: Any) -> Any:
    """Return an array in a file as a Dask array; a Dask array is returned as it is."""
    return open_large(X) if is_stored(X) else X


def without_frame(estimator: Any, X: Any) -> Any:
    """Return an X of the features of the fit as the estimator takes it, if it comes in a frame that is not yet computed.

    A Dask data frame becomes a Dask array where the estimator takes that, after a check of its names.
    """
    X = collected(X)
    if not (estimator.takes_blocks and is_dask_frame(X)):
        return X
    import pandas as pd  # comes with the data frames of Dask

    validate_data(estimator, pd.DataFrame(columns=X.columns), reset=False, skip_check_array=True)
    return checked_array(X)


def checked_array(X: Any) -> Any:
    """Return the numbers of a Dask data frame as a Dask array with chunks of known lengths."""
    refuse_non_numbers(X)
    refuse_repeated_names(X)
    dtype = "float32" if all(str(kind).lower() == "float32" for kind in X.dtypes) else "float64"
    return X.astype(dtype).to_dask_array(lengths=True)
