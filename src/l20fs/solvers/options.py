"""Base of the options of a solver: a class per solver, with one method that walks the path."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from l20fs.inputs.validation import check_number
from l20fs.objective.least_squares import LeastSquares
from l20fs.objective.row_penalty import RowPenalty
from l20fs.objective.solution_path import SolutionPath
from l20fs.solvers.homotopy import Callback, Schedule
from l20fs.solvers.initial_weights import starting_weights
from l20fs.typing import Array

if TYPE_CHECKING:
    from l20fs.solvers.robust import RobustFit


class Solver(BaseEstimator):
    """Base of all solvers of :class:`~l20fs.L20Selector`.

    A subclass is a dataclass of its options, which ``get_params`` and ``set_params`` give and take, and implements
    :meth:`walk`. Two solvers are equal if they are of one class and have equal options.
    """

    #: The word that stands for this solver with its defaults.
    name: ClassVar[str]
    #: The losses that it minimises.
    losses: ClassVar[tuple[str, ...]] = ("squared",)
    #: Whether it follows groups of features in an X that comes in blocks of samples.
    groups_in_blocks: ClassVar[bool] = False

    @abstractmethod
    def walk(
        self,
        problem: LeastSquares,
        n_rows: int,
        *,
        target: float | None = None,
        penalty: RowPenalty | None = None,
        callback: Callback | None = None,
    ) -> SolutionPath:
        """Walk the path until ``n_rows`` units are non-zero, or lambda is ``target``.

        Parameters
        ----------
        problem : LeastSquares
            The data term.
        n_rows : int
            Number of non-zero rows, or units of rows, at which the path ends.
        target : float or None, default=None
            The lambda at which the path ends, whatever ``n_rows`` says.
        penalty : RowPenalty or None, default=None
            Costs of the rows, one by one or in groups; each of them 1 by default.
        callback : callable or None, default=None
            Called with the :class:`~l20fs.objective.solution_path.Stage` after each lambda.

        Returns
        -------
        SolutionPath
            All solutions on the way.
        """

    def walk_robust(
        self,
        problem: LeastSquares,
        n_rows: int,
        *,
        target: float | None = None,
        penalty: RowPenalty | None = None,
        callback: Callback | None = None,
    ) -> RobustFit:
        """Walk the path of the loss ``"l21"``, of solvers that have it among their ``losses``.

        Parameters
        ----------
        problem : LeastSquares
            The data term.
        n_rows : int
            Number of non-zero rows, or units of rows, at which the path ends.
        target : float or None, default=None
            The lambda at which the path ends, whatever ``n_rows`` says.
        penalty : RowPenalty or None, default=None
            Costs of the rows, one by one or in groups; each of them 1 by default.
        callback : callable or None, default=None
            Called with the :class:`~l20fs.objective.solution_path.Stage` after each lambda.

        Returns
        -------
        RobustFit
            All solutions on the way, and the weighted problem at the end.
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

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(_is_equal(value, getattr(other, name)) for name, value in self.get_params(deep=False).items())

    def __hash__(self) -> int:
        return hash(type(self))  # options can be set


@dataclass(repr=False, eq=False, kw_only=True)
class HomotopySolver(Solver):
    """Options that the solvers which follow the gradient share."""

    groups_in_blocks = True

    alpha_start: float | None = None
    rate: float = 0.9
    line_search_factor: float = 2.0
    eta: float | None = None
    lipschitz_start: float | None = None
    init: Any = "zeros"
    random_state: Any = None

    def check(self) -> None:
        check_number("line_search_factor", self.line_search_factor, minimum=1.0)
        check_number("rate", self.rate, minimum=0.0, below=1.0)
        for name in ("alpha_start", "eta", "lipschitz_start"):
            if getattr(self, name) is not None:
                check_number(name, getattr(self, name), minimum=0.0, strict=name != "eta")
        if isinstance(self.init, str) and self.init not in ("zeros", "gaussian", "uniform"):
            raise ValueError(
                f"init={self.init!r} is unknown. Use 'zeros', 'gaussian', 'uniform' or an array of shape (n_targets, "
                "n_features)."
            )

    def check_shape(self, n_targets: int, n_features: int) -> None:
        shape = (n_targets, n_features)
        if not isinstance(self.init, str) and np.shape(self.init) != shape:
            raise ValueError(f"init has the shape {np.shape(self.init)}; expected (n_targets, n_features) = {shape}.")

    def schedule(self, n_rows: int, target: float | None) -> Schedule:
        """Return the schedule of lambda and of the step parameter L.

        Parameters
        ----------
        n_rows : int
            Number of non-zero rows at which the path ends.
        target : float or None
            The lambda at which the path ends, whatever ``n_rows`` says.

        Returns
        -------
        Schedule
            These two and the options.
        """
        return Schedule(
            target=target,
            n_rows=n_rows,
            start=self.alpha_start,
            rate=self.rate,
            line_search_factor=self.line_search_factor,
            eta=self.eta,
            lipschitz_start=self.lipschitz_start,
        )

    def weights(self, problem: LeastSquares) -> Array | None:
        """Return the weights at which the path begins.

        Parameters
        ----------
        problem : LeastSquares
            The data term.

        Returns
        -------
        array of shape (n_targets, n_features), or None
            None stands for zero.
        """
        return starting_weights(problem, self.init, self.random_state)


def _is_equal(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return type(one) is type(other) and np.array_equal(one, other)
    return bool(one == other)
