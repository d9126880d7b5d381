"""Active sets: the selected rows, and the exact change that one row more or less would bring."""

from __future__ import annotations

from collections.abc import Iterable

from l20fs.objective.least_squares import LeastSquares
from l20fs.objective.row_penalty import RowPenalty
from l20fs.solvers.active_sets.device import DeviceActiveSet
from l20fs.solvers.active_sets.device_rows import DeviceGroups, DeviceRows
from l20fs.solvers.active_sets.groups import GroupActiveSet
from l20fs.solvers.active_sets.rows import ActiveSet, RowActiveSet

__all__ = ["ActiveSet", "RowActiveSet", "make_active_set", "make_growing_set"]


def make_active_set(problem: LeastSquares, units: Iterable[int] = (), penalty: RowPenalty | None = None) -> RowActiveSet:
    """Return an active set of the given units and of all that is included."""
    return _kind(problem, penalty)(problem, units, penalty)


def make_growing_set(problem: LeastSquares, penalty: RowPenalty | None = None) -> ActiveSet:
    """Return an active set that only grows: on a device by many rows at a time, unless units have costs or groups."""
    if problem.design.location == "device" and (penalty is None or penalty.is_plain):
        return DeviceActiveSet(problem, penalty)
    return _kind(problem, penalty)(problem, (), penalty)


def _kind(problem: LeastSquares, penalty: RowPenalty | None) -> type[RowActiveSet]:
    of_rows, of_groups = (
        (DeviceRows, DeviceGroups) if problem.design.location == "device" else (RowActiveSet, GroupActiveSet)
    )
    return of_groups if penalty is not None and penalty.has_groups else of_rows
