"""l20fs: feature selection with the exact l2,0 norm."""

from l20fs.models import L20Classifier, L20Regressor
from l20fs.paper import paper_settings
from l20fs.path import SolutionPath
from l20fs.selector import L20Selector
from l20fs.selector_cv import L20SelectorCV
from l20fs.stability import StabilitySelector

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
