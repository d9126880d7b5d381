"""Structure of sparse matrices in memory: indices that point outside would crash compiled code."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from l20fs.typing import Array


def refuse_broken_sparse(X: Any, name: str) -> None:
    """Raise an error for a SciPy sparse matrix whose indices contradict its shape; anything else passes.

    SciPy checks its matrices when it makes them, but not after their arrays were changed, and its compiled code trusts
    them. This takes a pass over the indices. Unsorted and repeated indices are fine.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> X = sp.csr_array(np.eye(3))
    >>> X.indices[1] = 7
    >>> refuse_broken_sparse(X, "X")
    Traceback (most recent call last):
    ...
    ValueError: X is not a valid CSR matrix: it has indices from 0 to 7, outside 0 to 2. Build it again from its entries.
    """
    sparse = sys.modules.get("scipy.sparse")  # a module that is not imported cannot have made it
    if sparse is None or not sparse.issparse(X):
        return
    fault = _fault_of(X)
    if fault:
        raise ValueError(
            f"{name} is not a valid {X.format.upper()} matrix: it has {fault}. Build it again from its entries."
        )


def _fault_of(X: Any) -> str:
    """Describe the first contradiction; an empty text if there is none."""
    if X.format == "coo":
        return _fault_of_entries(X)
    if X.format in ("lil", "dok", "dia"):  # lists and tables, which are converted safely, whatever they hold
        return _fault_of(X.tocsr())
    n_lines, width = (1, *X.shape)[-2:] if X.format != "csc" else X.shape[::-1]
    if X.format == "bsr":
        n_lines, width = n_lines // X.blocksize[0], width // X.blocksize[1]
    pointers, indices = X.indptr, X.indices
    if any(each.ndim != 1 or each.dtype.kind not in "iu" for each in (pointers, indices)):
        return "indices that are not whole numbers in one row"
    if len(pointers) != n_lines + 1:
        return f"{len(pointers)} entries in indptr, and not {n_lines + 1}"
    if pointers[0] != 0 or np.any(pointers[1:] < pointers[:-1]):
        return "an indptr that does not rise from 0"
    n_stored = int(pointers[-1])
    if min(len(indices), len(X.data)) < n_stored:
        return f"{n_stored} values by indptr, but {len(X.data)} in data and {len(indices)} in indices"
    return _fault_of_indices(indices[:n_stored], width)


def _fault_of_entries(X: Any) -> str:
    lengths = [len(X.data), *map(len, X.coords)]
    if len(set(lengths)) > 1:
        return f"{lengths[0]} values for {lengths[1]} rows and {lengths[-1]} columns of entries"
    faults = (_fault_of_indices(indices, length) for indices, length in zip(X.coords, X.shape, strict=True))
    return next(filter(None, faults), "")


def _fault_of_indices(indices: Array, length: int) -> str:
    if not len(indices):
        return ""
    low, high = int(indices.min()), int(indices.max())
    return f"indices from {low} to {high}, outside 0 to {length - 1}" if low < 0 or high >= length else ""
