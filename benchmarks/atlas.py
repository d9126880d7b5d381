"""A single-cell atlas that is not loaded: 200 000 cells x 20 000 genes, CSR with 2 % non-zeros, as an h5ad file.

Run ``python benchmarks/atlas.py [--folder FOLDER] [--max-memory 4G] [--solver forward]``. The file is made block by block in
FOLDER (a temporary one by default) unless it is there; each solver then selects 100 genes in a process of its own on two
cores. Printed are the time, how often the file was gone through, and the largest resident memory of the process. Last comes
the whole command ``l20fs select``, ``--runs`` times: reading, five folds of cross-validation, substitutes and the page; with
``--stability 50``, then with as many halves of the samples, too.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import scipy.sparse as sp
from anndata.io import write_elem

N_CELLS, N_GENES, N_TYPES, DENSITY, N_MARKERS = 200_000, 20_000, 10, 0.02, 5
BLOCK = 5000


def write_atlas(file: Path, n_cells: int = N_CELLS, n_genes: int = N_GENES) -> None:
    """Write log-normalised counts with a few marker genes per cell type, a block of cells at a time."""
    rng = np.random.default_rng(0)
    types = rng.integers(N_TYPES, size=n_cells)
    markers = rng.permutation(n_genes)[: N_TYPES * N_MARKERS].reshape(N_TYPES, N_MARKERS)
    with h5py.File(file, "w") as store:
        group = store.create_group("X")
        group.attrs.update({"encoding-type": "csr_matrix", "encoding-version": "0.1.0", "shape": [n_cells, n_genes]})
        data = group.create_dataset("data", (0,), "f4", maxshape=(None,), chunks=(1 << 18,))
        indices = group.create_dataset("indices", (0,), "i4", maxshape=(None,), chunks=(1 << 18,))
        indptr = [np.zeros(1, dtype=np.int64)]
        for start in range(0, n_cells, BLOCK):
            own = types[start : start + BLOCK]
            block = _block(rng, own, n_genes, markers)
            stored = len(data)
            for dataset, values in ((data, block.data), (indices, block.indices)):
                dataset.resize(stored + block.nnz, axis=0)
                dataset[stored:] = values
            indptr.append(stored + block.indptr[1:].astype(np.int64))
        group["indptr"] = np.concatenate(indptr)
        obs = pd.DataFrame(
            {"cell_type": pd.Categorical([f"type {number}" for number in types])}, index=_names("cell", n_cells)
        )
        write_elem(store, "obs", obs)
        write_elem(store, "var", pd.DataFrame(index=_names("gene", n_genes)))
        store.attrs.update({"encoding-type": "anndata", "encoding-version": "0.1.0"})
    np.save(file.with_suffix(".types.npy"), types)


def _names(stem: str, n: int) -> list[str]:
    return [f"{stem}{number}" for number in range(n)]


def _block(rng, types, n_genes, markers) -> sp.csr_array:
    n_stored = int(DENSITY * n_genes) - N_MARKERS
    rows = np.repeat(np.arange(len(types)), n_stored + N_MARKERS)
    columns = np.hstack([rng.integers(n_genes, size=(len(types), n_stored)), markers[types]])
    values = rng.gamma(2.0, 0.7, size=columns.shape)
    block = sp.coo_array((values.ravel().astype(np.float32), (rows, columns.ravel())), shape=(len(types), n_genes)).tocsr()
    block.sum_duplicates()
    return block


def select(file: Path, solver: str, max_memory: str) -> dict:
    """Select 100 genes and measure what it took; run in a process of its own."""
    from l20fs import L20Selector
    from l20fs.blocks import open_large

    X, y = open_large(file, max_memory=max_memory), np.load(file.with_suffix(".types.npy"))
    start, start_of_work = time.perf_counter(), time.process_time()
    selector = L20Selector(100, solver=solver, max_memory=max_memory).fit(X, y)
    seconds, work = time.perf_counter() - start, time.process_time() - start_of_work
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {
        "seconds": seconds,
        "work": work,
        "passes": X.traffic.n_passes,
        "peak": peak,
        "genes": int(selector.support_.sum()),
    }


def select_by_command(file: Path, max_memory: str, environment: dict[str, str], *options: str) -> None:
    """Run the command line and print how long it took, and its largest resident memory."""
    with tempfile.TemporaryDirectory() as output:
        command = [sys.executable, "-m", "l20fs.cli", "select", str(file), "--target", "cell_type", "-k", "100"]
        start = time.perf_counter()
        process = subprocess.Popen(
            [*command, "--max-memory", max_memory, "-o", output, *options], env=environment, stdout=subprocess.DEVNULL
        )
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
    assert status == 0, "the command failed"
    name = " ".join(["select", *options])
    print(
        f"{name:8} page after {seconds:.1f} s, resident memory up to {usage.ru_maxrss / 2**20:.2f} GB of {max_memory}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--max-memory", default="4G")
    parser.add_argument("--solver", nargs="*", default=["forward", "ahiht", "hiht"])
    parser.add_argument("--stability", type=int)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        file = (arguments.folder or Path(temporary)) / "atlas.h5ad"
        if arguments.inside:
            print(json.dumps(select(file, arguments.inside, arguments.max_memory)))
            return
        if not file.exists():
            start = time.perf_counter()
            write_atlas(file)
            print(f"wrote {file.stat().st_size / 2**30:.2f} GB in {time.perf_counter() - start:.0f} s", flush=True)
        environment = os.environ | {"OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2"}
        for solver in arguments.solver:
            command = [sys.executable, __file__, "--folder", str(file.parent), "--max-memory", arguments.max_memory]
            inside = subprocess.run(
                [*command, "--inside", solver], env=environment, check=True, capture_output=True, text=True
            )
            found = json.loads(inside.stdout.splitlines()[-1])
            print(
                f"{solver:8} {found['genes']} genes in {found['seconds']:.1f} s ({found['work']:.1f} s of work), "
                f"{found['passes']} passes, resident memory up to {found['peak'] / 2**30:.2f} GB of {arguments.max_memory}",
                flush=True,
            )
        for _ in range(arguments.runs):
            select_by_command(file, arguments.max_memory, environment)
            if arguments.stability:
                select_by_command(file, arguments.max_memory, environment, "--stability", str(arguments.stability))


if __name__ == "__main__":
    main()
