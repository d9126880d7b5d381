"""l20fs: feature selection with the exact l2,0 norm."""

from l20fs.estimators.models import L20Classifier, L20Regressor
from l20fs.estimators.paper import paper_settings
from l20fs.estimators.selector import L20Selector
from l20fs.estimators.selector_cv import L20SelectorCV
from l20fs.estimators.stability import StabilitySelector
from l20fs.objective.solution_path import SolutionPath

__all__ = [
    "L20Classifier",
    "L20Regressor",
    "L20Selector",
    "L20SelectorCV",
    "SolutionPath",
    "StabilitySelector",
    "paper_settings",
]
__version__ = "0.1.0"
