"""Fits of a comparison: every method on every split and its inner folds, as rows of scores."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import has_fit_parameter

from l20fs import L20Selector
from l20fs.compare.evaluators import CLASSIFIERS, REGRESSORS, score
from l20fs.compare.methods import BASELINE, Method
from l20fs.compare.splits import inner_folds, random_split
from l20fs.design import finish
from l20fs.evaluation.engine import Samples, walk_selection
from l20fs.evaluation.folds import Fold
from l20fs.evaluation.metrics import METRICS, Metric, find_metric
from l20fs.evaluation.parallel import results_of
from l20fs.evaluation.target_summary import Classes, Numbers, TargetSummary
from l20fs.tables import DataError
from l20fs.tables.table import Unprepared
from l20fs.text import counted, joined
from l20fs.typing import Array, Scale

#: Size that stands for the number of features with non-zero weights at the lambda of the method.
NONZERO = 0

#: Default numbers of features.
SIZES = (5, 10, 20, 50, 100)

#: A class with fewer samples is entirely in the training part.
FEWEST_TESTED = 3

#: Fewest samples with numbers: each of five folds of two thirds of them has two test samples.
FEWEST_NUMBERS = 15


#: Columns of the rows; ``score`` has the name of the metric.
COLUMNS = ["dataset", "method", "choice", "split", "fold", "classifier", "n_features", "score"]
COLUMNS += ["n_test", "fit_seconds", "n_nonzero", "selected"]


class Dataset(NamedTuple):
    """Data set in the form for methods; ``y`` holds labels, or numbers for a regression.

    If ``X`` was prepared by what all samples say, ``unprepared`` prepares it by the training samples of a split. Samples of
    one of the ``groups`` are never both learned from and tested. Methods that can adjust for ``nuisances`` do.
    """

    name: str
    X: Array
    y: Array
    task: Literal["classification", "regression"] = "classification"
    unprepared: Unprepared | None = None
    groups: Array | None = None
    nuisances: Array | None = None

    @property
    def has_labels(self) -> bool:
        """Whether classes are to be predicted, not numbers."""
        return self.task == "classification"

    @property
    def targets(self) -> TargetSummary:
        """The classes, or the numbers."""
        return Classes.of(self.y) if self.has_labels else Numbers(self.y)

    @property
    def strata(self) -> Array:
        """Classes of which every split takes the same share: the labels, or one class for all numbers."""
        return self.y if self.has_labels else np.zeros(len(self.y), dtype=np.intp)

    def split(self, number: int, seed: int) -> Fold:
        """Return the training and the test samples of a split."""
        return random_split(self.strata, number, seed, self.groups)

    def inner_folds(self, number: int, n_folds: int, seed: int) -> list[Fold]:
        """Return the inner folds of the training part of a split."""
        return inner_folds(self.strata, self.split(number, seed).train, n_folds, number, seed, self.groups)


@dataclass(frozen=True)
class Settings:
    """Settings of a comparison.

    Without ``inner_folds`` nothing is chosen inside the training parts. ``scale`` is one scaling of the features for all
    methods, by the training samples; None: each method scales them by itself.
    """

    methods: tuple[Method, ...]
    sizes: tuple[int, ...] = SIZES
    evaluators: tuple[str, ...] = tuple(CLASSIFIERS)
    n_splits: int = 10
    inner_folds: int = 5
    scale: Scale | None = "auto"
    scoring: str = "accuracy"
    seed: int = 0

    @property
    def metric(self) -> Metric:
        """The metric by which all is chosen and reported."""
        return METRICS[self.scoring]


class Fit(NamedTuple):
    """One fit: a method with one setting, on the training samples of a split, or of an inner fold of them."""

    method: Method
    choice: dict[str, Any]
    split: int
    fold: int | None


def make_settings(data: Dataset, methods: Sequence[Method], *, sizes: Sequence[int] = (), **options: Any) -> Settings:
    """Return the settings for a data set, or raise an error if it cannot be compared on.

    Parameters
    ----------
    data : Dataset
    methods : sequence of Method
    sizes : sequence of int, optional
        Numbers of features; by default those of ``SIZES`` that the data have.
    **options
        Fields of :class:`Settings`. ``scoring`` may be "auto": the metric for such targets.
    """
    n_features = data.X.shape[1]
    if max(sizes, default=0) > n_features:
        raise DataError(f"sizes: {max(sizes)} is above the {n_features} features of the data. Use smaller sizes.")
    scoring = options.pop("scoring", "auto")
    metric = data.targets.metric if scoring == "auto" else find_metric(scoring)
    _refuse_untestable(data)
    sizes = sorted(set(sizes)) or [size for size in SIZES if size <= n_features] or [n_features]
    evaluators = CLASSIFIERS if data.has_labels else REGRESSORS
    return Settings(tuple(methods), tuple(sizes), tuple(evaluators), scoring=metric.name, **options)


def _refuse_untestable(data: Dataset) -> None:
    """Raise an error if fewer than two classes have test samples, or numbers are too few: scores would be meaningless."""
    values, counts = np.unique(data.y, return_counts=True)
    if not data.has_labels:
        if len(data.y) < FEWEST_NUMBERS:
            raise DataError(f"There are {counted(len(data.y), 'sample')}. A comparison by numbers needs {FEWEST_NUMBERS}.")
    elif np.count_nonzero(counts >= FEWEST_TESTED) < 2:
        sizes = joined([f"{str(label)!r} {count}" for label, count in zip(values[:5], counts[:5], strict=True)])
        raise DataError(
            f"Samples per class: {sizes}. At least two classes need {FEWEST_TESTED} or more, to have a test sample. Add "
            "samples, or merge rare classes."
        )


def run(
    settings: Settings,
    data: Dataset,
    *,
    n_jobs: int | None = None,
    on_progress: Callable[[int, int], object] = lambda n_done, n_fits: None,
    evaluate: Callable[[Fit, Dataset, Settings], list[tuple[Any, ...]]] | None = None,
) -> pd.DataFrame:
    """Return one row per fit, estimator and number of features.

    Parameters
    ----------
    settings : Settings
    data : Dataset
    n_jobs : int, optional
        Number of fits at the same time, computed by the active joblib backend; except for the times, the rows do not depend
        on it.
    on_progress : callable
        Called with the numbers of finished and of all fits.
    evaluate : callable, optional
        Used in place of :func:`evaluate`, for example to keep what was computed.

    Returns
    -------
    DataFrame
        dataset, method, choice (JSON), split, fold (missing for the trial on the test part of the split), classifier,
        n_features, a column with the name of the metric, n_test, fit_seconds, n_nonzero (rows with weights, of methods that
        have any), and ``selected``: the features, best first.
    """
    fits = sorted(fits_of(settings, data), key=lambda fit: fit.fold is not None)  # first what needs no inner fold
    rows: list[tuple[Any, ...]] = []
    with closing(results_of(evaluate or evaluate_fit, [(fit, data, settings) for fit in fits], n_jobs)) as results:
        for number, found in enumerate(results, start=1):
            rows += found
            on_progress(number, len(fits))
    columns = [settings.scoring if name == "score" else name for name in COLUMNS]
    return pd.DataFrame(rows, columns=columns).astype({"fold": "Int64", "n_nonzero": "Int64"})


def fits_of(settings: Settings, data: Dataset) -> Iterator[Fit]:
    """Yield all fits of a comparison; a method that selects nothing has nothing to choose on inner folds."""
    for split in range(settings.n_splits):
        n_folds = len(data.inner_folds(split, settings.inner_folds, settings.seed)) if settings.inner_folds else 0
        for method in settings.methods:
            for choice in method.choices:
                for fold in (None, *range(0 if method.name == BASELINE else n_folds)):
                    yield Fit(method, choice, split, fold)


def evaluate_fit(fit: Fit, data: Dataset, settings: Settings) -> list[tuple[Any, ...]]:
    """Select on the training samples of a fit, and score every number of features on its test samples."""
    method, n_features = fit.method, data.X.shape[1]
    train, test = (
        data.split(fit.split, settings.seed)
        if fit.fold is None
        else data.inner_folds(fit.split, settings.inner_folds, settings.seed)[fit.fold]
    )
    sizes = [size for size in settings.sizes if size <= n_features]
    if method.name == BASELINE:
        sizes = [n_features]
    selector = method.selector(fit.choice)
    X = data.X if data.unprepared is None else data.unprepared.prepared(train)
    if settings.scale is not None:
        X = _scaled(X, train, scale_rule(X[train], data.y[train], data.task, settings.scale))
        if "scale" in selector.get_params():
            selector.set_params(scale="none")  # once is enough
    if not data.has_labels and "task" in selector.get_params():
        selector.set_params(task="regression")  # whole numbers are no labels
    nuisances = data.nuisances if has_fit_parameter(selector, "adjust_for") else None
    samples = Samples(X, data.y, nuisances=nuisances)
    parts = samples.part(train), samples.part(test)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            wanted = [None if size == NONZERO else size for size in sizes]
            selection = finish(walk_selection(selector, parts[0] if data.has_labels else _standardised(parts[0]), wanted))
        except ValueError as error:
            where = f"split {fit.split}" if fit.fold is None else f"fold {fit.fold} of split {fit.split}"
            raise ValueError(f"{method.label}, {where}: {error} Leave the method out, or correct the data.") from error
        path = getattr(selection.selector, "path_", None)
        n_nonzero = None if path is None else int(path.n_nonzero[-1])
        identity = (data.name, method.label, json.dumps(fit.choice), fit.split, fit.fold)
        rows = []
        for name in settings.evaluators:
            for size, features in zip(sizes, selection.features, strict=True):
                value = score(name, settings.metric, features, *parts)
                n_used = len(features) if size == NONZERO else size
                rows.append((*identity, name, n_used, value, len(test), selection.fit_seconds, n_nonzero, features))
    return rows


def _standardised(train: Samples) -> Samples:
    """Return samples with numbers in units of their deviation: penalties of some methods are relative to that of y."""
    return replace(train, y=(train.y - train.y.mean()) / (float(train.y.std()) or 1.0))


def scale_rule(X: Array, y: Array, task: Literal["classification", "regression"], scale: Scale) -> str:
    """Return the rule by which features are scaled; ``"auto"`` is that of :class:`L20Selector`."""
    return str(L20Selector(1, task=task).fit(X, y).scale_) if scale == "auto" else scale


def _scaled(X: Array, train: Array, rule: str) -> Array:
    """Return X scaled by the training samples."""
    if rule == "none":
        return X
    found = StandardScaler().fit(X[train])
    deviations = np.sqrt(found.var_)
    varies = deviations > 0.0
    more = np.median(deviations[varies]) if rule == "moderated" and varies.any() else 0.0
    return ((X - found.mean_) / np.where(varies, deviations + more, 1.0)).astype(X.dtype, copy=False)
