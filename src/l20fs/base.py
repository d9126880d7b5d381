"""The contract of every selector: validate, encode the targets, score, and answer for any k without a second fit."""

from __future__ import annotations

import numbers
import warnings
from abc import abstractmethod
from typing import Any, NamedTuple

import array_api_compat as xpc
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

Array = NDArray[Any]

_TO_NUMPY = {
    "torch": "X.cpu().numpy()",
    "cupy": "cupy.asnumpy(X)",
    "jax": "numpy.asarray(X)",
    "dask": "X.compute()",
}


class Targets(NamedTuple):
    """The targets of a fit, encoded.

    ``Y`` is (n_samples, n_targets): one-hot labels, label indicators or numbers. ``classes`` holds the labels in
    sorted order, None for numbers; ``codes`` their positions, None unless each sample has one label.
    """

    Y: Array
    classes: Array | None
    codes: Array | None


class BaseSelector(SelectorMixin, BaseEstimator):
    """Base of all selectors.

    A subclass stores its parameters in ``__init__``, among them ``n_features_to_select``, and implements
    :meth:`_fit_scores`, which sets what it learns, at the least ``scores_`` (larger is better) and ``ranking_``
    (1 is best). The number of features is applied when the answer is read, so changing it needs no second fit.
    """

    n_features_to_select: int | float | None
    scores_: Array
    ranking_: Array
    n_features_in_: int

    @abstractmethod
    def _fit_scores(self, X: Any, targets: Targets) -> None:
        """Learn from a validated X and encoded targets."""

    def fit(self, X: Any, y: Any) -> Any:
        """Learn which features tell the targets apart.

        Parameters
        ----------
        X : array, DataFrame or sparse matrix of shape (n_samples, n_features)
            Finite numbers. float32 and float64 are kept; other numbers are read as float64.
        y : array of shape (n_samples,) or (n_samples, n_outputs)
            Class labels of any type, a label indicator matrix, or continuous targets.

        Returns
        -------
        self
        """
        before = vars(self).copy()
        try:
            self._check_n_features_to_select()
            X, y = self._validate(X, y)
            self._fit_scores(X, encode_targets(y))
            self._warn_if_short()
        except BaseException:
            # A failed or interrupted fit leaves the estimator as it was: unfitted, or with its former fit whole.
            self.__dict__ = before
            raise
        return self

    def transform(self, X: Any) -> Any:
        """Reduce X to the selected features."""
        refuse_foreign_array(X)
        check_is_fitted(self)
        return super().transform(X)

    @property
    def support_(self) -> Array:
        """Mask of the selected features, for the present ``n_features_to_select``."""
        return self._get_support_mask()

    def _get_support_mask(self) -> Array:
        check_is_fitted(self)
        self._check_n_features_to_select()
        # A constant feature has the score -inf and is not selected even if it is asked for.
        return (self.ranking_ <= self._n_wanted(self.n_features_in_)) & np.isfinite(self.scores_)

    def _n_wanted(self, n_features: int) -> int:
        """The number of features that ``n_features_to_select`` means for data with ``n_features``, unclipped."""
        value = self.n_features_to_select
        if value is None:
            raise ValueError("n_features_to_select=None is not supported by this selector. Give a number or a share.")
        return int(value) if isinstance(value, numbers.Integral) else max(1, round(float(value) * n_features))

    def _warn_if_short(self) -> None:
        """Warn if fewer features than asked for can be selected."""
        n_features = self.n_features_in_
        n_varying = int(np.isfinite(self.scores_).sum())
        k = n_varying if self.n_features_to_select is None else self._n_wanted(n_features)
        if k > n_features:
            message = f"n_features_to_select={k} is greater than n_features={n_features}. All the features will be returned."
        elif k > n_varying:
            message = f"n_features_to_select={k}, but only {n_varying} of {n_features} features vary; these are returned."
        else:
            return
        warnings.warn(message, UserWarning, stacklevel=3)

    def _check_n_features_to_select(self) -> None:
        value = self.n_features_to_select
        if value is None:
            return
        is_count = isinstance(value, numbers.Integral) and not isinstance(value, bool | np.bool_) and value >= 1
        is_share = isinstance(value, numbers.Real) and not isinstance(value, numbers.Integral) and 0.0 < value <= 1.0
        if not (is_count or is_share):
            raise ValueError(
                f"n_features_to_select={value!r} is not valid. Use a whole number from 1, or a share of the features above "
                "0.0 and up to 1.0."
            )

    def _validate(self, X: Any, y: Any) -> tuple[Any, Array]:
        refuse_foreign_array(X)
        refuse_dates(X)
        try:
            X_checked, y_checked = validate_data(
                self,
                X,
                y,
                accept_sparse=["csc", "csr"],
                dtype=[np.float64, np.float32],
                ensure_all_finite=False,
                ensure_min_samples=2,
                multi_output=True,
            )
        except ValueError as error:
            if "could not convert" in str(error) or "Cannot convert" in str(error):
                raise ValueError(_not_numbers_message(X, error)) from error
            raise
        refuse_non_finite(X_checked, getattr(self, "feature_names_in_", None))
        return X_checked, y_checked

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "ranking_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags


def encode_targets(y: Array) -> Targets:
    """Encode validated targets: labels one-hot in sorted order, indicators and numbers as they are.

    Examples
    --------
    >>> encode_targets(np.array(["b", "a", "b"])).Y
    array([[0., 1.],
           [1., 0.],
           [0., 1.]])
    """
    if y.ndim == 2 and y.shape[1] == 1:
        y = column_or_1d(y, warn=True)
    kind = type_of_target(y, input_name="y", raise_unknown=True)
    if kind in ("binary", "multiclass"):
        classes, codes = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(
                f"y has one class only, {classes[0]!r}: there is nothing to tell apart. Give samples of 2 or more classes."
            )
        return Targets(np.eye(len(classes))[codes], classes, codes)
    Y = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
    if not np.ptp(Y, axis=0).any():
        raise ValueError("y is constant: there is nothing to explain. Give targets that differ between samples.")
    return Targets(Y, np.arange(Y.shape[1]) if kind == "multilabel-indicator" else None, None)


def refuse_foreign_array(X: Any) -> None:
    """Refuse arrays of other libraries: a silent conversion could copy gigabytes off a GPU or a cluster."""
    for library, is_foreign in (
        ("torch", xpc.is_torch_array),
        ("cupy", xpc.is_cupy_array),
        ("jax", xpc.is_jax_array),
        ("dask", xpc.is_dask_array),
    ):
        if is_foreign(X):
            raise TypeError(
                f"X is a {library} array, which this selector does not take yet. Convert it yourself, for example "
                f"with {_TO_NUMPY[library]}."
            )


def refuse_dates(X: Any) -> None:
    """Refuse dates and durations, which NumPy would quietly turn into numbers of nanoseconds."""
    dtypes = dict(X.dtypes) if hasattr(X, "dtypes") and hasattr(X, "columns") else {None: getattr(X, "dtype", None)}
    dated = [name for name, dtype in dtypes.items() if getattr(dtype, "kind", None) in ("M", "m")]
    if dated:
        where = f" in {_first_names(dated)}" if dated != [None] else ""
        raise ValueError(
            f"X holds dates or durations{where}; only numbers can be weighed against each other. Turn them into numbers "
            "first, for example days since a fixed date, or drop these columns."
        )


def refuse_non_finite(X: Any, names: Array | None) -> None:
    """Refuse NaN and infinity, naming how many there are and where they begin."""
    values: Array = X.data if sp.issparse(X) else X
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum(dtype=np.float64)):  # one pass without a temporary; NaN and inf survive a sum
            return
    bad = ~np.isfinite(values)
    if not bad.any():  # finite values whose sum overflows
        return
    if sp.issparse(X):
        coordinates = sp.coo_array(X)
        columns = np.unique(coordinates.col[~np.isfinite(coordinates.data)])
    else:
        columns = np.flatnonzero(bad.any(axis=0))
    n_missing = int(np.isnan(values).sum())
    found = f"{n_missing} missing values (NaN)" if n_missing else f"{int(bad.sum())} infinite values (inf)"
    labels = [names[j] if names is not None else f"column {j}" for j in columns[:5]]
    fix = (
        "Impute them first, for example with make_pipeline(SimpleImputer(), L20Selector())."
        if n_missing
        else "Replace or drop them first."
    )
    raise ValueError(f"X has {found}, first in {_first_names(labels)}. {fix}")


def _first_names(names: list[Any]) -> str:
    shown = [repr(str(name)) for name in names[:5]]
    return " and ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else shown[0]


def _not_numbers_message(X: Any, error: Exception) -> str:
    where = ""
    if hasattr(X, "columns") and hasattr(X, "dtypes"):
        texts = [name for name, dtype in dict(X.dtypes).items() if getattr(dtype, "kind", "O") in "OSUT"]
        where = f" Columns that are not numbers: {_first_names(texts)}." if texts else ""
    return (
        f"X must hold numbers only ({error}).{where} Encode categories first, for example with "
        "make_column_transformer((OneHotEncoder(), [...]), remainder='passthrough'), or drop these columns."
    )
