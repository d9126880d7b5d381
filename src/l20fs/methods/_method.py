"""Parts of a method: its base, the checks of its parameters, the loop of those that iterate, and what both need."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from types import MappingProxyType
from typing import Any, ClassVar, TypeVar, get_args

from l20fs.design import Scale
from l20fs.estimators.base import About, BaseSelector
from l20fs.estimators.scoring import Callback, Progress, Scored, ScoringSelector, SolvesForOneK, warn_not_converged
from l20fs.inputs.targets import Targets
from l20fs.inputs.validation import check_choice, check_number
from l20fs.methods._discretise import BINNINGS
from l20fs.typing import Task

__all__ = ["COUNT", "POSITIVE", "About", "Callback", "Method", "MethodForOneK", "Scored", "Targets"]
__all__ += ["choice", "follow", "number", "rules", "tell", "warn_above"]

#: Raises an error for a parameter, by its name and value.
Check = Callable[[str, Any], None]
State = TypeVar("State")


def number(minimum: float = 0.0, *, strict: bool = False, **limits: Any) -> Check:
    """Return the check of a number of at least, or if ``strict`` above, a minimum; see :func:`check_number`."""
    return partial(check_number, minimum=minimum, strict=strict, **limits)


def choice(*allowed: str) -> Check:
    """Return the check of a word."""
    return partial(check_choice, allowed=allowed)


def rules(**checks: Check) -> Mapping[str, Check]:
    """Return checks by the names of parameters."""
    return MappingProxyType(checks)


COUNT, POSITIVE = number(1, whole=True), number(strict=True)

#: Checks of the parameters that several methods have.
CHECKS: Mapping[str, Check] = {
    "max_iter": COUNT,
    "tol": number(),
    "task": choice(*get_args(Task)),
    "scale": choice(*get_args(Scale)),
    "binning": choice(*BINNINGS),
    "n_bins": number(2, whole=True),
    "tau": number(),
    "n_neighbors": COUNT,
    "n_clusters": COUNT,
    "max_features": lambda name, value: None if value is None else COUNT(name, value),
}


class Checked(BaseSelector):
    """Selector whose parameters are checked by :data:`CHECKS` and its own ``checks``."""

    checks: ClassVar[Mapping[str, Check]] = MappingProxyType({})

    def _check_parameters(self) -> None:
        super()._check_parameters()
        checks = {**CHECKS, **self.checks}
        for name, value in self.get_params(deep=False).items():
            if name in checks:
                checks[name](name, value)


@dataclass(eq=False, repr=False)
class Method(Checked, ScoringSelector):
    """Base of the methods that score every feature once: a dataclass of their parameters."""

    n_features_to_select: int | float = 20


@dataclass(eq=False, repr=False)
class MethodForOneK(Checked, SolvesForOneK):
    """Base of the methods that optimise for one number of features: a dataclass of their parameters."""

    n_features_to_select: int | float = 20


def follow(method: Any, steps: Iterable[tuple[State, float, float]]) -> tuple[State, list[float]]:
    """Follow an iterative method, and return its last state and the objective after every step.

    ``steps`` yields states, objectives and changes. The last step is the first whose change is at most ``method.tol``, or
    that of number ``method.max_iter``, with a warning.
    """
    objective: list[float] = []
    for step in islice(steps, method.max_iter):
        state, value, change = step
        objective.append(value)
        tell(method, objective)
        if change <= method.tol:
            break
    if len(objective) == method.max_iter:
        warn_above(method, change)
    return state, objective


def tell(method: Any, objective: Sequence[float]) -> None:
    """Call the callback of a method, where there is one, with the last value of the objective."""
    if method.callback is not None:
        method.callback(Progress(len(objective), objective[-1]))


def warn_above(method: Any, reached: float) -> None:
    """Warn that an iterative method stopped at its limit, if what it reached is above its tolerance."""
    if reached > method.tol:
        warn_not_converged(method, reached, method.tol, method.max_iter)
