"""Log loss and calibration error of the probabilities of L20Classifier and L20SelectorCV, beside those of scikit-learn.

Run ``python benchmarks/probabilities.py DATA_DIR [--splits 0 1 2] [--jobs 2]``, where DATA_DIR holds ``paper/brain.npz``,
``extra/glioma.npz`` and the others (X, y). On random splits, two thirds of each class for training, L20Classifier selects
k = 5, 20 and 50 features on the training samples. All peers get the same features of the same samples, z-scored, and say how
likely the classes of the test samples are: logistic regression, and ``CalibratedClassifierCV`` (sigmoid) around logistic
regression, a linear support vector machine and linear discriminant analysis. Of sets with more than 1500 samples a random
1500 are taken.

The expected calibration error compares, in ten bins, the probability of the predicted class with how often it is right.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from protocol.cells import divide
from protocol.markdown import print_table
from protocol.sets import Dataset, load_all
from sklearn.calibration import CalibratedClassifierCV
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from l20fs import L20Classifier, L20SelectorCV

SIZES = (5, 20, 50)
MOST_SAMPLES = 1500
N_BINS = 10

LOO, FOLDS, SEARCH, BARE = "L20Classifier", "L20Classifier, calibration=5", "L20SelectorCV", "scores without calibration"
PEERS = {
    "logistic regression": LogisticRegression(max_iter=5000),
    "CalibratedClassifierCV(logistic)": LogisticRegression(max_iter=5000),
    "CalibratedClassifierCV(LinearSVC)": LinearSVC(),
    "CalibratedClassifierCV(LDA)": LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"),
}
NAMES = (LOO, FOLDS, SEARCH, *PEERS, BARE)


def log_loss(probabilities: np.ndarray, codes: np.ndarray) -> float:
    """Return the mean of minus the logarithm of the probability of the true class."""
    return float(-np.log(np.clip(probabilities[np.arange(len(codes)), codes], 1e-15, 1.0)).mean())


def calibration_error(probabilities: np.ndarray, codes: np.ndarray) -> float:
    """Return the expected calibration error of the predicted class."""
    sure, is_right = probabilities.max(axis=1), probabilities.argmax(axis=1) == codes
    bins = np.minimum((sure * N_BINS).astype(int), N_BINS - 1)
    gaps = [abs(sure[bins == each].sum() - is_right[bins == each].sum()) for each in range(N_BINS)]
    return float(sum(gaps) / len(codes))


def compute(dataset: Dataset, seed: int) -> dict[tuple[int, str], tuple[float, float, float]]:
    """Return log loss, calibration error and accuracy by k and by whom, on one split of one set."""
    if len(dataset.y) > MOST_SAMPLES:
        chosen = np.sort(np.random.default_rng(seed).choice(len(dataset.y), MOST_SAMPLES, replace=False))
        dataset = dataset._replace(X=dataset.X[chosen], y=dataset.y[chosen])
    X, codes = np.asarray(dataset.X, dtype=np.float64), np.unique(dataset.y, return_inverse=True)[1]
    train, test = divide(dataset, seed)
    sizes = [k for k in SIZES if k <= X.shape[1]]
    found = {}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        own = {
            LOO: L20Classifier(sizes[-1]).fit(X[train], codes[train]),
            FOLDS: L20Classifier(sizes[-1], calibration=5).fit(X[train], codes[train]),
            SEARCH: L20SelectorCV(sizes[-1], sizes=sizes).fit(X[train], codes[train]),
        }
        for k in sizes:
            given = {name: model.set_params(n_features_to_select=k).predict_proba(X[test]) for name, model in own.items()}
            scores = own[LOO].decision_function(X[test])
            scores = scores if scores.ndim == 2 else np.stack([-scores / 2, scores / 2], axis=1)
            powers = np.exp(scores - scores.max(axis=1, keepdims=True))
            given[BARE] = powers / powers.sum(axis=1, keepdims=True)
            rows = own[LOO].get_support(indices=True)
            n_folds = int(max(2, min(5, np.bincount(codes[train]).min())))
            for name, peer in PEERS.items():
                model = CalibratedClassifierCV(peer, cv=n_folds) if name.startswith("Calibrated") else peer
                fitted = make_pipeline(StandardScaler(), model).fit(X[train][:, rows], codes[train])
                given[name] = fitted.predict_proba(X[test][:, rows])
            for name, probabilities in given.items():
                is_right = probabilities.argmax(axis=1) == codes[test]
                found[k, name] = (
                    log_loss(probabilities, codes[test]),
                    calibration_error(probabilities, codes[test]),
                    float(is_right.mean()),
                )
    return found


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--splits", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    datasets = [each for each in load_all(arguments.data) if each.has_labels and each.X.shape[1] >= min(SIZES)]
    tasks = [(dataset, seed) for dataset in sorted(datasets, key=lambda each: -each.X.size) for seed in arguments.splits]
    results = Parallel(arguments.jobs, max_nbytes=None)(delayed(compute)(*task) for task in tasks)
    cells: dict[tuple[str, int, str], list[tuple[float, float, float]]] = {}
    for (dataset, _), found in zip(tasks, results, strict=True):
        for (k, name), numbers in found.items():
            cells.setdefault((dataset.name, k, name), []).append(numbers)
    means = {key: np.mean(values, axis=0) for key, values in cells.items()}
    rows = []
    for name in NAMES:
        by_size = [np.mean([value for key, value in means.items() if key[1:] == (k, name)], axis=0) for k in SIZES]
        overall = np.mean([value for (_, _, who), value in means.items() if who == name], axis=0)
        rows.append([name, *(f"{each[0]:.3f} ({each[1]:.3f})" for each in (*by_size, overall)), f"{100 * overall[2]:.1f}"])
    title = f"{len(datasets)} sets, {len(arguments.splits)} splits each: log loss (expected calibration error)"
    print_table(title, ["probabilities", *(f"k = {k}" for k in SIZES), "mean", "accuracy %"], rows)
    rows = []
    for dataset in sorted(datasets, key=lambda each: each.name):
        own = {name: [means[key][0] for key in means if key[::2] == (dataset.name, name)] for name in NAMES}
        rows.append([dataset.name, *(f"{np.mean(values):.3f}" for values in own.values())])
    print_table("Log loss by set, mean over k", ["set", *NAMES], rows)


if __name__ == "__main__":
    main()
