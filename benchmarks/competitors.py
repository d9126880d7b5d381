"""Run the paper's seven competitors on its eight data sets, one split, k = 20, 40, ..., 400, and print the time of each.

Run ``python benchmarks/competitors.py DATA_DIR``, where DATA_DIR holds ``brain.npz`` and the others (X, y). Two thirds of
each class are for training; accuracy is that of KNN-5 on the rest, the mean over the twenty k (one split, so for
orientation only).
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.neighbors import KNeighborsClassifier

from l20fs import AHIHT, L20Selector
from l20fs.methods import ESFS, MRMR, RFS, RLSR, RPMFS, Baseline, ReliefF

SETS = ("brain", "breast3", "leukemia", "lung", "lymphoma", "nci", "prostate", "srbct")
PANELS = range(20, 401, 20)
COMPETITORS = {
    "Baseline": Baseline(),
    "Relief": ReliefF(variant="nearest"),
    "mRMR": MRMR(max_features=400),
    "RFS": RFS(),
    "RLSR": RLSR(),
    "RPMFS": RPMFS(),
    "ESFS": ESFS(),
    "l2,0-FS": L20Selector(
        solver=AHIHT(alpha_start=0.4, alpha_min=1e-4, rate=0.4, eta=0.1, ranking="norm"),
        ridge=0.0,
        scale="none",
        class_weight=None,
        max_features_to_select=400,
    ),
}


def load(folder: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    with np.load(folder / f"{name}.npz", allow_pickle=False) as stored:
        X, y = stored["X"].astype(np.float64), stored["y"]
    # The substitute Lung set is on the linear scale; every other set is a logarithm or a ratio.
    return (np.log10(X) if name == "lung" else X), y


def run(selector, X, y, train, test) -> tuple[float, float]:
    """Return the seconds of selection for all k, and the mean accuracy."""
    begin = time.perf_counter()
    if "sizes" in selector.get_params():  # every k is a problem of its own
        selector.set_params(sizes=PANELS)
    selector.set_params(n_features_to_select=20).fit(X[train], y[train])
    supports = [selector.at(k).support_ for k in PANELS]
    seconds = time.perf_counter() - begin
    if isinstance(selector, Baseline):
        supports = [np.ones(X.shape[1], dtype=bool)]
    model = KNeighborsClassifier(5)
    accuracy = np.mean([model.fit(X[train][:, s], y[train]).score(X[test][:, s], y[test]) for s in supports])
    return seconds, 100 * accuracy


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    folder = parser.parse_args().data
    warnings.simplefilter("ignore")
    total = 0.0
    print(f"{'seconds (accuracy %)':22}" + "".join(f"{name:>15}" for name in SETS) + f"{'all':>9}")
    for name, selector in COMPETITORS.items():
        line, seconds = f"{name:22}", 0.0
        for data in SETS:
            X, y = load(folder, data)
            train, test = next(StratifiedShuffleSplit(1, test_size=1 / 3, random_state=0).split(X, y))
            spent, accuracy = run(selector, X, y, train, test)
            seconds += spent
            line += f"{spent:9.2f} ({accuracy:3.0f})"
        total += seconds
        print(line + f"{seconds:9.1f}", flush=True)
    print(f"all together: {total:.0f} s")


if __name__ == "__main__":
    main()
