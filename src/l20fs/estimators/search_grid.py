"""The paths and sizes that a cross-validation tries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from l20fs.inputs.validation import check_number
from l20fs.objective.linear_rule import check_ridge
from l20fs.objective.row_penalty import RowPenalty


@dataclass(frozen=True)
class SearchGrid:
    """The parameters of :class:`~l20fs.L20SelectorCV` that say what is tried."""

    ridge: float | str | Sequence[float | str] | None
    alpha: float | Sequence[float] | None
    max_features: int
    sizes: Sequence[int] | None

    @property
    def ridges(self) -> list[Any]:
        """The strengths of the ridge term."""
        return _listed(self.ridge)

    @property
    def alphas(self) -> list[Any]:
        """The values of lambda at which paths end."""
        return _listed(self.alpha)

    def check(self) -> None:
        """Refuse what cannot be tried."""
        check_number("max_features", self.max_features, minimum=1, strict=False, whole=True)
        for name, values in (("ridge", self.ridges), ("alpha", self.alphas)):
            if not values:
                raise ValueError(f"{name}=[] leaves nothing to choose from. Give one value or more, or None.")
        if self.ridge is not None:
            for ridge in self.ridges:
                check_ridge(ridge)
        for alpha in self.alphas:
            if alpha is not None:
                check_number("alpha", alpha, minimum=0.0)
        if self.sizes is not None:
            if np.ndim(self.sizes) != 1:
                raise ValueError(f"sizes={self.sizes!r} is not a list. Give numbers of features, or max_features instead.")
            for size in self.sizes:
                check_number("sizes", size, minimum=1, strict=False, whole=True)
            if not len(self.sizes):
                raise ValueError("sizes=[] leaves nothing to choose from. Give one number of features or more, or None.")

    def counts(self, penalty: RowPenalty, wanted: int | None) -> list[int | None]:
        """Return the numbers of features, or of groups, in ascending order; one that is ``wanted`` is among them."""
        tried = range(1, self.max_features + 1) if self.sizes is None else self.sizes
        least, most = len(penalty.included), int(np.count_nonzero(penalty.costs < np.inf))
        counts = {max(least, min(int(size), most)) for size in tried}
        if wanted is not None:
            counts.add(min(wanted, most))
        return list[int | None](sorted(counts))


def _listed(values: Any) -> list[Any]:
    """Return the values of a parameter; one value, or None, is a list of its own."""
    return [values] if values is None or np.ndim(values) == 0 else list(values)
