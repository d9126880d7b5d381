"""One file, one way to walk the path: each solver takes a problem and returns a SolutionPath."""

from l20fs.solvers.ahiht import ahiht
from l20fs.solvers.greedy import forward, sbr, swap
from l20fs.solvers.hiht import hiht
from l20fs.solvers.homotopy import Schedule
from l20fs.solvers.initial_weights import starting_weights
from l20fs.solvers.robust import robust

__all__ = ["Schedule", "ahiht", "forward", "hiht", "robust", "sbr", "starting_weights", "swap"]
