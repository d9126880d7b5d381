"""Reader of svmlight (LIBSVM) files."""

from __future__ import annotations

import io
import math
import re
from typing import Any

import numpy as np
import scipy.sparse as sp

from l20fs.data.readers.limits import MOST_UNNAMED, check_memory
from l20fs.data.readers.table import Contents, DataError, Request, first_line

#: Pattern of a line of an svmlight file.
LINE = re.compile(rb"\s*[-+0-9.eE]+(?:\s+qid:\d+)?(?:\s+\d+:[-+0-9.eE]+)+\s*(?:#.*)?")

#: A file may have this many features, or as many for each of its values. Each costs a name and a few numbers, also if no
#: sample has it, and one wrong digit of a number makes millions of them.
FREE_FEATURES, MOST_PER_ENTRY = 2**20, 100

#: Memory of a value, and of a name or a label, in bytes.
MEMORY_PER_ENTRY, MEMORY_PER_NAME = 24, 100


def is_svmlight(head: bytes) -> bool:
    """Return whether the first line that is not a comment has the svmlight format."""
    lines = (line for line in head.split(b"\n") if line.strip() and not line.lstrip().startswith(b"#"))
    return LINE.fullmatch(next(lines, b"").rstrip(b"\r")) is not None


def read_svmlight(content: bytes, request: Request) -> Contents:
    """Read a sparse matrix with labels; features are numbered."""
    from sklearn.datasets import load_svmlight_file

    n_lines, n_entries = content.count(b"\n"), content.count(b":")
    check_memory(len(content) + MEMORY_PER_NAME * n_lines + MEMORY_PER_ENTRY * n_entries, request)
    try:
        X, labels = load_svmlight_file(io.BytesIO(content), zero_based="auto")
    except MemoryError:
        raise
    except Exception as error:  # the parser says what it met: ValueError, OverflowError, UnicodeDecodeError...
        raise DataError(f"{request.name}: not a whole svmlight file ({first_line(error)}). Copy it again.") from error
    has_labels = request.labels is None
    return Contents(
        X=sp.csr_array(X),
        feature_names=numbered_names(X, request),
        y=label_texts(labels) if has_labels else None,
        target_name="label" if has_labels else "",
    )


def numbered_names(X: Any, request: Request) -> list[str]:
    """Return default names of features without names, after a check that there are not more of them than is sensible."""
    n_values, most = X.nnz if sp.issparse(X) else math.prod(X.shape), max(X.shape)
    if X.shape[1] > MOST_UNNAMED:
        raise DataError(f"{request.name}: states {X.shape[1]} features. At most {MOST_UNNAMED} without names are read.")
    if most > max(FREE_FEATURES, MOST_PER_ENTRY * n_values):
        raise DataError(
            f"{request.name}: states {most} {'features' if most == X.shape[1] else 'samples'}, but has {n_values} values. "
            f"Above {FREE_FEATURES} there may be {MOST_PER_ENTRY} for each value. Number the features without gaps."
        )
    check_memory(MEMORY_PER_NAME * X.shape[1], request)
    return [f"feature{j + 1}" for j in range(X.shape[1])]


def label_texts(labels: np.ndarray) -> list[str]:
    """Return labels as text; integers without a decimal point."""
    return [str(int(label)) if float(label).is_integer() else repr(float(label)) for label in labels.tolist()]
