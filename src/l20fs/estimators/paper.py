"""Settings of the authors of the paper."""

from __future__ import annotations

from typing import Any, Literal

from l20fs.inputs.validation import check_choice
from l20fs.solvers import AHIHT, HIHT


def paper_settings(solver: Literal["ahiht", "hiht"] = "ahiht") -> dict[str, Any]:
    """Return the parameters of :class:`L20Selector` that the authors of the paper use.

    The paper prints neither constants nor a stopping lambda. These are the defaults of the authors' later public code for
    the same subproblem: lambda runs from 1 down to 1e-4 by a factor 0.4 (ten stages, so AHIHT takes ten steps in all), L
    starts at the largest squared sample norm, doubles after a rejected trial and is never lowered, eta is 0.1. The
    absolute stopping rule of HIHT is in the paper; its value 1e-6 and the limit of 200 steps per lambda are ours. The
    paper tunes lambda over 1e-5, 1e-4, ..., 1: pass another ``alpha`` for that.

    Parameters
    ----------
    solver : {"ahiht", "hiht"}, default="ahiht"
        The algorithm of the paper.

    Returns
    -------
    dict
        Arguments of :class:`L20Selector`, among them the ``solver`` with its options.

    Examples
    --------
    >>> from l20fs import L20Selector
    >>> selector = L20Selector(60, **paper_settings("hiht"))
    >>> selector.alpha, selector.solver.rate
    (0.0001, 0.4)
    """
    check_choice("solver", solver, ("ahiht", "hiht"))
    constants: dict[str, Any] = {"alpha_start": 1.0, "rate": 0.4, "line_search_factor": 2.0, "eta": 0.1}
    return {
        "solver": AHIHT(**constants) if solver == "ahiht" else HIHT(**constants, stopping="absolute"),
        "alpha": 1e-4,
        "ridge": 0.0,
        "scale": "none",
        "class_weight": None,
        "ranking": "norm",
    }
