"""How close a greedy choice of features is proved to be to the best one, on the paper's data sets.

Run ``python benchmarks/certificate.py DATA_DIR``, where DATA_DIR holds ``brain.npz`` and the others (X, y). For every set,
scale, weighting of the targets and ridge it prints, at each number of features k, the certified gap of forward selection in
per cent, the number of features that are proved not to be among the best k, and the seconds that the certificate took (of
processor time: the machine may be shared). With ``--exact NODES`` it also prints what branch and bound makes of it for the
first two k: the gap that is left, nodes, seconds, and by how many per cent forward and swaps are above the best one.
``--strongest`` keeps to z-scores, balanced targets and ridge 10.

Run ``python benchmarks/certificate.py --features 1000000 --device cuda`` for proofs of the best 20 of so many features of 8
classes, drawn on the device (``--device cpu``: NumPy): a planted set, and one of correlated blocks. It prints the seconds of
the fit, of the fit with bounds for every k (``certify=True``), of screening alone and of the whole proof, the candidates
that screening leaves, nodes, the gap before and after the search, and the peaks of memory of the device and of the host.
``--agree`` repeats it with the same numbers in NumPy and compares; ``--atlas EPS`` lists the panels that are nearly as good.
``--samples``, ``--seeds``, ``--ridges``, ``--kinds`` and ``--runs`` set what is tried, and ``--processor-time`` counts the
time of the processor instead of the clock's.

Targets are one-hot, or ("balanced") each one-hot column divided by the root of its class size over the mean class size.
"""

from __future__ import annotations

import argparse
import itertools
import resource
import time
from pathlib import Path

import numpy as np
from schedule import SETS, load

from l20fs import L20Selector
from l20fs.bounds.branch_and_bound import Optimum, Root, solve_exactly
from l20fs.bounds.certificate import certify_size, lower_bounds, support_loss
from l20fs.objective.least_squares import LeastSquares
from l20fs.solvers import forward, swap
from l20fs.text import small_percent

SIZES = (5, 20, 50)
RIDGES = (0.1, 1.0, 10.0)

#: Of drawn sets.
K, N_CLASSES, MOST_SECONDS = 20, 8, 60.0


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


class Draw:
    """Random numbers of NumPy, or of torch on a device."""

    def __init__(self, device: str, seed: int) -> None:
        self.device, self._random = device, np.random.default_rng(seed)
        if device != "cpu":
            import torch

            self._torch, self._generator = torch, torch.Generator(device).manual_seed(seed)

    def empty(self, shape: tuple[int, int]):
        return np.empty(shape, np.float32) if self.device == "cpu" else self._torch.empty(shape, device=self.device)

    def normal(self, shape: tuple[int, int]):
        if self.device == "cpu":
            return self._random.standard_normal(shape, dtype=np.float32)
        return self._torch.randn(shape, device=self.device, generator=self._generator)

    def heavy(self, shape: tuple[int, int]):
        """Draw from Student's t of 4 degrees of freedom, divided by its deviation."""
        if self.device == "cpu":
            uniform = [1.0 - self._random.random(shape, dtype=np.float32) for _ in range(2)]
            return self.normal(shape) / np.sqrt(-np.log(uniform[0] * uniform[1]))
        uniform = [1.0 - self._torch.rand(shape, device=self.device, generator=self._generator) for _ in range(2)]
        return self.normal(shape) / (-(uniform[0] * uniform[1]).log()).sqrt()

    def send(self, values: np.ndarray):
        values = values.astype(np.float32) if values.dtype.kind == "f" else values
        return values if self.device == "cpu" else self._torch.asarray(values, device=self.device)


def draw_set(kind: str, n_samples: int, n_features: int, device: str, seed: int):
    """Draw X, float32, and labels.

    Planted: Gaussian noise, and 20 features with other means in each class. Blocks: 20 to 50 features with a common factor
    and correlations of 0.5 to 0.95 in each block, and a rest with heavy tails; in 200 blocks the factor has other means in
    each class, and one feature has them once more.
    """
    random, draw = np.random.default_rng(seed), Draw(device, seed)
    y = random.integers(0, N_CLASSES, n_samples)
    X, step = draw.empty((n_samples, n_features)), max(1, (1 << 25) // n_samples)
    parts = [slice(start, min(start + step, n_features)) for start in range(0, n_features, step)]
    if kind == "planted":
        for part in parts:
            X[:, part] = draw.normal((n_samples, part.stop - part.start))
        X[:, draw.send(random.choice(n_features, K, replace=False))] += draw.send(
            (0.6 * random.standard_normal((N_CLASSES, K)))[y]
        )
        return X, y
    sizes = random.integers(20, 51, n_features // 20 + 1)
    ends = np.cumsum(sizes)
    block_of = np.searchsorted(ends, np.arange(n_features), side="right")
    n_blocks = int(block_of[-1]) + 1
    shared = random.uniform(0.5, 0.95, n_blocks)[block_of]
    telling = random.choice(n_blocks - 1, min(200, n_blocks // 2), replace=False)
    means = 0.4 * random.uniform(0.5, 1.0, len(telling)) * random.standard_normal((N_CLASSES, len(telling)))
    factors = draw.normal((n_samples, n_blocks))
    factors[:, draw.send(telling)] += draw.send(0.9 * means[y])
    for part in parts:
        heavy, common = (draw.send(np.sqrt(share[part])) for share in (1.0 - shared, shared))
        X[:, part] = heavy * draw.heavy((n_samples, part.stop - part.start)) + common * factors[:, draw.send(block_of[part])]
    X[:, draw.send(ends[telling] - 1 - random.integers(0, sizes[telling]))] += draw.send(means[y])
    return X, y


class Proved:
    """Fit, bounds and proof for one set."""

    def __init__(self, X, y: np.ndarray, ridge: float, clock) -> None:
        settings = {"ridge": ridge, "scale": "zscore"}

        def timed(function):
            begin = clock()
            return function(), clock() - begin

        self.plain, self.fit = timed(lambda: L20Selector(K, **settings).fit(X, y))
        self.selector, self.certified = timed(lambda: L20Selector(K, **settings, certify=True).fit(X, y))
        problem = LeastSquares(X, make_targets(y, "balanced"), **settings)
        support = np.flatnonzero(self.plain.support_for(K))
        upper = support_loss(problem, support)
        assert np.isclose(upper, self.selector.certificate_.upper_bound, rtol=1e-5)
        candidates, self.screening = timed(lambda: Root.of(problem, K, None).candidates(upper))
        self.n_candidates = len(candidates)
        self.optimum, self.proof = timed(lambda: solve_exactly(problem, K, support=support, time_limit=MOST_SECONDS))
        self.optimum: Optimum

    def __str__(self) -> str:
        gaps = [small_percent(found.gap) for found in (self.selector.certificate_, self.optimum.certificate)]
        return (
            f"{self.fit:7.2f}{self.certified:10.2f}{self.screening:9.2f}{self.proof:8.2f}{self.n_candidates:11d}"
            f"{self.optimum.n_nodes:8d}"
            f"{gaps[0]:>11}{gaps[1]:>11}"
        )


def peak_memory(device: str) -> str:
    host = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    if device == "cpu":
        return f"{'':8}{host:8.1f}"
    import torch

    return f"{torch.cuda.max_memory_allocated() / 2**30:8.1f}{host:8.1f}"


def prove_drawn(arguments: argparse.Namespace) -> None:
    clock = time.process_time if arguments.processor_time else time.perf_counter
    n_samples, n_features, device = arguments.samples, arguments.features, arguments.device
    print(f"{K} of {n_features} features, {n_samples} samples, {N_CLASSES} classes, float32, {device}")
    print(
        f"{'set':10}{'ridge':>6}{'fit s':>7}{'certify s':>10}{'screen s':>9}{'proof s':>8}{'candidates':>11}{'nodes':>8}"
        f"{'gap first':>11}{'gap':>11}{'GiB':>8}{'host':>8}"
    )
    for kind, seed in itertools.product(arguments.kinds, arguments.seeds):
        X, y = draw_set(kind, n_samples, n_features, device, seed)
        for ridge, _ in itertools.product(arguments.ridges, range(arguments.runs)):
            proved = Proved(X, y, ridge, clock)
            print(f"{f'{kind} {seed}':10}{ridge:6.1f}{proved}{peak_memory(device)}", flush=True)
            if arguments.agree:
                other = Proved(X if device == "cpu" else X.cpu().numpy(), y, ridge, clock)
                ours, theirs = proved.optimum, other.optimum
                is_same = np.array_equal(ours.support, theirs.support)
                bounds = [each.selector.certificate_.lower_bound for each in (proved, other)]
                bounds += [each.certificate.lower_bound for each in (ours, theirs)]
                apart = [abs(bounds[at] / bounds[at + 1] - 1.0) for at in (0, 2)]
                print(f"{'  in NumPy':16}{other}  same panel: {is_same}; bounds apart by {apart[0]:.0e} and {apart[1]:.0e}")
            for eps in arguments.atlas:
                begin = clock()
                atlas = proved.selector.near_optimal(eps=eps, time_limit=MOST_SECONDS)
                words = "all" if atlas.is_complete else f"to {small_percent(atlas.proved_eps)}"
                print(f"  within {eps}: {atlas.n_panels} panels, {words}, {atlas.n_nodes} nodes, {clock() - begin:.2f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, nargs="?")
    parser.add_argument("--exact", type=int, metavar="NODES", help="search with so many nodes")
    parser.add_argument("--strongest", action="store_true", help="the strongest ridge only")
    parser.add_argument("--features", type=int, help="prove the best of so many drawn features instead")
    parser.add_argument("--samples", type=int, default=500)
    parser.add_argument("--device", default="cpu", help="cpu, for NumPy, or cuda")
    parser.add_argument("--kinds", nargs="+", default=["planted", "blocks"], choices=["planted", "blocks"])
    parser.add_argument("--ridges", nargs="+", type=float, default=[10.0, 3.0])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0], help="of the sets that are drawn")
    parser.add_argument("--runs", type=int, default=1, help="repeat each proof")
    parser.add_argument("--agree", action="store_true", help="compare with NumPy")
    parser.add_argument("--atlas", nargs="+", default=[], metavar="EPS", help="list the panels within these shares")
    parser.add_argument("--processor-time", action="store_true")
    arguments = parser.parse_args()
    if arguments.features:
        prove_drawn(arguments)
    elif arguments.data:
        prove_paper_sets(arguments)
    else:
        parser.error("name the folder of the paper's sets, or give --features")


def prove_paper_sets(arguments: argparse.Namespace) -> None:
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
