"""Splits of a comparison: two thirds of every class to train on, with inner folds to choose by.

The paper states two thirds of every class and ten repeats; that the two thirds are rounded up is from the code that its
authors published later.
"""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.model_selection import GroupShuffleSplit, StratifiedGroupKFold, StratifiedKFold

from l20fs.evaluation.folds import Fold
from l20fs.tables import DataError
from l20fs.typing import Array

#: Share of every class that is used for training, rounded up.
TRAINING_SHARE = 2 / 3

#: Fewest groups: one to test, and two for the folds of the others.
FEWEST_GROUPS = 3

#: Random choices of whole groups, of which the one that takes the same share of every class is tested.
GROUP_DRAWS = 20


def random_split(y: Array, number: int, seed: int = 0, groups: Array | None = None) -> Fold:
    """Draw split ``number``: of every class two thirds, rounded up, for training; of whole groups, if there are any.

    The split depends on the labels, the groups, ``seed`` and its number only.

    Examples
    --------
    >>> split = random_split(np.repeat([0, 1], [10, 4]), 0)
    >>> len(split.train), len(split.test)
    (10, 4)
    """
    if groups is not None:
        return _split_groups(y, groups, np.random.RandomState([seed, number]))
    random = np.random.default_rng([seed, number])
    is_train = np.zeros(len(y), dtype=bool)
    for label in np.unique(y):
        members = random.permutation(np.flatnonzero(y == label))
        is_train[members[: int(np.ceil(len(members) * TRAINING_SHARE - 1e-9))]] = True
    return Fold(np.flatnonzero(is_train), np.flatnonzero(~is_train))


def _split_groups(y: Array, groups: Array, random: np.random.RandomState) -> Fold:
    """Draw a third of the groups for the test part; of some draws the one that is most even over the classes."""
    n_groups = len(np.unique(groups))
    if n_groups < FEWEST_GROUPS:
        raise DataError(f"There are {n_groups} groups. A comparison needs {FEWEST_GROUPS} or more: leave --groups out.")
    codes, counts = np.unique(y, return_inverse=True, return_counts=True)[1:]
    test_share = 1.0 - TRAINING_SHARE

    def unevenness(draw: tuple[Array, Array]) -> float:
        shares = np.bincount(codes[draw[1]], minlength=len(counts)) / counts
        return float(np.abs(shares - test_share).sum())

    draws = GroupShuffleSplit(GROUP_DRAWS, test_size=test_share, random_state=random).split(y, y, groups)
    return _with_known_classes([Fold(*min(draws, key=unevenness))], y)[0]


def _with_known_classes(folds: list[Fold], y: Array) -> list[Fold]:
    """Leave out test samples of classes that are not learned, and folds with nothing to learn or to test."""
    tested = [Fold(fold.train, fold.test[np.isin(y[fold.test], y[fold.train])]) for fold in folds]
    n_classes = min(2, len(np.unique(y)))
    usable = [fold for fold in tested if len(fold.test) and len(np.unique(y[fold.train])) >= n_classes]
    if not usable:
        raise DataError(
            "Classes are confined to groups: with groups kept together, a split leaves nothing to learn or to test. Add "
            "groups with samples of several classes, or leave --groups out."
        )
    return usable


def inner_folds(y: Array, train: Array, n_folds: int, number: int, seed: int = 0, groups: Array | None = None) -> list[Fold]:
    """Split the training samples of a split into stratified folds, at most as many as the smallest class has samples.

    A class with one sample stays in the training parts and does not limit the folds. Groups stay together: there are at most
    as many folds as groups, and samples of a class that is in the test part alone are not tested. The folds are indices of
    all samples.
    """
    own, random = y[train], np.random.RandomState([seed, number])
    if groups is not None:
        n_folds = min(n_folds, len(np.unique(groups[train])))
        splitter = StratifiedGroupKFold(n_folds, shuffle=True, random_state=random)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="The least populated class", category=UserWarning)
            folds = _with_known_classes([Fold(*parts) for parts in splitter.split(own, own, groups[train])], own)
    else:
        codes, counts = np.unique(own, return_inverse=True, return_counts=True)[1:]
        is_single = counts[codes] == 1
        single, others = np.flatnonzero(is_single), np.flatnonzero(~is_single)
        n_folds = max(2, min(n_folds, int(counts[counts > 1].min(initial=len(own)))))
        stratified = StratifiedKFold(n_folds, shuffle=True, random_state=random).split(others, own[others])
        folds = [Fold(np.sort(np.concatenate([others[a], single])), others[b]) for a, b in stratified]
    return [Fold(train[fold.train], train[fold.test]) for fold in folds]
