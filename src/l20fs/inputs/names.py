"""Feature names for matrices without names of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

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
    >>> from l20fs import L20Selector
    >>> X = NamedColumns(np.array([[0.0, 1.0], [0.1, 3.0], [5.0, 2.0], [5.1, 2.5]]), ["TP53", "MYC"])
    >>> L20Selector(1).fit(X, ["a", "a", "b", "b"]).get_feature_names_out().tolist()
    ['TP53']
    """

    X: Any
    names: Sequence[str] | Array

    def checked_names(self) -> Array:
        """Return the names as an array, if there is one per column."""
        names = np.asarray(self.names, dtype=object)
        if names.shape != (self.X.shape[1],):
            raise ValueError(f"There are {len(names)} names for {self.X.shape[1]} columns of X. Give one per column.")
        return names
