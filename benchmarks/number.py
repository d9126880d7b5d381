"""How many features? The automatic number beside other rules, fixed numbers and a model on all features.

``python benchmarks/number.py DATA_DIR [--splits 500:504] [--sets PATTERN] [--cache FILE]`` where DATA_DIR holds the sets of
``protocol/sets.py``. Two thirds of every class are for training; every choice is made there. A rule chooses from the same
20 folds, but for the former one, which had five unshuffled folds and went by one standard error of the accuracy. The figures
are on the test part: accuracy, balanced accuracy and log loss of the model of the path, averaged over splits, then sets.
Results by split are kept in the cache; ``--report`` prints the tables of what is there.
"""

from __future__ import annotations

import argparse
import json
import re
import time
import warnings
from pathlib import Path

import numpy as np
from protocol.markdown import number, print_table
from protocol.sets import PAPER, load_all
from scipy.stats import ttest_1samp
from sklearn.linear_model import RidgeClassifierCV
from sklearn.metrics import balanced_accuracy_score, log_loss
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from l20fs import L20SelectorCV

FIXED = (5, 10, 20, 30, 50, 100)
AUTO, FORMER, ALL = "auto: within 5 %, at least 10", "former: 1se of the accuracy", "ridge classifier, all features"
MEASURES = ("accuracy", "balanced accuracy", "log loss")


def choose(errors: np.ndarray, of_guessing: float, n_features: int, near: float, least: int) -> int:
    """Return the place of the smallest number whose error is near the lowest, from the least number on."""
    if errors.min() >= of_guessing:
        return 0
    sizes = np.arange(1, len(errors) + 1)
    is_enough = sizes >= min(least, n_features / 10.0 if least else 0)
    return int(np.flatnonzero(is_enough & (errors <= (1.0 + near) * errors[is_enough].min()))[0])


def rules_of(found: L20SelectorCV, n_features: int) -> dict[str, int]:
    """Return the number of features by each rule."""
    errors = found.cv_results_["error"]
    guess = errors[0] / (1.0 - found.cv_results_["skill"][0])
    sizes = found.cv_results_["n_features_to_select"].astype(int)
    settings = {"within 5 %": (0.05, 0), "within 10 %, at least 10": (0.1, 10), "lowest error": (0.0, 0)}
    places = {name: choose(errors, guess, n_features, *setting) for name, setting in settings.items()}
    enough = np.flatnonzero(errors <= guess - 0.98 * (guess - errors.min()))
    places["98 % of the best skill"] = int(enough[0]) if errors.min() < guess else 0
    return {name: int(sizes[place]) for name, place in places.items()}


def former(X: np.ndarray, y: np.ndarray) -> int:
    """Return the number within one standard error of the highest accuracy in five unshuffled folds."""
    results = L20SelectorCV("best", cv=StratifiedKFold(5), scoring="accuracy").fit(X, y).cv_results_
    scores = np.array([results[f"split{fold}_test_score"] for fold in range(5)])
    means, errors = scores.mean(axis=0), scores.std(axis=0, ddof=1) / np.sqrt(5)
    best = int(np.argmax(means >= means.max() - 1e-10))
    return int(results["n_features_to_select"][np.argmax(means >= means[best] - errors[best] - 1e-10)])


def measure(model, X: np.ndarray, y: np.ndarray, classes: np.ndarray) -> list[float]:
    predicted = model.predict(X)
    loss = log_loss(y, model.predict_proba(X), labels=classes) if hasattr(model, "predict_proba") else np.nan
    return [100.0 * np.mean(predicted == y), 100.0 * balanced_accuracy_score(y, predicted), loss]


def compute(X: np.ndarray, y: np.ndarray, seed: int) -> dict[str, list[float]]:
    """Return the three measures and the number of features by every rule, on one split."""
    train, test = train_test_split(np.arange(len(y)), train_size=2 / 3, stratify=y, random_state=seed)
    start = time.perf_counter()
    found = L20SelectorCV().fit(X[train], y[train])
    seconds = time.perf_counter() - start
    largest = int(found.cv_results_["n_features_to_select"].max())
    numbers = {AUTO: found.n_features_} | rules_of(found, X.shape[1]) | {FORMER: former(X[train], y[train])}
    numbers |= {f"fixed {k}": k for k in FIXED if k <= largest}
    results = {
        name: [*measure(found.model_.at(min(k, largest)), X[test], y[test], np.unique(y)), k] for name, k in numbers.items()
    }
    peer = make_pipeline(StandardScaler(), RidgeClassifierCV(np.logspace(-2, 5, 15), class_weight="balanced"))
    results[ALL] = [*measure(peer.fit(X[train], y[train]), X[test], y[test], np.unique(y)), X.shape[1]]
    return results | {"quoted": [100.0 * found.quoted_scores_["accuracy"][0], found.skill_, seconds, len(test)]}


def tabulate(cells: dict[str, dict[str, list[float]]]) -> None:
    by_set: dict[str, list[dict[str, list[float]]]] = {}
    for key, cell in cells.items():
        by_set.setdefault(key.split(" ")[0], []).append(cell)
    names = list(dict.fromkeys(name for cell in cells.values() for name in cell if name != "quoted"))
    means = {
        name: np.array([np.mean([cell.get(name, [np.nan] * 4) for cell in own], axis=0) for own in by_set.values()])
        for name in names
    }
    is_paper = np.isin(list(by_set), PAPER)
    rows = []
    for name, values in means.items():
        there = np.isfinite(values[:, 0])
        difference = (means[AUTO] - values)[there, 0]
        p = ttest_1samp(difference, 0.0).pvalue if np.ptp(difference) else np.nan
        rows.append(
            [
                *(name, str(there.sum()), *(number(values[there, place].mean(), 2) for place in range(2))),
                *(number(np.nanmean(values[there, 2]), 3) if np.isfinite(values[there, 2]).any() else "", ""),
                *(number(values[there, 3].mean(), 0), number(values[is_paper & there, 0].mean(), 2)),
                *(number(values[~is_paper & there, 0].mean(), 2), f"{difference.mean():+.2f}", f"{p:.2g}"),
            ]
        )
    head = ["rule", "sets", *MEASURES, "", "mean number", "the paper's sets", "others", "auto gains", "p (paired by set)"]
    print_table(f"Test accuracy % and more, {len(cells)} splits of {len(by_set)} sets", head, rows)
    gaps = [np.mean([cell["quoted"][0] - cell[AUTO][0] for cell in own]) for own in by_set.values()]
    error = np.std(gaps, ddof=1) / np.sqrt(len(gaps))
    print(f"\nQuoted accuracy less test accuracy: {np.mean(gaps):+.2f} points (standard error {error:.2f})")
    shown = [AUTO, FORMER, "lowest error", "fixed 20", "fixed 50", ALL]
    lines = [
        [name, *(number(means[rule][place, 0], 1) for rule in shown), number(means[AUTO][place, 3], 0)]
        for place, name in enumerate(by_set)
    ]
    print_table("Accuracy % by set", ["set", *shown, "number of auto"], lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument(
        "--splits", default="500:504", help="seeds, FROM:TO; sets of more than 1000 samples get half of them"
    )
    parser.add_argument("--sets", type=re.compile, default=re.compile(""))
    parser.add_argument("--cache", type=Path, default=Path("build/number.json"))
    parser.add_argument("--report", action="store_true")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    cells = json.loads(arguments.cache.read_text()) if arguments.cache.exists() else {}
    first, last = map(int, arguments.splits.split(":"))
    for dataset in [] if arguments.report else load_all(arguments.data):
        seeds = range(first, first + max(1, (last - first) // 2) if dataset.is_tall else last)
        for seed in seeds if arguments.sets.search(dataset.name) else ():
            key = f"{dataset.name} {seed}"
            if key not in cells:
                cells[key] = compute(dataset.X, dataset.y, seed)
                print(key, {name: np.round(values, 2).tolist() for name, values in cells[key].items()}, flush=True)
                arguments.cache.parent.mkdir(parents=True, exist_ok=True)
                arguments.cache.write_text(json.dumps(cells))
    tabulate(cells)


if __name__ == "__main__":
    main()
