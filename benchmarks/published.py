"""Published results with selection inside the resampling, beside ours with the same resampling.

Run ``python benchmarks/published.py DATA_DIR [bootstrap] [splits] [khan]``, where DATA_DIR holds ``paper/brain.npz`` and the
others (X, y). Everything that is learned, scaling and selection included, is learned on the training samples only.

* ``bootstrap``: the .632+ error with 200 bootstrap samples, as in Diaz-Uriarte and Alvarez de Andres, "Gene selection and
  classification of microarray data using random forest", BMC Bioinformatics 7:3 (2006), Table 2.
* ``splits``: the error on a third of the samples, mean over 100 random splits, as in Dettling and Buehlmann, "Supervised
  clustering of genes", Genome Biology 3:research0069 (2002), Tables 4 and 5.
  In both, NCI60 as ISLP has it (6830 genes, types of one line left out) stands beside without a published figure.
* ``khan``: the 20 blind samples of Khan et al. (2001), of which nearest shrunken centroids with 43 genes get none wrong
  (Tibshirani, Hastie, Narasimhan and Chu, PNAS 99:6567, 2002). Needs the data of the package ISLP.

The panel is that of L20Selector with its defaults; the classifiers are L20Classifier, and others on the same panel.
``--classifiers`` picks some of them; L20SelectorCV, which chooses the number of features inside, takes longest.
"""

from __future__ import annotations

import argparse
import re
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from protocol.markdown import number, print_table
from protocol.sets import Dataset, load_all, load_khan
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from l20fs import L20Classifier, L20SelectorCV

PARTS = ("bootstrap", "splits", "khan")
SIZES = (10, 20, 50, 100, 200)
KHAN_SIZES = (5, 10, 15, 20, 30, 43, 50)

#: Table 2 of Diaz-Uriarte and Alvarez de Andres (2006): methods that select few genes, and those that use all or 200.
BOOTSTRAP_ERRORS = {
    #            shrunken centroids, neighbours, forest (0 and 1 s.e.) | SVM, KNN, DLDA, all of a random forest
    "srbct": ((0.025, 0.031, 0.039, 0.038), (0.017, 0.023, 0.011, 0.021)),
    "leukemia": ((0.062, 0.056, 0.087, 0.075), (0.014, 0.029, 0.020, 0.051)),
    "lymphoma": ((0.033, 0.040, 0.047, 0.042), (0.010, 0.008, 0.021, 0.009)),
    "breast3": ((0.401, 0.424, 0.346, 0.364), (0.380, 0.449, 0.370, 0.351)),
    "prostate": ((0.089, 0.081, 0.061, 0.064), (0.064, 0.100, 0.149, 0.077)),
    "brain": ((0.159, 0.194, 0.216, 0.216), (0.138, 0.174, 0.183, 0.154)),
    "nci": ((0.246, 0.237, 0.327, 0.353), (0.256, 0.317, 0.286, 0.252)),
}

#: Dettling and Buehlmann (2002): error % of nearest neighbours and of aggregated trees, the lowest over q = 1, ..., 20
#: clusters of genes (Table 4), and with the single genes of the clusters instead of their means (Table 5).
SPLIT_ERRORS = {
    "prostate": (6.91, 7.79, 7.76, 16.65),
    "srbct": (0.43, 0.71, 0.81, 2.00),
    "lymphoma": (0.50, 0.20, 0.81, 0.81),
    "brain": (23.36, 16.86, 27.50, 33.50),
    "nci": (29.65, 26.50, 28.95, 37.79),
}

CLASSIFIERS = {
    "KNN-1": KNeighborsClassifier(1),
    "KNN-5": KNeighborsClassifier(5),
    "logistic": LogisticRegression(max_iter=200),
    "LDA": LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"),
    "SVM": SVC(kernel="linear"),
    "centroids": NearestCentroid(),
}
OURS, OURS_WITH_SHARES, CHOSEN = "L20Classifier", "L20Classifier, class shares", "L20SelectorCV"
ALL = (OURS, OURS_WITH_SHARES, CHOSEN, *CLASSIFIERS)

#: Labels by classifier and number of features; 0 where it is chosen inside.
Predictions = dict[tuple[str, int], np.ndarray]


# One training set, one test set


def predict_all(
    data: Dataset, train: np.ndarray, test: np.ndarray, names: Sequence[str], sizes: Sequence[int] = SIZES
) -> Predictions:
    """Select on the training rows, which may repeat, and predict the test rows with every classifier and size."""
    y = data.y[train]
    X, X_test = data.X[train], data.X[test]
    found: Predictions = {}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = L20Classifier(max(sizes)).fit(X, y)
        if OURS_WITH_SHARES in names:
            other = L20Classifier(max(sizes), class_weight=None).fit(X, y)
            found |= {(OURS_WITH_SHARES, k): other.at(k).predict(X_test) for k in sizes}
        if CHOSEN in names:
            # Copies of a sample stay together, or the inner folds would test on what they were trained on.
            chosen = L20SelectorCV("best", sizes=range(1, max(SIZES) + 1))
            found[CHOSEN, 0] = chosen.fit(X, y, groups=train).predict(X_test)
        for k in sizes:
            if OURS in names:
                found[OURS, k] = model.at(k).predict(X_test)
            panel = np.argsort(model.ranking_)[:k]
            scaler = StandardScaler().fit(X[:, panel])
            Z, Z_test = scaler.transform(X[:, panel]), scaler.transform(X_test[:, panel])
            found |= {(name, k): CLASSIFIERS[name].fit(Z, y).predict(Z_test) for name in names if name in CLASSIFIERS}
    return found


# The .632+ estimator


def bootstrap_errors(data: Dataset, names: Sequence[str], n_samples: int, jobs: int) -> dict[tuple[str, int], float]:
    """Return the .632+ error of every classifier and size."""
    everything = np.arange(len(data.y))
    draws = np.random.default_rng(0).integers(0, len(everything), (n_samples, len(everything)))
    draws = [draw for draw in draws if len(np.unique(data.y[draw])) > 1]
    tests = [np.setdiff1d(everything, draw) for draw in draws]
    tasks = zip([everything, *draws], [everything, *tests], strict=True)
    apparent, *outside = Parallel(jobs)(delayed(predict_all)(data, train, test, names) for train, test in tasks)
    return {
        key: error_632_plus(data.y, labels, tests, [predicted[key] for predicted in outside])
        for key, labels in apparent.items()
    }


def error_632_plus(y: np.ndarray, fitted: np.ndarray, tests: Sequence[np.ndarray], predicted: Sequence[np.ndarray]) -> float:
    """Return the .632+ estimate of the error (Efron and Tibshirani 1997, equations 17, 27, 28, 31 and 32).

    ``fitted`` are the labels that the rule of all samples gives to the samples themselves, ``predicted`` those of the
    samples ``tests`` that are not in a bootstrap sample.
    """
    apparent = float(np.mean(fitted != y))
    wrong, count = np.zeros(len(y)), np.zeros(len(y))
    for test, labels in zip(tests, predicted, strict=True):
        wrong[test] += labels != y[test]
        count[test] += 1
    outside = float(np.mean(wrong[count > 0] / count[count > 0]))
    # What the rule would get wrong if features and labels were independent.
    no_information = float(sum(np.mean(y == label) * np.mean(fitted != label) for label in np.unique(y)))
    limited = min(outside, no_information)
    overfits = limited > apparent and no_information > apparent
    overfitting = (limited - apparent) / (no_information - apparent) if overfits else 0.0
    plain = 0.368 * apparent + 0.632 * outside
    return plain + (limited - apparent) * 0.368 * 0.632 * overfitting / (1.0 - 0.368 * overfitting)


def print_bootstrap(datasets: Sequence[Dataset], arguments: argparse.Namespace) -> None:
    rows = []
    for data in datasets:
        found = bootstrap_errors(data, arguments.classifiers, arguments.samples, arguments.jobs)
        few, all_genes = BOOTSTRAP_ERRORS.get(data.name, ((), ()))
        published = [f"{min(few):.3f}" if few else "", f"{min(all_genes):.3f}" if all_genes else ""]
        rows += [[data.name, *published, *row] for row in by_classifier(found, 3)]
        print(f"{data.name} is done", flush=True)
    head = ["set", "published, few genes", "published, 200 or all genes", *CLASSIFIER_AND_SIZES]
    print_table(f".632+ error, {arguments.samples} bootstrap samples, by number of features", head, rows)


CLASSIFIER_AND_SIZES = ["classifier", *(f"k = {k}" for k in SIZES), "k chosen inside"]


def by_classifier(found: dict[tuple[str, int], float], digits: int) -> list[list[str]]:
    names = dict.fromkeys(name for name, _ in found)
    return [[name, *(number(found.get((name, k), np.nan), digits) for k in (*SIZES, 0))] for name in names]


# Random splits


def split_errors(data: Dataset, names: Sequence[str], n_splits: int, jobs: int) -> dict[tuple[str, int], float]:
    """Return the error % on a third of the samples, rounded down, the mean over random splits without strata."""
    n_test = len(data.y) // 3
    orders = [np.random.default_rng(seed).permutation(len(data.y)) for seed in range(n_splits)]
    parts = [(order[n_test:], order[:n_test]) for order in orders]
    found = Parallel(jobs)(delayed(predict_all)(data, train, test, names) for train, test in parts)
    wrong = {
        key: [np.mean(one[key] != data.y[test]) for one, (_, test) in zip(found, parts, strict=True)] for key in found[0]
    }
    return {key: 100 * float(np.mean(shares)) for key, shares in wrong.items()}


def print_splits(datasets: Sequence[Dataset], arguments: argparse.Namespace) -> None:
    rows = []
    for data in datasets:
        found = split_errors(data, arguments.classifiers, arguments.splits, arguments.jobs)
        published = [f"{error:.2f}" for error in SPLIT_ERRORS.get(data.name, ())] or [""] * 4
        rows += [[data.name, *published, *row] for row in by_classifier(found, 2)]
        print(f"{data.name} is done", flush=True)
    head = ["set", "clusters, NN", "clusters, trees", "genes, NN", "genes, trees", *CLASSIFIER_AND_SIZES]
    print_table(f"Error % on a third of the samples, {arguments.splits} random splits", head, rows)


# Khan's blind samples


def print_khan(arguments: argparse.Namespace) -> None:
    try:
        khan = load_khan()
    except ModuleNotFoundError as error:
        print(f"khan is left out: {error}")
        return
    X, y = np.vstack([khan["xtrain"], khan["xtest"]]), np.concatenate([khan["ytrain"], khan["ytest"]])
    train, test = np.arange(len(khan["ytrain"])), np.arange(len(khan["ytrain"]), len(y))
    found = predict_all(Dataset("khan", X, y, "srbct"), train, test, arguments.classifiers, KHAN_SIZES)
    rows = [
        [name, *(str(int(np.sum(found[name, k] != y[test]))) if (name, k) in found else "" for k in (*KHAN_SIZES, 0))]
        for name in dict.fromkeys(name for name, _ in found)
    ]
    head = ["classifier", *(f"k = {k}" for k in KHAN_SIZES), "k chosen inside"]
    print_table("Errors on the 20 blind samples; shrunken centroids: 0 with 43 genes", head, rows)


# The command


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("parts", nargs="*", default=PARTS, help="bootstrap, splits, khan")
    parser.add_argument("--samples", type=int, default=200, help="bootstrap samples")
    parser.add_argument("--splits", type=int, default=100, help="random splits")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--sets", type=re.compile, default="", metavar="PATTERN", help="use these sets")
    parser.add_argument(
        "--classifiers", nargs="+", default=[OURS, "KNN-5", "logistic", "SVM", "centroids"], help=f"of {', '.join(ALL)}"
    )
    return parser.parse_intermixed_args()


def main() -> None:
    arguments = parse_arguments()
    for part, names in (("bootstrap", BOOTSTRAP_ERRORS), ("splits", SPLIT_ERRORS)):
        if part in arguments.parts:
            datasets = load_all(arguments.data, (*names, "nci60"))
            chosen = [data for data in datasets if arguments.sets.search(data.name)]
            (print_bootstrap if part == "bootstrap" else print_splits)(chosen, arguments)
    if "khan" in arguments.parts:
        print_khan(arguments)


if __name__ == "__main__":
    main()
