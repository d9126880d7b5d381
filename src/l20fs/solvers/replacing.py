"""The solvers that add, remove and exchange rows, as objects."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from l20fs.objective.least_squares import LeastSquares
from l20fs.objective.solution_path import SolutionPath
from l20fs.solvers.base import Solver
from l20fs.solvers.greedy import forward, sbr, swap
from l20fs.solvers.robust import RobustFit, robust
from l20fs.solvers.worst_case import worst_case


@dataclass(repr=False, eq=False, kw_only=True)
class _Growing(Solver):
    """Base of the solvers that can also select a panel that survives the failure of a feature."""

    losses = ("squared", "l21")

    robust_to: int = 0

    def check(self) -> None:
        is_whole = isinstance(self.robust_to, numbers.Integral) and not isinstance(self.robust_to, bool)
        if not is_whole or self.robust_to not in (0, 1):
            raise ValueError(
                f"robust_to={self.robust_to!r} is not valid. Use 0, or 1 for the failure of any one feature: of more than "
                "one there are too many to judge them all."
            )

    def _refuse_failures(self) -> None:
        """Raise an error for a loss under which failures cannot be judged."""
        if self.robust_to:
            raise ValueError(
                "robust_to=1 with loss='l21' is not available: what a failure costs is known for squares. Use "
                "loss='squared', or robust_to=0."
            )


@dataclass(repr=False, eq=False, kw_only=True)
class Forward(_Growing):
    """Add the feature that lowers the objective most, again and again: :func:`~l20fs.solvers.greedy.forward`.

    The selections of all sizes are nested. With ``loss="l21"`` the best of 32 proposals is added.

    Parameters
    ----------
    robust_to : {0, 1}, default=0
        How many of the selected features may fail to be measured. 1: the feature is added with which the loss without the
        worst feature is smallest, :func:`~l20fs.solvers.worst_case.worst_case`.

    Examples
    --------
    >>> from l20fs import L20Selector
    >>> L20Selector(3, solver=Forward(robust_to=1))
    L20Selector(n_features_to_select=3, solver=Forward(robust_to=1))
    """

    name = "forward"
    takes_constraints = True

    @property
    def walk(self) -> Callable[..., SolutionPath]:  # the function that walks
        return worst_case if self.robust_to else forward

    def walk_robust(self, problem: LeastSquares, n_rows: int, **options: Any) -> RobustFit:
        self._refuse_failures()
        return robust(problem, n_rows, **options)


@dataclass(repr=False, eq=False, kw_only=True)
class Swap(_Growing):
    """Add the best feature, then exchange features while that helps, at every size: :func:`~l20fs.solvers.greedy.swap`.

    The lowest objective, at several times the cost of :class:`Forward`: no exchange of one feature for another improves it,
    up to the rounding that :func:`~l20fs.solvers.greedy.swap` states.

    Parameters
    ----------
    robust_to : {0, 1}, default=0
        How many of the selected features may fail to be measured. 1: features are added and exchanged while that lowers the
        loss without the worst feature, :func:`~l20fs.solvers.worst_case.worst_case`.

    Examples
    --------
    >>> from l20fs import L20Selector
    >>> L20Selector(3, solver=Swap(robust_to=1))
    L20Selector(n_features_to_select=3, solver=Swap(robust_to=1))
    """

    name = "swap"
    takes_constraints = True

    @property
    def walk(self) -> Callable[..., SolutionPath]:  # the function that walks
        return partial(worst_case, with_exchanges=True) if self.robust_to else swap

    def walk_robust(self, problem: LeastSquares, n_rows: int, **options: Any) -> RobustFit:
        self._refuse_failures()
        return robust(problem, n_rows, with_exchanges=True, **options)


@dataclass(repr=False, eq=False, kw_only=True)
class SBR(Solver):
    """Add or remove the single best feature for falling lambda: :func:`~l20fs.solvers.greedy.sbr`. No options.

    References
    ----------
    Soussen, Idier, Brie and Duan, From Bernoulli-Gaussian deconvolution to sparse signal restoration (2011).

    Examples
    --------
    >>> from l20fs import L20Selector
    >>> L20Selector(3, solver=SBR())
    L20Selector(n_features_to_select=3, solver=SBR())
    """

    name = "sbr"
    takes_constraints = True

    walk = staticmethod(sbr)
