"""RFS beside scikit-feature's RFS, in one process: time and objective.

Run ``python benchmarks/rfs.py`` in an environment with skfeature-chappers; ``--large`` adds 200 x 20 000 x 8, where
scikit-feature needs more memory than most machines have and only l20fs is timed.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from l20fs.data import make_planted
from l20fs.methods import RFS


def objective(X, Y, W, gamma: float) -> float:
    """The RFS objective itself, without smoothing."""
    return float(np.linalg.norm(X @ W - Y, axis=1).sum() + gamma * np.linalg.norm(W, axis=1).sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--large", action="store_true")
    sizes = [(63, 2308, 4)] + ([(200, 20000, 8)] if parser.parse_args().large else [])
    for n_samples, n_features, n_classes in sizes:
        X, y, _ = make_planted(n_samples, n_features, 20, n_classes)
        Y = 2.0 * np.eye(n_classes)[y] - 1.0  # scikit-feature turns labels into -1 and 1
        ours, seconds = None, np.inf
        for _ in range(3):
            begin = time.perf_counter()
            ours = RFS(20, gamma=1.0).fit(X, Y)
            seconds = min(seconds, time.perf_counter() - begin)
        print(f"{n_samples}x{n_features}x{n_classes}")
        value = objective(X, Y, ours.coef_.T, 1.0)
        print(f"  l20fs          {seconds:9.3f} s  objective {value:.6f}  {ours.n_iter_} iterations")
        if n_features > 5000:
            continue
        try:
            from skfeature.function.sparse_learning_based.RFS import rfs
        except ImportError as error:
            print(f"  scikit-feature is not installed ({error.name}); install skfeature-chappers to compare")
            continue
        begin = time.perf_counter()
        W = rfs(X, y, mode="raw", gamma=1.0)
        theirs = time.perf_counter() - begin
        print(f"  scikit-feature {theirs:9.3f} s  objective {objective(X, Y, W, 1.0):.6f}")
        print(f"  ratio          {theirs / seconds:9.0f}")


if __name__ == "__main__":
    main()
