"""How fits on blocks scale: growth with N and d, time beside NumPy, X four times the workers' memory.

Run ``python benchmarks/scale.py [--folder build/scale] [--only growth,ratio,memory]``. Set OMP_NUM_THREADS=1. Times
are the best of several, in the same run; on a busy machine compare ratios only.

growth  time of a path with 20 features for N and for d doubled again and again, streamed from a memory map: the slopes of
        the log-log lines, and the picture scale.svg in the folder.
ratio   whole fits on blocks in two processes of Dask, beside the same with NumPy in one thread.
memory  a zarr array of four times the memory of the workers.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

from l20fs import L20Selector, open_large

REPEATS = 3


def best(*functions) -> list[float]:
    """Return the shortest time of each function, called in turn."""
    times = [[] for _ in functions]
    for _ in range(REPEATS):
        for own, function in zip(times, functions, strict=True):
            start = time.perf_counter()
            function()
            own.append(time.perf_counter() - start)
    return [min(own) for own in times]


def make_file(file: Path, n_samples: int, n_features: int):
    """Write a memory map with three classes, block by block."""
    rng = np.random.default_rng(0)
    stored = np.lib.format.open_memmap(file, mode="w+", dtype=np.float32, shape=(n_samples, n_features))
    y = rng.integers(3, size=n_samples)
    for start in range(0, n_samples, 2000):
        own = y[start : start + 2000]
        stored[start : start + 2000] = rng.standard_normal((len(own), n_features), dtype=np.float32)
        stored[start : start + 2000, :30] += 0.5 * np.eye(3)[own].repeat(10, axis=1)
    stored.flush()
    return y


def growth(folder: Path) -> None:
    sizes = {
        "N": [(n, 2500) for n in (16_000, 32_000, 64_000, 128_000, 256_000)],
        "d": [(4000, d) for d in (10_000, 20_000, 40_000, 80_000, 160_000)],
    }
    lines = {}
    for name, shapes in sizes.items():
        times = []
        for shape in shapes:
            with tempfile.TemporaryDirectory() as temporary:
                y = make_file(Path(temporary) / "x.npy", *shape)
                X = open_large(Path(temporary) / "x.npy")
                times += best(lambda: L20Selector(20).fit(X, y))
            print(f"growth  {shape[0]:6} x {shape[1]:6}: {times[-1]:6.2f} s", flush=True)
        values = [shape[0 if name == "N" else 1] for shape in shapes]
        slope = np.polyfit(np.log(values), np.log(times), 1)[0]
        print(f"growth  slope of log time over log {name}: {slope:.2f} (1 is linear)")
        lines[name] = (values, times, slope)
    _draw(folder / "scale.svg", lines)


def _draw(file: Path, lines) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 3.5), layout="constrained")
    axes = figure.subplots()
    for name, (values, times, slope) in lines.items():
        axes.loglog(values, times, "o-", label=f"{name} grows, slope {slope:.2f}")
    axes.set(xlabel="samples (N; d = 2500) or features (d; N = 4000)", ylabel="seconds for 20 features")
    axes.legend()
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file)
    print(f"growth  {file}")


def _client(n_workers: int = 2, memory: str = "2GiB"):
    from distributed import Client, LocalCluster

    return Client(LocalCluster(n_workers=n_workers, threads_per_worker=1, memory_limit=memory, dashboard_address=":0"))


def ratio(folder: Path) -> None:
    with _client(memory="4GiB"):
        for shape, chunks in (((2000, 80_000), (2000, 40_000)), ((20_000, 8000), (10_000, 8000))):
            _ratio(shape, chunks)


def _ratio(shape: tuple[int, int], chunks: tuple[int, int], n_classes: int = 10) -> None:
    import dask.array as da

    lazy = da.random.default_rng(0).standard_normal(shape, chunks=chunks).persist()
    # Block by block: to compute all at once would gather them on one worker, which would then do the work of both.
    parts = [lazy.blocks[place].compute() for place in np.ndindex(lazy.numblocks)]
    X = np.concatenate(parts, axis=int(lazy.numblocks[0] == 1))
    noise = np.random.default_rng(0).standard_normal((len(X), n_classes))
    y = np.argmax(X[:, :60].reshape(len(X), -1, n_classes).sum(axis=1) + noise, axis=1)
    for solver in ("forward", "ahiht"):
        selector = L20Selector(50, solver=solver)
        own, numpy = best(lambda: selector.fit(lazy, y), lambda: selector.fit(X, y))
        blocks = f"{shape[0]} x {shape[1]} in blocks of {chunks[0]} x {chunks[1]}"
        print(f"ratio   {blocks}, {solver}: {own:.1f} s, NumPy {numpy:.1f} s, {own / numpy:.2f} times", flush=True)


def memory(folder: Path) -> None:
    import dask.array as da
    import zarr

    with tempfile.TemporaryDirectory() as temporary, _client(2, "300MiB") as client:
        limit = sum(worker["memory_limit"] for worker in client.scheduler_info()["workers"].values())
        n_features, n_rows = 5000, 500
        n_samples = int(4 * limit / (4 * n_features)) // n_rows * n_rows
        rng = np.random.default_rng(0)
        shape, chunks = (n_samples, n_features), (n_rows, n_features)
        store = zarr.create_array(f"{temporary}/x.zarr", shape=shape, chunks=chunks, dtype="f4", compressors=None)
        y = rng.integers(3, size=n_samples)
        noise = rng.standard_normal((n_rows, n_features), dtype=np.float32)
        for start in range(0, n_samples, n_rows):
            part = np.roll(noise, start // n_rows, axis=1)
            part[:, :30] += 0.5 * np.eye(3)[y[start : start + n_rows]].repeat(10, axis=1)
            store[start : start + n_rows] = part
        X = da.from_zarr(f"{temporary}/x.zarr")
        start = time.perf_counter()
        selector = L20Selector(30).fit(X, y)
        print(
            f"memory  {X.nbytes / 2**30:.1f} GB on workers of {limit / 2**30:.1f} GB: {time.perf_counter() - start:.0f} s, "
            f"{int(selector.support_[:30].sum())} of 30 planted features found"
        )


PARTS = {"growth": growth, "ratio": ratio, "memory": memory}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("build/scale"))
    parser.add_argument("--only", default=",".join(PARTS))
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    for part in arguments.only.split(","):
        PARTS[part](arguments.folder)
