"""Vectors over the samples of several fits that have few different values, as those of classes have.

The targets of a class, centred, are the same in all samples of a class. So the products of the vectors of a fit with X are
those of a small table with the sums of X over the samples of each class that the fit uses: as many sums as there are fits,
instead of as many as there are fits and targets.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from l20fs.design.blocked import BlockedMatrix
from l20fs.typing import Array

#: Most groups of samples.
MOST_GROUPS = 256


class GroupedLines:
    """Lines of several fits that are constant in groups of samples, the same groups for all.

    Parameters
    ----------
    group_of : array of shape (n_samples,)
        Group of each sample, -1 if no fit uses it.
    masks : array of shape (n_fits, n_samples)
        1 for the samples of each fit, 0 for the others.
    tables : list of arrays of shape (n_lines, n_groups)
        Values of the lines of each fit.
    """

    def __init__(self, group_of: Array, masks: Array, tables: list[Array]) -> None:
        self.group_of, self.masks, self.tables = group_of, masks, tables

    def __len__(self) -> int:
        return self.tables[0].shape[1]

    @classmethod
    def of(cls, lines: list[tuple[Array, Array]], n_samples: int) -> GroupedLines | None:
        """Return the groups of lines over some samples, pairs of both; None if there are none that save anything.

        Examples
        --------
        >>> first, second = np.array([[1.0, 1.0, 5.0], [0.0, 0.0, 3.0]]), np.array([[4.0, 2.0]])
        >>> found = GroupedLines.of([(first, np.array([0, 1, 3])), (second, np.array([2, 3]))], 4)
        >>> found.group_of.tolist(), [table.tolist() for table in found.tables]
        ([0, 0, 2, 1], [[[1.0, 5.0, 0.0], [0.0, 3.0, 0.0]], [[0.0, 2.0, 4.0]]])
        """
        group_of, n_groups = np.full(n_samples, -1), 0
        parts = []
        for vectors, rows in lines:
            found = _groups_of(vectors)
            if found is None:
                return None
            own, table = found
            # Each group is that of its first sample that is known, if any, or a new one.
            known = group_of[rows]
            names = np.full(table.shape[1], -1)
            names[own[known >= 0]] = known[known >= 0]
            is_new = names < 0
            names[is_new] = n_groups + np.arange(np.count_nonzero(is_new))
            n_groups = max(n_groups, int(names.max(initial=-1)) + 1)
            if len(np.unique(names)) < len(names) or np.any((known >= 0) & (names[own] != known)):
                return None  # not the same groups
            group_of[rows] = names[own]
            parts.append((names, table))
        if not 0 < n_groups <= MOST_GROUPS or sum(len(vectors) for vectors, _ in lines) <= len(lines):
            return None
        masks, tables = np.zeros((len(lines), n_samples), dtype=np.float32), []
        for mask, (_, rows), (names, table) in zip(masks, lines, parts, strict=True):
            mask[rows] = 1.0
            tables.append(np.zeros((len(table), n_groups)))
            tables[-1][:, names] = table
        return cls(group_of, masks, tables)

    def products(self, base: BlockedMatrix, results: list[Any]) -> list[Array]:
        """Return the products of the lines of each fit with the columns of a base, from sums over groups."""
        sums, counts = results[0]
        columns = base.column_values
        found = []
        for number, table in enumerate(self.tables):
            own = table @ sums[:, number]
            own -= np.outer(table @ counts[:, number], columns.mean)
            own /= columns.scale
            found.append(own)
        return found


def _groups_of(vectors: Array) -> tuple[Array, Array] | None:
    """Return the group of each sample, by the values of all vectors there, and the values, (n_vectors, n_groups)."""
    keys = np.zeros(vectors.shape[1])
    for factor, line in zip(np.random.default_rng(0).random(len(vectors)), vectors, strict=True):
        keys += factor * line  # by a product, equal samples might differ in the last digit
    _, first, own = np.unique(keys, return_index=True, return_inverse=True)
    if len(first) > MOST_GROUPS:
        return None
    table = vectors[:, first]
    return (own, table) if np.array_equal(table[:, own], vectors) else None
