"""Problems of the golden numbers, and how they are made: ``python tests/acceptance/make_golden.py`` writes golden/*.json.

Run it only where results change on purpose, and say which in the commit.
"""

from __future__ import annotations

import json
import sys
import warnings
from itertools import product
from pathlib import Path

import numpy as np
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).parents[1]))  # for this file as a script
from acceptance import doors

GOLDEN = Path(__file__).parent / "golden"
K = 10
PROBLEMS = {
    "wide": {"shape": [60, 9000], "n_targets": 4, "n_hidden": 8},
    "tall": {"shape": [400, 15], "options": {"ridge": 0.0}},
    "correlated": {"shape": [60, 50], "n_hidden": 4},
    "separable": {"shape": [50, 80], "n_targets": 2, "noise": 0.1, "options": {"class_weight": None}},
    "rare": {"shape": [80, 60], "rarity": 2.0},
    "number": {"shape": [70, 50], "n_targets": 1, "options": {"task": "regression", "ridge": 0.0}},
    "two_numbers": {"shape": [50, 100], "n_targets": 2, "options": {"task": "regression"}},
    "counts": {"shape": [90, 120], "density": 0.2},
    "offsets": {"shape": [60, 60], "offset": 1e4},
    "single": {"shape": [60, 60], "dtype": "float32"},
    "weights": {"shape": [60, 60], "has_weights": True},
    "origin": {"shape": [60, 60], "offset": 1.0, "options": {"fit_intercept": False}},
    "srbct": {"builtin": "srbct"},
}
COMMON = {"ridge": 0.5, "class_weight": "balanced", "fit_intercept": True, "task": "classification"}
COMMON |= {"alpha_min": None, "limit": None, "loss": "squared", "ranking": "entry"}
WALK = {"alpha_start": None, "eta": None, "init": "zeros", "line_search_factor": 2.0, "lipschitz_start": None, "rate": 0.9}
STEPS = {"forward": None, "swap": None, "ahiht": WALK, "hiht": WALK | {"max_iter": 50, "stopping": "relative", "tol": 1e-5}}


def draw(shape, *, seed=0, n_targets=3, noise=0.5, rarity=0.0, offset=0.0, **traits):
    """Return X, targets and sample weights; a class is the number of the largest target."""
    random = np.random.default_rng(seed)
    X, n_hidden = random.standard_normal(shape), traits.get("n_hidden")
    if n_hidden:
        X = 0.5 * X + random.standard_normal((shape[0], n_hidden))[:, random.integers(0, n_hidden, shape[1])]
    if "density" in traits:
        X = random.integers(1, 6, shape) * (random.random(shape) < traits["density"]).astype(float)
    Y = X[:, :n_targets] + X[:, n_targets : 2 * n_targets] + noise * random.standard_normal((shape[0], n_targets))
    Y[:, -1] -= rarity
    if "density" not in traits:
        X = X * (0.5 + random.random(shape[1])) + offset * random.random(shape[1])
    X = X.astype(traits.get("dtype", "float64")).astype(np.float64)
    return X, Y, random.integers(0, 9, shape[0]) / 4 if "has_weights" in traits else None


def answers(*, options, builtin=None, jitter=0.0, **problem):
    """Return sizes, losses, the best rows and the weights of two refits for each solver and scale."""
    X, y, weights = (*doors.builtin(builtin), None) if builtin else draw(**problem)
    y = y.argmax(axis=1) if options["task"] == "classification" and y.ndim == 2 else y
    X = X + jitter * X.std(axis=0) * (X != 0.0) * np.random.default_rng(1).standard_normal(X.shape)
    X, found = sp.csr_array(X) if "density" in problem else X, {}
    for (solver, steps), scale in product(STEPS.items(), ["none", "zscore", "moderated"]):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # HIHT does not converge at every lambda
            fitted = doors.fit(X, y, K, sample_weight=weights, solver=solver, steps=steps, scale=scale, **options)
        path, rows, refits = doors.path(fitted), fitted.order[:K], [fitted.refit(3), fitted.refit(K)]
        numbers = np.concatenate([np.append(coef[:, rows], intercept) for coef, intercept, _ in refits])
        found[f"{solver} {scale}"] = {
            "sizes": path.sizes.tolist(),
            "rows": rows.tolist(),
            "losses": [float(f"{loss:.12g}") for loss in [*path.losses, *(loss for _, _, loss in refits)]],
            "weights": [float(f"{weight:.8g}") for weight in numbers],
        }
    return found


def panel_answers(panel, samples):
    """Return labels and probabilities of new samples, given as columns by name, for two numbers of features."""
    columns = {name: np.array(column, dtype=float) for name, column in samples.items()}
    return {
        str(k): {"labels": panel.predict(columns, k).tolist(), "probabilities": panel.predict_proba(columns, k).tolist()}
        for k in (2, 5)
    }


def main():
    GOLDEN.mkdir(exist_ok=True)
    for seed, (name, own) in enumerate(PROBLEMS.items()):
        problem = own | {"seed": seed, "options": COMMON | own.get("options", {})}
        found, again = answers(**problem), answers(**problem, jitter=1e-9)
        for key in found:
            # Where rounding would decide, another seed has to be taken.
            assert [found[key][part] for part in ("sizes", "rows")] == [again[key][part] for part in ("sizes", "rows")], key
            np.testing.assert_allclose(found[key]["losses"], again[key]["losses"], rtol=1e-7)
        (GOLDEN / f"{name}.json").write_text(json.dumps({"problem": problem, "answers": found}) + "\n")
    X, Y, _ = draw([70, 30], n_hidden=8)
    y = np.array(["north", "south", "west"])[Y.argmax(axis=1)]
    fitted = doors.fit(X[:64], y[:64], 5, model="classifier", scale="moderated", calibration="loo", **COMMON)
    panel = doors.panel(fitted, X[:64], y[:64], n_substitutes=2, k_max=5, transform="none")
    doors.save_panel(panel, GOLDEN / "panel.json")
    samples = {f"x{j}": X[64:, j].round(6).tolist() for j in range(30)}
    samples[f"x{fitted.order[0]}"][-1] = None  # the last sample lacks the best feature
    stored = {"samples": samples, "answers": panel_answers(panel, samples)}
    (GOLDEN / "panel_answers.json").write_text(json.dumps(stored) + "\n")


if __name__ == "__main__":
    main()
