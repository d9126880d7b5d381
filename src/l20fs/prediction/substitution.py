r"""Rules on other features, solved again from the cross-products that a panel stores.

Least squares with the ridge term on some columns S need the samples only through :math:`G = \tilde X' \tilde X` and
:math:`B = \tilde X' \tilde Y`, :math:`W_S = (G_{SS} + \mu I)^{-1} B_S`, and the discriminant analysis that follows needs
class means and the scatter within the classes, which G, the means and the sizes of the classes give. So the rule on any of
the stored columns is that of a fit to the training samples, without any of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from l20fs.prediction.discriminant import ClassScatter
from l20fs.prediction.linear_rule import LinearRule
from l20fs.prediction.panel_file import Columns, CrossProducts, PanelError, square
from l20fs.typing import Array

#: A column of which a smaller share of its squared norm is left beside the others adds nothing to them.
LEAST_REMAINDER = 1e-10


class NormalEquations:
    """Least squares on any of the columns of a panel."""

    def __init__(self, products: CrossProducts, columns: Columns) -> None:
        self._products = products
        self._divisor = _numbers(columns.divisor)
        self._centre = _numbers(columns.mean) * products.fit_intercept
        self._gram = square(products.gram)
        self._targets = _numbers(products.targets)

    @cached_property
    def scatter(self) -> ClassScatter | None:
        """Class means and scatter within the classes of all columns; None for numbers."""
        products = self._products
        if not products.class_sizes:
            return None
        means, sizes = _numbers(products.class_means), _numbers(products.class_sizes)
        gram = self._gram if products.class_gram is None else square(products.class_gram)
        within = (gram - (means.T * sizes) @ means) / sizes.sum()
        return ClassScatter(means, within, _numbers(products.class_shares), products.fit_intercept)

    def rule_on(self, places: Sequence[int] | Array) -> LinearRule:
        """Return the rule on some columns, in units of X."""
        chosen, products = np.array(places, dtype=np.intp), self._products
        system = self._gram[np.ix_(chosen, chosen)] + products.ridge * np.eye(len(chosen))
        with np.errstate(over="ignore", invalid="ignore"):
            values = np.linalg.lstsq(system, self._targets[chosen], rcond=None)[0]
            weights, intercept = values / _numbers(products.target_factors), _numbers(products.target_means)
            if self.scatter is not None:
                means, within = self.scatter.means[:, chosen], self.scatter.within[np.ix_(chosen, chosen)]
                weights, intercept = self.scatter._replace(means=means, within=within).discriminant(weights)
            weights = weights / self._divisor[chosen, None]
            intercept = intercept - self._centre[chosen] @ weights
        if not np.isfinite(weights).all() or np.isnan(intercept).any():
            raise PanelError("The cross-products of the panel are too large to solve for other weights. Give all features.")
        return LinearRule(chosen, weights, intercept)

    def replace(self, there: Sequence[int], n: int, missing: Sequence[int]) -> tuple[list[int], dict[int, int | None]]:
        """Add to those of the first n columns that are there as many others as are missing, each that lowers the loss most.

        Return the columns, and the substitute of each missing one, None where there is none.
        """
        places, left = [place for place in there if place < n], [place for place in there if place >= n]
        n_kept = len(places)
        while left and len(places) < n:
            gains = self._gains(places, left)
            best = int(gains.argmax())
            if gains[best] <= 0.0:
                break
            places.append(left.pop(best))
        return places, self._pair(missing, places[n_kept:])

    def _gains(self, places: list[int], candidates: list[int]) -> Array:
        """Return how much each candidate lowers twice the loss of least squares on ``places``."""
        gram, ridge = self._gram, self._products.ridge
        system = gram[np.ix_(places, places)] + ridge * np.eye(len(places))
        between = gram[np.ix_(places, candidates)]
        solved = np.linalg.lstsq(system, np.hstack([between, self._targets[places]]), rcond=None)[0]
        along, weights = solved[:, : len(candidates)], solved[:, len(candidates) :]
        energy = gram[candidates, candidates] + ridge
        residual = energy - np.einsum("ij,ij->j", between, along)
        left = self._targets[candidates] - between.T @ weights
        is_new = residual > LEAST_REMAINDER * energy
        return np.where(is_new, np.square(left).sum(axis=1) / np.where(is_new, residual, 1.0), 0.0)

    def _pair(self, missing: Sequence[int], added: Sequence[int]) -> dict[int, int | None]:
        """Pair missing columns with those that were added, the most alike first."""
        norms = np.sqrt(np.diagonal(self._gram))
        norms = np.where(norms > 0.0, norms, 1.0)
        alike = np.abs(self._gram / norms[:, None] / norms)
        pairs: dict[int, int | None] = dict.fromkeys(missing)
        for one, other in sorted(product(missing, added), key=lambda pair: -alike[pair]):
            if pairs[one] is None and other not in pairs.values():
                pairs[one] = other
        return pairs


def _numbers(values: Sequence[Any]) -> Array:
    """Return numbers of a file, which may be whole ones of any size, in double precision."""
    return np.array(values, dtype=np.float64)
