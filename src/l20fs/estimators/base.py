"""Base of all selectors: validate, learn, and answer for any number of features without a second fit."""

from __future__ import annotations

import copy
import numbers
import warnings
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from l20fs.design import Part
from l20fs.estimators.frames import checked_array, is_lazy, opened, without_frame
from l20fs.inputs.devices import Place, is_device_array
from l20fs.inputs.frames import collected, is_dask_frame, names_of_columns
from l20fs.inputs.names import NamedColumns
from l20fs.inputs.nuisances import with_nuisances
from l20fs.inputs.targets import Targets, encode_targets, warn_of_numbers, with_weights
from l20fs.inputs.validation import (
    refuse_foreign_array,
    refuse_odd_tensor,
    refuse_other_width,
    validate_beside_blocks,
    validate_device_input,
    validate_input,
)
from l20fs.typing import Array, Size, Task


class About(NamedTuple):
    """Entry of a method in the list of methods: its publication, its kind, its cost.

    N, d, C and k are the numbers of samples, features, classes and selected features.
    """

    reference: str
    kind: Literal["filter", "wrapper", "embedded", "none"]
    cost: str
    supervised: bool = True


class BaseSelector(SelectorMixin, BaseEstimator):
    """Base of all selectors: validate, learn, and answer for any number of features.

    A subclass stores its parameters in ``__init__``, among them ``n_features_to_select``, describes itself in ``about`` and
    implements :meth:`_learn`. The number of features is applied when the answer is read (:meth:`support_for`), so that
    changing it needs no second fit. Reading changes nothing.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Larger is better; ``-inf`` for a constant feature, which is never selected.
    ranking_ : array of shape (n_features,)
        1 is best.
    support_ : array of shape (n_features,)
        Mask of the selected features, for the present ``n_features_to_select``.
    classes_ : array of shape (n_classes,)
        The labels in sorted order, if y holds labels.
    """

    about: ClassVar[About]
    #: Whether y must hold one label per sample; otherwise indicators and numbers will do.
    needs_labels: ClassVar[bool] = True
    #: Whether y may hold one number per sample instead of labels, where ``needs_labels``.
    takes_numbers: ClassVar[bool] = False
    #: Whether NaN in X, in memory, is a missing value that the method leaves out.
    takes_missing: ClassVar[bool] = False
    #: Whether ``n_features_to_select=None`` means something.
    allows_none: ClassVar[bool] = False
    #: Words that ``n_features_to_select`` may be.
    size_rules: ClassVar[tuple[str, ...]] = ()
    #: Whether a sparse X is taken as it is.
    takes_sparse: ClassVar[bool] = False
    #: Whether an X of torch or CuPy is taken where it is.
    takes_device_arrays: ClassVar[bool] = False
    #: Whether X may be read in blocks: a Dask array, or a file larger than memory.
    takes_blocks: ClassVar[bool] = False
    #: Whether X may be a part of samples that several fits share (:mod:`l20fs.design.samples`).
    takes_parts: ClassVar[bool] = False
    #: Whether values of any size are fine, as they are where only their order or bins count.
    takes_any_size: ClassVar[bool] = False
    #: Whether the mean of numeric targets needs no explanation; a parameter of some selectors.
    fit_intercept: bool = True
    #: What y stands for; a parameter of some selectors.
    task: Task = "auto"

    #: Where scikit-learn's HTML representation links to, for the classes of this package.
    _doc_link_module = "l20fs"
    _doc_link_template = "https://l20fs.readthedocs.io/en/latest/generated/{public_name}.html"

    n_features_to_select: Size
    scores_: Array
    ranking_: Array
    n_features_in_: int

    def _doc_link_url_param_generator(self) -> dict[str, str]:
        is_method = type(self).__module__.startswith("l20fs.methods.")
        return {"public_name": f"{'l20fs.methods' if is_method else 'l20fs'}.{type(self).__name__}"}

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the selector: learn which features explain the targets.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features), or a sparse matrix where the method takes one
            Finite numbers.
        y : array of shape (n_samples,) or (n_samples, n_outputs)
            Class labels of any type, or what else the method takes; ignored by unsupervised methods.

        Returns
        -------
        self
            The fitted selector.
        """
        with self._fitting():
            self._learn(*self._prepare(X, y))
            self._warn_if_short()
        return self

    @classmethod
    @cache
    def _get_param_names(cls) -> list[str]:  # which scikit-learn reads off the signature again and again
        return super()._get_param_names()

    @contextmanager
    def _fitting(self) -> Iterator[None]:
        """Drop the former fit and check the parameters; a fit that fails leaves no trace."""
        before = vars(self).copy()
        try:
            for name in [name for name in before if name.endswith("_")]:
                delattr(self, name)
            self.check_parameters()
            yield
        except BaseException:
            # A failed or interrupted fit leaves the estimator as it was: unfitted, or with its former fit whole.
            self.__dict__ = before
            raise

    def _prepare(self, X: Any, y: Any, sample_weight: Any = None, adjust_for: Any = None) -> tuple[Any, Targets]:
        """Validate the data, and keep the names of the features."""
        X, names = (X.X, X.checked_names()) if isinstance(X, NamedColumns) else (X, None)
        X, targets = self._validate(X, y)
        if names is not None:
            self.feature_names_in_ = names
        return X, with_nuisances(with_weights(targets, sample_weight), adjust_for)

    @abstractmethod
    def _learn(self, X: Any, targets: Targets, **extra: Any) -> None:
        """Set everything that is learned from validated data; X must not be changed."""

    def check_parameters(self) -> None:
        """Refuse parameters that make no sense, as ``fit`` does before it looks at any data."""
        self._check_size(self.n_features_to_select)
        self._check_parameters()

    def _check_parameters(self) -> None:
        """Raise an error for invalid parameters, before anything is computed."""

    def _validate(self, X: Any, y: Any) -> tuple[Any, Targets]:
        if self.takes_device_arrays and is_device_array(X):
            X, y = validate_device_input(self, X, y)
            return X, self._encode(y)
        X, y = validate_input(
            self,
            X,
            y if self.about.supervised else None,
            supervised=self.about.supervised,
            accept_sparse=self.takes_sparse,
            dtypes=[np.float64, np.float32] if self.takes_sparse else [np.float64],
            allow_missing=self.takes_missing,
        )
        if not self.about.supervised:
            return X, Targets(np.empty((X.shape[0], 0)), None, None)
        return X, self._encode(y)

    def _validate_blocks(self, X: Any, y: Any) -> tuple[Any, Targets]:
        """Validate an X that is read in blocks as far as possible without reading it, and return it as a Dask array."""
        X, names = (checked_array(X), names_of_columns(X)) if is_dask_frame(X) else (opened(X), None)
        targets = self._encode(validate_beside_blocks(self, X, y))
        if names is not None:
            self.feature_names_in_ = names
        return X, targets

    def _validate_part(self, X: Part, y: Any) -> tuple[Part, Targets]:
        """Take a part of samples that were validated as a whole."""
        if X.shape[0] < 2:  # in scikit-learn's words
            raise ValueError(
                f"Found array with {X.shape[0]} sample(s) (shape={X.shape}) while a minimum of 2 is required by "
                f"{type(self).__name__}."
            )
        self.n_features_in_ = X.shape[1]
        return X, self._encode(np.asarray(y))

    def _encode(self, y: Array) -> Targets:
        is_for_labels = self.needs_labels and not self.takes_numbers
        task = "auto" if is_for_labels else self.task
        targets = encode_targets(y, task, fit_intercept=self.fit_intercept, needs_labels=is_for_labels)
        if self.needs_labels and targets.codes is None:
            self._refuse_unless_numbers(y, targets)
        elif self.takes_numbers and task == "auto":
            warn_of_numbers(y, targets)
        return targets

    def _refuse_unless_numbers(self, y: Array, targets: Targets) -> None:
        """Refuse targets that are not one label per sample, except for one number per sample where the method takes them."""
        if self.takes_numbers and targets.classes is None and targets.Y.shape[1] == 1:
            return
        if not self.takes_numbers:
            with np.errstate(invalid="ignore"):  # of large numbers
                check_classification_targets(y)
        what = "class label or number" if self.takes_numbers else "class label"
        raise ValueError(f"{type(self).__name__} needs one {what} per sample; y has several columns.")

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Fit the selector, and reduce X to the selected features.

        Parameters
        ----------
        X : array, DataFrame, sparse matrix or matrix in blocks, of shape (n_samples, n_features)
            Finite numbers, as for :meth:`fit`.
        y : array of shape (n_samples,) or (n_samples, n_outputs)
            Labels or numbers, as for :meth:`fit`.
        **fit_params : dict
            Further arguments of :meth:`fit`.

        Returns
        -------
        array, DataFrame or sparse matrix of shape (n_samples, n_selected)
            Columns of the selected features, in the order of X.
        """
        return super().fit_transform(collected(X), y, **fit_params)

    def transform(self, X: Any) -> Any:
        """Reduce X to the selected features; a Dask array stays lazy, and a Dask data frame gives one.

        Parameters
        ----------
        X : array, DataFrame, sparse matrix or matrix in blocks, of shape (n_samples, n_features)
            Samples with the features of the fit.

        Returns
        -------
        array, DataFrame or sparse matrix of shape (n_samples, n_selected)
            Columns of the selected features, in the order of X.
        """
        if self.takes_device_arrays and is_device_array(X):
            return self._transform_there(X)
        check_is_fitted(self)
        X = without_frame(self, X)
        if self.takes_blocks and is_lazy(X):
            refuse_other_width(self, X)
            return opened(X)[:, self._chosen()]
        refuse_foreign_array(X, "X")
        return super().transform(X)

    def _transform_there(self, X: Any) -> Any:
        """Reduce an X on a device, without moving it."""
        check_is_fitted(self)
        refuse_odd_tensor(X, "X")
        refuse_other_width(self, X)
        validate_data(self, X, reset=False, skip_check_array=True)  # warns if it has no names, but the fit had
        place = Place(X)
        return place.xp.take(X, place.send(self._chosen()), axis=1)

    def _chosen(self) -> Array:
        """Return the indices of the selected features, with scikit-learn's warning if there are none."""
        chosen = np.flatnonzero(self.get_support())
        if not len(chosen):
            warnings.warn(
                "No features were selected: either the data is too noisy or the selection test too strict.",
                UserWarning,
                stacklevel=3,
            )
        return chosen

    def inverse_transform(self, X: Any) -> Any:
        """Put columns of zeros where features were not selected.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_selected)
            Columns of the selected features, in memory or on a device.

        Returns
        -------
        array or sparse matrix of shape (n_samples, n_features)
            The same columns at their places, zeros elsewhere.
        """
        if self.takes_device_arrays and is_device_array(X):
            return self._inverse_there(X)
        user = f"{type(self).__name__}.inverse_transform"
        refuse_foreign_array(X, "X", user)
        return super().inverse_transform(X)

    def _inverse_there(self, X: Any) -> Any:
        """Put columns of zeros between those of an X on a device, without moving it."""
        chosen = self.get_support(indices=True)
        refuse_odd_tensor(X, "X")
        if X.ndim != 2 or X.shape[1] != len(chosen):
            raise ValueError(
                f"X has the shape {tuple(X.shape)}, but {len(chosen)} features are selected. Give the columns of "
                "these features, as transform returns them."
            )
        place, source = Place(X), np.full(self.n_features_in_, len(chosen))
        source[chosen] = np.arange(len(chosen))
        empty = place.xp.zeros((X.shape[0], 1), dtype=X.dtype, device=place.device)
        return place.xp.take(place.xp.concat([X, empty], axis=1), place.send(source), axis=1)

    def support_for(self, k: Size) -> Array:
        """Return the mask of the features that are selected for ``k``.

        Parameters
        ----------
        k : int, float, str or None
            Any value that ``n_features_to_select`` takes.

        Returns
        -------
        array of shape (n_features,)
            Mask of the selected features.
        """
        check_is_fitted(self)
        self._check_size(k)
        self._warn_if_beyond(k)
        return self._select(k)

    def order_for(self, k: Size) -> Array:
        """Return the indices of the features that are selected for ``k``, best first.

        Parameters
        ----------
        k : int, float, str or None
            Any value that ``n_features_to_select`` takes.

        Returns
        -------
        array of shape (n_selected,)
            Indices, the best feature first.
        """
        return self._best_first(self.support_for(k), k)

    def _best_first(self, mask: Array, k: Size) -> Array:
        """Return the indices of the features of a mask for ``k``, best first."""
        chosen = np.flatnonzero(mask)
        return chosen[np.argsort(self._ranked_for(k)[0][chosen], kind="stable")]

    @property
    def support_(self) -> Array:
        """Mask of the selected features, for the present ``n_features_to_select``."""
        return self.support_for(self.n_features_to_select)

    def _get_support_mask(self) -> Array:
        return self.support_for(self.n_features_to_select)

    def _warn_if_beyond(self, k: Size) -> None:
        """Warn of a valid ``k`` for which another fit would select other features."""

    def _select(self, k: Size) -> Array:
        """Return the mask for a valid ``k`` from what was learned, which stays as it is."""
        ranking, scores = self._ranked_for(k)
        # A constant feature has the score -inf and is not selected even if it is asked for.
        return (ranking <= self._n_wanted(k, int(ranking.max()))) & np.isfinite(scores)

    def _ranked_for(self, k: Size) -> tuple[Array, Array]:
        """Return the ranks and scores from which ``k`` features are taken; as a rule they are the same for all."""
        return self.ranking_, self.scores_

    def with_size(self, k: Size) -> Self:
        """Return this fitted selector with ``n_features_to_select=k``.

        Parameters
        ----------
        k : int, float, str or None
            Any value that ``n_features_to_select`` takes.

        Returns
        -------
        estimator
            A shallow copy that shares all arrays; this one stays as it is.
        """
        other = copy.copy(self)
        other.n_features_to_select = k
        return other

    def _n_wanted(self, k: Size, n_features: int) -> int:
        """Return the number of features that ``k`` means for data with ``n_features``, unclipped."""
        assert isinstance(k, numbers.Real), "a selector that takes None or a word decides itself what it means"
        return int(k) if isinstance(k, numbers.Integral) else max(1, round(float(k) * n_features))

    def _warn_if_short(self) -> None:
        """Warn if fewer features than requested can be selected."""
        n_units, n_selectable = self._count_units()
        k = n_selectable if self.n_features_to_select is None else self._n_wanted(self.n_features_to_select, n_units)
        if k > n_selectable:
            warnings.warn(f"n_features_to_select={k}{self._shortage(k, n_units, n_selectable)}", UserWarning, stacklevel=3)

    def _count_units(self) -> tuple[int, int]:
        """Return the number of features, or groups, and the number that can be selected."""
        return int(self.ranking_.max()), len(np.unique(self.ranking_[np.isfinite(self.scores_)]))

    def _shortage(self, k: int, n_units: int, n_selectable: int) -> str:
        """Return the reason why only ``n_selectable`` features can be selected."""
        if k > n_units:
            return f" is greater than n_features={n_units}. All the features will be returned."
        do = "vary" if self.fit_intercept else "are not zero"
        return f", but only {n_selectable} of {n_units} features {do}; these are returned."

    def _check_size(self, k: Any) -> None:
        """Refuse what ``n_features_to_select`` cannot be."""
        if (k is None and self.allows_none) or (isinstance(k, str) and k in self.size_rules):
            return
        is_whole = isinstance(k, numbers.Integral)
        is_count = is_whole and not isinstance(k, bool | np.bool_) and k >= 1
        is_share = isinstance(k, numbers.Real) and not is_whole and 0.0 < float(k) <= 1.0
        if not (is_count or is_share):
            raise ValueError(
                f"n_features_to_select={k!r} is not valid. Use a whole number from 1, or a share of the features above "
                f"0.0 and up to 1.0{''.join(f', or {rule!r}' for rule in self.size_rules)}."
            )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "ranking_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.takes_sparse
        tags.input_tags.allow_nan = self.takes_missing
        tags.array_api_support = self.takes_device_arrays
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]  # columns are taken, not computed
        tags.target_tags.required = self.about.supervised
        tags.target_tags.multi_output = self.about.supervised and not self.needs_labels
        return tags


def ranks_of(order: Array) -> Array:
    """Return the rank of each feature, from 1, of an order that has the best first.

    Examples
    --------
    >>> ranks_of(np.array([2, 0, 1]))
    array([2, 3, 1])
    """
    ranking = np.empty(len(order), dtype=np.intp)
    ranking[order] = np.arange(1, len(order) + 1)
    return ranking
