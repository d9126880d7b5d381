"""Parameters that have another name now: an error names it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from l20fs.text import closest_hint

Function = TypeVar("Function", bound=Callable[..., Any])

#: What takes the place of parameters of 0.1.
NEW_NAMES = {
    "alpha": "solver=AHIHT(alpha_min=...), or path_.size_at(alpha) after fit",
    "ranking": "solver=AHIHT(ranking=...)",
    "certify": "l20fs.inspection.certify(selector, X, y)",
    "callback": "verbose=1",
    "max_features": "max_features_to_select=..., of L20SelectorCV sizes=range(1, ... + 1)",
    "ridge": "ridges=[...]",
    "include": "constraints=Constraints(include=...)",
    "exclude": "constraints=Constraints(exclude=...)",
    "penalty_factor": "constraints=Constraints(costs=...)",
    "feature_groups": "constraints=Constraints(groups=...)",
    "fraction": "n_resamples=...; halves are half of the samples",
    "task": "selector=L20Selector(task=...), or L20Classifier or L20Regressor",
    "normalize": "log1p=True",
    "groups": "groupby=...; donors of a cross-validation are donor_key=...",
    "use_raw": "layer=..., or adata.raw.to_adata()",
}


def name_new_parameters(function: Function) -> Function:
    """Let a function, or a constructor, say what an unknown parameter is called now."""
    known = list(inspect.signature(function).parameters)
    owner = function.__qualname__.removesuffix(".__init__")

    @wraps(function)
    def checked(*args: Any, **given: Any) -> Any:
        for name in given:
            if name not in known:
                raise TypeError(f"{owner}() has no parameter {name!r}. {hint_for(name, known)}")
        return function(*args, **given)

    return cast(Function, checked)


def hint_for(name: str, known: list[str]) -> str:
    """Return the way out for an unknown parameter.

    Examples
    --------
    >>> hint_for("feature_groups", [])
    'Use constraints=Constraints(groups=...).'
    """
    return f"Use {NEW_NAMES[name]}." if name in NEW_NAMES else closest_hint(name, [each for each in known if each != "self"])
