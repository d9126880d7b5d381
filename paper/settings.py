"""Settings of the authors of the paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from l20fs import AHIHT, HIHT
from l20fs.design import Walk
from l20fs.objective.problem import Problem
from l20fs.objective.row_penalty import RowPenalty
from l20fs.objective.solution_path import SolutionPath
from l20fs.solvers import Solver, forward

#: lambda_0 and rho of the authors.
START, RATE = 1.0, 0.4


@dataclass(repr=False, eq=False, kw_only=True)
class PricedForward(Solver):
    """Forward selection of as many features as minimise f + lambda * (number of rows) at a lambda, for comparisons there."""

    name = "priced forward"
    alpha_min: float | None = 1e-4

    def walk(self, problem: Problem, n_rows: int, *, penalty: RowPenalty | None = None) -> Walk[SolutionPath]:
        assert self.alpha_min is not None
        path = yield from forward(problem, min(problem.design.n_samples, problem.n_features), penalty=penalty)
        return (yield from forward(problem, path.size_at(self.alpha_min), penalty=penalty))


def paper_settings(
    solver: Literal["ahiht", "hiht"] = "ahiht",
    *,
    reading: Literal["code", "printed"] = "code",
    alpha_min: float = 1e-4,
) -> dict[str, Any]:
    """Return the parameters of :class:`L20Selector` that the authors of the paper use.

    The paper prints neither constants nor a stopping lambda. These are the defaults of the authors' later public code for
    the same subproblem: lambda falls from lambda_0 = 1 to 1e-4 by a factor 0.4, L starts at the largest squared sample norm,
    doubles after a rejected trial and is never lowered, eta is 0.1. The absolute stopping rule of HIHT is in the paper; its
    value 1e-6 and the limit of 200 steps per lambda are ours. The paper tunes lambda over 1e-5, 1e-4, ..., 1: pass another
    ``solver__alpha_min`` for that.

    Parameters
    ----------
    solver : {"ahiht", "hiht"}, default="ahiht"
        The algorithm of the paper.
    reading : {"code", "printed"}, default="code"
        The lambda of the first stage. ``"code"``: 0.4 lambda_0, as the authors' later code lowers lambda before its first
        step; ten stages. ``"printed"``: lambda_0 itself, as Algorithms 1 and 2 of the paper are printed; eleven stages. The
        two differ only where a feature enters at lambda_0. The code is the default because the constants are from there.
    alpha_min : float, default=1e-4
        The lambda at which the path ends.

    Returns
    -------
    dict
        Arguments of :class:`L20Selector`, among them the ``solver`` with its options.

    Examples
    --------
    >>> from l20fs import L20Selector
    >>> selector = L20Selector(60, **paper_settings("hiht"))
    >>> selector.solver.alpha_min, selector.solver.rate
    (0.0001, 0.4)
    >>> paper_settings()["solver"].alpha_start, paper_settings(reading="printed")["solver"].alpha_start
    (0.4, 1.0)
    """
    first = {"code": RATE * START, "printed": START}[reading]
    constants: dict[str, Any] = {"alpha_start": first, "rate": RATE, "line_search_factor": 2.0, "eta": 0.1}
    constants |= {"alpha_min": alpha_min, "ranking": "norm"}
    solvers = {"ahiht": AHIHT(**constants), "hiht": HIHT(**constants, stopping="absolute")}
    return {
        "solver": solvers[solver],
        "ridge": 0.0,
        "scale": "none",
        "class_weight": None,
    }
