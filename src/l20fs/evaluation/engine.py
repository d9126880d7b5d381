"""Fold engine: selection on the training samples of each fold, and scores of every size on its test samples.

A selector is anything with the contract of :class:`~l20fs.estimators.base.BaseSelector`. A judge
(:mod:`l20fs.evaluation.judges`) scores, or predicts with, the selection of every size.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from l20fs.design import Part, Walk, finish, share_samples
from l20fs.design.samples import samples_of
from l20fs.evaluation.choice import Errors
from l20fs.evaluation.folds import Fold
from l20fs.evaluation.metrics import Metric
from l20fs.evaluation.out_of_fold import OutOfFold, Truth
from l20fs.evaluation.parallel import results_of, walks_of
from l20fs.inputs.devices import Place, is_dask, is_device_array
from l20fs.inputs.names import NamedColumns
from l20fs.inputs.targets import forget_absent_classes
from l20fs.typing import Array


@dataclass(frozen=True, eq=False)
class Samples:
    """Samples that can be split.

    Attributes
    ----------
    X : array, CSR matrix or blocks of shape (n_samples, n_features)
    y : array of shape (n_samples,) or (n_samples, n_outputs)
    sample_weight : array of shape (n_samples,), optional
        Weights for the selector; judges get the next two.
    fit_params, score_params : dict of arrays of shape (n_samples, ...)
        Metadata for the ``fit`` of the estimator of a judge, and for its scorer.
    names : array of shape (n_features,), optional
        Names of the features.
    nuisances : array of shape (n_samples, n_nuisances), optional
        Encoded columns that the selector adjusts for (:mod:`l20fs.inputs.nuisances`). Of labels that a part does not have,
        the columns are zero there.
    n_targets : int
        Number of columns of y as a selector encodes it: by it as many fits run side by side as memory allows.
    """

    X: Any
    y: Array
    sample_weight: Array | None = None
    fit_params: Mapping[str, Any] = field(default_factory=dict)
    score_params: Mapping[str, Any] = field(default_factory=dict)
    names: Array | None = None
    nuisances: Array | None = None
    n_targets: int = 1
    _read: dict[bytes, Array] = field(default_factory=dict, init=False, repr=False)

    def part(self, chosen: Array) -> Samples:
        """Return some of the samples."""
        fit_params, score_params = (
            {name: np.asarray(values)[chosen] for name, values in params.items()}
            for params in (self.fit_params, self.score_params)
        )
        weights = None if self.sample_weight is None else self.sample_weight[chosen]
        X = samples_of(self.X, chosen)
        nuisances = None if self.nuisances is None else self.nuisances[chosen]
        return Samples(X, self.y[chosen], weights, fit_params, score_params, self.names, nuisances, self.n_targets)

    def columns(self, order: Array) -> Array:
        """Return some columns of X as a dense array, cached for the next judge, since X may be a file."""
        key = order.tobytes()
        if key not in self._read:
            self._read[key] = dense_columns(self.X, order)
        return self._read[key]


class Parts(NamedTuple):
    """Training and test samples of a fold that are more than rows of all samples, since they were preprocessed in the fold.

    ``places`` (n_features of the fold,) says where the features of the fold are among those of all samples, -1 for features
    that only the fold has; None if they are the same.
    """

    train: Samples
    test: Samples
    places: Array | None = None


#: Returns the parts of a fold, made when they are needed: those of all folds at once may be too large.
Preparation = Callable[[Samples, Fold], Parts]


@dataclass(frozen=True, eq=False)
class Selection:
    """Fitted selector, with the features that it selects for each size, best first.

    A size is a number of features, or of groups if the selector has any, or None for the size that the selector chooses
    itself. ``fit_seconds`` is the time of one fit, on average if each size needs a fit of its own.
    """

    selector: Any
    sizes: tuple[int | None, ...]
    features: list[Array]
    fit_seconds: float

    @property
    def n_features(self) -> Array:
        """Number of features of each size, (n_sizes,)."""
        return np.array([len(features) for features in self.features])

    @cached_property
    def chains(self) -> list[Chain]:
        """Chains of sizes that share one ranking: one for all sizes if their features are nested, else one per size."""
        longest = max(self.features, key=len)
        if all(np.array_equal(features, longest[: len(features)]) for features in self.features):
            return [Chain(self.sizes, longest, self.n_features)]
        return [
            Chain((size,), features, np.array([len(features)]))
            for size, features in zip(self.sizes, self.features, strict=True)
        ]


class Chain(NamedTuple):
    """Sizes whose features are the first ``ends`` of ``order``."""

    sizes: tuple[int | None, ...]
    order: Array
    ends: Array


class Judge(Protocol):
    """Judge of a selection: a score per size, (n_sizes,), or predictions of the test samples, (n_test, n_sizes)."""

    def __call__(self, selection: Selection, train: Samples, test: Samples) -> Any: ...


class Judged(NamedTuple):
    """Results of all judges for one fold, the features of each size, and the ranks of all features if there are any."""

    by_judge: dict[str, Any]
    features: list[Array]
    ranking: Array | None

    @property
    def n_features(self) -> Array:
        """Number of features of each size, (n_sizes,)."""
        return np.array([len(features) for features in self.features])

    def mark(self, masks: Array, places: Array | None = None) -> None:
        """Set the features of each size among those of all samples, in masks (n_sizes, n_features) that are empty."""
        for mask, features in zip(masks, self.features, strict=True):
            there = features if places is None else places[features]
            mask[there[there >= 0]] = True

    def ranks(self, n_features: int, places: Array | None = None) -> Array | None:
        """Return the ranks of all features, (n_features,); those that the fold does not have come last."""
        if places is None or self.ranking is None:
            return self.ranking
        ranks = np.full(n_features + 1, self.ranking.max() + 1)
        ranks[places] = self.ranking
        return ranks[:-1]


#: Called with an unfitted selector and the training samples of a fold before it is fitted to them.
Adapt = Callable[[Any, Samples], object]


@dataclass(frozen=True)
class FoldWork:
    """Work on one fold: selection on its training samples, and results of every judge and size on its test samples.

    Parameters
    ----------
    samples : Samples
    sizes : sequence of int or None
        Sizes in ascending order.
    judges : mapping of str to Judge
    one_ranking : bool
        Whether the first k of the ranking for the largest size are the selection of k features, also for methods that
        otherwise solve for each k separately.
    adapt : callable, optional
    """

    samples: Samples
    sizes: Sequence[int | None]
    judges: Mapping[str, Judge]
    one_ranking: bool
    adapt: Adapt | None

    def walk(self, selector: Any, fold: Fold, parts: Parts | Preparation | None = None) -> Walk[Judged]:
        """Do the work beside that on other folds."""
        parts = parts(self.samples, fold) if callable(parts) else parts
        train = self.samples.part(fold.train) if parts is None else parts.train
        selection = yield from walk_selection(selector, train, self.sizes, one_ranking=self.one_ranking, adapt=self.adapt)
        return judge(selection, train, self.samples.part(fold.test) if parts is None else parts.test, self.judges)

    def __call__(self, *given: Any) -> Judged:
        return finish(self.walk(*given))


#: How warnings begin that are about all samples, and silenced in a fold: of constant features, and classes in one batch.
OF_ALL_SAMPLES = ("n_features_to_select=", "adjust_for explains")


def walk_fit(selector: Any, train: Samples) -> Walk[None]:
    """Fit a selector to samples with their weights and nuisances, without warnings about all samples.

    Those with ``walk_fit`` walk beside others.
    """
    given = {"sample_weight": train.sample_weight, "adjust_for": train.nuisances}
    given = {name: values for name, values in given.items() if values is not None}
    if hasattr(selector, "walk_fit"):
        X = share_samples(train.X)
        yield from selector.walk_fit(X if train.names is None else NamedColumns(X, train.names), train.y, **given)
        return
    with warnings.catch_warnings():
        for text in OF_ALL_SAMPLES:
            warnings.filterwarnings("ignore", message=text, category=UserWarning)
        selector.fit(train.X, train.y, **given)


def evaluate(
    selectors: Sequence[Any],
    samples: Samples,
    folds: Sequence[Fold],
    sizes: Sequence[int | None],
    judges: Mapping[str, Judge],
    *,
    one_ranking: bool = False,
    adapt: Adapt | None = None,
    n_jobs: int | None = None,
    parts: Sequence[Parts] | Preparation | None = None,
    beside: Sequence[Callable[[], Walk[Any]]] = (),
) -> Generator[Judged, None, None]:
    """Yield the results of all judges for every selector and fold.

    See :class:`FoldWork` for the parameters; ``n_jobs`` folds are computed in parallel, on ``parts`` where they were
    preprocessed, or on those that ``parts`` makes of a fold. Results come fold by fold of the first selector, then of the
    next. Closing the generator cancels the rest. Where the folds share X they are walks, and others walk ``beside`` them.
    """
    work = FoldWork(samples, sizes, judges, one_ranking, adapt)
    of_folds = [parts] * len(folds) if parts is None or callable(parts) else parts
    splits = list(zip(folds, of_folds, strict=True))
    arguments = [(selector, *split) for selector in selectors for split in splits]
    if not isinstance(samples.X, Part):
        return results_of(work, arguments, n_jobs)
    starts: list[Callable[[], Walk[Any]]] = [*beside, *(partial(work.walk, *given) for given in arguments)]
    n_rows = max((size for size in sizes if size is not None), default=0)
    return walks_of(starts, samples.X, samples.n_targets, n_rows, n_dropped=len(beside))


class Scores(NamedTuple):
    """Scores and numbers of features, arrays of shape (n_selectors, n_folds, n_sizes), and what was selected in each fold.

    ``support`` (n_folds, n_selectors, n_sizes, n_features) has masks, ``ranking`` (n_folds, n_selectors, n_features) ranks.
    ``predictions`` are None where a scorer gave the scores.
    """

    values: Array
    n_features: Array
    support: Array
    ranking: Array
    predictions: OutOfFold | None

    def errors(self, metric: Metric | None, *, by_default: bool) -> Errors:
        """Return the errors by which a size is chosen: those of predictions by default, else those of the scores."""
        means = self.values.mean(axis=1).ravel()
        if self.predictions is None or metric is None:
            return Errors.of_unknown_scores(means)
        if by_default and self.predictions.has_errors:
            return self.predictions.errors()
        return self.predictions.errors_by(metric, means)


def score_sizes(
    selectors: Sequence[Any],
    samples: Samples,
    folds: Sequence[Fold],
    sizes: Sequence[int | None],
    judge: Judge,
    *,
    on_path: Callable[[int], object],
    parts: Sequence[Parts] | None = None,
    metric: Metric | None = None,
    truth: Truth | None = None,
    **options: Any,
) -> Scores:
    """Score every size of every selector in every fold by one judge.

    ``options`` are those of :func:`evaluate`; ``on_path`` is called with the number of finished paths. With a ``metric`` the
    judge predicts (:class:`~l20fs.evaluation.out_of_fold.Response`), and ``truth`` has what is to be predicted.
    """
    found: list[Judged] = []
    with closing(evaluate(selectors, samples, folds, sizes, {"score": judge}, parts=parts, **options)) as results:
        for judged in results:
            found.append(judged)
            on_path(len(found))
    shape = (len(selectors), len(folds), len(sizes))
    n_features = samples.X.shape[1]
    places = [None] * len(folds) if parts is None else [part.places for part in parts]
    support = np.zeros((len(folds), len(selectors), len(sizes), n_features), dtype=bool)
    for number, judged in enumerate(found):
        selector, fold = divmod(number, len(folds))
        judged.mark(support[fold, selector], places[fold])
    ranks: list[Any] = [judged.ranks(n_features, places[number % len(folds)]) for number, judged in enumerate(found)]
    judgements, predictions = [judged.by_judge["score"] for judged in found], None
    if metric is None or truth is None:
        values = np.reshape(judgements, shape)
    else:
        weights = samples.score_params.get("sample_weight")
        predictions = OutOfFold(
            truth.values,
            truth.shares,
            folds,
            None if weights is None else np.asarray(weights, dtype=np.float64),
            [judgements[start : start + len(folds)] for start in range(0, len(judgements), len(folds))],
        )
        values = predictions.scores(metric)
    return Scores(
        values,
        np.reshape([judged.n_features for judged in found], shape),
        support,
        np.reshape(ranks, (*shape[:2], -1)).swapaxes(0, 1),
        predictions,
    )


def walk_selection(
    selector: Any,
    train: Samples,
    sizes: Sequence[int | None],
    *,
    one_ranking: bool = False,
    adapt: Adapt | None = None,
) -> Walk[Selection]:
    """Fit a copy of a selector once, and return its features for every size."""
    sizes = tuple(sizes)
    fitted = _prepared(selector, sizes, train.X.shape[1], one_ranking=one_ranking)
    forget_absent_classes(fitted, train.y)
    if adapt is not None:
        adapt(fitted, train)
    start = time.perf_counter()
    yield from walk_fit(fitted, train)
    seconds = (time.perf_counter() - start) / len(getattr(fitted, "solutions_", sizes[:1]))
    vars(fitted).pop("feature_names_in_", None)  # judges give it arrays
    return Selection(fitted, sizes, _features(fitted, sizes, one_ranking=one_ranking), seconds)


def judge(selection: Selection, train: Samples, test: Samples, judges: Mapping[str, Judge]) -> Judged:
    """Return the results of all judges."""
    results = {name: judge(selection, train, test) for name, judge in judges.items()}
    return Judged(results, selection.features, getattr(selection.selector, "ranking_", None))


def _prepared(selector: Any, sizes: tuple[int | None, ...], n_features: int, *, one_ranking: bool) -> Any:
    """Return an unfitted copy that covers all sizes, without output."""
    counts = _counts(sizes)
    largest = min(max(counts), n_features) if len(counts) == len(sizes) else None
    changes: dict[str, Any] = {"max_features": largest, "callback": None, "certify": False}
    if not one_ranking:
        changes["sizes"] = counts  # of methods that solve for each size
    known = selector.get_params(deep=False)
    changes = {name: value for name, value in changes.items() if name in known}
    # Under constraints a panel of this size stays within reach, which must not bend those of all smaller sizes.
    size = largest if known.get("constraints") is None or largest is None else min(counts)
    return clone(selector).set_params(n_features_to_select=size, **changes)


def _counts(sizes: tuple[int | None, ...]) -> list[int]:
    return [size for size in sizes if size is not None]


def _features(fitted: Any, sizes: tuple[int | None, ...], *, one_ranking: bool) -> list[Array]:
    """Return the features of every size, best first."""
    if not one_ranking or None in sizes:
        return [fitted.order_for(size) for size in sizes]
    order = fitted.order_for(min(max(_counts(sizes)), len(fitted.ranking_)))
    ends = np.searchsorted(fitted.ranking_[order], _counts(sizes), side="right")
    return [order[:end] for end in ends]


def dense_columns(X: Any, columns: Array) -> Array:
    """Return some columns as a dense array of NumPy."""
    if is_device_array(X):
        place = Place(X)
        return place.fetch(place.xp.take(X, place.send(columns), axis=1))
    chosen = X[:, columns].compute() if is_dask(X) else X[:, columns]
    return np.asarray(chosen.toarray() if sp.issparse(chosen) else chosen)
