"""What reading costs: a wide CSV beside pandas alone, a sparse h5ad beside anndata alone.

    python benchmarks/readers.py

Both files are written to a temporary folder. Times are the best of several, taken in turn; memory is what each way adds at
its peak to a process of its own.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import anndata
import numpy as np
import pandas as pd
import scipy.sparse as sp

from l20fs.data.readers import read_table

ROUNDS = 5

#: Programs that print the memory they add at their peak, in MiB.
PEAK = r"""
import re
from pathlib import Path
import anndata, pandas, scipy.sparse, sklearn.datasets
from l20fs.data.readers import read_table
peak = lambda: int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1]) / 1024
before = peak()
{statement}
print(peak() - before)
"""


def write_csv(file: Path, n_samples: int = 200, n_features: int = 20_000) -> None:
    """Write numbers of four decimals, 30 MB."""
    X = np.random.default_rng(0).standard_normal((n_samples, n_features))
    with open(file, "w") as stream:
        stream.write(",".join(["type", *(f"g{j}" for j in range(n_features))]) + "\n")
        for i, row in enumerate(X):
            stream.write(f"{'uv'[i % 2]}," + ",".join(f"{value:.4f}" for value in row) + "\n")


def write_h5ad(file: Path, n_cells: int = 2000, n_genes: int = 20_000, density: float = 0.05) -> None:
    """Write a sparse matrix of float32 with a column of cell types."""
    X = sp.random_array(
        (n_cells, n_genes), density=density, format="csr", dtype=np.float32, random_state=np.random.default_rng(0)
    )
    obs = pd.DataFrame(
        {"type": pd.Categorical(["uvw"[i % 3] for i in range(n_cells)])}, index=[f"c{i}" for i in range(n_cells)]
    )
    anndata.AnnData(X, obs=obs, var=pd.DataFrame(index=[f"g{j}" for j in range(n_genes)])).write_h5ad(file)


def best_times(*calls: Callable[[], object]) -> list[float]:
    """Return the best time of each call, taken in turn."""
    best = [float("inf")] * len(calls)
    for _ in range(ROUNDS):
        for i, call in enumerate(calls):
            start = time.perf_counter()
            call()
            best[i] = min(best[i], time.perf_counter() - start)
    return best


def peak_memory(statement: str, file: Path) -> float:
    """Return the MiB that a statement about FILE adds to the peak of a fresh process."""
    statement = statement.replace("FILE", repr(str(file)))
    done = subprocess.run(
        [sys.executable, "-c", PEAK.format(statement=statement)], capture_output=True, text=True, check=True
    )
    return float(done.stdout)


def report(what: str, file: Path, peers: dict[str, tuple[Callable[[], object], str]]) -> None:
    """Print time and memory of reading a file, beside its peers."""
    ours, *theirs = best_times(lambda: read_table(file, "type"), *(call for call, _ in peers.values()))
    ours_peak = peak_memory("read_table(Path(FILE), 'type')", file)
    print(f"{what}, {file.stat().st_size / 1e6:.0f} MB: {ours:.3f} s, {ours_peak:.0f} MiB")
    for (name, (_, statement)), their_time in zip(peers.items(), theirs, strict=True):
        print(f"  {ours / their_time:.2f} of the time of {name}, which takes {peak_memory(statement, file):.0f} MiB")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        table, cells = Path(folder) / "wide.csv", Path(folder) / "cells.h5ad"
        write_csv(table)
        write_h5ad(cells)
        in_one_go = "pandas.read_csv(FILE, low_memory=False)"
        report(
            "CSV, 200 x 20 000",
            table,
            {
                "pandas.read_csv": (lambda: pd.read_csv(table), "pandas.read_csv(FILE)"),
                "the same with low_memory=False": (lambda: pd.read_csv(table, low_memory=False), in_one_go),
            },
        )
        whole = (lambda: anndata.read_h5ad(cells), "anndata.read_h5ad(FILE)")
        report("h5ad, 2000 x 20 000 at 5 % (305 MiB as a full matrix)", cells, {"anndata.read_h5ad": whole})


if __name__ == "__main__":
    main()
