"""Check for missing and infinite values, in memory or in blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from l20fs.blocks import FileBlocks, extents
from l20fs.data.readers.table import Contents, DataError, Request
from l20fs.typing import Array

KINDS = ("missing", "infinite")
ARE_BAD = (np.isnan, np.isinf)


def refuse_non_finite(X: Any, contents: Contents, request: Request) -> None:
    """Raise an error that names the first missing or, if there is none, the first infinite value.

    If only some features were asked for, their values may be missing.
    """
    blocks = extents(X) if isinstance(X, FileBlocks) else [slice(0, X.shape[0])]
    counts = np.array(X.each(_counts, [()] * len(blocks)) if isinstance(X, FileBlocks) else [_counts(X)])
    counts[:, 0] *= request.needed is None
    total = counts.sum(axis=0)
    if not total.any():
        return
    kind = int(np.flatnonzero(total)[0])
    number = int(np.flatnonzero(counts[:, kind])[0])
    place = list(_first(X.load(blocks[number]) if isinstance(X, FileBlocks) else X, kind))
    if isinstance(X, FileBlocks):
        place[X.axis] += blocks[number].start
    sample, feature = place
    if contents.lines:
        where = f"line {contents.lines[sample]}"
    else:
        where = f"sample {contents.sample_names[sample]!r}" if contents.sample_names else f"sample {sample + 1}"
    raise DataError(
        f"{request.name}: {total[kind]} {KINDS[kind]} values, first in column {contents.feature_names[feature]!r}, {where}. "
        "Fill them in or remove the columns or samples."
    )


def _counts(X: Any) -> Array:
    """Count the missing and the infinite values."""
    values = X.data if sp.issparse(X) else X
    if np.isfinite(values).all():
        return np.zeros(len(KINDS), dtype=np.intp)
    return np.array([np.count_nonzero(is_bad(values)) for is_bad in ARE_BAD])


def _first(X: Any, kind: int) -> tuple[int, int]:
    """Return the sample and the feature of the first missing or infinite value."""
    bad = ARE_BAD[kind](X.data if sp.issparse(X) else X)
    rows, columns = (part[bad] for part in X.tocoo().coords) if sp.issparse(X) else np.nonzero(bad)
    return int(rows[0]), int(columns[0])
