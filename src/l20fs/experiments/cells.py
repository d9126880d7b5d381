"""Cells of an experiment: one variant of a method on one split of one data set."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import has_fit_parameter

from l20fs.data.readers.table import Unprepared
from l20fs.design import Scale
from l20fs.design.column_scale import ColumnScale
from l20fs.design.moments import measure
from l20fs.estimators.selector import L20Selector
from l20fs.evaluation.engine import Samples, Selection, fit_quietly, judge, select
from l20fs.evaluation.folds import Fold
from l20fs.evaluation.target_summary import Classes, Numbers, TargetSummary
from l20fs.experiments.plan import NONZERO, Plan, Variant
from l20fs.experiments.protocol import inner_splits, judge_by, paper_split
from l20fs.typing import Array


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

    def prepared_by(self, train: Array) -> Dataset:
        """Return the data set as it is prepared by the training samples."""
        return self if self.unprepared is None else self._replace(X=self.unprepared.prepared(train), unprepared=None)

    def split(self, number: int, seed: int) -> Fold:
        """Return the training and the test samples of a trial."""
        return paper_split(self.strata, number, seed, self.groups)

    def inner_folds(self, number: int, n_folds: int, seed: int) -> list[Fold]:
        """Return the inner folds of a trial, as indices into the whole data set."""
        return inner_folds(self.strata, number, n_folds, seed, self.groups)

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


@dataclass(frozen=True)
class Cell:
    """Unit of computation: a variant on trial ``split``, or on inner fold ``fold`` of its training part."""

    dataset: str
    variant: Variant
    split: int
    fold: int | None
    sizes: tuple[int, ...]
    classifiers: tuple[str, ...]
    n_folds: int
    seed: int
    scale: Scale | None = None
    scoring: str = "accuracy"


def cells_of(plan: Plan, dataset: Dataset) -> Iterator[Cell]:
    """Return all cells of a data set: all trials first, so that results come early, then the inner folds."""
    n_features = dataset.X.shape[1]
    for split in range(plan.n_splits):
        n_folds = len(dataset.inner_folds(split, plan.inner_folds, plan.seed)) if plan.inner_folds else 0
        for variant in plan.variants:
            sizes = variant.sizes or plan.sizes
            if variant.method == "Baseline":
                sizes = (n_features,)
            sizes = tuple(k for k in sizes if k <= n_features)
            common = (sizes, plan.classifiers, plan.inner_folds, plan.seed, plan.scale, plan.scoring)
            yield Cell(dataset.name, variant, split, None, *common)
            for fold in range(0 if variant.method == "Baseline" else n_folds):  # all features: there is no choice
                yield Cell(dataset.name, variant, split, fold, *common)


def inner_folds(y: Array, split: int, n_folds: int, seed: int, groups: Array | None = None) -> list[Fold]:
    """Return the inner folds of a trial, as indices into the whole data set."""
    train = paper_split(y, split, seed, groups).train
    folds = inner_splits(y[train], n_folds, split, seed, None if groups is None else groups[train])
    return [Fold(train[fold.train], train[fold.test]) for fold in folds]


def fold_of(cell: Cell, dataset: Dataset) -> Fold:
    """Return the training and the test samples of a cell."""
    if cell.fold is None:
        return dataset.split(cell.split, cell.seed)
    return dataset.inner_folds(cell.split, cell.n_folds, cell.seed)[cell.fold]


def compute(cell: Cell, dataset: Dataset) -> dict[str, Any]:
    """Select on the training samples of a cell and evaluate every size on its test samples."""
    fold = fold_of(cell, dataset)
    dataset = dataset.prepared_by(fold.train)
    can_adjust = has_fit_parameter(cell.variant.selector(), "adjust_for")
    nuisances = dataset.nuisances if can_adjust else None
    samples = Samples(scaled(dataset, fold.train, cell.scale), dataset.y, nuisances=nuisances)
    train, test = samples.part(fold.train), samples.part(fold.test)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        selection = _select(cell, train, dataset.task)
        judges = {name: judge_by(name, len(fold.train), cell.scoring) for name in cell.classifiers}
        scores = judge(selection, train, test, judges).by_judge
    selected = selection.features
    sizes = [len(these) if size == NONZERO else size for size, these in zip(cell.sizes, selected, strict=True)]
    path = getattr(selection.selector, "path_", None)
    is_wanted = cell.fold is None and cell.variant.method != "Baseline"
    best = selected[-1] if is_wanted else np.empty(0, dtype=int)
    return {
        "n_test": len(fold.test),
        "sizes": sizes,
        "scores": {name: values.tolist() for name, values in scores.items()},
        "fit_seconds": selection.fit_seconds,
        "n_nonzero": None if path is None else int(path.n_nonzero[-1]),
        "selected": best.tolist(),
        # The selections of a method that solves for each size need not be nested.
        "selected_at": {
            str(size): these.tolist()
            for size, these in zip(sizes, selected, strict=True)
            if is_wanted and not np.array_equal(these, best[: len(these)])
        },
    }


def _select(cell: Cell, train: Samples, task: str) -> Selection:
    """Select for all sizes of a cell; an error names the method and the split."""
    sizes = [None if size == NONZERO else size for size in cell.sizes]
    selector = cell.variant.selector()
    if cell.scale is not None and "scale" in selector.get_params():
        selector.set_params(scale="none")  # the features are scaled already, for all methods alike
    try:
        return select(selector, train, sizes, fit=fit_quietly if task == "classification" else fit_to_numbers)
    except ValueError as error:
        where = f"split {cell.split}" if cell.fold is None else f"fold {cell.fold} of split {cell.split}"
        raise ValueError(f"{cell.variant.label}, {where}: {error} Leave the method out, or correct the data.") from error


def fit_to_numbers(selector: Any, train: Samples) -> None:
    """Fit a selector to numbers in units of their deviation: penalties of some methods are relative to that of y."""
    deviation = float(train.y.std()) or 1.0
    if "task" in selector.get_params():
        selector.set_params(task="regression")  # whole numbers are no labels
    fit_quietly(selector, replace(train, y=(train.y - train.y.mean()) / deviation))


def column_scale(dataset: Dataset, train: Array, scale: Scale) -> ColumnScale:
    """Return the centres and divisors of the features by the training samples; ``"auto"`` as :class:`L20Selector` does."""
    X = dataset.prepared_by(train).X[train]
    rule: Any = L20Selector(1, task=dataset.task).fit(X, dataset.y[train]).scale_ if scale == "auto" else scale
    return ColumnScale.of(measure(X), rule, X.dtype)


def scaled(dataset: Dataset, train: Array, scale: Scale | None) -> Array:
    """Return X scaled by the training samples, or unchanged if every method scales it by itself."""
    if scale is None or scale == "none":
        return dataset.X
    columns = column_scale(dataset, train, scale)
    return ((dataset.X - columns.mean) / columns.scale).astype(dataset.X.dtype, copy=False)


def selected_of(result: dict[str, Any]) -> dict[int, list[int]]:
    """Return the features that a trial selected for each of its sizes, best first; nothing for all features."""
    return {size: result["selected_at"].get(str(size), result["selected"][:size]) for size in result["sizes"]}
