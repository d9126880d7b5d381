"""Choosing k behind steps: a grid search over a pipeline beside ``L20SelectorCV(preprocess=...)``, by fits and seconds.

    python benchmarks/pipeline.py

prints the table of docs/cross_validation.md: the same 20 sizes in the same 5 folds, with the same scores.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from l20fs import L20Classifier, L20SelectorCV
from l20fs.data import load_srbct, make_planted

SIZES = list(range(1, 21))
FOLDS = StratifiedKFold(5, shuffle=True, random_state=0)
N_RUNS = 3


class Counter(TransformerMixin, BaseEstimator):
    """Do nothing, and count the fits."""

    n_fits = 0

    def fit(self, X: Any, y: Any = None) -> Counter:
        Counter.n_fits += 1
        return self

    def transform(self, X: Any) -> Any:
        return X


def make_steps() -> Any:
    return make_pipeline(Counter(), SimpleImputer(), StandardScaler())


def search_grid(X: Any, y: Any) -> Any:
    """Search with a fit of the pipeline per fold and size."""
    pipeline = make_pipeline(make_steps(), L20Classifier())
    return GridSearchCV(pipeline, {"l20classifier__n_features_to_select": SIZES}, cv=FOLDS).fit(X, y)


def search_paths(X: Any, y: Any) -> Any:
    """Search with a fit of the steps and a path per fold."""
    return L20SelectorCV("best", sizes=SIZES, preprocess=make_steps(), cv=FOLDS).fit(X, y)


def measure(search: Callable[[Any, Any], Any], X: Any, y: Any) -> tuple[Any, int, float]:
    """Return the search, its fits of the steps and its seconds of CPU, the least of some runs."""
    seconds = []
    for _ in range(N_RUNS):
        Counter.n_fits, start = 0, time.process_time()
        found = search(X, y)
        seconds.append(time.process_time() - start)
    return found, Counter.n_fits, min(seconds)


def main() -> None:
    warnings.filterwarnings("ignore", message="The search for the number of features ended at its limit")
    srbct = load_srbct()
    planted = make_planted(n_samples=200, n_features=10_000, n_informative=20, random_state=0)
    print("| samples x features | grid search: fits, s | preprocess: fits, s | ratio |\n|---|---|---|---|")
    for X, y in ((srbct.data, srbct.target), planted[:2]):
        grid, n_grid, slow = measure(search_grid, X, y)
        paths, n_paths, quick = measure(search_paths, X, y)
        np.testing.assert_allclose(paths.cv_results_["mean_test_score"], grid.cv_results_["mean_test_score"])
        print(f"| {X.shape[0]} x {X.shape[1]} | {n_grid}, {slow:.2f} | {n_paths}, {quick:.2f} | {slow / quick:.1f} |")


if __name__ == "__main__":
    main()
