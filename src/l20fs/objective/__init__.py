"""Objective: the data term, the row penalty, the rules for panels, proximal maps and the path of solutions."""

from l20fs.objective.problem import Problem, make_problem, problem_on

__all__ = ["Problem", "make_problem", "problem_on"]
