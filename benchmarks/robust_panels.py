"""Loss of panels with all features, and without their worst one, with and without ``robust_to=1``, on the paper's data sets.

Run ``python benchmarks/robust_panels.py DATA_DIR``, where DATA_DIR holds ``brain.npz`` and the others (X, y). For every set,
ridge and k it prints, for forward and swap without and with ``robust_to=1``, the loss h with all features and the loss r
without the worst one, in per cent of the loss without features, how far r can be from its optimum at most (the gap of
``certificate_``), and the processor time of the last solver as a multiple of that of swap.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from schedule import SETS, load

from l20fs import Forward, L20Selector, Swap

SOLVERS = (Forward(), Swap(), Forward(robust_to=1), Swap(robust_to=1))


def fit(X: np.ndarray, y: np.ndarray, **options: object) -> tuple[L20Selector, float]:
    begin = time.process_time()
    selector = L20Selector(**options).fit(X, y)
    return selector, time.process_time() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10, 20])
    arguments = parser.parse_args()
    print("| set | ridge | k | forward h, r | swap h, r | robust forward h, r | robust swap h, r | gap of r | time |")
    print("|---|---|---|---|---|---|---|---|---|")
    changes = []
    for name in SETS:
        X, y = load(arguments.data, name)
        for ridge in ("auto", 10.0):
            for k in arguments.sizes:
                cells, seconds, found = [], [], []
                for solver in SOLVERS:
                    selector, spent = fit(X, y, n_features_to_select=k, solver=solver, ridge=ridge)
                    path = selector.path_
                    pair = [path.refit(k).loss, path.failure_losses(k).max()] / path.null_loss
                    cells.append(f"{100 * pair[0]:.2f}, {100 * pair[1]:.2f}")
                    seconds.append(spent)
                    found.append(pair)
                changes.append(found[3] / found[1] - 1.0)
                certified = L20Selector(k, solver=SOLVERS[-1], ridge=ridge, certify=True).fit(X, y)
                gap = 100 * certified.certificate_.gap
                strength = f"{certified.ridge_:.2g}"
                print(
                    f"| {name} | {strength} | {k} | {' | '.join(cells)} | {gap:.2f} % | {seconds[3] / seconds[1]:.1f} |",
                    flush=True,
                )
    mean, largest = np.mean(changes, axis=0), np.min(np.array(changes)[:, 1])
    print(f"\nrobust swap beside swap: h {100 * mean[0]:+.2f} %, r {100 * mean[1]:+.2f} % (at best {100 * largest:.2f} %)")


if __name__ == "__main__":
    main()
