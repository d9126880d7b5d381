"""Feature names for matrices without names of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from l20fs.typing import Array


@dataclass(frozen=True, eq=False)
class NamedColumns:
    """Matrix with column names, for ``fit`` on an array, a sparse matrix or a file in blocks, which have none.

    Attributes
    ----------
    X : array, sparse matrix or matrix in blocks, of shape (n_samples, n_features)
    names : sequence of str
        One per column.

    Examples
    --------
    >>> import numpy as np
    >>> from l20fs import L20Selector
    >>> X = NamedColumns(np.array([[0.0, 1.0], [0.1, 3.0], [5.0, 2.0], [5.1, 2.5]]), ["TP53", "MYC"])
    >>> L20Selector(1).fit(X, ["a", "a", "b", "b"]).get_feature_names_out().tolist()
    ['TP53']
    """

    X: Any
    names: Sequence[str] | Array
