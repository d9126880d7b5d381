"""Complementary pairs of subsamples."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_consistent_length, column_or_1d

from l20fs.inputs.targets import Targets
from l20fs.text import abbreviated
from l20fs.typing import Array

#: Keys for separate random streams of the draws and of the selectors.
_DRAW, _SELECTOR = 0, 1


@dataclass(frozen=True)
class Pairs:
    """Samples of every resample: resamples 2p and 2p + 1 are the halves of pair p.

    Each resample depends on ``seed`` and its number only.

    Attributes
    ----------
    strata : array of shape (n_units,)
        Stratum (class) of each unit, 0, 1, ...; both halves have the same fraction of each.
    units : array of shape (n_samples,)
        Unit of each sample; the samples of a unit are drawn together.
    samples : array of shape (n_samples,)
        Indices of the samples to draw from.
    fraction : float
        Fraction of the units in one half.
    seed : int
    """

    strata: Array
    units: Array
    samples: Array
    fraction: float
    seed: int

    def rows(self, resample: int) -> Array:
        """Return the samples of a resample, ascending."""
        random = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(_DRAW, resample // 2)))
        is_drawn = np.zeros(len(self.strata), dtype=bool)
        is_drawn[draw_pair(self.strata, self.fraction, random)[resample % 2]] = True
        return self.samples[is_drawn[self.units]]

    def selector_seed(self, resample: int) -> int:
        """Return a seed for the selector of a resample."""
        return int(np.random.SeedSequence(self.seed, spawn_key=(_SELECTOR, resample)).generate_state(1)[0] >> 1)


def draw_pair(strata: Array, fraction: float, random: np.random.Generator) -> tuple[Array, Array]:
    """Draw two disjoint subsets of the units, each with ``fraction`` of every stratum.

    The units are ordered by stratum and shuffled within each; evenly spaced ones are drawn and assigned to the two halves in
    turn. Thus each half has the given fraction of every stratum up to one unit, the sizes of the halves differ by at most
    one, and all units of a stratum have the same probability. A stratum with two or more units is in both halves, however
    small the fraction is.

    Examples
    --------
    >>> first, second = draw_pair(np.array([0, 0, 0, 0, 1, 1]), 0.5, np.random.default_rng(0))
    >>> len(first), len(second), len(np.union1d(first, second))
    (3, 3, 6)
    """
    n_units, sizes = len(strata), np.bincount(strata)
    # The strata are in random order as well, so that none is always adjacent to the same other one.
    place = random.permutation(len(sizes))
    order = random.permutation(n_units)
    order = order[np.argsort(place[strata[order]], kind="stable")]
    n_kept = 2 * max(1, math.floor(fraction * n_units + 1e-9))
    kept = np.zeros(n_units, dtype=bool)
    kept[(np.arange(n_kept) * n_units + random.integers(n_units)) // n_kept] = True
    for stratum in np.flatnonzero((np.bincount(strata[order[kept]], minlength=len(sizes)) < 2) & (sizes >= 2)):
        positions = np.flatnonzero(strata[order] == stratum)
        kept[positions] = False
        kept[positions[:2]] = True
    start = random.integers(2)
    return order[kept][start::2], order[kept][1 - start :: 2]


def plan_pairs(targets: Targets, groups: Any, fraction: float, seed: int) -> Pairs:
    """Prepare the draws: of whole ``groups`` unless None, stratified by class if there are labels.

    The stratum of a group is the class of its samples that occurs in the fewest groups. Samples of weight 0 are not drawn.
    """
    n_samples = len(targets.Y)
    samples = np.arange(n_samples) if targets.sample_weight is None else np.flatnonzero(targets.sample_weight)
    units = np.arange(len(samples))
    if groups is not None:
        units = np.unique(encode_groups(groups, n_samples)[samples], return_inverse=True)[1]
    n_units = int(units.max()) + 1
    if targets.codes is None or targets.classes is None:
        return Pairs(np.zeros(n_units, dtype=np.intp), units, samples, fraction, seed)
    holds = np.zeros((n_units, len(targets.classes)), dtype=bool)
    holds[units, targets.codes[samples]] = True
    n_holders = holds.sum(axis=0)
    _judge_rare_classes(targets.classes, n_holders, "sample" if groups is None else "group")
    rarity = np.where(holds, n_holders, n_units + 1)
    return Pairs(rarity.argmin(axis=1), units, samples, fraction, seed)


def encode_groups(groups: Any, n_samples: int) -> Array:
    """Return the index of the group of each sample among the sorted groups."""
    is_missing = groups.isna() if hasattr(groups, "isna") else [g is None or g != g for g in np.asarray(groups).flat]
    if np.any(is_missing):
        raise ValueError(f"groups has {np.sum(is_missing)} missing values. Give every sample the name of its group.")
    values = column_or_1d(groups)
    check_consistent_length(np.empty(n_samples), values)
    try:
        names, units = np.unique(values, return_inverse=True)
    except TypeError as error:
        raise ValueError(
            f"groups has names that cannot be compared ({error}). Use one type, for example groups.astype(str)."
        ) from error
    if len(names) < 2:
        raise ValueError(f"groups has one group only, {names[0]!r}, which cannot be split. Give 2 groups or more.")
    return np.asarray(units)


def _judge_rare_classes(classes: Array, n_holders: Array, unit: str) -> None:
    """Raise an error if only one class can be in each half; warn of classes that can be in one half only."""
    rare = [str(label) for label in classes[n_holders == 1]]
    if not rare:
        return
    found = f"y has {len(rare)} of {len(classes)} classes in one {unit} only: {abbreviated(rare)}."
    if np.count_nonzero(n_holders >= 2) < 2:
        raise ValueError(
            f"{found} A half without them has fewer than 2 classes. Give 2 {unit}s or more of at least 2 classes."
        )
    warnings.warn(
        f"{found} One half of each pair is without them. Drop these classes, or give more {unit}s.",
        UserWarning,
        stacklevel=5,  # the caller of fit
    )
