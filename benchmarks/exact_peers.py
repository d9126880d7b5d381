"""Proofs of optimality, side by side with what else installs and proves the same: l0bnb, and SCIP on two formulations.

Run ``python benchmarks/exact_peers.py DATA_DIR``, or ``make bench-exact``, which installs the peers first. DATA_DIR holds
``paper/`` and ``extra/`` with the two-class sets (X, y). All solve

    minimise 1/2 ||y - X b||^2 + l2 ||b||^2 + l0 (number of non-zero b)

with centred X and y (-1 and 1), columns of unit variance, and prove the result to a relative gap of 1e-4, each in a process
of its own with one thread and a limit of time. Our problem is the same with mu = 2 l2 and lambda = l0; ridge r is mu = r
times the squared norm of a column. For each set and ridge l0 is chosen so that about 5, 10 or 20 features are selected: half
way between what the last of them and the next one bring on a path of swaps.

l20fs needs no limit of b. The others do (big M): they get 1.5 times the largest weight of the best solution known, which is
help that a user would not have. SCIP gets the ``--n-scip`` features with the largest correlation with y alone, a far smaller
problem, once with big M and once with the perspective of b^2 (rotated cones); its times stand beside ours on the same few.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

SETS = ("paper/leukemia", "paper/prostate", "extra/colon_discrete", "extra/allaml", "extra/prostate_ge", "extra/arcene")
SIZES = (5, 10, 20)
GAP = 1e-4
THREADS = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")


def load(file: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return X with centred columns of unit variance, without constant ones, and y as -1 and 1, centred."""
    with np.load(file) as stored:
        X, y = stored["X"].astype(np.float64), np.where(stored["y"] == stored["y"][0], -1.0, 1.0)
    X = X[:, X.std(axis=0) > 0.0]
    return (X - X.mean(axis=0)) / X.std(axis=0), y - y.mean()


def fit_swaps(X, y, ridge, k):
    """Return a path of swaps to k features; ridge r is mu = r times the squared norm of a column."""
    from l20fs import L20Selector

    return L20Selector(k, solver="swap", ridge=ridge, scale="none", task="regression").fit(X, y)


def prices(X, y, ridge) -> dict[int, float]:
    """Return the l0 at which about 5, 10 and 20 features are selected, along a path of swaps."""
    losses = fit_swaps(X, y, ridge, SIZES[-1] + 1).path_.losses
    return {k: float(losses[k - 1] - losses[k + 1]) / 2.0 for k in SIZES}


def objective(X, y, l0, l2, support) -> tuple[float, np.ndarray]:
    """Return the smallest objective with weights on a support, and the weights."""
    A = X[:, support]
    b = np.linalg.solve(A.T @ A + 2.0 * l2 * np.eye(len(support)), A.T @ y)
    return float(0.5 * np.sum((y - A @ b) ** 2) + l2 * b @ b + l0 * len(support)), b


# ---------------------------------------------------------------------------------------------------------------- methods


def by_l20fs(X, y, l0, l2, big_m, limit):
    """Bound the loss for every number of features: halve ranges of numbers, and search where a relaxation is not enough.

    The lowest loss of more features is lower, so that the bound for the last of a range is one for all of it.
    """
    from l20fs import L20Selector
    from l20fs.inspection import certify, solve_exactly

    end = time.perf_counter() + limit
    ridge = 2.0 * l2 / len(y)
    path = fit_swaps(X, y, ridge, min(2 * SIZES[-1], X.shape[1])).path_
    values = path.losses + l0 * path.sizes
    support, value = path.stage_rows(int(values.argmin())), float(values.min())
    least = l2 * y @ np.linalg.solve(X @ X.T + 2.0 * l2 * np.eye(len(y)), y)  # the loss with all features
    largest = min(int(np.ceil((value - least) / l0)), X.shape[1])
    selector = L20Selector(largest, ridge=ridge, scale="none", task="regression").fit(X, y)
    lower, ranges = (np.inf if largest == X.shape[1] else least + l0 * largest), [(1, largest)]
    while ranges and time.perf_counter() < end:
        first, last = ranges.pop()
        bound = certify(selector, X, y, last).lower_bound + l0 * first
        if bound < (1.0 - GAP) * value and first == last:
            best, found = solve_exactly(selector, X, y, first, time_limit=max(end - time.perf_counter(), 0.1)), l0 * first
            bound = best.certificate.lower_bound + found
            if best.certificate.upper_bound + found < value:
                support, value = best.support, best.certificate.upper_bound + found
        elif bound < (1.0 - GAP) * value:
            middle = (first + last) // 2
            ranges += [(first, middle), (middle + 1, last)]
            continue
        lower = min(lower, bound)
    return support, 0.0 if ranges else min(lower, value)


def by_l0bnb(X, y, l0, l2, big_m, limit):
    vars(np).setdefault("Inf", np.inf)  # written for numpy 1, it runs with 2 but for this name
    from l0bnb import BNBTree

    tree = BNBTree(X, y)
    solution = tree.solve(l0, l2, big_m, gap_tol=GAP, time_limit=limit)
    # With no node left everything is proved, whatever gap it last looked at.
    gap = min(solution.gap, 1.0) if solution.sol_time >= limit else min(solution.gap, GAP)
    return np.flatnonzero(solution.beta), (1.0 - gap) * float(solution.cost)


def by_scip(X, y, l0, l2, big_m, limit, *, with_cones):
    """Minimise over b and indicators z; the squares are in the factor of the Gram matrix, which has as many rows as y."""
    from pyscipopt import Model, quicksum

    d = X.shape[1]
    model = Model()
    model.hideOutput()
    model.setParam("limits/time", limit)
    model.setParam("limits/gap", GAP)
    model.setParam("parallel/maxnthreads", 1)
    b = [model.addVar(lb=-big_m, ub=big_m) for _ in range(d)]
    z = [model.addVar(vtype="B") for _ in range(d)]
    residual = [model.addVar(lb=None) for _ in y]
    loss = model.addVar(lb=0.0)
    for i, row in enumerate(X):
        model.addCons(residual[i] == y[i] - quicksum(float(value) * b[j] for j, value in enumerate(row)))
    model.addCons(quicksum(r * r for r in residual) <= 2.0 * loss)
    squares = [model.addVar(lb=0.0) for _ in range(d)]
    for j in range(d):
        model.addCons(b[j] <= big_m * z[j])
        model.addCons(b[j] >= -big_m * z[j])
        model.addCons(b[j] * b[j] <= (squares[j] * z[j] if with_cones else squares[j]))
    model.setObjective(loss + l2 * quicksum(squares) + l0 * quicksum(z), "minimize")
    model.optimize()
    chosen = [j for j in range(d) if model.getVal(z[j]) > 0.5] if model.getNSols() else []
    return np.array(chosen, dtype=int), float(model.getDualbound())


METHODS = {
    "l20fs": by_l20fs,
    "l0bnb": by_l0bnb,
    "SCIP, big M": lambda *args: by_scip(*args, with_cones=False),
    "SCIP, cones": lambda *args: by_scip(*args, with_cones=True),
}


# --------------------------------------------------------------------------------------------------------------- the runs


def run_one(request: dict) -> dict:
    """Run one method in this process; a small problem first, so that compilers and imports do not count."""
    method = METHODS[request["method"]]
    random = np.random.default_rng(0)
    small = random.standard_normal((20, 8))
    method(small - small.mean(axis=0), np.sign(small[:, 0]) - np.sign(small[:, 0]).mean(), 0.5, 1.0, 5.0, 30.0)
    X, y = load(Path(request["file"]))
    if request["n_features"]:
        X = X[:, np.sort(np.argsort(-np.abs(y @ X))[: request["n_features"]])]
    l0, l2 = request["l0"], request["l2"]
    begin = time.perf_counter()
    support, lower = method(X, y, l0, l2, request["big_m"], request["limit"])
    seconds = time.perf_counter() - begin
    value, _ = objective(X, y, l0, l2, support)
    return {"seconds": seconds, "size": len(support), "value": value, "gap": max(0.0, 1.0 - lower / value)}


def run(**request) -> dict | None:
    """Run one method in a process of its own; None if it is not installed or takes far too long."""
    command = [sys.executable, __file__, "--one", json.dumps(request)]
    try:
        done = subprocess.run(
            command, env=os.environ | THREADS, capture_output=True, timeout=3.0 * request["limit"] + 120.0, check=True
        )
    except subprocess.TimeoutExpired:
        return None
    except subprocess.CalledProcessError as failed:
        print(failed.stderr.decode()[-300:], file=sys.stderr)
        return None
    return json.loads(done.stdout.decode().splitlines()[-1])


def cells(results: dict[str, dict | None]) -> str:
    """Return size, gap and time of every method; a star marks a value above the best one."""
    best = min((found["value"] for found in results.values() if found), default=0.0)
    texts = []
    for found in results.values():
        if found is None:
            texts.append("- ")
            continue
        star = "*" if found["value"] > best * (1.0 + 2.0 * GAP) else ""
        gap = "proved" if found["gap"] <= 2.0 * GAP else f"gap {100.0 * found['gap']:.2f} %"
        texts.append(f"{found['size']}{star}, {gap}, {found['seconds']:.2f} s")
    return " | ".join(texts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="?")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds per proof")
    parser.add_argument("--ridges", type=float, nargs="+", default=[10.0, 3.0, 1.0])
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--n-scip", type=int, default=100, help="features for SCIP")
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(run_one(json.loads(arguments.one))))
        return
    whole = [name for name in arguments.methods if not name.startswith("SCIP")]
    small = ["l20fs", *(name for name in arguments.methods if name.startswith("SCIP"))] if arguments.n_scip else []
    print(f"Selected, proved or the gap, seconds; at most {arguments.limit:g} s. After ||: {arguments.n_scip} features.")
    print("| set | N x d | ridge | about k | " + " | ".join(whole) + " || " + " | ".join(small) + " |")
    print("|" + "---|" * (4 + len(whole) + len(small)))
    for name in arguments.sets:
        file = arguments.data / f"{name}.npz"
        X, y = load(file)
        for ridge in arguments.ridges:
            l2 = 0.5 * ridge * len(y)  # mu = 2 l2, and a column has the squared norm N
            for k, l0 in prices(X, y, ridge).items():
                _, weights = objective(X, y, l0, l2, np.flatnonzero(fit_swaps(X, y, ridge, k).support_))
                shared = {"file": str(file), "l0": l0, "l2": l2, "limit": arguments.limit}
                shared["big_m"] = 1.5 * float(np.abs(weights).max())
                found = {method: run(method=method, n_features=0, **shared) for method in whole}
                few = {method: run(method=method, n_features=arguments.n_scip, **shared) for method in small}
                shape = f"{X.shape[0]} x {X.shape[1]}"
                print(f"| {Path(name).name} | {shape} | {ridge:g} | {k} | {cells(found)} || {cells(few)} |", flush=True)


if __name__ == "__main__":
    main()
