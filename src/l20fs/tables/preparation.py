"""Missing and infinite values: what is refused, what is left out, and what is filled in, inside of folds too."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.impute import KNNImputer, SimpleImputer

from l20fs.tables.memory import is_large
from l20fs.tables.table import Contents, Matrix, Reading, Unprepared
from l20fs.text import by_number, counted, first_of, listed
from l20fs.typing import Array

FILLED_IN = {"median": "the median of the training samples", "knn": "the mean of the five nearest training samples"}
WAYS_OUT = "Fill them in, or let it be done: --config input.missing=median, knn or drop."


class ColumnImputer(TransformerMixin, BaseEstimator):
    """Impute some columns by themselves, which is much faster than all of them if few have missing values.

    Parameters
    ----------
    imputer : transformer
        One that treats each column by itself.
    columns : array of int
        The columns that may have missing values.

    Examples
    --------
    >>> imputer = ColumnImputer(SimpleImputer(strategy="median"), [1])
    >>> imputer.fit_transform(np.array([[1.0, 2.0], [2.0, np.nan], [3.0, 6.0]]))
    array([[1., 2.],
           [2., 4.],
           [3., 6.]])
    """

    def __init__(self, imputer: Any, columns: Any) -> None:
        self.imputer = imputer
        self.columns = columns

    def fit(self, X: Any, y: Any = None) -> ColumnImputer:
        """Fit a copy of the imputer to the columns."""
        self.imputer_ = clone(self.imputer).fit(X[:, self.columns])
        return self

    def transform(self, X: Any) -> Any:
        """Return a copy of X with the columns imputed."""
        X = X.copy()
        X[:, self.columns] = self.imputer_.transform(X[:, self.columns])
        return X


def prepared(contents: Contents, reading: Reading) -> tuple[Contents, Matrix, Unprepared | None, dict[str, float]]:
    """Return the contents without empty features and samples, X without gaps, what came before, and the shares of gaps.

    Infinite values are refused. If only some features were asked for, their values may be missing.
    """
    X, rule = contents.X, reading.input.missing
    if is_large(X):
        return contents, X, None, {}
    values = X.data if sp.issparse(X) else X
    if np.isfinite(values).all():
        return contents, X, None, {}
    if n_infinite := int(np.isinf(values).sum()):
        where = _where(contents, *_first(*_places(X, np.isinf)))
        what = counted(n_infinite, "infinite value")
        raise reading.error(f"{what}, {first_of(n_infinite)}in {where}. Fill them in or remove the columns or samples.")
    if reading.needed is not None:
        return contents, X, None, {}
    places = _places(X, np.isnan)
    if rule == "refuse":
        raise reading.error(f"{_gaps(contents, *places)}. {WAYS_OUT}")
    left = _without_empty(contents, *places, reading)
    if left is not contents:
        contents, X = left, left.X
        places = _places(X, np.isnan)
    by_feature = np.bincount(places[1], minlength=X.shape[1])
    gaps = np.flatnonzero(by_feature)
    if not len(gaps):
        return contents, X, None, {}
    if rule == "drop":
        contents = _without(contents, by_feature > 0, "with missing values", reading)
        return contents, contents.X, None, {}
    said = _gaps(contents, *places)
    if rule == "knn" and sp.issparse(X):
        raise reading.error(f"{said}. input.missing=knn needs a dense table, and this one is sparse. Use median.")
    done = f"{by_number(len(places[1]), 'it is', 'they are')} filled in by {FILLED_IN[rule]}"
    reading.say(f"{said}; {done} (--config input.missing={rule})")
    unprepared = Unprepared(X, _imputer(rule, gaps, is_sparse=sp.issparse(X)))
    shares = {contents.features[place]: by_feature[place] / X.shape[0] for place in gaps.tolist()}
    return contents, unprepared.prepared(), unprepared, shares


def _imputer(rule: str, columns: Array, *, is_sparse: bool) -> Any:
    """Return the unfitted imputer; a feature that has no value in a fold is 0 there."""
    if rule == "knn":
        return KNNImputer(keep_empty_features=True)
    median = SimpleImputer(strategy="median", keep_empty_features=True)
    return median if is_sparse else ColumnImputer(median, columns)


def _without_empty(contents: Contents, samples: Array, features: Array, reading: Reading) -> Contents:
    """Leave out features and samples that have no value."""
    n_samples, n_features = contents.X.shape
    is_empty = np.bincount(features, minlength=n_features) == n_samples
    is_empty_sample = np.bincount(samples, minlength=n_samples) == n_features
    if is_empty.any():
        contents = _without(contents, is_empty, "without any value", reading)
    if is_empty_sample.any():
        n_gone = int(is_empty_sample.sum())
        where = f"{first_of(n_gone)}{contents.sample(int(is_empty_sample.argmax()))}"
        reading.say(f"{counted(n_gone, 'sample')} without any value {by_number(n_gone, 'is', 'are')} left out: {where}")
        contents = contents.with_samples(np.flatnonzero(~is_empty_sample).tolist())
    return contents


def _without(contents: Contents, is_out: Array, why: str, reading: Reading) -> Contents:
    """Leave out some features, and say so."""
    gone = [contents.features[place] for place in np.flatnonzero(is_out)]
    text = f"{counted(len(gone), 'feature')} {why} {by_number(len(gone), 'is', 'are')} left out: {listed(gone)}"
    if is_out.all():
        raise reading.error(f"{text}, and no other is there. Give features that have values.")
    reading.say(text)
    return contents.with_features(np.flatnonzero(~is_out).tolist())


def _gaps(contents: Contents, samples: Array, features: Array) -> str:
    """Say how many values are missing, and where the first one is."""
    n_missing, n_features = len(features), len(np.unique(features))
    where = _where(contents, *_first(samples, features))
    gaps = f"{counted(n_missing, 'value')} of {counted(n_features, 'feature')} {by_number(n_missing, 'is', 'are')} missing"
    return f"{gaps}, {first_of(n_missing)}in {where}"


def _where(contents: Contents, sample: int, feature: int) -> str:
    return f"column {contents.features[feature]!r}, {contents.sample(sample)}"


def _places(X: Any, is_bad: Any) -> tuple[Array, Array]:
    """Return the samples and the features of all missing or infinite values."""
    if not sp.issparse(X):
        samples, features = np.nonzero(is_bad(X))
        return samples, features
    bad = is_bad(X.data)
    samples, features = (part[bad] for part in X.tocoo().coords)
    return samples, features


def _first(samples: Array, features: Array) -> tuple[int, int]:
    """Return the sample and the feature of the first of some values: of the first feature that has one."""
    first = np.lexsort((samples, features))[0]
    return int(samples[first]), int(features[first])
