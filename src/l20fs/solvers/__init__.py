"""Solvers: each walks a problem to a SolutionPath."""

from __future__ import annotations

from typing import Any

from l20fs.inputs.validation import check_choice
from l20fs.solvers.ahiht import AHIHT
from l20fs.solvers.base import Solver
from l20fs.solvers.greedy import forward, swap
from l20fs.solvers.hiht import HIHT
from l20fs.solvers.replacing import Forward, Swap
from l20fs.solvers.robust import robust

__all__ = [
    "AHIHT",
    "HIHT",
    "SOLVERS",
    "Forward",
    "Solver",
    "Swap",
    "forward",
    "make_solver",
    "robust",
    "swap",
]

#: The solvers by the word that stands for each with its defaults.
SOLVERS: dict[str, type[Solver]] = {solver.name: solver for solver in (Forward, Swap, AHIHT, HIHT)}


def make_solver(solver: Any) -> Solver:
    """Return a solver that is given as an object, or by name.

    Examples
    --------
    >>> make_solver("ahiht")
    AHIHT()
    """
    if isinstance(solver, Solver):
        return solver
    check_choice("solver", solver, tuple(SOLVERS))
    return SOLVERS[solver]()
