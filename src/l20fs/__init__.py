"""Feature selection with the exact l2,0 norm."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from l20fs.design.large import open_large
    from l20fs.estimators.models import L20Classifier, L20Regressor
    from l20fs.estimators.panel_atlas import PanelAtlas
    from l20fs.estimators.selector import L20Selector
    from l20fs.estimators.selector_cv import L20SelectorCV
    from l20fs.estimators.stability import StabilitySelector
    from l20fs.inputs.panel_constraints import Constraints
    from l20fs.objective.solution_path import SolutionPath
    from l20fs.prediction.panel import Panel
    from l20fs.solvers import AHIHT, HIHT, Forward, Swap

__all__ = [
    "AHIHT",
    "HIHT",
    "Constraints",
    "Forward",
    "L20Classifier",
    "L20Regressor",
    "L20Selector",
    "L20SelectorCV",
    "Panel",
    "PanelAtlas",
    "SolutionPath",
    "StabilitySelector",
    "Swap",
    "open_large",
]
__version__ = "0.2.0"

#: The module of each public name, which is loaded when the name is first used.
_MODULES = {
    "AHIHT": "l20fs.solvers",
    "HIHT": "l20fs.solvers",
    "Constraints": "l20fs.inputs.panel_constraints",
    "Forward": "l20fs.solvers",
    "L20Classifier": "l20fs.estimators.models",
    "L20Regressor": "l20fs.estimators.models",
    "L20Selector": "l20fs.estimators.selector",
    "L20SelectorCV": "l20fs.estimators.selector_cv",
    "Panel": "l20fs.prediction.panel",
    "PanelAtlas": "l20fs.estimators.panel_atlas",
    "SolutionPath": "l20fs.objective.solution_path",
    "StabilitySelector": "l20fs.estimators.stability",
    "Swap": "l20fs.solvers",
    "open_large": "l20fs.design.large",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_MODULES[name]), name)
    globals()[name] = value  # so that this function is called once per name
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
