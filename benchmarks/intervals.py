"""Bias and coverage of cross-validation scores where the truth is known: ``python benchmarks/intervals.py [--quick]``.

Gaussian features of which 16 have another mean in each class. The truth of a fit is the accuracy of its final model on
fresh samples. The table has, in points, the bias of the uncorrected and of the corrected score of L20SelectorCV against it;
how much of that is because the models of the folds learn from four fifths of the samples; how often the nominal 95 %
interval has the truth, and the mean truth, inside, and its mean width; the same for nested cross-validation with Wilson's
interval, on the first repetitions; and the coverage of Wilson's interval, and of ours, at a fixed k of 8.
"""

from __future__ import annotations

import argparse
import itertools
import time
import warnings
from typing import NamedTuple

import numpy as np
from scipy.stats import binomtest
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from l20fs import L20Classifier, L20SelectorCV

N_INFORMATIVE, LARGEST, FIXED = 16, 20, 8

#: Distances of the means that give an accuracy of about 70 % or 97 %, by number of classes and of samples.
DISTANCES = {
    "hard": {(2, 60): 0.95, (2, 120): 0.6, (2, 300): 0.55, (4, 60): 1.9, (4, 120): 1.45, (4, 300): 1.35},
    "easy": {(2, 60): 1.9, (2, 120): 1.8, (2, 300): 1.65, (4, 60): 3.4, (4, 120): 3.2, (4, 300): 2.9},
}


class Cell(NamedTuple):
    """A kind of data."""

    n_samples: int
    n_features: int
    n_classes: int
    kind: str
    rule: str

    @property
    def means(self):
        """Means of the informative features in each class: weaker and weaker ones, the signs by a fixed draw."""
        signs = np.random.default_rng(7).choice([-0.5, 0.5], (self.n_classes, N_INFORMATIVE))
        signs[1] = -signs[0]
        return DISTANCES[self.kind][self.n_classes, self.n_samples] * 0.93 ** np.arange(N_INFORMATIVE) * signs

    def draw(self, rng):
        """Return samples, with as many of each class, in any order."""
        y = rng.permutation(np.arange(self.n_samples) % self.n_classes)
        X = rng.standard_normal((self.n_samples, self.n_features))
        X[:, :N_INFORMATIVE] += self.means[y]
        return X, y

    def accuracy(self, model, rng, n_fresh=20000):
        """Return the accuracy of a linear model on fresh samples, of which only its columns are drawn."""
        y = np.arange(n_fresh) % self.n_classes
        rows = np.flatnonzero(model.support_)
        centres = np.zeros((self.n_classes, len(rows)))
        is_informative = rows < N_INFORMATIVE
        centres[:, is_informative] = self.means[:, rows[is_informative]]
        X = centres[y] + rng.standard_normal((n_fresh, len(rows)))
        decision = X @ model.coef_[:, rows].T + model.intercept_
        return np.mean((decision.argmax(axis=1) if self.n_classes > 2 else decision[:, 0] > 0.0) == y)


def wilson(n_right: int, n: int) -> tuple[float, float]:
    """Return Wilson's interval of a share."""
    return tuple(binomtest(n_right, n).proportion_ci(method="wilson"))


class Outcome(NamedTuple):
    """Scores of one fit, and the truth."""

    truth: float
    tested: float
    uncorrected: float
    corrected: float
    interval: tuple[float, float]
    truth_of_fixed: float
    naive_at_fixed: tuple[float, float]
    interval_at_fixed: tuple[float, float]
    nested: float = np.nan
    nested_interval: tuple[float, float] = (np.nan, np.nan)


def run(cell: Cell, seed: int, *, with_nested: bool) -> Outcome:
    rng = np.random.default_rng([seed, cell.n_samples, cell.n_features, cell.n_classes, cell.kind == "hard"])
    X, y = cell.draw(rng)
    cv = StratifiedKFold(5, shuffle=True, random_state=seed)
    selector = L20SelectorCV(cell.rule, sizes=range(1, LARGEST + 1), cv=cv).fit(X, y)
    folds = list(cv.split(X, y))
    n_right = [len(test) * selector.cv_results_[f"split{number}_test_score"] for number, (_, test) in enumerate(folds)]
    n_right_at_fixed = round(np.sum(n_right, axis=0)[FIXED - 1])
    fixed = L20SelectorCV(FIXED, sizes=range(1, LARGEST + 1), cv=cv).fit(X, y)
    found = Outcome(
        cell.accuracy(selector, rng),
        np.nan,
        selector.best_score_,
        selector.corrected_score_,
        selector.corrected_interval_,
        cell.accuracy(fixed, rng),
        wilson(n_right_at_fixed, len(y)),
        fixed.corrected_interval_,
    )
    if with_nested:
        predicted = cross_val_predict(L20SelectorCV(cell.rule, sizes=range(1, LARGEST + 1)), X, y, cv=cv)
        n_right = np.count_nonzero(predicted == y)
        models = [L20Classifier(selector.n_features_).fit(X[train], y[train]) for train, _ in folds]
        tested = np.mean([cell.accuracy(model, rng) for model in models])
        found = found._replace(tested=tested, nested=n_right / len(y), nested_interval=wilson(n_right, len(y)))
    return found


def coverage(intervals, truths):
    lower, upper = np.transpose(intervals)
    return 100.0 * np.mean((lower <= truths) & (truths <= upper))


def width(intervals):
    return 100.0 * np.mean(np.diff(intervals))


HEADER = (
    "| samples | features | classes | rule | truth % | bias uncorrected | bias corrected | of that, fewer samples "
    "| coverage % | of the mean truth | width | nested: bias | coverage % | width | fixed k: Wilson | ours |"
)


def row(cell: Cell, outcomes: list[Outcome]) -> str:
    columns = {name: np.array([getattr(each, name) for each in outcomes]) for name in Outcome._fields}
    truth, is_nested = columns["truth"], ~np.isnan(columns["nested"])
    numbers = [
        f"{100 * truth.mean():.1f}",
        f"{100 * (columns['uncorrected'] - truth).mean():+.1f}",
        f"{100 * (columns['corrected'] - truth).mean():+.1f}",
        f"{100 * (columns['tested'] - truth)[is_nested].mean():+.1f}",
        f"{coverage(columns['interval'], truth):.1f}",
        f"{coverage(columns['interval'], truth.mean()):.1f}",
        f"{width(columns['interval']):.1f}",
        f"{100 * (columns['nested'] - truth)[is_nested].mean():+.1f}",
        f"{coverage(columns['nested_interval'][is_nested], truth[is_nested]):.0f}",
        f"{width(columns['nested_interval'][is_nested]):.1f}",
        f"{coverage(columns['naive_at_fixed'], columns['truth_of_fixed']):.1f}",
        f"{coverage(columns['interval_at_fixed'], columns['truth_of_fixed']):.1f}",
    ]
    kind = f"{cell.n_classes}, {cell.kind}"
    return f"| {cell.n_samples} | {cell.n_features} | {kind} | {cell.rule} | {' | '.join(numbers)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="20 repetitions instead of 300")
    n_repetitions, n_nested = (20, 2) if parser.parse_args().quick else (300, 30)
    warnings.simplefilter("ignore", UserWarning)  # of searches that end at their limit
    start = time.perf_counter()
    print(HEADER, "|---" * HEADER.count(" |") + "|", sep="\n")
    kinds = itertools.product((60, 120, 300), (2, 4), ("hard", "easy"))
    for number, (n_samples, n_classes, kind) in enumerate(kinds):
        # Half of the combinations with the numbers of features and the rules, each pair of which occurs.
        cell = Cell(
            n_samples, (50, 500)[(1 + number + number // 4) % 2], n_classes, kind, ("1se", "best")[(number // 2) % 2]
        )
        print(row(cell, [run(cell, seed, with_nested=seed < n_nested) for seed in range(n_repetitions)]), flush=True)
    print(f"\n{n_repetitions} repetitions, {n_nested} of them nested, {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
