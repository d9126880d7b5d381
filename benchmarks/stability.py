"""Stability selection: what it finds in planted data, what it lets through of noise, and how stable real selections are.

Run ``python benchmarks/stability.py [DATA_DIR]``, where DATA_DIR holds ``brain.npz`` and the others (X, y). The last column
is the time of all resamples over that of as many fits on all samples.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

from l20fs import L20Selector, StabilitySelector
from l20fs.data import make_planted
from l20fs.methods import FisherScore

THRESHOLDS = (0.51, 0.6, 0.7, 0.8, 0.9)


def planted(n_trials: int = 20) -> None:
    print("120 samples, 1000 features of which 10 decide one of 4 classes; L20Selector(20); mean over", n_trials, "draws")
    print("threshold   planted found   others   worst case   unimodal")
    counts = []
    for trial in range(n_trials):
        X, y, informative = make_planted(120, 1000, 10, 4, random_state=trial)
        stable = StabilitySelector(L20Selector(20), random_state=trial).fit(X, y)
        is_planted = np.isin(np.arange(1000), informative)
        counts.append([[np.sum(stable.frequencies_[part] >= t) for part in (is_planted, ~is_planted)] for t in THRESHOLDS])
    for threshold, (found, others) in zip(THRESHOLDS, np.mean(counts, axis=0), strict=True):
        bounds = [bound(stable, threshold, kind) for kind in ("worst_case", "unimodal")]
        print(f"{threshold:9.2f} {found:15.2f} {others:8.2f} {bounds[0]:>12} {bounds[1]:>10}")


def noise(n_trials: int = 50) -> None:
    print("60 samples, 1000 features of noise, 2 classes; FisherScore(20); mean over", n_trials, "draws")
    print("threshold   selected   worst case   unimodal")
    random = np.random.default_rng(0)
    frequencies = []
    for trial in range(n_trials):
        X, y = random.standard_normal((60, 1000)), np.arange(60) % 2
        stable = StabilitySelector(FisherScore(20), random_state=trial).fit(X, y)
        frequencies.append(stable.frequencies_)
    for threshold in THRESHOLDS:
        selected = np.mean(np.sum(np.array(frequencies) >= threshold, axis=1))
        bounds = [bound(stable, threshold, kind) for kind in ("worst_case", "unimodal")]
        print(f"{threshold:9.2f} {selected:10.2f} {bounds[0]:>12} {bounds[1]:>10}")


def bound(stable: StabilitySelector, threshold: float, kind: str) -> str:
    try:
        return f"{stable.error_bound(threshold, kind=kind):.2f}"
    except ValueError:  # too close to 1/2
        return "-"


def real(folder: Path) -> None:
    print("L20Selector(20), 100 resamples")
    print("set            samples  features  stability (95 %)        ever  at 0.6  worst case  unimodal  time / fits on all")
    for file in sorted(folder.glob("*.npz")):
        with np.load(file, allow_pickle=False) as stored:
            X, y = stored["X"].astype(np.float64), stored["y"]
        start = time.perf_counter()
        stable = StabilitySelector(L20Selector(20), random_state=0).fit(X, y)
        middle = time.perf_counter()
        for _ in range(5):
            L20Selector(20).fit(X, y)
        ratio = (middle - start) / (20 * (time.perf_counter() - middle))
        low, high = stable.stability_interval_
        print(
            f"{file.stem:14} {len(X):7} {X.shape[1]:9}  {stable.stability_:.3f} ({low:.3f} to {high:.3f})"
            f" {np.count_nonzero(stable.frequencies_):7} {stable.support_.sum():7} {bound(stable, 0.6, 'worst_case'):>11}"
            f" {bound(stable, 0.6, 'unimodal'):>9} {ratio:8.2f}"
        )


if __name__ == "__main__":
    planted()
    print()
    noise()
    if len(sys.argv) > 1:
        print()
        real(Path(sys.argv[1]))
