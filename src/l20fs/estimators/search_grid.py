"""The paths and sizes that a cross-validation tries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from l20fs.estimators.penalty import SizeRange
from l20fs.evaluation.choice import search_limits, search_sizes
from l20fs.inputs.validation import check_number
from l20fs.objective.ridge import check_ridge


@dataclass(frozen=True)
class SearchGrid:
    """The parameters of :class:`~l20fs.L20SelectorCV` that say what is tried."""

    ridge: Sequence[float | str] | None
    sizes: Sequence[int] | None

    @property
    def ridges(self) -> list[Any]:
        """The strengths of the ridge term."""
        return _listed(self.ridge)

    def check(self) -> None:
        """Refuse what cannot be tried."""
        if not self.ridges:
            raise ValueError("ridges=[] leaves nothing to choose from. Give one value or more, or None.")
        if self.ridge is not None:
            for ridge in self.ridges:
                check_ridge(ridge)
        if self.sizes is not None:
            if np.ndim(self.sizes) != 1:
                raise ValueError(f"sizes={self.sizes!r} is not a list. Give numbers of features.")
            for size in self.sizes:
                check_number("sizes", size, minimum=1, strict=False, whole=True)
            if not len(self.sizes):
                raise ValueError("sizes=[] leaves nothing to choose from. Give one number of features or more, or None.")

    def limits(self, possible: SizeRange, n_samples: int) -> list[int]:
        """Return the largest numbers to try, one after the other while the choice is there; one if the user gave it."""
        if self.sizes is not None:
            return [max(self.sizes)]
        return search_limits(possible.most, n_samples)

    def counts(self, possible: SizeRange, limit: int, wanted: int | None) -> list[int | None]:
        """Return the numbers of features, or of groups, in ascending order; one that is ``wanted`` is among them."""
        tried = search_sizes(limit) if self.sizes is None else self.sizes
        counts = {max(possible.least, min(int(size), possible.most)) for size in tried}
        if wanted is not None:
            counts.add(min(wanted, possible.most))
        return list[int | None](sorted(counts))


def _listed(values: Any) -> list[Any]:
    """Return the values of a parameter; one value, or None, is a list of its own."""
    return [values] if values is None or np.ndim(values) == 0 else list(values)
