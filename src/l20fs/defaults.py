"""Defaults of L20Selector that the models and the command line share; importing them loads nothing heavy."""

from __future__ import annotations

from typing import Final

from l20fs.typing import Ranking, Scale, SolverName

DEFAULT_N_FEATURES: Final = 20
DEFAULT_SOLVER: Final[SolverName] = "forward"
DEFAULT_RIDGE: Final = "auto"
DEFAULT_SCALE: Final[Scale] = "auto"
DEFAULT_CLASS_WEIGHT: Final = "balanced"
DEFAULT_RANKING: Final[Ranking] = "entry"
