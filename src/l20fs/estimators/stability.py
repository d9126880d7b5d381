"""StabilitySelector: stability selection with any selector on complementary halves of the samples."""

from __future__ import annotations

import math
import numbers
import warnings
from collections.abc import Generator
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone, is_regressor
from sklearn.pipeline import Pipeline
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from l20fs.design import Part
from l20fs.estimators.base import About, BaseSelector, ranks_of
from l20fs.estimators.frames import is_lazy
from l20fs.estimators.resampled import Picked, Work, find_units
from l20fs.estimators.selection_table import feature_names
from l20fs.estimators.selector import L20Selector
from l20fs.evaluation.parallel import results_of, shared_unless_in_processes, walks_of
from l20fs.evaluation.resampling import plan_pairs
from l20fs.evaluation.stability_index import Bound, Stability, expected_false, nogueira
from l20fs.inputs.constraints import by_index
from l20fs.inputs.devices import is_device_array
from l20fs.inputs.old_names import name_new_parameters
from l20fs.inputs.targets import Targets, encode_targets, warn_of_numbers
from l20fs.inputs.validation import check_choice, check_number, validate_device_input, validate_input
from l20fs.typing import Array, Size

if TYPE_CHECKING:
    import pandas as pd


#: With so many resamples a frequency is known to 0.1 %.
MOST_RESAMPLES = 10**6


class StabilitySelector(BaseSelector):
    r"""Select the features that a selector selects most often on halves of the samples.

    The samples are split in two at random, the selector is fitted to each half, and so on until ``n_resamples`` halves are
    used (complementary pairs, Shah and Samworth 2013). The frequency of a feature is the share of the halves on which it
    was selected. One fit keeps the ranking of every half: ``threshold`` and ``n_features_to_select`` can be changed
    afterwards.

    Features that an :class:`L20Selector` selects together (groups of its ``constraints``) are counted, kept and dropped
    together, and every number below counts such groups and the features that stand alone. Features that it is told to
    select always or never say nothing about stability and are left out of the index and the error bound.

    Parameters
    ----------
    selector : estimator or None, default=None
        Selector with ``ranking_`` and ``support_``, of this package or another; it is cloned. None: ``L20Selector()``.
        Where its ``random_state`` is None, every resample sets its own.
    n_features_to_select : int, float or None, default=None
        None: the features with a frequency of at least ``threshold``. A number, or a share of all features: the most
        frequent ones; among equals those with the better mean rank, then the lower index. A feature that no resample
        selected is never selected. With groups of the selector it counts groups, and features that stand alone.
    n_resamples : int, default=100
        Number of halves, even.
    threshold : float, default=0.6
        See ``n_features_to_select``. 0.6 is the low end of what is usual, 0.6 to 0.9: halves have half the evidence, so
        that a good feature may well be missed in a third of them. Above 0.5 there is an :meth:`error_bound`.
    random_state : int, RandomState or None, default=None
        Seed of the draws; resample i depends on this and i alone. None: another one in each fit. The global state of NumPy
        is neither used nor changed.
    n_jobs : int or None, default=None
        Number of processes, as in scikit-learn; the result does not depend on it. None, or 1: halves are fitted
        side by side in one process and share their products with X, where an L20Selector selects; so are those of files,
        Dask arrays and devices, for any number.
    verbose : int, default=0
        1 prints a line per resample.

    Attributes
    ----------
    frequencies_, scores_ : array of shape (n_features,)
        Share of the resamples in which a feature, or the group that it is in, was selected.
    standard_errors_ : array of shape (n_features,)
        Standard error of the frequencies, from one draw of the halves to another.
    ranking_ : array of shape (n_features,)
        1 is best: by frequency, then by mean rank, then by index. The features of a group share a rank.
    support_ : array of shape (n_features,)
        Mask of the selected features, for the present ``n_features_to_select`` and ``threshold``.
    mean_ranks_ : array of shape (n_features,)
        Mean rank over the resamples; a resample that does not hold the feature among those it keeps counts as one rank
        behind the last of them.
    orders_ : array of shape (n_resamples, n_kept)
        The best features of each resample, best first; -1 behind the last one. As many as the selector selects, or its
        ``max_features_to_select`` if that is more. A group is there once, by its feature of the lowest index.
    sizes_ : array of shape (n_resamples,)
        How many of them the selector selected.
    selected_ : array of shape (n_resamples, n_features)
        Which features, or groups that they are in, each resample selected.
    stability_ : float
        How much the resamples agree where they have a choice, 1 at most and about 0 by chance; see
        :func:`~l20fs.evaluation.stability_index.nogueira`.
    stability_interval_ : tuple of two floats
        Its 95 % interval, which takes the resamples for independent.
    error_bound_ : float
        :meth:`error_bound` of the features that are selected at present; NaN if that goes down to frequencies of 0.5 or
        less, for which there is none.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    .. [1] R. D. Shah and R. J. Samworth, "Variable selection with error control: another look at stability selection",
       Journal of the Royal Statistical Society B (2013).

    Examples
    --------
    >>> from l20fs.data import make_planted
    >>> X, y, informative = make_planted(n_samples=200, n_features=50, n_informative=3, random_state=0)
    >>> stable = StabilitySelector(L20Selector(3), n_resamples=20, random_state=0).fit(X, y)
    >>> bool((stable.get_support(indices=True) == informative).all())
    True
    >>> stable.at(1).transform(X).shape
    (200, 1)
    """

    about = About(
        reference="Shah and Samworth, Variable selection with error control: another look at stability selection (2013)",
        kind="wrapper",
        cost="n_resamples fits on half of the samples",
    )
    _allows_none = True
    _takes_blocks = True
    _takes_device_arrays = True
    # Groups have no other use than this one: a pipeline hands them over without being asked to.
    __metadata_request__fit = {"groups": True}  # noqa: RUF012

    frequencies_: Array
    mean_ranks_: Array
    orders_: Array
    sizes_: Array
    stability_: float
    stability_interval_: tuple[float, float]

    @name_new_parameters
    def __init__(
        self,
        selector: Any = None,
        *,
        n_features_to_select: int | float | None = None,
        n_resamples: int = 100,
        threshold: float = 0.6,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.selector = selector
        self.n_features_to_select = n_features_to_select
        self.n_resamples = n_resamples
        self.threshold = threshold
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, *, sample_weight: Any = None, groups: Any = None, adjust_for: Any = None) -> Self:
        """Fit the selector to every half.

        Parameters
        ----------
        X : array, DataFrame, sparse matrix or matrix in blocks, of shape (n_samples, n_features)
            What the selector takes; an array of torch or CuPy stays on its device.
        y : array of shape (n_samples,) or (n_samples, n_outputs)
            What the selector takes; unsupervised methods of this package ignore it, any other selector gets it if it is
            given. If it holds labels, each half has its share of every class; a class with one sample can be in one half
            of a pair only, which is warned about. The y of a regressor never holds labels.
        sample_weight : array of shape (n_samples,), default=None
            Handed to the selector, which must take it. Samples of weight 0 are not drawn.
        groups : array of shape (n_samples,), default=None
            Samples with the same value, of one donor for instance, are in the same half. Also handed to the selector, if
            it takes groups.
        adjust_for : array or list of shape (n_samples,) or (n_samples, n_columns), Series or DataFrame, default=None
            Known nuisances of each sample, such as its batch, as for :meth:`L20Selector.fit`. Handed to the selector, which
            must take it, for the samples of each half.

        Returns
        -------
        self
            The fitted selector.
        """
        for name, given in (("sample_weight", sample_weight), ("adjust_for", adjust_for)):
            if given is not None and not has_fit_parameter(selector := self._selector(), name):
                raise TypeError(
                    f"{type(selector).__name__} takes no {name}. Leave it out, or use a selector that does, for example "
                    "L20Selector."
                )
        with self._fitting():
            self._learn(*self._prepare(X, y, sample_weight, adjust_for), groups=groups)
            self._warn_if_short()
        return self

    def _learn(self, X: Any, targets: Targets, **extra: Any) -> None:
        # Resamples are arrays, which are many times faster to draw than frames and have no names.
        selector = by_index(self._selector(), getattr(self, "feature_names_in_", None))
        if _may_do_both(selector) and selector.task == "auto":  # a half may look like another task than the whole
            selector.set_params(task="regression" if targets.classes is None else "classification")
        y, groups = _for_selector(targets), extra["groups"]
        pairs = plan_pairs(targets, groups, 0.5, self._seed())
        self._units = find_units(selector, X, targets)
        given = {"sample_weight": targets.sample_weight, "adjust_for": targets.nuisances}
        metadata = {name: values for name, values in given.items() if values is not None}
        if groups is not None and has_fit_parameter(selector, "groups"):
            metadata["groups"] = np.asarray(groups)
        X = shared_unless_in_processes(X, self.n_jobs) if getattr(selector, "_takes_parts", False) else X
        work = Work(selector, X, y, metadata, pairs, self._units, int(self.n_resamples))
        self._keep_picked(self._run(work, targets.Y.shape[1]))

    def _run(self, work: Work, n_targets: int) -> list[Picked]:
        """Run all resamples and report progress; results are in order."""
        found: list[Picked] = []
        with closing(self._picked(work, n_targets)) as results:
            for picked in results:
                found.append(picked)
                if self.verbose:
                    print(f"[StabilitySelector] {len(found)} of {work.n_resamples} resamples")
        return found

    def _picked(self, work: Work, n_targets: int) -> Generator[Picked, None, None]:
        """Return the results of all resamples, computed side by side."""
        resamples = range(work.n_resamples)
        if isinstance(work.X, Part) and hasattr(work.selector, "_walk_fit"):
            starts = [partial(work.walk, resample) for resample in resamples]
            return walks_of(starts, work.X, n_targets, work.selector._most_rows(work.X.shape[1]))
        # What fits share, and arrays on a device, stay in this process.
        is_here = isinstance(work.X, Part) or is_device_array(work.X)
        return results_of(work.pick, ((resample,) for resample in resamples), 1 if is_here else self.n_jobs)

    def _keep_picked(self, found: list[Picked]) -> None:
        n_kept = np.array([len(picked.order) for picked in found])
        self.orders_ = np.full((len(found), n_kept.max()), -1, dtype=np.int32)
        for row, picked in zip(self.orders_, found, strict=True):
            row[: len(picked.order)] = picked.order
        self.sizes_ = np.array([picked.size for picked in found])
        self.frequencies_ = self._frequencies(self.sizes_)
        # A rank that is not known counts as n_kept + 1 of its resample; those that are known are better by a lead.
        resample, position = np.nonzero(self.orders_ >= 0)
        lead = n_kept[resample] - position
        units, heads = self._units.of, self._units.heads
        leads = np.bincount(self.orders_[resample, position], weights=lead, minlength=self.n_features_in_)[heads][units]
        self.mean_ranks_ = (n_kept.sum() + len(found) - leads) / len(found)
        self.ranking_ = ranks_of(np.lexsort((self.mean_ranks_[heads], -self.frequencies_[heads])))[units]
        stability = nogueira(self._free_members(self.sizes_))
        self.stability_ = stability.index
        self.stability_interval_ = (stability.lower, stability.upper)

    def _members(self, sizes: Array | int) -> sp.csr_array:
        """Return a 0/1 matrix of the best ``sizes`` units of each resample."""
        inside = (np.arange(self.orders_.shape[1]) < np.reshape(sizes, (-1, 1))) & (self.orders_ >= 0)
        indptr = np.concatenate([[0], np.cumsum(inside.sum(axis=1))])
        shape = (len(self.orders_), len(self._units.heads))
        units = self._units.of[self.orders_[inside]]
        return sp.csr_array((np.ones(indptr[-1], dtype=np.int64), units, indptr), shape=shape)

    def _free_members(self, sizes: Array | int) -> sp.csr_array:
        """Return the columns of :meth:`_members` of units that are neither included nor excluded."""
        members, is_free = self._members(sizes), self._units.is_free
        return members if is_free.all() else members[:, np.flatnonzero(is_free)]

    def _frequencies(self, sizes: Array | int) -> Array:
        return (np.asarray(self._members(sizes).sum(axis=0)) / len(self.orders_))[self._units.of]

    def frequencies_at(self, k: int) -> Array:
        """Return the selection frequency of each feature, or its group, among the best ``k``.

        Parameters
        ----------
        k : int
            Number of features, or groups, up to as many as are kept of each resample.

        Returns
        -------
        array of shape (n_features,)
            Frequencies from 0 to 1.
        """
        return self._frequencies(self._check_k(k))

    def frequencies_by_k(self, features: Any = None) -> Array:
        """Return the frequencies for all k = 1, 2, ...

        Parameters
        ----------
        features : array of indices or None, default=None
            The columns; None: all features.

        Returns
        -------
        array of shape (n_kept, n_features)
            Row k - 1 has the frequencies for k.
        """
        check_is_fitted(self)
        chosen = self._units.of if features is None else self._units.of[features]
        units, place = np.unique(chosen, return_inverse=True)
        column = np.full(self.n_features_in_ + 1, -1)  # the last one is for order -1: nothing there
        column[self._units.heads[units]] = np.arange(len(units))
        resample, position = np.nonzero(column[self.orders_] >= 0)
        counts = np.zeros((self.orders_.shape[1], len(units)))
        np.add.at(counts, (position, column[self.orders_[resample, position]]), 1.0)
        return counts.cumsum(axis=0)[:, place] / len(self.orders_)

    def stability_at(self, k: int) -> Stability:
        """Return the agreement of the best ``k`` of the resamples where they have a choice.

        Parameters
        ----------
        k : int
            Number of features, or groups, up to as many as are kept of each resample.

        Returns
        -------
        Stability
            The index and its interval.
        """
        return nogueira(self._free_members(self._check_k(k)))

    def error_bound(self, threshold: float | None = None, *, kind: Bound = "worst_case") -> float:
        """Return an upper bound on the expected number of falsely selected features.

        A feature is unlikely if a half of the samples selects it with probability q / p at most, where q of all p features
        are selected on average: no more often than by drawing lots. Among the features with a frequency of at least
        ``threshold``, there are at most this many such features, on average over data sets of this kind. It is no bound on
        features that are correlated with the truth and therefore often selected. A group counts as one feature; features
        that are included or excluded do not count.

        Parameters
        ----------
        threshold : float or None, default=None
            Above 0.5. None: what describes the present selection, which is the parameter ``threshold``, or with
            ``n_features_to_select`` the lowest frequency that is selected. The latter is read off the data, and the bound
            of a number that was fixed before is the safer one.
        kind : {"worst_case", "unimodal"}, default="worst_case"
            See :func:`~l20fs.evaluation.stability_index.expected_false`.

        Returns
        -------
        float
            Expected number, at most.
        """
        check_is_fitted(self)
        check_choice("kind", kind, ("worst_case", "unimodal"))
        level = self._level() if threshold is None else threshold
        members = self._free_members(self.sizes_)
        n_resamples, n_free = members.shape
        return expected_false(float(members.sum()) / n_resamples, n_free, level, n_resamples // 2, kind)

    @property
    def error_bound_(self) -> float:
        """Worst-case error bound of the present selection; NaN for frequencies of 0.5 or less."""
        check_is_fitted(self)
        level = self._level()
        return self.error_bound(level) if level > 0.5 else math.nan

    def _level(self) -> float:
        """Return the lowest frequency of a selected feature."""
        support = self.support_
        return self.threshold if self.n_features_to_select is None else float(self.frequencies_[support].min(initial=1.0))

    @property
    def selected_(self) -> Array:
        """Mask of shape (n_resamples, n_features): which features, or groups that they are in, each resample selected."""
        return np.asarray(self._members(self.sizes_).toarray(), dtype=bool)[:, self._units.of]

    @property
    def scores_(self) -> Array:  # type: ignore[override]  # the same under the name that all selectors have
        """Share of the resamples in which a feature, or the group that it is in, was selected."""
        return self.frequencies_

    def _select(self, k: Size) -> Array:
        if k is None:
            check_share("threshold", self.threshold, 1.0)
            return self.frequencies_ >= self.threshold
        return (self.ranking_ <= self._n_wanted(k, len(self._units.heads))) & (self.frequencies_ > 0.0)

    def to_frame(self) -> pd.DataFrame:
        """Return a table of the features that were selected in any resample, best first.

        Columns: ``feature``, ``rank``, ``stability`` (the share of resamples that select it), ``standard_error`` (of
        that share, from one draw of pairs to another), ``mean_rank`` and ``selected``.

        Returns
        -------
        DataFrame
            One row per feature.
        """
        import pandas as pd

        support = self.support_
        chosen = np.argsort(self.ranking_, kind="stable")[: np.count_nonzero(self.frequencies_)]
        return pd.DataFrame(
            {
                "feature": feature_names(self)[chosen],
                "rank": self.ranking_[chosen],
                "stability": self.frequencies_[chosen],
                "standard_error": self.standard_errors_[chosen],
                "mean_rank": self.mean_ranks_[chosen],
                "selected": support[chosen],
            }
        )

    @property
    def standard_errors_(self) -> Array:
        """Standard error of each frequency over pairs, which are drawn independently."""
        members = self._members(self.sizes_)
        n_pairs = members.shape[0] // 2
        if n_pairs < 2:
            return np.full(self.n_features_in_, np.nan)
        in_both = np.asarray((members[::2] * members[1::2]).sum(axis=0))[self._units.of]
        # A pair has 0, 1/2 or 1 of a feature; the mean of the squares follows from how often it has 1.
        squares = (self.frequencies_ + in_both / n_pairs) / 2
        return np.sqrt(np.maximum(squares - self.frequencies_**2, 0.0) / (n_pairs - 1))

    def _check_k(self, k: int) -> int:
        check_is_fitted(self)
        n_kept = self.orders_.shape[1]
        check_number("k", k, minimum=1, strict=False, whole=True)
        if k > n_kept:
            raise ValueError(
                f"k={k} is more than the {n_kept} {self._units.called} that are kept of each resample. Fit with a selector "
                f"that selects {k}, or that has max_features_to_select={k}."
            )
        return int(k)

    def _check_parameters(self) -> None:
        check_number("n_resamples", self.n_resamples, minimum=2, strict=False, most=MOST_RESAMPLES, whole=True)
        if self.n_resamples % 2:
            raise ValueError(f"n_resamples={self.n_resamples} is odd, but the halves come in pairs. Use an even number.")
        check_share("threshold", self.threshold, 1.0)
        if isinstance(self.selector, Pipeline):
            last = type(self.selector.steps[-1][1]).__name__
            raise TypeError(
                f"selector is a Pipeline, which has no ranking_. Give its last step alone, and put the others in front: "
                f"make_pipeline(..., StabilitySelector({last}(...)))."
            )

    def _selector(self) -> Any:
        """Copy of the selector: the given object is never fitted."""
        return L20Selector() if self.selector is None else clone(self.selector)

    def _seed(self) -> int:
        if self.random_state is None:
            return int(np.random.SeedSequence().generate_state(1)[0])
        if isinstance(self.random_state, np.random.RandomState):
            return int(self.random_state.randint(2**31 - 1))
        check_number("random_state", self.random_state, minimum=0, strict=False, most=math.inf, whole=True)
        return int(self.random_state)

    @property
    def _takes_parts(self) -> bool:  # type: ignore[override]  # if the selector does
        """Whether X may be a part of samples that several fits share."""
        return bool(getattr(self._selector(), "_takes_parts", False))

    def _validate(self, X: Any, y: Any) -> tuple[Any, Targets]:
        if isinstance(X, Part):
            return self._validate_part(X, y)
        selector = self._selector()
        tags = get_tags(selector)
        if self._takes_parts and is_lazy(X):
            return self._validate_blocks(X, y)
        if is_device_array(X) and getattr(selector, "_takes_device_arrays", False):
            X, y = validate_device_input(self, X, y)
            return X, self._encode(y)
        # The tags of a selector of another package need not say that it has a use for y, and its fit takes it anyway.
        supervised = not _ignores_targets(selector) and (y is not None or tags.target_tags.required)
        X, y = validate_input(
            self,
            X,
            y if supervised else None,
            supervised=supervised,
            accept_sparse=tags.input_tags.sparse,
            dtypes=[np.float64, np.float32],
        )
        if not supervised:
            return X, Targets(np.empty((X.shape[0], 0)), None, None)
        return X, self._encode(y)

    def _encode(self, y: Array) -> Targets:
        """Encode y once for all halves, by the task of the selector."""
        selector = _innermost(self)
        if is_regressor(selector):
            return encode_targets(y, "regression")
        if not _may_do_both(selector):
            return encode_targets(y)
        targets = encode_targets(y, selector.task)
        if selector.task == "auto":
            warn_of_numbers(y, targets)
        return targets

    def _warn_if_short(self) -> None:
        if self.n_features_to_select is None:
            return
        units = self._units
        wanted = self._n_wanted(self.n_features_to_select, len(units.heads))
        found = np.count_nonzero(self.frequencies_[units.heads])
        if wanted > found:
            warnings.warn(
                f"n_features_to_select={wanted}, but the resamples selected only {found} of {len(units.heads)} "
                f"{units.called}; these are returned. Let the selector select more.",
                UserWarning,
                stacklevel=3,  # the caller of fit
            )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = get_tags(self._selector())
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.target_tags = inner.target_tags
        tags.array_api_support = getattr(self._selector(), "_takes_device_arrays", False)
        return tags


def _innermost(selector: Any) -> Any:
    """Return the selector inside one or several stability selections."""
    while isinstance(selector, StabilitySelector):
        selector = selector._selector()
    return selector


def _may_do_both(selector: Any) -> bool:
    """Return whether labels and numbers are possible targets of a selector, by its ``task``."""
    return isinstance(selector, BaseSelector) and "task" in selector.get_params(deep=False)


def _ignores_targets(selector: Any) -> bool:
    """Return whether a selector is known to ignore y."""
    selector = _innermost(selector)
    return isinstance(selector, BaseSelector) and not selector.about.supervised


def _for_selector(targets: Targets) -> Array | None:
    """Return the y that a selector is fitted to; None if it takes none."""
    if targets.codes is not None and targets.classes is not None:
        return np.asarray(targets.classes[targets.codes])
    if targets.Y.shape[1] == 0:
        return None
    return targets.Y.ravel() if targets.Y.shape[1] == 1 else targets.Y


def check_share(name: str, value: Any, largest: float) -> None:
    """Raise an error for a parameter that is not a number above 0 and up to ``largest``."""
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)
    if not is_number or not 0.0 < value <= largest:
        raise ValueError(f"{name}={value!r} is not valid. Use a number above 0.0 and up to {largest}.")
