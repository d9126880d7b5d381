"""The solvers that add, remove and exchange rows, as objects; they have no options."""

from __future__ import annotations

from dataclasses import dataclass

from l20fs.objective.least_squares import LeastSquares
from l20fs.objective.row_penalty import RowPenalty
from l20fs.objective.solution_path import SolutionPath
from l20fs.solvers.greedy import forward, sbr, swap
from l20fs.solvers.homotopy import Callback
from l20fs.solvers.options import Solver
from l20fs.solvers.robust import RobustFit, robust


@dataclass(repr=False, eq=False, kw_only=True)
class Forward(Solver):
    """Add the feature that lowers the objective most, again and again: :func:`~l20fs.solvers.greedy.forward`.

    The selections of all sizes are nested. With ``loss="l21"`` the samples are reweighted at every size.

    Examples
    --------
    >>> from l20fs import L20Selector
    >>> L20Selector(3, solver=Forward())
    L20Selector(n_features_to_select=3, solver=Forward())
    """

    name = "forward"
    losses = ("squared", "l21")

    def walk(
        self,
        problem: LeastSquares,
        n_rows: int,
        *,
        target: float | None = None,
        penalty: RowPenalty | None = None,
        callback: Callback | None = None,
    ) -> SolutionPath:
        return forward(problem, n_rows, target=target, penalty=penalty, callback=callback)

    def walk_robust(
        self,
        problem: LeastSquares,
        n_rows: int,
        *,
        target: float | None = None,
        penalty: RowPenalty | None = None,
        callback: Callback | None = None,
    ) -> RobustFit:
        return robust(problem, n_rows, target=target, penalty=penalty, callback=callback)


@dataclass(repr=False, eq=False, kw_only=True)
class Swap(Solver):
    """Add the best feature, then exchange features while that helps, at every size: :func:`~l20fs.solvers.greedy.swap`.

    The lowest objective, at several times the cost of :class:`Forward`.

    Examples
    --------
    >>> from l20fs import L20Selector
    >>> L20Selector(3, solver=Swap())
    L20Selector(n_features_to_select=3, solver=Swap())
    """

    name = "swap"
    losses = ("squared", "l21")

    def walk(
        self,
        problem: LeastSquares,
        n_rows: int,
        *,
        target: float | None = None,
        penalty: RowPenalty | None = None,
        callback: Callback | None = None,
    ) -> SolutionPath:
        return swap(problem, n_rows, target=target, penalty=penalty, callback=callback)

    def walk_robust(
        self,
        problem: LeastSquares,
        n_rows: int,
        *,
        target: float | None = None,
        penalty: RowPenalty | None = None,
        callback: Callback | None = None,
    ) -> RobustFit:
        return robust(problem, n_rows, target=target, penalty=penalty, callback=callback, with_exchanges=True)


@dataclass(repr=False, eq=False, kw_only=True)
class SBR(Solver):
    """Add or remove the single best feature for falling lambda: :func:`~l20fs.solvers.greedy.sbr`.

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

    def walk(
        self,
        problem: LeastSquares,
        n_rows: int,
        *,
        target: float | None = None,
        penalty: RowPenalty | None = None,
        callback: Callback | None = None,
    ) -> SolutionPath:
        return sbr(problem, n_rows, target=target, penalty=penalty, callback=callback)
