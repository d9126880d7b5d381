"""Cells: one variant of a method on one split of one data set, and what came out. Each is a small file of its own."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from l20fs.estimators.base import BaseSelector
from l20fs.experiments.plan import NONZERO, Plan, Variant
from l20fs.experiments.protocol import Split, accuracy, inner_splits, paper_split
from l20fs.storage.hashing import digest, hash_of
from l20fs.storage.keyed_store import Key, KeyedStore
from l20fs.typing import Array


class Dataset(NamedTuple):
    """A data set as the methods see it."""

    name: str
    X: Array
    y: Array

    @property
    def digest(self) -> str:
        return hash_of(digest(self.X), digest(self.y))


@dataclass(frozen=True)
class Cell:
    """What is computed in one go: a variant on trial ``split``, or on inner fold ``fold`` of its training part."""

    dataset: str
    variant: Variant
    split: int
    fold: int | None
    sizes: tuple[int, ...]
    classifiers: tuple[str, ...]
    n_folds: int
    seed: int
    scale: str = "none"

    def key(self, store: KeyedStore, data_digest: str) -> Key:
        """Return the key of the result: a label for people, and a hash of all that the result depends on."""
        place = f"{self.split}" if self.fold is None else f"{self.split}.{self.fold}"
        return store.key(
            f"{self.dataset}/{self.variant.method}-{place}",
            [data_digest, self.variant.method, dict(self.variant.params), self.scale],
            [self.split, self.fold, self.n_folds if self.fold is not None else 0, self.seed],
            [self.sizes, self.classifiers],
        )


def cells_of(plan: Plan, dataset: Dataset) -> Iterator[Cell]:
    """Return all cells of a data set: every trial first, so that results come early, then the inner folds."""
    n_features = dataset.X.shape[1]
    for split in range(plan.n_splits):
        n_folds = len(inner_folds(dataset.y, split, plan.inner_folds, plan.seed)) if plan.inner_folds else 0
        for variant in plan.variants:
            sizes = variant.sizes or plan.sizes
            if variant.method == "Baseline":
                sizes = (n_features,)
            sizes = tuple(k for k in sizes if k <= n_features)
            common = (sizes, plan.classifiers, plan.inner_folds, plan.seed, plan.scale)
            yield Cell(dataset.name, variant, split, None, *common)
            for fold in range(0 if variant.method == "Baseline" else n_folds):  # all features: nothing to choose
                yield Cell(dataset.name, variant, split, fold, *common)


def inner_folds(y: Array, split: int, n_folds: int, seed: int) -> list[Split]:
    """Return the inner folds of a trial, as positions in the whole data set."""
    train = paper_split(y, split, seed).train
    return [Split(train[fold.train], train[fold.test]) for fold in inner_splits(y[train], n_folds, split, seed)]


def samples_of(cell: Cell, y: Array) -> Split:
    """Return the samples on which a cell selects, and those on which it is judged."""
    if cell.fold is None:
        return paper_split(y, cell.split, cell.seed)
    return inner_folds(y, cell.split, cell.n_folds, cell.seed)[cell.fold]


def compute(cell: Cell, dataset: Dataset) -> dict[str, Any]:
    """Select on the training samples of a cell and judge every size on its test samples."""
    samples = samples_of(cell, dataset.y)
    X = scaled(dataset.X, samples.train, cell.scale)
    selector = cell.variant.selector()
    largest = max(cell.sizes)
    selector.set_params(n_features_to_select=None if largest == NONZERO else largest)
    if "max_features" in selector.get_params() and largest != NONZERO:
        selector.set_params(max_features=largest)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", message="n_features_to_select=|No features were selected")
        start = time.perf_counter()
        try:
            selector.fit(X[samples.train], dataset.y[samples.train])
        except ValueError as error:
            where = f"split {cell.split}" if cell.fold is None else f"fold {cell.fold} of split {cell.split}"
            raise ValueError(f"{cell.variant.label}, {where}: {error} Leave the method out, or mend the data.") from error
        seconds = time.perf_counter() - start
        selections = [columns_of(selector, size) for size in cell.sizes]
        found = {name: [accuracy(name, X, dataset.y, samples, these) for these in selections] for name in cell.classifiers}
    sizes = [len(these) if size == NONZERO else size for size, these in zip(cell.sizes, selections, strict=True)]
    path = getattr(selector, "path_", None)
    is_wanted = cell.fold is None and cell.variant.method != "Baseline"
    best = selections[-1] if is_wanted else np.empty(0, dtype=int)
    return {
        "dataset": cell.dataset,
        "label": cell.variant.label,
        "choice": dict(cell.variant.choice),
        "split": cell.split,
        "fold": cell.fold,
        "n_test": len(samples.test),
        "sizes": sizes,
        "accuracy": found,
        "fit_seconds": seconds,
        "n_nonzero": None if path is None else int(path.n_nonzero[-1]),
        "selected": best.tolist(),
        # A method that solves for one size may select others for a smaller one than the first of a larger one.
        "selected_at": {
            str(size): these.tolist()
            for size, these in zip(sizes, selections, strict=True)
            if is_wanted and not np.array_equal(these, best[: len(these)])
        },
    }


def scaled(X: Array, train: Array, scale: str) -> Array:
    """Return X as it is, or with mean 0 and deviation 1 of every feature on the training samples; the others follow."""
    return X if scale == "none" else np.asarray(StandardScaler().fit(X[train]).transform(X))


def selected_of(result: dict[str, Any]) -> dict[int, list[int]]:
    """Return which features a trial selected, best first, for each of its sizes; none are known of all features."""
    return {size: result["selected_at"].get(str(size), result["selected"][:size]) for size in result["sizes"]}


def columns_of(selector: BaseSelector, size: int) -> Array:
    """Return the best ``size`` features of a fitted selector, or all with weights, best first."""
    selector.set_params(n_features_to_select=None if size == NONZERO else size)
    chosen = np.flatnonzero(selector.support_)
    return chosen[np.argsort(selector.ranking_[chosen], kind="stable")]
