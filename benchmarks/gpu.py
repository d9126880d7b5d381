"""Fits with X on a GPU: passes over X, time per pass, the share of the read bandwidth, and the same answer as NumPy's.

Run ``python benchmarks/gpu.py`` where torch sees a GPU (``--quick``: no 40 GB matrix). It prints

* how fast the device reads a matrix, and how fast the ways to write the one product of the package are;
* whole fits from data on the device to 400 rows: time, passes over X, time per pass and share of the read bandwidth;
* the ratio to NumPy, in the same run, for a size that fits both;
* whether the supports are those of NumPy at every stage, for small sizes and all solvers, with torch and with CuPy.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
import torch

from l20fs import L20Selector, SolutionPath
from l20fs.design import DeviceDesign
from l20fs.objective.least_squares import LeastSquares
from l20fs.solvers import Schedule, ahiht, forward, hiht, sbr, swap

N_CLASSES, N_ROWS = 10, 400


def seconds(function, repeats: int = 5) -> float:
    """Return the shortest wall time; the first call, which loads kernels, does not count."""
    function()
    best = np.inf
    for _ in range(repeats):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        function()
        torch.cuda.synchronize()
        best = min(best, time.perf_counter() - begin)
    return best


def make_data(n_samples: int, n_features: int, mean: float = 0.0) -> tuple[torch.Tensor, np.ndarray]:
    """Draw Gaussian features on the device, of which 50 have another mean in each class."""
    random = torch.Generator("cuda").manual_seed(0)
    y = np.random.default_rng(0).integers(0, N_CLASSES, n_samples)
    X = torch.empty((n_samples, n_features), device="cuda")
    for start in range(0, n_samples, 1000):
        X[start : start + 1000].normal_(mean, 1.0, generator=random)
    centres = 0.3 * torch.randn((N_CLASSES, 50), device="cuda", generator=random)
    X[:, :50] += centres[torch.asarray(y, device="cuda")]
    return X, y


def show_products(X: torch.Tensor) -> float:
    """Print the speed of a read and of the products; return the seconds of a read."""
    n_bytes = X.numel() * X.element_size()
    read = seconds(lambda: X.sum())
    print(f"\n{tuple(X.shape)} float32, {n_bytes / 1e9:.1f} GB")
    print(f"{'read (sum)':<24}{1e3 * read:9.2f} ms{n_bytes / read / 1e12:8.2f} TB/s")
    for n_lines in (N_CLASSES, 32, 64):
        R = torch.randn((n_lines, X.shape[0]), device="cuda")
        ways = {
            "R @ X": lambda: R @ X,
            "(X.T @ R.T).T": lambda: (X.T @ R.T).T,
            "(X.T @ R.T.copy).T": lambda: (X.T @ R.T.contiguous()).T,
        }
        for name, way in ways.items():
            took = seconds(way, 3)
            print(f"{name:<20}{n_lines:>4}{1e3 * took:9.2f} ms{n_bytes / took / 1e12:8.2f} TB/s{read / took:8.0%} of a read")
    return read


class CountedPasses:
    """Count the passes over X while it is in use, and the lines that were multiplied."""

    def __enter__(self) -> CountedPasses:
        self.n_passes, self.n_lines, self._products = 0, 0, DeviceDesign.products

        def counted(design, residual):
            self.n_passes += 1
            self.n_lines += residual.shape[0]
            return self._products(design, residual)

        DeviceDesign.products = counted
        return self

    def __exit__(self, *_) -> None:
        DeviceDesign.products = self._products


def show_fits(X: torch.Tensor, y: np.ndarray, read: float) -> None:
    print(f"{'fit':<26}{'time ms':>9}{'rows':>6}{'passes':>8}{'lines':>7}{'ms/pass':>9}{'reads alone':>13}{'share':>7}")
    for solver in ("forward", "ahiht"):
        selector = L20Selector(N_ROWS, solver=solver)
        with CountedPasses() as counted:
            selector.fit(X, y)
        took = seconds(lambda: selector.fit(X, y), 3)
        n_rows = int(selector.path_.n_nonzero[-1])
        passes = counted.n_passes
        print(
            f"{'L20Selector, ' + solver:<26}{1e3 * took:9.1f}{n_rows:6d}{passes:8d}{counted.n_lines:7d}"
            f"{1e3 * took / passes:9.2f}{1e3 * passes * read:13.1f}{passes * read / took:7.0%}",
            flush=True,
        )


def show_ratio() -> None:
    X, y = make_data(2000, 50_000)
    host = X.cpu().numpy()
    print(f"\nratio to NumPy ({torch.get_num_threads()} threads) at 2000 x 50000, to 200 rows")
    for solver in ("forward", "ahiht"):
        selector = L20Selector(200, solver=solver)
        there = seconds(lambda: selector.fit(X, y), 3)
        begin = time.perf_counter()
        expected = L20Selector(200, solver=solver).fit(host, y)
        here = time.perf_counter() - begin
        n_equal, n_stages = equal_stages(selector.path_, expected.path_)
        print(f"{solver:<12}{1e3 * there:9.1f} ms{1e3 * here:10.1f} ms{here / there:8.1f} times", end="")
        print(f"   equal supports: {n_equal} of {n_stages}", flush=True)
    double = [L20Selector(200).fit(data, y).path_ for data in (X.double(), host.astype(np.float64))]
    print("forward in float64: equal supports: {} of {}".format(*equal_stages(*double)))


def equal_stages(found: SolutionPath, expected: SolutionPath) -> tuple[int, int]:
    """Return how many stages have the support that they should have, and how many there are."""
    pairs = range(min(len(found.alphas), len(expected.alphas)))
    n_equal = sum(np.array_equal(found.stage_rows(i), expected.stage_rows(i)) for i in pairs)
    return n_equal, len(expected.alphas)


def show_parity() -> None:
    """Compare every stage with NumPy's."""
    libraries = {"torch": lambda X: torch.asarray(X, device="cuda")}
    try:
        import cupy

        libraries["cupy"] = cupy.asarray
    except ModuleNotFoundError:
        pass
    warnings.simplefilter("ignore")  # a stage of HIHT that ends at its step limit
    solvers = {
        "forward": lambda problem: forward(problem, 30),
        "ahiht": lambda problem: ahiht(problem, Schedule(n_rows=30)),
        "hiht": lambda problem: hiht(problem, Schedule(n_rows=12)),
        "sbr": lambda problem: sbr(problem, 10),
        "swap": lambda problem: swap(problem, 8),
    }
    print("\nstages with the support of NumPy's, over sizes, scales, ridges and weights")
    random = np.random.default_rng(0)
    cases = []
    for (n_samples, n_features), dtype in [(s, t) for s in ((80, 2000), (500, 60)) for t in (np.float32, np.float64)]:
        y = random.integers(0, 4, n_samples)
        X = random.standard_normal((n_samples, n_features)) + random.uniform(-3, 3, n_features)
        X[:, :6] += np.eye(4)[y] @ random.standard_normal((4, 6))
        for scale, ridge, weights in (
            ("none", 0.0, None),
            ("zscore", 1.0, None),
            ("zscore", 0.1, random.uniform(0, 2, n_samples)),
        ):
            cases.append((X.astype(dtype), np.eye(4)[y], {"scale": scale, "ridge": ridge, "sample_weight": weights}))
    for library, move in libraries.items():
        for name, solve in solvers.items():
            n_equal = n_stages = 0
            for X, Y, options in cases:
                expected, found = solve(LeastSquares(X, Y, **options)), solve(LeastSquares(move(X), Y, **options))
                counts = equal_stages(found, expected)
                n_equal, n_stages = n_equal + counts[0], n_stages + counts[1]
            print(f"{library:<8}{name:<10}{n_equal:6d} of {n_stages}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="leave out 10000 x 1000000")
    sizes = [(1000, 200_000)] + ([] if parser.parse_args().quick else [(10_000, 1_000_000)])
    print(torch.cuda.get_device_name(), "torch", torch.__version__, "TF32", torch.backends.cuda.matmul.allow_tf32)
    show_parity()
    show_ratio()
    for size in sizes:
        X, y = make_data(*size)
        show_fits(X, y, show_products(X))
        del X


if __name__ == "__main__":
    main()
