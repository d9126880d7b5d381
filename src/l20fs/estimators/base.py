"""The contract of every selector: validate, encode the targets, score, and answer for any k without a second fit."""

from __future__ import annotations

import copy
import numbers
import warnings
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from l20fs.blocks import columns_of, comes_in_blocks, refuse_blocks
from l20fs.inputs.devices import Place, is_device_array
from l20fs.inputs.validation import (
    Targets,
    encode_targets,
    refuse_foreign_array,
    refuse_odd_tensor,
    refuse_other_width,
    validate_device_input,
    validate_input,
    with_weights,
)
from l20fs.objective.prox import order_descending
from l20fs.typing import Array


class About(NamedTuple):
    """What a list of methods says about one: where it comes from, what kind it is, what it costs.

    N, d, C and k are the numbers of samples, features, classes and selected features.
    """

    reference: str
    kind: Literal["filter", "wrapper", "embedded", "none"]
    cost: str
    supervised: bool = True


class Scored(NamedTuple):
    """What a method finds out about the features it was given.

    ``scores``: larger is better. ``order``: best first, where the ranking is not by score alone. ``coef``: weights,
    (n_targets, n_features). ``objective``: its value after every iteration of an iterative method.
    """

    scores: Array
    order: Array | None = None
    coef: Array | None = None
    objective: Sequence[float] = ()


class Progress(NamedTuple):
    """What a callback is told after an iteration."""

    n_iter: int
    objective: float


Callback = Callable[[Progress], object]


class BaseSelector(SelectorMixin, BaseEstimator):
    """Base of all selectors.

    A subclass stores its parameters in ``__init__``, among them ``n_features_to_select``, describes itself in ``about`` and
    implements :meth:`_score_features`. The number of features is applied when the answer is read, so that changing it
    needs no second fit.

    Attributes
    ----------
    scores_ : array of shape (n_features,)
        Larger is better; ``-inf`` for a constant feature, which is never selected.
    ranking_ : array of shape (n_features,)
        1 is best.
    support_ : array of shape (n_features,)
        Mask of the selected features, for the present ``n_features_to_select``.
    coef_ : array of shape (n_targets, n_features)
        Weights in units of X, of methods that have them.
    objective_ : array of shape (n_iter_,)
        Value after every iteration, of iterative methods.
    n_iter_ : int
        Iterations, of iterative methods.
    classes_ : array of shape (n_classes,)
        The labels in sorted order, if y holds labels.
    """

    about: ClassVar[About]
    #: Whether y must hold one label per sample; otherwise indicators and numbers will do.
    needs_labels: ClassVar[bool] = True
    #: Whether ``n_features_to_select=None`` means something.
    allows_none: ClassVar[bool] = False
    #: Words that ``n_features_to_select`` may be.
    size_rules: ClassVar[tuple[str, ...]] = ()
    #: Whether a sparse X is taken as it is.
    takes_sparse: ClassVar[bool] = False
    #: Whether an X of torch or CuPy is taken where it is.
    takes_device_arrays: ClassVar[bool] = False
    #: Whether X may come in blocks: a Dask array, or a file larger than memory.
    takes_blocks: ClassVar[bool] = False

    n_features_to_select: int | float | str | None
    scores_: Array
    ranking_: Array
    n_features_in_: int

    @abstractmethod
    def _score_features(self, X: Array, targets: Targets) -> Scored:
        """Judge features that all vary; X is float64, of shape (n_samples, n_features), and must not be changed."""

    def fit(self, X: Any, y: Any = None) -> Any:
        """Learn which features tell the targets apart.

        Parameters
        ----------
        X : array or DataFrame of shape (n_samples, n_features), or a sparse matrix where the method takes one
            Finite numbers.
        y : array of shape (n_samples,) or (n_samples, n_outputs)
            Class labels of any type, or what else the method takes; ignored by unsupervised methods.

        Returns
        -------
        self
        """
        return self._fit(X, y)

    def _fit(self, X: Any, y: Any, sample_weight: Any = None, *, names: Array | None = None, **extra: Any) -> Any:
        """Fit to data whose features have ``names`` that X itself does not know."""
        before = vars(self).copy()
        try:
            for name in [name for name in before if name.endswith("_")]:
                delattr(self, name)
            self._check_size(self.n_features_to_select)
            self._check_parameters()
            X, targets = self._validate(X, y)
            if names is not None:
                self.feature_names_in_ = names
            self._learn(X, with_weights(targets, sample_weight), **extra)
            self._warn_if_short()
        except BaseException:
            # A failed or interrupted fit leaves the estimator as it was: unfitted, or with its former fit whole.
            self.__dict__ = before
            raise
        return self

    def _learn(self, X: Any, targets: Targets, **extra: Any) -> None:
        """Set everything that is learned from validated data."""
        self._fit_scores(X, targets)
        if targets.classes is not None:
            self.classes_ = targets.classes

    def _check_parameters(self) -> None:
        """Refuse parameters that make no sense, before anything is computed."""

    def _validate(self, X: Any, y: Any) -> tuple[Any, Targets]:
        refuse_blocks(X, type(self).__name__)
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
        )
        if not self.about.supervised:
            return X, Targets(np.empty((X.shape[0], 0)), None, None)
        return X, self._encode(y)

    def _encode(self, y: Array) -> Targets:
        targets = encode_targets(y)
        if self.needs_labels and targets.codes is None:
            check_classification_targets(y)
            raise ValueError(f"{type(self).__name__} needs one class label per sample; y has several columns.")
        return targets

    def _fit_scores(self, X: Any, targets: Targets) -> None:
        """Set what is learned; constant features are set aside before the method sees X."""
        # In float64 a constant column differs from its mean by no more than the rounding of that mean.
        with np.errstate(over="ignore", invalid="ignore"):
            varies = np.ptp(X, axis=0) > np.abs(X).max(axis=0) * (np.finfo(np.float64).eps * 4)
        if not varies.any():
            raise ValueError(
                f"All {X.shape[1]} features of X are constant, so none can tell the targets apart. "
                "Check that X holds the measurements of different samples in its rows."
            )
        self._keep(self._score_features(X if varies.all() else X[:, varies], targets), varies)

    def _keep(self, found: Scored, varies: Array) -> None:
        """Turn what a method found out about the varying features into fitted attributes of all features."""
        kept = np.flatnonzero(varies)
        self.scores_ = np.full(len(varies), -np.inf)
        self.scores_[kept] = np.where(np.isnan(found.scores), -np.finfo(np.float64).max, found.scores)
        order = order_descending(found.scores) if found.order is None else found.order
        self._rank(np.concatenate([kept[order], np.flatnonzero(~varies)]))
        if found.coef is not None:
            self.coef_ = np.zeros((len(found.coef), len(varies)))
            self.coef_[:, kept] = found.coef
        if len(found.objective):
            self.objective_ = np.asarray(found.objective, dtype=np.float64)
            self.n_iter_ = len(found.objective)

    def _rank(self, order: Array) -> None:
        self.ranking_ = np.empty(len(order), dtype=np.intp)
        self.ranking_[order] = np.arange(1, len(order) + 1)

    def transform(self, X: Any) -> Any:
        """Reduce X to the selected features; a Dask array stays lazy."""
        if self.takes_device_arrays and is_device_array(X):
            return self._transform_there(X)
        check_is_fitted(self)
        if self.takes_blocks and comes_in_blocks(X):
            refuse_other_width(self, X)
            return columns_of(X, self._chosen())
        refuse_blocks(X, f"{type(self).__name__}.transform", instead="")
        refuse_foreign_array(X, "X")
        return super().transform(X)

    def _transform_there(self, X: Any) -> Any:
        """Reduce an X on a device, where it stays."""
        check_is_fitted(self)
        refuse_odd_tensor(X, "X")
        refuse_other_width(self, X)
        validate_data(self, X, reset=False, skip_check_array=True)  # warns if it has no names, but the fit had
        place = Place(X)
        return place.xp.take(X, place.send(self._chosen()), axis=1)

    def _chosen(self) -> Array:
        """Return which features are selected, with the warning of scikit-learn's own ``transform`` if there is none."""
        chosen = np.flatnonzero(self.get_support())
        if not len(chosen):
            warnings.warn(
                "No features were selected: either the data is too noisy or the selection test too strict.",
                UserWarning,
                stacklevel=3,
            )
        return chosen

    def inverse_transform(self, X: Any) -> Any:
        """Put columns of zeros where features were not selected; X is in memory."""
        user = f"{type(self).__name__}.inverse_transform"
        refuse_blocks(X, user, instead="")
        refuse_foreign_array(X, "X", user)
        return super().inverse_transform(X)

    def support_for(self, k: int | float | str | None) -> Array:
        """Return the mask of the features that are selected for ``k``, (n_features,).

        Parameters
        ----------
        k : int, float, str or None
            Whatever ``n_features_to_select`` takes.
        """
        check_is_fitted(self)
        self._check_size(k)
        return self._select(k)

    def order_for(self, k: int | float | str | None) -> Array:
        """Return the indices of the features that are selected for ``k``, best first."""
        chosen = np.flatnonzero(self.support_for(k))
        return chosen[np.argsort(self.ranking_[chosen], kind="stable")]

    @property
    def support_(self) -> Array:
        """Mask of the selected features, for the present ``n_features_to_select``."""
        return self.support_for(self.n_features_to_select)

    def _get_support_mask(self) -> Array:
        return self.support_for(self.n_features_to_select)

    def _select(self, k: int | float | str | None) -> Array:
        """Return the mask for a valid ``k`` from what was learned, which stays as it is."""
        # A constant feature has the score -inf and is not selected even if it is asked for.
        return (self.ranking_ <= self._n_wanted(k, int(self.ranking_.max()))) & np.isfinite(self.scores_)

    def with_size(self, k: int | float | str | None) -> Self:
        """Return this fitted selector with ``n_features_to_select=k``; it shares all arrays, and this one stays as it is."""
        other = copy.copy(self)
        other.n_features_to_select = k
        return other

    def _n_wanted(self, k: int | float | str | None, n_features: int) -> int:
        """Return the number of features that ``k`` means for data with ``n_features``, unclipped."""
        assert isinstance(k, numbers.Real), "a selector that takes None or a word decides itself what it means"
        return int(k) if isinstance(k, numbers.Integral) else max(1, round(float(k) * n_features))

    def _warn_if_short(self) -> None:
        """Warn if fewer features than asked for can be selected."""
        n_units, n_selectable = self._count_units()
        k = n_selectable if self.n_features_to_select is None else self._n_wanted(self.n_features_to_select, n_units)
        if k > n_selectable:
            warnings.warn(f"n_features_to_select={k}{self._shortage(k, n_units, n_selectable)}", UserWarning, stacklevel=3)

    def _count_units(self) -> tuple[int, int]:
        """Return how many features there are, or groups of them, and how many of these can be selected."""
        return int(self.ranking_.max()), len(np.unique(self.ranking_[np.isfinite(self.scores_)]))

    def _shortage(self, k: int, n_units: int, n_selectable: int) -> str:
        """Say why no more than ``n_selectable`` features can be selected."""
        if k > n_units:
            return f" is greater than n_features={n_units}. All the features will be returned."
        return f", but only {n_selectable} of {n_units} features vary; these are returned."

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

    def _warn_not_converged(self, reached: float, tol: float, max_iter: int) -> None:
        """Warn that an iterative method stopped at its limit."""
        warnings.warn(
            f"{type(self).__name__} stopped at max_iter={max_iter}; what it stops by was {reached:.2g} "
            f"(tol={tol:.2g}). Raise max_iter or tol.",
            ConvergenceWarning,
            stacklevel=2,
        )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "ranking_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.takes_sparse
        tags.target_tags.required = self.about.supervised
        tags.target_tags.multi_output = self.about.supervised and not self.needs_labels
        return tags


class SolvesForOneK(BaseSelector):
    """Base of methods that optimise for one number of features.

    Another ``n_features_to_select`` after ``fit`` makes the answer stale: what was learned is dropped at once and solved
    for the new number when it is next read, on the training data, which are kept for that. ``n_solves_`` counts.
    """

    n_solves_: int

    def _fit_scores(self, X: Any, targets: Targets) -> None:
        self._training = X, targets
        self._stale: frozenset[str] = frozenset()
        self.n_solves_ = 0
        self._solve()

    def _solve(self) -> None:
        before = vars(self).copy()
        try:
            super()._fit_scores(*self._training)
        except BaseException:
            self.__dict__ = before
            raise
        self._solution = frozenset(vars(self)) - frozenset(before)
        self._stale = frozenset()
        self.n_solves_ += 1

    def __setattr__(self, name: str, value: Any) -> None:
        is_solved = name == "n_features_to_select" and "_solution" in vars(self)
        is_same = is_solved and isinstance(value, numbers.Real) and value == vars(self).get(name)
        super().__setattr__(name, value)
        if is_solved and not is_same:
            self._stale |= self._solution
            for learned in self._solution & frozenset(vars(self)):
                delattr(self, learned)

    def __getattr__(self, name: str) -> Any:
        if name not in vars(self).get("_stale", ()):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        self._check_size(self.n_features_to_select)
        self._check_parameters()
        self._solve()
        self._warn_if_short()
        return getattr(self, name)

    def __sklearn_is_fitted__(self) -> bool:
        return "_solution" in vars(self)
