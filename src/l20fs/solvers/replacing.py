"""The solvers that add and exchange rows, as objects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from l20fs.design.driver import Walk
from l20fs.objective.problem import Problem
from l20fs.solvers.base import Solver
from l20fs.solvers.greedy import forward, swap
from l20fs.solvers.robust import RobustFit, robust


@dataclass(repr=False, eq=False, kw_only=True)
class Forward(Solver):
    """Add the feature that lowers the objective most, again and again: :func:`~l20fs.solvers.greedy.forward`. No options.

    The selections of all sizes are nested. With ``loss="l21"`` the best of 32 proposals is added.

    Examples
    --------
    >>> from l20fs import L20Selector
    >>> L20Selector(3, solver=Forward())
    L20Selector(n_features_to_select=3, solver=Forward())
    """

    name = "forward"
    losses = ("squared_error", "l21")
    takes_constraints = True

    walk = staticmethod(forward)

    def walk_robust(self, problem: Problem, n_rows: int, **options: Any) -> Walk[RobustFit]:
        return robust(problem, n_rows, **options)


@dataclass(repr=False, eq=False, kw_only=True)
class Swap(Solver):
    """Add the best feature, then exchange features while that helps, at every size: :func:`~l20fs.solvers.greedy.swap`.

    No options. The lowest objective, at several times the cost of :class:`Forward`: no exchange of one feature for another
    improves it, up to the rounding that :func:`~l20fs.solvers.greedy.swap` states. With ``loss="l21"`` none of the 256 that
    promise most does.

    Examples
    --------
    >>> from l20fs import L20Selector
    >>> L20Selector(3, solver=Swap())
    L20Selector(n_features_to_select=3, solver=Swap())
    """

    name = "swap"
    losses = ("squared_error", "l21")
    takes_constraints = True

    walk = staticmethod(swap)

    def walk_robust(self, problem: Problem, n_rows: int, **options: Any) -> Walk[RobustFit]:
        return robust(problem, n_rows, with_exchanges=True, **options)
