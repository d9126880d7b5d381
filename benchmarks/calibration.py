"""Probabilities by default: beside the class shares on noise, and beside scikit-learn's calibration on data sets.

``python benchmarks/calibration.py DATA_DIR [--splits 700:702]``. Log loss on test samples of ``L20Classifier(20)``, of the
class shares, and of ``CalibratedClassifierCV(LogisticRegression())`` on 20 features that are selected in each of its folds;
and the balanced accuracy of ``predict`` beside that of the class of the largest probability. Then designs with classes of
unequal sizes, from noise on; and the time of a fit in fits without probabilities.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
from intervals import Cell
from protocol.markdown import number, print_table
from protocol.sets import load_all
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, log_loss
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from l20fs import L20Classifier, L20Selector
from l20fs.data import load_srbct, make_planted

K = 20
HEAD = [
    "log loss",
    "class shares",
    "CalibratedClassifierCV",
    "balanced accuracy %",
    "of the largest probability",
    "accuracy %",
]


def measure(X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray) -> list[float]:
    classes, k = np.unique(y), min(K, X.shape[1])
    model = L20Classifier(k).fit(X, y)
    chances, predicted = model.predict_proba(X_test), model.predict(X_test)
    shares = np.array([np.mean(y == label) for label in classes])
    pipeline = make_pipeline(L20Selector(k), StandardScaler(), LogisticRegression(max_iter=1000))
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    try:
        peer = CalibratedClassifierCV(pipeline, cv=folds).fit(X, y).predict_proba(X_test)
        of_peer = log_loss(y_test, peer, labels=classes)
    except ValueError:  # a class with fewer samples than folds
        of_peer = np.nan
    return [
        log_loss(y_test, chances, labels=classes),
        log_loss(y_test, np.tile(shares, (len(y_test), 1)), labels=classes),
        of_peer,
        100.0 * balanced_accuracy_score(y_test, predicted),
        100.0 * balanced_accuracy_score(y_test, classes[chances.argmax(axis=1)]),
        100.0 * np.mean(y_test == predicted),
    ]


def texts(values: list[float]) -> list[str]:
    return [number(value, 3 if place < 3 else 1) for place, value in enumerate(values)]


def of_sets(data: Path, seeds: range) -> None:
    rows, means = [], []
    for dataset in load_all(data):
        found = []
        for seed in seeds[: 1 if dataset.is_tall else None]:
            parts = train_test_split(dataset.X, dataset.y, train_size=2 / 3, stratify=dataset.y, random_state=seed)
            found.append(measure(parts[0], parts[2], parts[1], parts[3]))
        means.append(np.mean(found, axis=0))
        rows.append([dataset.name, *texts(means[-1])])
    both = [own for own in means if np.isfinite(own).all()]
    rows.append([f"**mean of the {len(both)} with all**", *texts(np.mean(both, axis=0))])
    rows.append(["**mean of all**", *texts(np.mean(means, axis=0))])
    print_table(
        f"{len(means)} sets, {K} features, {len(seeds)} splits (sets of more than 1000 samples: 1)", ["set", *HEAD], rows
    )


def of_designs(n_repetitions: int) -> None:
    rows, means = [], []
    for shares in ((0.7, 0.3), (0.7, 0.2, 0.1), (0.9, 0.1)):
        for distance in (0.0, 1.0, 1.8):
            cell, found = Cell(100, 1000, shares, distance), []
            for seed in range(n_repetitions):
                rng = np.random.default_rng([seed, len(shares)])
                found.append(measure(*cell.draw(rng), *cell._replace(n_samples=2000).draw(rng)))
            means.append(np.mean(found, axis=0))
            error = np.std([own[0] - own[1] for own in found]) / np.sqrt(n_repetitions)
            rows.append([f"{shares}, distance {distance}", *texts(means[-1]), f"{error:.3f}"])
    rows.append(["**mean**", *texts(np.mean(means, axis=0)), ""])
    print_table(f"100 x 1000, {n_repetitions} draws", ["shares", *HEAD, "error of log loss less that of shares"], rows)


def of_time() -> None:
    rows = []
    tumours = load_srbct()
    shapes = {"63 x 2308 x 4": (tumours.data, tumours.target)}
    for n, d, classes in ((200, 20_000, 8), (5000, 2000, 10)):
        shapes[f"{n} x {d} x {classes}"] = make_planted(n_samples=n, n_features=d, n_informative=20, n_classes=classes)[:2]
    for name, (X, y) in shapes.items():
        seconds = [min(timed(L20Classifier(K, calibration=cv), X, y) for _ in range(3)) for cv in (None, 5)]
        rows.append([name, f"{1000 * seconds[0]:.0f} ms", f"{seconds[1] / seconds[0]:.1f}"])
    print_table(
        "Time of L20Classifier(20).fit", ["samples x features x classes", "without probabilities", "with, in fits"], rows
    )


def timed(model, X: np.ndarray, y: np.ndarray) -> float:
    start = time.perf_counter()
    model.fit(X, y)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--splits", default="700:702")
    parser.add_argument("--repetitions", type=int, default=20)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    of_time()
    of_designs(arguments.repetitions)
    of_sets(arguments.data, range(*map(int, arguments.splits.split(":"))))


if __name__ == "__main__":
    main()
