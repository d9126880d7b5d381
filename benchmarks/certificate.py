"""How close a greedy choice of features is proved to be to the best one, on the paper's data sets.

Run ``python benchmarks/certificate.py DATA_DIR``, where DATA_DIR holds ``brain.npz`` and the others (X, y). For every set,
scale, weighting of the targets and ridge it prints, at each number of features k, the certified gap of forward selection in
per cent, the number of features that are proved not to be among the best k, and the seconds that the certificate took (of
processor time: the machine may be shared). With ``--exact NODES`` it also prints what branch and bound makes of it for the
first two k: the gap that is left, nodes, seconds, and by how many per cent forward and swaps are above the best one.
``--strongest`` keeps to z-scores, balanced targets and ridge 10.

Targets are one-hot, or ("balanced") each one-hot column divided by the root of its class size over the mean class size.
"""

from __future__ import annotations

import argparse
import itertools
import time
from pathlib import Path

import numpy as np
from schedule import SETS, load

from l20fs.bounds.branch_and_bound import solve_exactly
from l20fs.bounds.certificate import certify_size, lower_bounds, support_loss
from l20fs.objective.least_squares import LeastSquares
from l20fs.solvers import forward, swap

SIZES = (5, 20, 50)
RIDGES = (0.1, 1.0, 10.0)


def make_targets(y: np.ndarray, weighting: str) -> np.ndarray:
    targets = np.eye(y.max() + 1)[y]
    sizes = targets.sum(axis=0)
    return targets / np.sqrt(sizes / sizes.mean()) if weighting == "balanced" else targets


def seconds(function):
    begin = time.process_time()
    result = function()
    return result, time.process_time() - begin


def certify(problem: LeastSquares, order: np.ndarray) -> str:
    cells = []
    for k in SIZES:
        upper = support_loss(problem, order[:k])
        found, spent = seconds(lambda: certify_size(problem, k, upper))
        cells.append(f"{100 * found.gap:8.2f}{len(found.proved_out):7d}{spent:7.3f}")
    _, spent = seconds(lambda: lower_bounds(problem, SIZES[-1]))
    return " |".join(cells) + f" |{spent:7.2f}"


def search(problem: LeastSquares, order: np.ndarray, max_nodes: int) -> str:
    """Search for the optimum from the support that swaps find; say how far above it forward and swaps end."""
    cells = []
    for k in SIZES[:2]:
        swapped = swap(problem, k).rows_at(k)
        optimum, spent = seconds(lambda: solve_exactly(problem, k, support=swapped, max_nodes=max_nodes))
        best = optimum.certificate.upper_bound
        above = [100 * (support_loss(problem, rows) / best - 1.0) for rows in (order[:k], swapped)]
        cells.append(f"{100 * optimum.certificate.gap:9.4f}{optimum.n_nodes:5d}{spent:6.1f}{above[0]:8.4f}{above[1]:8.4f}")
    return " |".join(cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--exact", type=int, metavar="NODES", help="search with so many nodes")
    parser.add_argument("--strongest", action="store_true", help="the strongest ridge only")
    arguments = parser.parse_args()
    settings = list(itertools.product(("none", "zscore"), ("one-hot", "balanced"), RIDGES))
    print(f"{'':32}" + " |".join(f"{'k = ' + str(k):>22}" for k in SIZES) + " | all k")
    print(
        f"{'set':10}{'scale':7}{'targets':9}{'ridge':>6}"
        + " |".join([f"{'gap %':>8}{'out':>7}{'s':>7}"] * 3)
        + f" |{'s':>7}"
    )
    for name in SETS:
        X, y = load(arguments.data, name)
        for scale, weighting, ridge in settings[-1:] if arguments.strongest else settings:
            problem = LeastSquares(X, make_targets(y, weighting), ridge=ridge, scale=scale)
            order = forward(problem, SIZES[-1]).order
            print(f"{name:10}{scale:7}{weighting:9}{ridge:6.1f}{certify(problem, order)}", flush=True)
            if arguments.exact:
                print(f"{'  gap %, nodes, s, above %':32}{search(problem, order, arguments.exact)}", flush=True)


if __name__ == "__main__":
    main()
