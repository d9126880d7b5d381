"""Numbers to predict: the joint choice of number and ridges beside the lasso and the relaxed lasso.

``python benchmarks/regression.py [--repetitions 4] [--cache FILE] [--report]``. 24 designs of Hastie, Tibshirani and
Tibshirani (2020): four sizes, two kinds of weights, correlation 0.35 of neighbours, three ratios of signal to noise; and
24 of our own: blocks of alike features, heavy tails, many weak effects, features of unlike deviations. The figure is the
share of the variance of fresh samples that is explained. The lasso has the lambda of the lowest error in five folds; the
relaxed lasso is mixed with least squares on its features, and the share of these, too, is chosen in the folds.
"""

from __future__ import annotations

import argparse
import json
import warnings
from itertools import product
from pathlib import Path

import numpy as np
from protocol.markdown import print_table
from scipy.stats import ttest_1samp
from sklearn.linear_model import lasso_path
from sklearn.model_selection import KFold

from l20fs import L20Regressor, L20Selector, L20SelectorCV

N_FRESH = 2000
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
NEW, FORMER = "auto", "former: one ridge, 1se"


def hastie(n: int, p: int, s: int, kind: int, ratio: float, rng: np.random.Generator):
    """Return a sampler of X and y."""
    weights = np.zeros(p)
    weights[np.linspace(0, p - 1, s).round().astype(int) if kind == 1 else np.arange(s)] = 1.0
    place = np.flatnonzero(weights)
    noise = np.sqrt(weights[place] @ 0.35 ** np.abs(place[:, None] - place) @ weights[place] / ratio)

    def draw(size: int):
        X = rng.standard_normal((size, p))
        for j in range(1, p):
            X[:, j] = 0.35 * X[:, j - 1] + np.sqrt(1.0 - 0.35**2) * X[:, j]
        return X, X @ weights + noise * rng.standard_normal(size)

    return draw


def own(n: int, p: int, kind: str, ratio: float, rng: np.random.Generator):
    weights, deviation = np.zeros(p), np.ones(p)
    chosen = rng.permutation(p)[: p // 10 if kind == "weak" else 8]
    weights[chosen] = rng.standard_normal(len(chosen))
    if kind == "units":
        deviation = np.exp(rng.normal(0.0, 1.5, p))

    def features(size: int):
        X = rng.standard_t(4, (size, p)) if kind == "tails" else rng.standard_normal((size, p))
        if kind == "blocks":
            X = np.sqrt(0.8) * np.repeat(rng.standard_normal((size, -(-p // 10))), 10, axis=1)[:, :p] + np.sqrt(0.2) * X
        return X

    noise = np.sqrt((features(4000) @ weights).var() / ratio)

    def draw(size: int):
        X = features(size)
        return X * deviation, X @ weights + noise * rng.standard_normal(size)

    return draw


HASTIE = [(*size, kind, ratio) for size, kind, ratio in product(
    ((100, 10, 5), (500, 100, 5), (50, 1000, 5), (100, 1000, 10)), (1, 2), (0.25, 1.22, 6.0)
)]  # fmt: skip
OWN = [(*size, kind, ratio) for size, kind, ratio in product(
    ((60, 1000), (120, 400), (300, 50)), ("blocks", "tails", "weak", "units"), (0.7, 4.0)
)]  # fmt: skip


def lassos(X: np.ndarray, y: np.ndarray) -> dict[str, tuple[np.ndarray, float]]:
    """Return weights and intercept of the lasso and the relaxed lasso."""
    scale = X.std(axis=0)
    X = X / scale
    alphas = lasso_path(X - X.mean(axis=0), y - y.mean(), n_alphas=60, eps=1e-2)[0]

    def fits(X, y):
        mean, y_mean = X.mean(axis=0), y.mean()
        path = lasso_path(X - mean, y - y_mean, alphas=alphas)[1]
        free = np.zeros_like(path)
        for place in range(path.shape[1]):
            rows = np.flatnonzero(path[:, place])
            free[rows, place] = np.linalg.lstsq(X[:, rows] - mean[rows], y - y_mean, rcond=None)[0]
        mixed = np.stack([(1.0 - share) * path + share * free for share in SHARES])
        return mixed, y_mean - np.einsum("j,sja->sa", mean, mixed)

    error = 0.0
    for train, test in KFold(5, shuffle=True, random_state=0).split(X):
        weights, intercept = fits(X[train], y[train])
        predicted = np.einsum("nj,sja->nsa", X[test], weights) + intercept
        error = error + np.square(predicted - y[test][:, None, None]).sum(axis=0)
    weights, intercept = fits(X, y)
    best = {"lasso": (0, int(error[0].argmin())), "relaxed lasso": np.unravel_index(error.argmin(), error.shape)}
    return {name: (weights[s, :, a] / scale, float(intercept[s, a])) for name, (s, a) in best.items()}


def former(X: np.ndarray, y: np.ndarray) -> L20Regressor:
    """Return the model of the former defaults: five folds, one ridge, the number within one standard error."""
    q = X.shape[1] / len(y)
    template = L20Selector(ridge=q / (q + 10.0), refit_ridge=q / (q + 10.0), task="regression")
    found = L20SelectorCV("best", selector=template, cv=KFold(5), scoring="r2").fit(X, y)
    results = found.cv_results_
    scores = np.array([results[f"split{fold}_test_score"] for fold in range(5)])
    means, errors = scores.mean(axis=0), scores.std(axis=0, ddof=1) / np.sqrt(5)
    place = int(np.argmax(means >= means.max() - errors[means.argmax()]))
    return found.model_.at(int(results["n_features_to_select"][place]))


def compute(design: tuple, seed: int) -> dict[str, list[float]]:
    rng = np.random.default_rng([seed, *map(ord, str(design))])
    draw = hastie(*design, rng) if len(design) == 5 else own(*design, rng)
    (X, y), (fresh, truth) = draw(design[0]), draw(N_FRESH)
    auto = L20SelectorCV(selector=L20Selector(task="regression")).fit(X, y)
    models = {NEW: auto, "lowest error": auto.model_.at(lowest(auto)), FORMER: former(X, y)}
    results = {name: [explained(truth, model.predict(fresh)), int(model.support_.sum())] for name, model in models.items()}
    for name, (weights, intercept) in lassos(X, y).items():
        results[name] = [explained(truth, fresh @ weights + intercept), int(np.count_nonzero(weights))]
    return results


def lowest(found: L20SelectorCV) -> int:
    """Return the number with the lowest error of the chosen ridge."""
    results = found.cv_results_
    is_own = results["ridge"] == results["ridge"][found.best_index_]
    return int(results["n_features_to_select"][is_own][results["error"][is_own].argmin()])


def explained(truth: np.ndarray, predicted: np.ndarray) -> float:
    return float(1.0 - np.square(truth - predicted).mean() / truth.var())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=4)
    parser.add_argument("--cache", type=Path, default=Path("build/regression.json"))
    parser.add_argument("--report", action="store_true")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    stored = json.loads(arguments.cache.read_text()) if arguments.cache.exists() else {}
    for seed, design in () if arguments.report else product(range(arguments.repetitions), [*HASTIE, *OWN]):
        key = f"{design} {seed}"
        if key not in stored:
            stored[key] = compute(design, seed)
            arguments.cache.parent.mkdir(parents=True, exist_ok=True)
            arguments.cache.write_text(json.dumps(stored))
    for title, designs in (("Hastie, Tibshirani and Tibshirani", HASTIE), ("our own", OWN), ("all", [*HASTIE, *OWN])):
        cells = [[stored[key] for key in stored if key.startswith(f"{design} ")] for design in designs]
        cells = [own for own in cells if own]
        means = {name: np.array([np.mean([cell[name] for cell in own], axis=0) for own in cells]) for name in cells[0][0]}
        rows = []
        for name, values in means.items():
            gain = means[NEW][:, 0] - values[:, 0]
            p = "" if name == NEW else f"{ttest_1samp(gain, 0.0).pvalue:.2g}"
            won = "" if name == NEW else f"{np.sum(gain > 0)} of {len(gain)}"
            rows.append([name, f"{values[:, 0].mean():.3f}", f"{values[:, 1].mean():.0f}", f"{gain.mean():+.3f}", won, p])
        head = ["model", "explained", "mean number", "auto gains", "auto better in", "p (paired by design)"]
        print_table(f"Explained variance, {title}: {len(cells)} designs, {sum(map(len, cells))} draws", head, rows)


if __name__ == "__main__":
    main()
