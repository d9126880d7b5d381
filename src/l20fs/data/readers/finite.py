"""Missing and infinite values: what is refused, what is left out, and what is to be filled in."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from l20fs.data.readers.table import Contents, DataError, Request
from l20fs.inputs.devices import is_dask
from l20fs.text import by_number, counted, first_of, listed
from l20fs.typing import Array

KINDS = ("missing", "infinite")
ARE_BAD = (np.isnan, np.isinf)

WAYS_OUT = (
    "Fill them in or remove the columns or samples, or let it be done: --missing median, --missing knn or --missing drop."
)
FILLED_IN = {"median": "the median of the training samples", "knn": "the mean of the five nearest training samples"}


def settle_missing(contents: Contents, request: Request) -> tuple[Contents, Array | None]:
    """Return contents in memory as the rule for missing values says, and the gaps to fill in by feature, None without any.

    Infinite values are refused always. Features and samples without any value are left out. If only some features were
    asked for, their values may be missing.
    """
    X, rule = contents.X, request.missing_rule
    if is_dask(X):
        return contents, None
    n_missing, n_infinite = _counts(X).tolist()
    if n_infinite:
        raise DataError(
            f"{_found(n_infinite, 1, contents, request, *_first(X, 1))}. Fill them in or remove the columns or samples."
        )
    if not n_missing or request.needed is not None:
        return contents, None
    if rule == "refuse":
        raise DataError(f"{_found(n_missing, 0, contents, request, *_first(X, 0))}. {WAYS_OUT}")
    contents = _without_empty(contents, request)
    by_feature = np.bincount(_places(contents.X, 0)[1], minlength=contents.X.shape[1])
    if not by_feature.any():
        return contents, None
    if rule == "drop":
        return _without_features(contents, by_feature > 0, "with missing values", request), None
    if rule == "knn" and sp.issparse(X):
        raise DataError(
            f"{_found(n_missing, 0, contents, request, *_first(X, 0))}. --missing knn needs a dense table, and this one is "
            "sparse. Use --missing median or drop."
        )
    n_missing, n_features = int(by_feature.sum()), int(np.count_nonzero(by_feature))
    where = _where(contents, *_first(contents.X, 0))
    gaps = f"{counted(n_missing, 'value')} of {counted(n_features, 'feature')} {by_number(n_missing, 'is', 'are')} missing"
    done = f"{by_number(n_missing, 'it is', 'they are')} filled in by {FILLED_IN[rule]}"
    request.tell("missing", rule, f"{gaps}, {first_of(n_missing)}in {where}; {done}")
    return contents, by_feature


def _without_empty(contents: Contents, request: Request) -> Contents:
    """Leave out features and samples that have no value."""
    samples, features = _places(contents.X, 0)
    n_samples, n_features = contents.X.shape
    is_empty = np.bincount(features, minlength=n_features) == n_samples
    is_empty_sample = np.bincount(samples, minlength=n_samples) == n_features
    if is_empty.any():
        contents = _without_features(contents, is_empty, "without any value", request)
    if is_empty_sample.any():
        kept = np.flatnonzero(~is_empty_sample).tolist()
        n_gone = n_samples - len(kept)
        where = f"{first_of(n_gone)}{_sample(contents, int(is_empty_sample.argmax()))}"
        request.note(f"{counted(n_gone, 'sample')} without any value {by_number(n_gone, 'is', 'are')} left out: {where}.")
        contents = contents.with_samples(kept)
    return contents


def _without_features(contents: Contents, is_out: Array, why: str, request: Request) -> Contents:
    """Leave out some features, with a note."""
    gone = [contents.feature_names[place] for place in np.flatnonzero(is_out)]
    text = f"{counted(len(gone), 'feature')} {why} {by_number(len(gone), 'is', 'are')} left out: {listed(gone)}"
    if is_out.all():
        raise DataError(f"{request.name}: {text}, and no other is there. Give features that have values.")
    request.note(f"{text}.")
    return contents.with_features(np.flatnonzero(~is_out).tolist())


def _found(number: int, kind: int, contents: Contents, request: Request, sample: int, feature: int) -> str:
    what = counted(number, f"{KINDS[kind]} value")
    return f"{request.name}: {what}, {first_of(number)}in {_where(contents, sample, feature)}"


def _where(contents: Contents, sample: int, feature: int) -> str:
    return f"column {contents.feature_names[feature]!r}, {_sample(contents, sample)}"


def _sample(contents: Contents, sample: int) -> str:
    """Return the line, the name or the number of a sample, for a message."""
    if contents.lines:
        return f"line {contents.lines[sample]}"
    return f"sample {contents.sample_names[sample]!r}" if contents.sample_names else f"sample {sample + 1}"


def _counts(X: Any) -> Array:
    """Count the missing and the infinite values."""
    values = X.data if sp.issparse(X) else X
    if np.isfinite(values).all():
        return np.zeros(len(KINDS), dtype=np.intp)
    return np.array([np.count_nonzero(is_bad(values)) for is_bad in ARE_BAD])


def _places(X: Any, kind: int) -> tuple[Array, Array]:
    """Return the samples and the features of all missing or infinite values."""
    bad = ARE_BAD[kind](X.data if sp.issparse(X) else X)
    samples, features = (part[bad] for part in X.tocoo().coords) if sp.issparse(X) else np.nonzero(bad)
    return samples, features


def _first(X: Any, kind: int) -> tuple[int, int]:
    """Return the sample and the feature of a missing or infinite value: of the first feature that has one."""
    samples, features = _places(X, kind)
    first = np.lexsort((samples, features))[0]
    return int(samples[first]), int(features[first])
