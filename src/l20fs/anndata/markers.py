"""Marker genes of each class: the selected genes by class, in the layout of scanpy's rank_genes_groups."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from l20fs.text import counted, listed
from l20fs.typing import Array

#: What scanpy adds to both means before it divides them, so that neither is zero.
PSEUDO = 1e-9


class GroupMeans(NamedTuple):
    """Means of the selected genes in each class (n_classes, n_selected), and over all cells of other classes.

    ``within`` are the means that decide which class a gene is highest in, where batches were centred those without the
    batches; ``deviation`` (n_selected,) is the deviation of each gene.
    """

    means: Array
    others: Array
    within: Array
    deviation: Array

    @classmethod
    def of(cls, sums: Array, squares: Array, sizes: Array, of_batches: Array | None = None) -> GroupMeans:
        """Compute them from sums over the cells of each class; ``of_batches`` are the mean batch effects of each class."""
        n_cells, total = sizes.sum(), sums.sum(axis=0)
        means = sums / sizes[:, None]
        others = (total - sums) / (n_cells - sizes)[:, None]
        variance = squares / n_cells - np.square(total / n_cells)
        tiny = np.finfo(np.float64).tiny
        return cls(means, others, means if of_batches is None else means - of_batches, np.sqrt(np.maximum(variance, tiny)))


@dataclass(frozen=True, eq=False)
class Markers:
    """Selected genes, best first, with the class of each.

    Attributes
    ----------
    names, classes : arrays of str
    owners : array of shape (n_selected,)
        Number of the class in which the mean of the gene is highest.
    separation : array of shape (n_classes, n_selected)
        Mean in the class minus the highest mean of another class, in deviations of the gene: above 0 for the owner alone.
    log_fold_change : array of shape (n_classes, n_selected)
        Binary logarithm of the ratio of the means in the class and in all other cells, as scanpy computes it; NaN if a mean
        is negative, as of scaled values.
    height : array of shape (n_classes, n_selected)
        Mean in the class minus the mean in all other cells, in deviations of the gene.
    """

    names: Array
    classes: Array
    owners: Array
    separation: Array
    log_fold_change: Array
    height: Array

    @classmethod
    def of(cls, found: GroupMeans, names: Array, classes: Array, *, is_log: bool) -> Markers:
        """Assign genes to classes."""
        owners = found.within.argmax(axis=0)
        ranked = np.sort(found.within, axis=0)
        is_owner = np.arange(len(classes))[:, None] == owners
        separation = (found.within - np.where(is_owner, ranked[-2], ranked[-1])) / found.deviation
        height = (found.means - found.others) / found.deviation
        return cls(names, classes, owners, separation, _log_fold_change(found, is_log=is_log), height)

    def warn_of_missing(self) -> None:
        """Warn of classes in which no selected gene is highest."""
        missing = np.setdiff1d(np.arange(len(self.classes)), self.owners)
        if len(missing):
            warnings.warn(
                f"{len(missing)} of {len(self.classes)} types have no marker, a gene that is highest in them, among "
                f"{counted(len(self.names), 'gene')}: {listed(self.classes[missing])}. A larger n_genes may find some.",
                UserWarning,
                stacklevel=3,
            )

    def table(self) -> dict[str, Array]:
        """Return the records of ``.uns`` that scanpy reads, with a field per class and no p-values.

        The lists of all classes are as long as that of the class with most markers: the genes of a class come first, by
        their separation, and then genes of other classes, whose separation is not above 0, by their height in the class.
        """
        n_most = int(np.bincount(self.owners, minlength=1).max()) if len(self.names) else 0
        is_other = np.arange(len(self.classes))[:, None] != self.owners
        order = np.lexsort((-np.where(is_other, self.height, self.separation), is_other), axis=1)[:, :n_most]
        nothing = np.full(order.shape, np.nan)
        return {
            "names": self._records(self.names[order], object),
            "scores": self._records(np.take_along_axis(self.separation, order, axis=1), np.float64),
            "logfoldchanges": self._records(np.take_along_axis(self.log_fold_change, order, axis=1), np.float64),
            "pvals": self._records(nothing, np.float64),
            "pvals_adj": self._records(nothing, np.float64),
        }

    def _records(self, values: Array, dtype: Any) -> Array:
        records = np.empty(values.shape[1], dtype=[(name, dtype) for name in self.classes])
        for name, of_class in zip(self.classes, values, strict=True):
            records[name] = of_class
        return records


def _log_fold_change(found: GroupMeans, *, is_log: bool) -> Array:
    if (found.means < 0.0).any() or (found.others < 0.0).any():
        return np.full(found.means.shape, np.nan)
    means, others = (np.expm1(found.means), np.expm1(found.others)) if is_log else (found.means, found.others)
    return np.asarray(np.log2((means + PSEUDO) / (others + PSEUDO)))
