"""Solution at one lambda of a path, and least squares on its best rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from l20fs.typing import Array


class Stage(NamedTuple):
    """Solution at one lambda: non-zero rows, norms, f, step counts and cost.

    ``cost`` is the factor of lambda: the number of rows, unless features have other costs.
    """

    alpha: float
    rows: Array
    norms: Array
    loss: float
    lipschitz: float = math.nan
    n_steps: int = 1
    converged: bool = True
    squared_step: float = 0.0
    cost: float | None = None

    @property
    def price(self) -> float:
        """Cost of the rows."""
        return float(len(self.rows)) if self.cost is None else self.cost

    @property
    def objective(self) -> float:
        """Value of f + lambda * cost."""
        return self.loss + self.alpha * self.price


@dataclass(frozen=True)
class Refit:
    """Least squares on exactly the selected features."""

    coef: Array
    intercept: Array
    loss: float
