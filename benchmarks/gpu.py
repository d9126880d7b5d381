"""Fits with X on a GPU: time beside a read of X, memory, and the same answer as NumPy's.

Run ``python benchmarks/gpu.py`` where torch sees a GPU (``--quick``: no 40 GB matrix). It prints

* whether the supports are those of NumPy at every stage, for small sizes and all solvers, with torch and with CuPy;
* the same on the paper's data sets (``--data``) and on hard ones, beside NumPy in float32 and in float64;
* the ratio to NumPy, in the same run, for a size that fits both;
* whole fits from data on the device to 20, 100 and 400 rows, shortest to longest of several: time, also in reads of X, and
  memory beside X at the peak;
* cross-validation with five folds and the final fit, and 50 halves, in units of a single fit of the same number of rows:
  time, memory beside X at the peak, how long the device works, and whether folds are selected as by fits one by one to
  copies of their samples.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
import torch
from sklearn.model_selection import StratifiedKFold

from l20fs import L20Selector, L20SelectorCV, SolutionPath, StabilitySelector

N_CLASSES, N_ROWS, N_RUNS = 10, 400, 5


def seconds(function, repeats: int = N_RUNS) -> list[float]:
    """Return the wall times, shortest first; the first call, which loads kernels, does not count."""
    function()
    times = []
    for _ in range(repeats):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        function()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    return sorted(times)


def busy_seconds(function) -> float:
    """Return for how long the device works in a call."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        function()
        torch.cuda.synchronize()
    return sum(row.self_device_time_total for row in profile.key_averages()) / 1e6


def in_ms(times: list[float]) -> str:
    return f"{1e3 * times[0]:.1f} to {1e3 * times[-1]:.1f}"


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


def show_fits(X: torch.Tensor, y: np.ndarray) -> None:
    n_bytes = X.numel() * X.element_size()
    read = seconds(lambda: X.sum())
    print(f"\n{tuple(X.shape)} float32, {n_bytes / 1e9:.1f} GB: a read (sum) takes {in_ms(read)} ms")
    print(f"{'fit':<22}{'time ms':>18}{'rows':>6}{'in reads':>10}{'GB beside X':>13}")
    for solver in ("forward", "ahiht"):
        for n_rows in (20, 100, N_ROWS):
            selector = L20Selector(n_rows, solver=solver)
            begin = time.perf_counter()
            selector.fit(X, y)
            first = time.perf_counter() - begin
            torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_allocated()
            took = seconds(lambda selector=selector: selector.fit(X, y))
            peak = (torch.cuda.max_memory_allocated() - before) / 1e9
            print(
                f"{'L20Selector, ' + solver:<22}{in_ms(took):>18}{int(selector.path_.sizes[-1]):6d}"
                f"{took[0] / read[0]:10.1f}{peak:13.2f}   the first one {first:.1f} s",
                flush=True,
            )


def show_ratio() -> None:
    X, y = make_data(2000, 50_000)
    host = X.cpu().numpy()
    print(f"\nratio to NumPy ({torch.get_num_threads()} threads) at 2000 x 50000, to 200 rows")
    for solver in ("forward", "ahiht"):
        selector = L20Selector(200, solver=solver)
        there = seconds(lambda: selector.fit(X, y))
        begin = time.perf_counter()
        expected = L20Selector(200, solver=solver).fit(host, y)
        here = time.perf_counter() - begin
        n_equal, n_stages = equal_stages(selector.path_, expected.path_)
        print(f"{solver:<12}{in_ms(there):>18} ms{1e3 * here:10.1f} ms{here / there[0]:8.1f} times", end="")
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
    sizes = {"forward": 30, "ahiht": 30, "hiht": 12, "swap": 8}
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
            cases.append((X.astype(dtype), y, weights, {"scale": scale, "ridge": ridge, "class_weight": None}))
    for library, move in libraries.items():
        for name, n_rows in sizes.items():
            n_equal = n_stages = 0
            for X, y, weights, options in cases:
                selector = L20Selector(n_rows, solver=name, **options)
                expected, found = (selector.fit(x, y, weights).path_ for x in (X, move(X)))
                counts = equal_stages(found, expected)
                n_equal, n_stages = n_equal + counts[0], n_stages + counts[1]
            print(f"{library:<8}{name:<10}{n_equal:6d} of {n_stages}", flush=True)


def hard_data() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Draw features that are hard to tell apart, or to store in half precision."""
    random = np.random.default_rng(0)
    n_samples, n_features = 400, 20_000
    y = random.integers(0, 8, n_samples)
    signal = np.eye(8)[y] @ random.standard_normal((8, n_features)) * (random.random(n_features) < 0.02)
    noise = random.standard_normal((n_samples, n_features))
    factors = random.standard_normal((n_samples, 20)) @ random.standard_normal((20, n_features))
    counts = random.poisson(0.02 + 0.3 * (signal > 1.0), (n_samples, n_features))
    copies = signal + noise
    copies[:, 1::2] = copies[:, ::2]
    close = signal + noise
    close[:, 1::2] = close[:, ::2] + 1e-3 * noise[:, 1::2]
    return {
        "noise": (signal + noise, y),
        "20 factors": (signal + 0.3 * noise + factors, y),
        "copies of columns": (copies, y),
        "nearly equal columns": (close, y),
        "heavy tails": (signal + noise**5, y),
        "rare counts": (counts.astype(float), y),
        "units 1e-9 to 1e9": ((signal + noise) * 10.0 ** random.uniform(-9, 9, n_features), y),
        "means of 1000 deviations": (signal + noise + 1000.0, y),
    }


def show_hard_data(data: Path | None) -> None:
    """Compare fits to hard data and to the paper's sets with NumPy's, in float32 and in float64."""
    sets = hard_data()
    for file in sorted((data / "paper").glob("*.npz")) if data else []:
        with np.load(file, allow_pickle=False) as stored:
            sets[file.stem] = (stored["X"], stored["y"])
    print("\nstages with equal supports: the device and NumPy in float32, and in float64; NumPy in both")
    for name, (X, y) in sets.items():
        X = np.asarray(X, dtype=np.float32)
        for solver in ("forward", "ahiht"):
            there = L20Selector(100, solver=solver).fit(torch.asarray(X, device="cuda"), y).path_
            single, double = (L20Selector(100, solver=solver).fit(X.astype(kind), y).path_ for kind in ("f4", "f8"))
            pairs = ((there, single), (there, double), (single, double))
            counts = ["{} of {}".format(*equal_stages(*pair)) for pair in pairs]
            print(f"{name:<26}{solver:<10}" + "".join(f"{count:>14}" for count in counts), flush=True)


def show_resampling(X: torch.Tensor, y: np.ndarray, n_rows: int, repeats: int = 3) -> None:
    """Print the time of folds and halves that share X, in units of a single fit, and whether their selections are equal."""
    selector = L20Selector(n_rows)
    fit = seconds(lambda: selector.fit(X, y), repeats)
    print(f"\n{tuple(X.shape)}, {n_rows} rows: a fit takes {in_ms(fit)} ms")
    searching = L20SelectorCV(n_rows, sizes=range(1, n_rows + 1))
    resampling = StabilitySelector(selector, n_resamples=50, random_state=0)
    for name, estimator in (("CV(5) and the final fit", searching), ("50 halves", resampling)):
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        took = seconds(lambda estimator=estimator: estimator.fit(X, y), repeats)
        beside = (torch.cuda.max_memory_allocated() - before) / 1e9
        fits = f"{took[0] / fit[-1]:.1f} to {took[-1] / fit[0]:.1f}"
        busy = 1e3 * busy_seconds(lambda estimator=estimator: estimator.fit(X, y))
        print(
            f"{name:<26}{in_ms(took):>20} ms{fits:>16} fits{beside:8.2f} GB beside X, device busy {busy:.0f} ms", flush=True
        )
    folds = StratifiedKFold(5).split(np.zeros((len(y), 1)), y)
    parts = [(train, searching.cv_results_[f"split{number}_ranking"][0]) for number, (train, _) in enumerate(folds)]
    n_equal = 0
    for train, ranking in parts:
        alone = L20Selector(n_rows).fit(X[torch.asarray(train, device=X.device)], y[train])
        n_equal += np.array_equal(np.argsort(alone.ranking_)[:n_rows], np.argsort(ranking)[:n_rows])
    print(f"folds as fits one by one to copies: {n_equal} of {len(parts)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="leave out 10000 x 1000000")
    parser.add_argument("--data", type=Path, help="folder with paper/brain.npz and the others")
    options = parser.parse_args()
    sizes = [(1000, 200_000)] + ([] if options.quick else [(10_000, 1_000_000)])
    print(torch.cuda.get_device_name(), "torch", torch.__version__, "TF32", torch.backends.cuda.matmul.allow_tf32)
    show_parity()
    show_hard_data(options.data)
    show_ratio()
    for size in sizes:
        X, y = make_data(*size)
        show_fits(X, y)
        for n_rows in (20, 100):
            show_resampling(X, y, n_rows)
        del X


if __name__ == "__main__":
    main()
