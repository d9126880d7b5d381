"""Fit estimators to odd data with odd parameters, each in a process of its own, and count how the fits end.

    python benchmarks/odd_fits.py --fits 10000

A fit may end with a result without NaN, or with a ValueError or TypeError of one line. Anything else is listed with its
seed: a RuntimeWarning, another error, a signal, or the limit of time.
"""

from __future__ import annotations

import argparse
import inspect
import os
import signal
import warnings
from collections import Counter

import numpy as np
import scipy.sparse as sp

from l20fs import L20Classifier, L20Regressor, L20Selector, L20SelectorCV, StabilitySelector
from l20fs.methods import discover
from l20fs.solvers import SOLVERS

ESTIMATORS = [*[L20Selector] * 4, L20Classifier, L20Regressor, L20SelectorCV, StabilitySelector, *discover().values()]
SIZES = [0, 1e-310, 1e-200, 1e-100, 1e-20, 1e-3, 1, 1e3, 1e20, 1e100, 1e200, 1e307]
VALUES = [0, -1, 1, 2, 7, 1e-100, 1e-9, 0.01, 0.5, 0.99, 1.02, 3.0, 1e9, 1e100, np.inf, np.nan, True, "1", None, np.int8(5)]
SHORT = {"max_iter": 50, "n_resamples": 4, "cv": 2, "n_alphas": 4}


def odd_data(random):
    """Return X with columns of several kinds and sizes, and y."""
    n_samples, n_features = int(random.integers(2, 30)), int(random.integers(1, 40))
    X = random.standard_normal((n_samples, n_features))
    for _ in range(int(random.integers(0, 4))):
        some = random.random(n_features) < 0.4
        kind = random.integers(9)
        X[:, some] *= random.choice(SIZES) if kind == 0 else 1.0
        X[:, some] += random.choice(SIZES) if kind == 1 else 0.0
        if kind == 2:
            X[:, some] = X[:, :1]
        elif kind == 3:
            X[:, some] = np.clip(X[:, some], -4, 4).round()
        elif kind == 4:
            X[random.random(X.shape) < 0.7] = 0.0
        elif kind == 5:
            X[:, some] = random.choice(SIZES)
    n_classes = int(random.integers(2, 5))
    numbers = random.standard_normal(n_samples) * random.choice(SIZES)
    labels = random.integers(0, n_classes, n_samples)
    y = [labels, labels, labels, numbers, np.column_stack([numbers, numbers[::-1]])][random.integers(5)]
    convert = [np.asarray, np.float32, sp.csr_array, sp.csc_matrix, np.asfortranarray][random.integers(5)]
    return convert(X), y


def odd_estimator(random):
    """Return an estimator with a few odd parameters."""
    kind = ESTIMATORS[random.integers(len(ESTIMATORS))]
    params = odd_params(kind, random)
    if kind is L20Selector and random.random() < 0.7:
        solver = list(SOLVERS.values())[random.integers(len(SOLVERS))]
        params["solver"] = solver(**odd_params(solver, random))
    return kind(**params)


def odd_params(kind, random):
    """Return parameters that keep a fit short, and up to two odd ones."""
    known = inspect.signature(kind).parameters
    names = [name for name in known if name not in ("callback", "verbose", "n_jobs")]
    params = {name: value for name, value in SHORT.items() if name in known}
    for _ in range(int(random.integers(0, 3)) if names else 0):
        params[str(random.choice(names))] = VALUES[random.integers(len(VALUES))]
    return params


def ending_of(seed):
    """Fit, and describe the end; "result" and "refusal" are fine."""
    random = np.random.default_rng(seed)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        (X, y), estimator = odd_data(random), odd_estimator(random)
        X = X.toarray() if sp.issparse(X) and not getattr(estimator, "takes_sparse", True) else X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", RuntimeWarning)
        try:
            estimator.fit(X, y).get_support()
        except Exception as error:  # its kind is what is counted
            is_fine = isinstance(error, ValueError | TypeError) and not isinstance(error, np.linalg.LinAlgError)
            return "refusal" if is_fine else f"{type(estimator).__name__}: {type(error).__name__}: {error}"
    parts = [np.asarray(getattr(estimator, name, 0.0), dtype=float) for name in ("scores_", "coef_", "objective_")]
    return f"{type(estimator).__name__}: NaN" if any(np.isnan(part).any() for part in parts) else "result"


def fit_apart(seed, seconds):
    """Return the ending of a fit in a process of its own."""
    out, into = os.pipe()
    child = os.fork()
    if not child:
        signal.alarm(seconds)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # messages of LAPACK
        os.write(into, ending_of(seed).encode()[:2000])
        os._exit(0)
    os.close(into)
    with os.fdopen(out, "rb") as pipe:
        text = pipe.read().decode()
    status = os.waitpid(child, 0)[1]
    return text or ("timed out" if os.WTERMSIG(status) == signal.SIGALRM else f"signal {os.WTERMSIG(status)}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fits", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=int, default=60, help="limit of one fit")
    options = parser.parse_args()
    endings = Counter()
    for seed in range(options.seed, options.seed + options.fits):
        ending = fit_apart(seed, options.seconds)
        endings[ending if ending in ("result", "refusal") else "fault"] += 1
        if ending not in ("result", "refusal"):
            print(f"seed {seed}: {ending}", flush=True)
    print(", ".join(f"{count} {ending}s" for ending, count in sorted(endings.items())))
