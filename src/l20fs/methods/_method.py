"""What methods share: the checks of their parameters, and the loop of those that iterate."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from itertools import islice
from typing import Any, ClassVar, TypeVar, get_args

from l20fs.design import Scale
from l20fs.estimators.base import BaseSelector
from l20fs.estimators.scoring import Progress, warn_not_converged
from l20fs.inputs.validation import check_choice, check_number
from l20fs.methods._discretise import BINNINGS
from l20fs.typing import Task

#: Raises an error for a parameter, by its name and value.
Check = Callable[[str, Any], None]
State = TypeVar("State")


def number(minimum: float = 0.0, *, strict: bool = False, **limits: Any) -> Check:
    """Return the check of a number of at least, or if ``strict`` above, a minimum; see :func:`check_number`."""
    return partial(check_number, minimum=minimum, strict=strict, **limits)


def choice(*allowed: str) -> Check:
    """Return the check of a word."""
    return partial(check_choice, allowed=allowed)


def optional(check: Check) -> Check:
    """Return a check that lets None pass."""
    return lambda name, value: None if value is None else check(name, value)


COUNT, POSITIVE = number(1, whole=True), number(strict=True)

#: Checks of the parameters that several methods have.
CHECKS: dict[str, Check] = {
    "max_iter": COUNT,
    "tol": number(),
    "task": choice(*get_args(Task)),
    "scale": choice(*get_args(Scale)),
    "binning": choice(*BINNINGS),
    "n_bins": number(2, whole=True),
    "tau": number(),
    "n_neighbors": COUNT,
    "n_clusters": COUNT,
    "max_features": optional(COUNT),
}


class Checked(BaseSelector):
    """Method whose parameters are checked by :data:`CHECKS` and its own ``checks``."""

    checks: ClassVar[dict[str, Check]] = {}

    def _check_parameters(self) -> None:
        super()._check_parameters()
        checks = CHECKS | self.checks
        for name, value in self.get_params(deep=False).items():
            if name in checks:
                checks[name](name, value)


def follow(method: Any, steps: Iterable[tuple[State, float, float]]) -> tuple[State, list[float]]:
    """Follow an iterative method, and return its last state and the objective after every step.

    ``steps`` yields states, objectives and changes. The last step is the first whose change is at most ``method.tol``, or
    that of number ``method.max_iter``, with a warning.
    """
    objective: list[float] = []
    for step in islice(steps, method.max_iter):
        state, value, change = step
        objective.append(value)
        if method.callback is not None:
            method.callback(Progress(len(objective), value))
        if change <= method.tol:
            break
    if change > method.tol and len(objective) == method.max_iter:
        warn_not_converged(method, change, method.tol, method.max_iter)
    return state, objective
