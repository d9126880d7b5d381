"""Compare schedules on the paper's data sets: what the defaults of L20Selector were chosen by.

Run ``python benchmarks/schedule.py DATA_DIR``, where DATA_DIR holds ``brain.npz`` and the others (X, y). For every
solver and rate it prints the passes over X, the least-squares loss on the best k rows relative to the first line
(geometric mean over the sets; all samples), and the mean test accuracy of KNN-5 and logistic regression over random splits
(two thirds of each class for training; selection on training rows only).
"""

from __future__ import annotations

import argparse
import itertools
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from l20fs.objective.least_squares import LeastSquares
from l20fs.solvers import Schedule, ahiht, hiht

SETS = ("brain", "breast3", "leukemia", "lung", "lymphoma", "nci", "prostate", "srbct")
PANELS = (10, 20, 50, 100)


def load(folder: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    with np.load(folder / f"{name}.npz", allow_pickle=False) as stored:
        X, y = stored["X"].astype(np.float64), stored["y"]
    # The substitute Lung set is on the linear scale; every other set is a logarithm or a ratio.
    return (np.log10(X) if name == "lung" else X), y


def solve(X, y, solver, schedule):
    problem = LeastSquares(X, np.eye(y.max() + 1)[y])
    path = solver(problem, schedule)
    return path.with_refits(problem, min(100, len(y) - 1))


def accuracies(X, y, train, test, path) -> list[float]:
    scores = []
    for k in PANELS:
        columns = path.support(k)
        for model in (
            KNeighborsClassifier(5),
            make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
        ):
            scores.append(model.fit(X[train][:, columns], y[train]).score(X[test][:, columns], y[test]))
    return scores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--rates", type=float, nargs="+", default=[0.4, 0.6, 0.8, 0.9, 0.95, 0.98])
    parser.add_argument("--hiht", action="store_true", help="also HIHT (slow)")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    data = {name: load(arguments.data, name) for name in SETS}
    rows = list(itertools.product([ahiht, hiht] if arguments.hiht else [ahiht], arguments.rates))
    first_losses: dict[tuple[str, int], float] = {}
    print(f"{'solver':7}{'rate':>6}{'passes':>8}{'loss k20':>10}{'loss k50':>10}{'seconds':>9}", end="")
    print(f"  accuracy % at k = {PANELS}, mean")
    for solver, rate in rows:
        schedule = Schedule(n_rows=100, rate=rate)
        ratios, scores, passes, seconds = {20: [], 50: []}, [], [], 0.0
        for name, (X, y) in data.items():
            path = solve(X, y, solver, schedule)
            for k in ratios:
                if k < len(y) - 1:
                    loss = path.refit(k).loss
                    ratios[k].append(loss / first_losses.setdefault((name, k), loss))
            splitter = StratifiedShuffleSplit(arguments.splits, test_size=1 / 3, random_state=0)
            for train, test in splitter.split(X, y):
                begin = time.perf_counter()
                path = solve(X[train], y[train], solver, schedule)
                seconds += time.perf_counter() - begin
                passes.append(path.n_iters.sum() + 1)
                scores.append(accuracies(X, y, train, test, path))
        means = 100 * np.reshape(np.mean(scores, axis=0), (len(PANELS), 2)).mean(axis=1)
        geometric = {k: np.exp(np.mean(np.log(ratios[k]))) for k in ratios}
        print(
            f"{solver.__name__:7}{rate:6.2f}{np.mean(passes):8.1f}{geometric[20]:10.3f}{geometric[50]:10.3f}{seconds:9.2f}  "
            + " ".join(f"{mean:5.1f}" for mean in means)
            + f"  {means.mean():5.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
