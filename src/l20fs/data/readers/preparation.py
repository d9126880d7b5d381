"""Values for missing ones, learned from training samples."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.impute import KNNImputer, SimpleImputer

from l20fs.data.readers.table import Contents, Matrix, Request, Unprepared
from l20fs.typing import Array


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


class Prepared(NamedTuple):
    """Values without gaps, by all samples, what came before, and the shares of gaps."""

    X: Matrix
    unprepared: Unprepared | None
    missing: dict[str, float]


def prepare(contents: Contents, n_missing: Array | None, request: Request) -> Prepared:
    """Fill in missing values by all samples, and return also what fills them in inside folds; nothing if there are none.

    ``n_missing`` (n_features,) are the gaps to fill in, None if there are none. A feature that has no value in a fold is 0
    there.
    """
    X = contents.X
    if n_missing is None:
        return Prepared(X, None, {})
    gaps = np.flatnonzero(n_missing)
    unprepared = Unprepared(X, _imputer(request.missing_rule, gaps, is_sparse=sp.issparse(X)))
    shares = {contents.feature_names[place]: n_missing[place] / X.shape[0] for place in gaps.tolist()}
    return Prepared(unprepared.prepared(), unprepared, shares)


def _imputer(rule: str, columns: Array, *, is_sparse: bool) -> Any:
    if rule == "knn":
        return KNNImputer(keep_empty_features=True)
    median = SimpleImputer(strategy="median", keep_empty_features=True)
    return median if is_sparse else ColumnImputer(median, columns)
