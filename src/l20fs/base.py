"""The contract of every selector: validate, encode the targets, score, and answer for any k without a second fit."""

from __future__ import annotations

import numbers
import warnings
from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from l20fs.validation import Targets, encode_targets, refuse_foreign_array, validate_input

Array = NDArray[Any]


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
            X, y = validate_input(self, X, y)
            self._fit_scores(X, encode_targets(y))
            self._warn_if_short()
        except BaseException:
            # A failed or interrupted fit leaves the estimator as it was: unfitted, or with its former fit whole.
            self.__dict__ = before
            raise
        return self

    def transform(self, X: Any) -> Any:
        """Reduce X to the selected features."""
        refuse_foreign_array(X, "X")
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

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "ranking_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags
