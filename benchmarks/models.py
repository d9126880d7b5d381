"""What the rules of the models and the choice of the number of features are worth.

Run ``python benchmarks/models.py DATA_DIR [rules] [numbers] [nested]``, where DATA_DIR holds ``paper/brain.npz``,
``extra/glioma.npz`` and the others (X, y).

* ``rules``: how to read a label from least-squares predictions on k selected features. Largest prediction, against the
  discriminant rule of L20Classifier, nearest neighbours and logistic regression on the same features. Mean test accuracy.
* ``numbers``: the ridge for continuous targets. Ten features of simulated and of real matrices make up the targets; the
  figures are the share of them that is found, and R^2 on the other half of the samples.
* ``nested``: accuracy and size of what L20SelectorCV chooses, both repeated in every outer fold, beside fixed sizes.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from protocol.sets import EXPRESSION, load_all
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from l20fs import L20Classifier, L20Regressor, L20SelectorCV

SIZES = (5, 10, 20, 50, 100)
RIDGES = (0.01, 0.1, 0.3, 1.0, 3.0, 10.0)
CLASSIFIERS = {
    "KNN-5": KNeighborsClassifier(5),
    "logistic": make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
}


def rules(dataset, n_splits=6):
    """Return accuracies of every rule: dict of rule -> (n_sizes,)."""
    X, y = dataset.X, dataset.y
    found = {}
    for train, test in StratifiedShuffleSplit(n_splits, test_size=1 / 3, random_state=0).split(X, y):
        for ridge in ("auto", 10.0):
            model = L20Classifier(max(SIZES), ridge=ridge).fit(X[train], y[train])
            for column, k in enumerate(SIZES):
                model.set_params(n_features_to_select=k)
                refit = model.path_.refit(k)
                predictions = {
                    f"largest prediction, ridge {ridge}": (X[test] @ refit.coef.T + refit.intercept).argmax(axis=1),
                    f"L20Classifier, ridge {ridge}": model.predict(X[test]),
                }
                if ridge == "auto":
                    chosen = model.support_
                    for name, other in CLASSIFIERS.items():
                        predictions[name] = other.fit(X[train][:, chosen], y[train]).predict(X[test][:, chosen])
                for name, labels in predictions.items():
                    found.setdefault(name, np.zeros(len(SIZES)))[column] += np.mean(labels == y[test]) / n_splits
    return found


def print_rules(datasets, jobs):
    print("Test accuracy %, mean over the sets, by number of features\n")
    print(f"{'':34}" + "".join(f"{k:>8}" for k in SIZES) + f"{'mean':>8}")
    found = Parallel(jobs)(delayed(rules)(dataset) for dataset in datasets)
    means = {name: 100 * np.mean([one[name] for one in found], axis=0) for name in found[0]}
    for name, values in sorted(means.items(), key=lambda item: -item[1].mean()):
        print(f"{name:34}" + "".join(f"{value:8.2f}" for value in values) + f"{values.mean():8.2f}")


def planted(X, seed, n_planted=10, n_targets=3, noise=0.5):
    """Return for every ridge the share of planted features found among as many, and R^2 on the other half."""
    random = np.random.default_rng(seed)
    X = X[random.permutation(len(X))]
    X = X[:, X.std(axis=0) > 0.0]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    rows = random.choice(X.shape[1], n_planted, replace=False)
    Y = X[:, rows] @ random.standard_normal((n_planted, n_targets))
    Y += noise * Y.std() * random.standard_normal(Y.shape)
    half = len(X) // 2
    figures = []
    for ridge in RIDGES:
        model = L20Regressor(n_planted, ridge=ridge).fit(X[:half], Y[:half])
        figures.append((np.mean(model.support_[rows]), model.score(X[half:], Y[half:])))
    return figures


def print_numbers(datasets):
    print("Continuous targets: share of ten planted features found, R^2 on other samples; by ridge\n")
    print(f"{'':26}" + "".join(f"{ridge:>14g}" for ridge in RIDGES))
    random = np.random.default_rng(0)
    factors = np.repeat(random.standard_normal((200, 50)), 20, axis=1)
    matrices = {
        "independent, 200 x 1000": random.standard_normal((200, 1000)),
        "correlated, 200 x 1000": np.sqrt(0.5) * (random.standard_normal((200, 1000)) + factors),
    } | {dataset.name: dataset.X for dataset in datasets if dataset.name in ("lung", "prostate", "tox_171", "srbct", "nci")}
    for name, X in matrices.items():
        figures = np.mean([planted(X, seed) for seed in range(8)], axis=0)
        print(f"{name:26}" + "".join(f"{share:8.2f}{fit:6.2f}" for share, fit in figures), flush=True)


def nested(dataset):
    """Return (accuracy, mean size) of each way to choose, in five outer folds."""
    X, y = dataset.X, dataset.y
    ways = {
        "20": L20Classifier(20),
        "1se": L20SelectorCV("1se"),
        "best": L20SelectorCV("best"),
        "1se, ridge 0.3, 3, 30": L20SelectorCV("1se", ridge=[0.3, 3.0, 30.0]),
        "best, ridge 0.3, 3, 30": L20SelectorCV("best", ridge=[0.3, 3.0, 30.0]),
    }
    found = {name: [] for name in ways}
    smallest = np.bincount(np.unique(y, return_inverse=True)[1]).min()
    for train, test in StratifiedKFold(min(5, smallest), shuffle=True, random_state=0).split(X, y):
        for name, model in ways.items():
            if isinstance(model, L20SelectorCV):
                model.set_params(cv=StratifiedKFold(min(5, smallest - 1), shuffle=True, random_state=0))
            model.fit(X[train], y[train])
            found[name].append((model.score(X[test], y[test]), model.support_.sum()))
    return dataset.name, {name: np.mean(values, axis=0) for name, values in found.items()}


def print_nested(datasets, jobs):
    print("Nested cross-validation: accuracy %, and mean number of features, of each way to choose it\n")
    results = []
    for name, found in Parallel(jobs, return_as="generator")(delayed(nested)(dataset) for dataset in datasets):
        if not results:
            print(f"{'':16}" + "".join(f"{way:>24}" for way in found))
        results.append(list(found.values()))
        print(f"{name:16}" + "".join(f"{100 * score:17.1f}{size:7.1f}" for score, size in found.values()), flush=True)
    print(f"{'mean':16}" + "".join(f"{100 * score:17.2f}{size:7.1f}" for score, size in np.mean(results, axis=0)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("parts", nargs="*", default=["rules", "numbers", "nested"])
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    datasets = load_all(arguments.folder, EXPRESSION)
    with threadpool_limits(1):
        for part in arguments.parts:
            if part == "rules":
                print_rules(datasets, arguments.jobs)
            elif part == "numbers":
                print_numbers(datasets)
            else:
                print_nested(datasets, arguments.jobs)
            print()


if __name__ == "__main__":
    main()
