"""Find the marker genes of simulated single cells: how many, how fast, in how much memory.

Run ``python benchmarks/single_cell.py``. Counts of 20 000 cells and 5 000 genes, about 5 % of them above zero, are drawn
from negative binomial distributions: genes differ in expression over four orders of magnitude, cells in depth, and the
eight types in size from 30 % to 2 %. Each type has five marker genes that it expresses 4 to 16 times as strongly as the
others do. The counts are scaled to equal depth and log1p is taken, all in sparse form, and written as h5ad.

A fresh process then reads it and calls ``select_genes``, so that its peak is that of the selection and not that of the
simulation. ``--wide`` takes 30 000 genes, ``--csc`` stores X by genes, ``--backed`` leaves X on disk until it is needed,
``--profile`` prints where the time goes.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import anndata
import numpy as np
import pandas as pd
import scipy.sparse as sp

from l20fs.anndata import select_genes

N_CELLS, N_MARKERS = 20_000, 40
SHARES = np.array([0.30, 0.22, 0.16, 0.12, 0.09, 0.06, 0.03, 0.02])
MIB = 1 << 20


def simulate_counts(n_genes: int, rng: np.random.Generator) -> tuple[sp.csc_array, np.ndarray, np.ndarray]:
    """Draw counts, the type of each cell, and which genes are markers (of type ``number % 8``, in order)."""
    types = rng.choice(len(SHARES), size=N_CELLS, p=SHARES)
    depths = rng.lognormal(sigma=0.4, size=N_CELLS)
    means = rng.lognormal(mean=-3.9, sigma=1.5, size=n_genes)
    markers = np.sort(rng.choice(n_genes, size=N_MARKERS, replace=False))
    means[markers] = np.exp(rng.uniform(np.log(0.02), np.log(0.2), size=N_MARKERS))
    folds = np.ones((len(SHARES), n_genes))
    folds[np.arange(N_MARKERS) % len(SHARES), markers] = np.exp(rng.uniform(np.log(4), np.log(16), size=N_MARKERS))
    parts = []
    for genes in np.array_split(np.arange(n_genes), max(1, n_genes // 100)):
        expected = depths[:, None] * (folds[:, genes] * means[genes])[types]
        noise = rng.gamma(shape=2.0, scale=0.5, size=expected.shape)  # Poisson with this rate is negative binomial
        parts.append(sp.csc_array(rng.poisson(expected * noise).astype(np.float32)))
    return sp.hstack(parts, format="csc"), types, markers


def log_normalise(counts: sp.csr_array) -> sp.csr_array:
    """Scale every cell to 10 000 counts and take log1p, as scanpy's normalize_total and log1p do."""
    totals = np.maximum(counts.sum(axis=1), 1.0).astype(np.float32)
    counts.data *= np.repeat(1e4 / totals, np.diff(counts.indptr)).astype(np.float32)
    np.log1p(counts.data, out=counts.data)
    return counts


def write_cells(file: Path, n_genes: int, is_csc: bool) -> None:
    counts, types, markers = simulate_counts(n_genes, np.random.default_rng(0))
    X = log_normalise(counts.tocsr())
    is_marker = np.zeros(n_genes, dtype=bool)
    is_marker[markers] = True
    adata = anndata.AnnData(
        X.tocsc() if is_csc else X,
        obs=pd.DataFrame({"cell_type": [f"type {number}" for number in types]}, index=[f"cell {i}" for i in range(N_CELLS)]),
        var=pd.DataFrame({"is_marker": is_marker}, index=[f"gene {j}" for j in range(n_genes)]),
    )
    adata.strings_to_categoricals()
    adata.write_h5ad(file)


def memory(line: str) -> int:
    """Return bytes of this process: ``VmRSS`` now, ``VmHWM`` at most (getrusage would count the parent's, too)."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.split(f"{line}:")[1].split()[0])


def measure(file: Path, *, backed: bool, profile: bool) -> None:
    adata = anndata.read_h5ad(file, backed="r" if backed else None)
    profiler = cProfile.Profile()
    peak_of_reading, before = memory("VmHWM"), memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak is that of now on
    begin = time.perf_counter()
    if profile:
        profiler.enable()
    select_genes(adata, "cell_type", n_genes=N_MARKERS)
    profiler.disable()
    spent, peak = time.perf_counter() - begin, memory("VmHWM")
    found = int((adata.var["l20fs"] & adata.var["is_marker"]).sum())
    X = adata.X[:]
    stored = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    share = X.nnz / np.prod(X.shape)
    print(f"{adata.n_obs} cells x {adata.n_vars} genes, {100 * share:.1f} % above zero, {X.dtype} {X.format}")
    print(f"markers found   {found} of {N_MARKERS}")
    print(f"seconds         {spent:.2f}")
    print(f"X in memory     {stored / MIB:.0f} MiB; made dense it would be {X.dtype.itemsize * np.prod(X.shape) / MIB:.0f}")
    print(f"memory added    {(peak - before) / MIB:.0f} MiB, {(peak - before) / stored:.2f} times X")
    print(f"peak in all     {max(peak, peak_of_reading) / MIB:.0f} MiB")
    if profile:
        pstats.Stats(profiler).sort_stats("tottime").print_stats(20)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wide", action="store_true", help="30 000 genes")
    parser.add_argument("--csc", action="store_true", help="store X by genes")
    parser.add_argument("--backed", action="store_true", help="leave X on disk until it is needed")
    parser.add_argument("--profile", action="store_true", help="print where the time goes")
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)  # what the fresh process reads
    arguments = parser.parse_args()
    if arguments.file:
        measure(arguments.file, backed=arguments.backed, profile=arguments.profile)
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "cells.h5ad"
        write_cells(file, 30_000 if arguments.wide else 5_000, arguments.csc)
        subprocess.run([sys.executable, __file__, "--file", str(file), *sys.argv[1:]], check=True)


if __name__ == "__main__":
    main()
