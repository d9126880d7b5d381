"""How fits on Dask arrays scale: passes, time beside NumPy, memory of the workers, a sparse table with cross-validation.

Run ``python benchmarks/scale.py [--only passes,ratio,memory,sparse] [--data DATA/paper]``. Set OMP_NUM_THREADS=1. Times are
of one run; on a busy machine compare ratios only.

passes  how often the blocks are read, on the paper's sets, where they are: one fit, and 20 folds with the fit.
ratio   whole fits on blocks in two processes of Dask, beside the same with NumPy in one thread.
memory  a zarr array of four times the memory of the workers.
sparse  an h5ad file of 200 000 x 20 000 with 2 % of the values, five folds and the fit, in threads.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
import warnings
from pathlib import Path

import dask
import dask.array as da
import numpy as np
from sklearn import config_context
from sklearn.model_selection import RepeatedStratifiedKFold

from l20fs import L20Selector, L20SelectorCV, open_large

FOLDS = RepeatedStratifiedKFold(n_splits=5, n_repeats=4, random_state=0)


def peak_memory() -> float:
    """Return the most memory that this process has had, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10


def seconds(function) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def passes(data: Path) -> None:
    for name in ("srbct", "lung", "prostate", "nci"):
        with np.load(data / f"{name}.npz") as stored:
            X, y = stored["X"].astype(float), stored["y"]
        read = []

        def look(block, block_info=None, read=read):
            if block_info and block_info[0]["chunk-location"] == (0, 0):
                read.append(1)
            return block

        lazy = da.from_array(X, chunks=(-(-len(X) // 3), -1)).map_blocks(look, dtype=X.dtype, meta=np.empty((0, 0)))
        for ridge in ("auto", 0.1):
            for k in (20, 50):
                search = L20SelectorCV(k, sizes=[k], selector=L20Selector(ridge=ridge), cv=FOLDS)
                fits = {"20 folds and the fit": search, "one fit": L20Selector(k, ridge=ridge)}
                fits |= {solver: L20Selector(k, ridge=ridge, solver=solver) for solver in ("swap", "ahiht", "hiht")}
                found = {}
                for what, estimator in fits.items():
                    read.clear()
                    with dask.config.set(scheduler="synchronous"), config_context(working_memory=4096):
                        estimator.fit(lazy, y)
                    found[what] = len(read)
                print(f"passes  {name}, ridge {ridge}, {k} features: {found}", flush=True)


def client_of(memory: str):
    from distributed import Client, LocalCluster

    return Client(LocalCluster(n_workers=2, threads_per_worker=1, memory_limit=memory, dashboard_address=":0"))


def ratio(data: Path) -> None:
    rng = np.random.default_rng(0)
    with client_of("4GiB"):
        for shape, chunks in (((2000, 40_000), (-1, 20_000)), ((20_000, 4000), (10_000, -1))):
            X = rng.standard_normal(shape)
            y = np.argmax(X[:, :60].reshape(len(X), -1, 10).sum(axis=1) + rng.standard_normal((len(X), 10)), axis=1)
            lazy = da.from_array(X, chunks=chunks).persist()
            for solver in ("forward", "ahiht"):
                selector = L20Selector(50, solver=solver)
                blocks, whole = (seconds(lambda there=there: selector.fit(there, y)) for there in (lazy, X))
                print(
                    f"ratio   {shape}, {solver}: {blocks:.1f} s, NumPy {whole:.1f} s, {blocks / whole:.2f} times", flush=True
                )


def memory(data: Path) -> None:
    import zarr

    rng, n_features, n_rows = np.random.default_rng(0), 5000, 500
    with tempfile.TemporaryDirectory() as folder, client_of("400MiB") as client:
        limit = sum(worker["memory_limit"] for worker in client.scheduler_info()["workers"].values())
        n_samples = int(4 * limit / (4 * n_features)) // n_rows * n_rows
        shape, chunks = (n_samples, n_features), (n_rows, n_features)
        store = zarr.create_array(f"{folder}/x.zarr", shape=shape, chunks=chunks, dtype="f4", compressors=None)
        y, noise = rng.integers(3, size=n_samples), rng.standard_normal((n_rows, n_features), dtype=np.float32)
        for start in range(0, n_samples, n_rows):
            part = np.roll(noise, start // n_rows, axis=1)
            part[:, :30] += 0.5 * np.eye(3)[y[start : start + n_rows]].repeat(10, axis=1)
            store[start : start + n_rows] = part
        before = peak_memory()
        with config_context(working_memory=256):
            X = open_large(f"{folder}/x.zarr")
            selector = L20Selector(30)
            took = seconds(lambda: selector.fit(X, y))
        workers = ", ".join(f"{value:.0f}" for value in client.run(peak_memory).values())
        print(
            f"memory  {X.nbytes / 2**20:.0f} MiB on workers of {limit / 2**20:.0f} MiB together: {took:.0f} s, "
            f"{int(selector.support_[:30].sum())} of 30 planted features; peak of the driver {peak_memory():.0f} MiB ("
            f"before: {before:.0f}), of the workers {workers}"
        )


def write_cells(file: Path, n_samples: int = 200_000, n_features: int = 20_000, share: float = 0.02):
    """Write a sparse AnnData file with three types of cells, some cells at a time; return the types."""
    import h5py

    rng, per_row, step = np.random.default_rng(0), int(share * n_features), 1000
    y = rng.integers(3, size=n_samples)
    with h5py.File(file, "w") as stored:
        group = stored.create_group("X")
        group.attrs.update({"encoding-type": "csr_matrix", "encoding-version": "0.1.0", "shape": [n_samples, n_features]})
        group["indptr"] = np.arange(0, n_samples * per_row + 1, per_row)
        data, indices = (
            group.create_dataset(name, (n_samples * per_row,), kind) for name, kind in (("data", "f4"), ("indices", "i4"))
        )
        for start in range(0, n_samples, step):
            places = np.sort(rng.random((step, n_features)).argpartition(per_row, axis=1)[:, :per_row], axis=1)
            values = rng.gamma(2.0, 1.0, places.shape)
            values *= np.where((places < 30) & (places % 3 == y[start : start + step, None]), 2.0, 1.0)
            span = slice(start * per_row, (start + step) * per_row)
            data[span], indices[span] = values.ravel(), places.ravel()
    return y


def sparse(data: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        y = write_cells(Path(folder) / "x.h5ad")
        before, X = peak_memory(), open_large(f"{folder}/x.h5ad")
        search = L20SelectorCV(20, sizes=[20], cv=5)
        took = seconds(lambda: search.fit(X, y))
        size = os.path.getsize(f"{folder}/x.h5ad") / 2**20
        print(
            f"sparse  {X.shape[0]} x {X.shape[1]}, {size:.0f} MiB in {X.npartitions} blocks: {took:.0f} s; "
            f"{int(search.support_[:30].sum())} of 20 are planted; peak {peak_memory():.0f} MiB, before the fit {before:.0f}"
        )


PARTS = {"passes": passes, "ratio": ratio, "memory": memory, "sparse": sparse}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data/paper"))
    parser.add_argument("--only", default=",".join(PARTS))
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    for part in arguments.only.split(","):
        PARTS[part](arguments.data)
