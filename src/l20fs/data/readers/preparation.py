"""Steps that are fitted to training samples: the choice among features of one name, and values for missing ones."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from l20fs.data.readers.repeated import grouped, names_in_file
from l20fs.data.readers.table import Contents, Matrix, Request, Unprepared
from l20fs.typing import Array


class LargestVariance(TransformerMixin, BaseEstimator):
    """Keep one of the columns with the same code: the one with the largest variance, the first one on a tie.

    Parameters
    ----------
    codes : array of shape (n_columns,)
        Code of each column, numbered from 0 in the order in which they first occur.

    Examples
    --------
    >>> X = np.array([[1.0, 0.0, 5.0], [2.0, 1.0, 9.0]])
    >>> LargestVariance(np.array([0, 1, 0])).fit_transform(X)
    array([[5., 0.],
           [9., 1.]])
    """

    def __init__(self, codes: Array) -> None:
        self.codes = codes

    def fit(self, X: Any, y: Any = None) -> LargestVariance:
        """Choose the columns by the variance of the values that are not missing."""
        shared = np.flatnonzero(np.bincount(self.codes)[self.codes] > 1)
        variances = np.zeros(X.shape[1])
        with np.errstate(invalid="ignore"):  # of a column without values
            variances[shared] = StandardScaler(with_mean=False).fit(X[:, shared]).var_
        order = np.lexsort((-np.nan_to_num(variances, nan=-1.0), self.codes))
        self.chosen_ = order[np.unique(self.codes[order], return_index=True)[1]]
        return self

    def transform(self, X: Any) -> Any:
        """Return the chosen columns."""
        return X[:, self.chosen_]


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
    """Values and names of the features after preparation by all samples, what came before, and the shares of gaps."""

    X: Matrix
    feature_names: list[str]
    unprepared: Unprepared | None
    missing: dict[str, float]


def prepare(contents: Contents, n_missing: Array | None, request: Request) -> Prepared:
    """Prepare the values by all samples, and return also what prepares them inside folds; nothing if nothing is to be done.

    ``n_missing`` (n_features,) are the gaps to fill in, None if there are none.
    One feature stands for a name that occurs more than once (``"max-variance"``), then missing values are filled in.
    Everywhere the same features come out, in the same order; a feature that has no value in a fold is 0 there.
    """
    X, names, steps = contents.X, contents.feature_names, []
    codes = np.arange(len(names))
    if request.duplicates_rule == "max-variance" and request.numbered:
        names, codes = grouped(names_in_file(names, request))
        if len(names) < len(codes):
            steps.append(LargestVariance(codes))
    if n_missing is not None:
        steps.append(_imputer(request.missing_rule, np.unique(codes[n_missing > 0]), is_sparse=sp.issparse(X)))
    if not steps:
        return Prepared(X, names, None, {})
    unprepared = Unprepared(X, steps[0] if len(steps) == 1 else make_pipeline(*steps))
    shares: dict[str, float] = {}
    if n_missing is not None:
        chosen = steps[0].fit(X).chosen_ if len(names) < len(codes) else codes
        counts = n_missing[chosen]
        shares = {names[place]: counts[place] / X.shape[0] for place in np.flatnonzero(counts).tolist()}
    return Prepared(unprepared.prepared(), names, unprepared, shares)


def _imputer(rule: str, columns: Array, *, is_sparse: bool) -> Any:
    if rule == "knn":
        return KNNImputer(keep_empty_features=True)
    median = SimpleImputer(strategy="median", keep_empty_features=True)
    return median if is_sparse else ColumnImputer(median, columns)
