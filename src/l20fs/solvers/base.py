"""Interface of a solver: its options, and one method that walks the path."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar

from l20fs.design.driver import Walk
from l20fs.inputs.parameter_object import ParameterObject
from l20fs.objective.problem import Problem
from l20fs.objective.row_penalty import RowPenalty
from l20fs.objective.solution_path import SolutionPath

if TYPE_CHECKING:
    from l20fs.solvers.robust import RobustFit


class Solver(ParameterObject):
    """Base of all solvers of :class:`~l20fs.L20Selector`.

    A subclass is a dataclass of its options, which ``get_params`` and ``set_params`` give and take, and implements
    :meth:`walk`. Two solvers are equal if they are of one class and have equal options.
    """

    #: The word that stands for this solver with its defaults.
    name: ClassVar[str]
    #: The losses that it minimises.
    losses: ClassVar[tuple[str, ...]] = ("squared_error",)
    #: Whether its panels meet constraints such as quotas and budgets.
    takes_constraints: ClassVar[bool] = False
    #: The lambda at which its path ends, whatever number of rows is asked for; an option of some solvers.
    alpha_min: float | None = None

    @abstractmethod
    def walk(
        self,
        problem: Problem,
        n_rows: int,
        *,
        penalty: RowPenalty | None = None,
    ) -> Walk[SolutionPath]:
        """Walk the path until ``n_rows`` units are non-zero: a walk (:mod:`l20fs.design.driver`).

        Parameters
        ----------
        problem : Problem
            The data term.
        n_rows : int
            Number of non-zero rows, or units of rows, at which the path ends, unless the solver ends it at a lambda.
        penalty : RowPenalty or None, default=None
            Costs of the rows, one by one or in groups; each of them 1 by default.

        Returns
        -------
        SolutionPath
            All solutions on the way.
        """

    def walk_robust(
        self,
        problem: Problem,
        n_rows: int,
        *,
        penalty: RowPenalty | None = None,
    ) -> Walk[RobustFit]:
        """Walk the path of the loss ``"l21"``, of solvers that have it among their ``losses``.

        Parameters
        ----------
        problem : Problem
            The data term.
        n_rows : int
            Number of non-zero rows, or units of rows, at which the path ends.
        penalty : RowPenalty or None, default=None
            Costs of the rows, one by one or in groups; each of them 1 by default.

        Returns
        -------
        RobustFit
            All solutions on the way, the weighted problem at the end, and the function that gives the loss of weights.
        """
        raise NotImplementedError(f"{type(self).__name__} has no robust loss")

    def check(self) -> None:
        """Refuse options that make no sense."""

    def check_shape(self, n_targets: int, n_features: int) -> None:
        """Refuse options that do not fit the data, as far as the shape of W tells.

        Parameters
        ----------
        n_targets, n_features : int
            The shape of W.
        """
