"""X~, the centred and scaled features, wherever X is: the room that multiplies with X.

:mod:`~l20fs.design.matrix` has the operations of a container of X, each for many rows of sample weights at once;
:mod:`~l20fs.design.standardised` the columns of one problem; :mod:`~l20fs.design.driver` answers what solvers ask for.
"""

from __future__ import annotations

from l20fs.design.column_scale import checked_scale
from l20fs.design.driver import Walk, finish, in_groups, run
from l20fs.design.matrix import BLOCK_ELEMENTS, Matrix
from l20fs.design.sample_weights import SampleWeights
from l20fs.design.samples import (
    Part,
    make_design,
    make_matrix,
    problems_at_once,
    share_samples,
    stored_matrix,
    weigh,
)
from l20fs.design.standardised import Design
from l20fs.design.tolerances import equality_tolerance
from l20fs.typing import Scale

__all__ = [
    "BLOCK_ELEMENTS",
    "Design",
    "Matrix",
    "Part",
    "SampleWeights",
    "Scale",
    "Walk",
    "checked_scale",
    "equality_tolerance",
    "finish",
    "in_groups",
    "make_design",
    "make_matrix",
    "problems_at_once",
    "run",
    "share_samples",
    "stored_matrix",
    "weigh",
]
