"""Folds of a cross-validation."""

from __future__ import annotations

import numbers
import warnings
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold, check_cv

from l20fs.design import Part
from l20fs.evaluation.resampling import encode_groups
from l20fs.inputs.devices import is_dask, is_device_array
from l20fs.inputs.targets import OneClassError
from l20fs.typing import Array

#: Default number of folds.
N_FOLDS = 5

#: Way out of parts of samples that groups leave with one class.
OTHER_GROUPS = "Samples of a group stay together: give groups with samples of several classes, or no groups."


class Fold(NamedTuple):
    """Training and test samples of one split, by index."""

    train: Array
    test: Array


def make_folds(cv: Any, X: Any, y: Array, groups: Any, *, classify: bool) -> list[Fold]:
    """Split the samples as scikit-learn does; with groups, an integer number of folds keeps them together."""
    is_number = cv is None or isinstance(cv, numbers.Integral)
    if groups is not None:
        groups = encode_groups(groups, len(y))
        n_splits, n_groups = 5 if cv is None else cv, int(groups.max()) + 1
        if is_number and n_splits > n_groups:
            raise ValueError(f"cv={cv} means {n_splits} folds, but there are {n_groups} groups. Use cv={n_groups} or less.")
        if classify:
            warn_of_lonely_classes(y, groups)
        if is_number:
            cv = (StratifiedGroupKFold if classify else GroupKFold)(int(n_splits))
    splitter = check_cv(cv, y, classifier=classify)
    is_in_blocks = is_dask(X) or (isinstance(X, Part) and X.is_in_blocks)
    is_here = not (is_in_blocks or is_device_array(X) or isinstance(X, Part))
    X = X if is_here else np.zeros((X.shape[0], 1))  # splitters look at the number of samples
    if classify and is_number and groups is None:
        warn_of_rare_classes(y, splitter.get_n_splits(X, y, groups))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The least populated class", category=UserWarning)
        folds = [Fold(*split) for split in splitter.split(X, y, groups)]
    if classify:
        instead = f"Use cv={max(2, len(folds))}, which takes the same share of every class into each fold."
        refuse_one_class(folds, y, instead if groups is None else OTHER_GROUPS)
    # Blocks are read from the first to the last, and the order of the samples changes no score.
    return [Fold(np.sort(fold.train), np.sort(fold.test)) for fold in folds] if is_in_blocks else folds


def refuse_one_class(folds: list[Fold], y: Array, way_out: str) -> None:
    """Raise an error for a fold whose training samples are all of one class; it names the fold and the class.

    Examples
    --------
    >>> try:
    ...     refuse_one_class([Fold(np.array([0, 1]), np.array([2]))], np.array(["a", "a", "b"]), "Use cv=2.")
    ... except ValueError as error:
    ...     print(error)
    The training part of fold 1 of 1 has one class only, 'a'; selection needs 2 or more. Use cv=2.
    """
    for number, fold in enumerate(folds, start=1):
        own = y[fold.train]
        if len(own) and np.all(own == own[0]):
            raise OneClassError(own[0], f"The training part of fold {number} of {len(folds)}", way_out)


def warn_of_rare_classes(y: Array, n_splits: int) -> None:
    """Warn of classes that are missing in the training or test part of some folds."""
    labels, counts = np.unique(y, return_counts=True)
    rare = [f"{str(label)!r} ({count})" for label, count in zip(labels, counts, strict=True) if count < n_splits]
    if rare and counts.max() >= n_splits:  # otherwise scikit-learn raises an error
        warnings.warn(
            f"{'Classes' if len(rare) > 1 else 'Class'} {', '.join(rare[:5])} with fewer samples than the {n_splits} folds: "
            "some folds have no test sample of it, and a class of one sample is tested without training samples. Use fewer "
            "folds, or drop the class.",
            UserWarning,
            stacklevel=4,
        )


def warn_of_lonely_classes(y: Array, groups: Array) -> None:
    """Warn of classes that are in one group only, so that they are tested without training samples."""
    labels, codes = np.unique(y, return_inverse=True)
    pairs = np.unique(np.stack([codes, groups]), axis=1)
    lonely = [f"{str(label)!r}" for label, count in zip(labels, np.bincount(pairs[0]), strict=True) if count == 1]
    if lonely:
        warnings.warn(
            f"{len(lonely)} of {len(labels)} classes are in one group only: {', '.join(lonely[:5])}. A fold that tests that "
            "group has no training samples of them. Drop them, or add groups.",
            UserWarning,
            stacklevel=4,
        )


def number_of_folds(y: Any, groups: Any = None) -> int:
    """Return the number of folds, at most five and at most the size of the smallest class and the number of groups.

    Examples
    --------
    >>> number_of_folds(["a"] * 9 + ["b"] * 3)
    3
    """
    limits = [N_FOLDS, int(np.unique(np.asarray(y), return_counts=True)[1].min())]
    if groups is not None:
        limits.append(len(np.unique(np.asarray(groups))))
    return min(limits)


def make_stratified_folds(y: Any, groups: Any = None, *, seed: int = 0) -> list[Fold]:
    """Split the samples into :func:`number_of_folds` parts with all classes in each; samples of a group stay together."""
    y = np.asarray(y)
    n_splits = number_of_folds(y, groups)
    if n_splits < 2:
        raise ValueError(
            "Cross-validation needs at least 2 samples of every class, and at least 2 groups if groups are given. Add "
            "samples or groups."
        )
    samples = np.zeros((len(y), 1))
    if groups is None:
        splits = StratifiedKFold(n_splits, shuffle=True, random_state=seed).split(samples, y)
    else:
        codes = encode_groups(groups, len(y))
        splits = StratifiedGroupKFold(n_splits, shuffle=True, random_state=seed).split(samples, y, codes)
    folds = [Fold(train, test) for train, test in splits if len(test)]
    refuse_one_class(folds, y, OTHER_GROUPS)
    return folds


def number_of_shuffled_folds(n_samples: int, groups: Any = None) -> int:
    """Return the number of folds without classes, at most five, with at least two samples and one group in each.

    Examples
    --------
    >>> number_of_shuffled_folds(100), number_of_shuffled_folds(7), number_of_shuffled_folds(100, [0, 1] * 50)
    (5, 3, 2)
    """
    n_groups = N_FOLDS if groups is None else len(np.unique(np.asarray(groups)))
    return min(N_FOLDS, n_samples // 2, n_groups)


def make_shuffled_folds(n_samples: int, groups: Any = None, *, seed: int = 0) -> list[Fold]:
    """Split the samples into :func:`number_of_shuffled_folds` random parts; samples of a group stay together."""
    n_splits = number_of_shuffled_folds(n_samples, groups)
    if n_splits < 2:
        raise ValueError(
            "Cross-validation needs at least 4 samples, and at least 2 groups if groups are given. Add samples or groups."
        )
    samples = np.zeros((n_samples, 1))
    if groups is None:
        splits = KFold(n_splits, shuffle=True, random_state=seed).split(samples)
    else:
        codes = encode_groups(groups, n_samples)
        splits = GroupKFold(n_splits, shuffle=True, random_state=seed).split(samples, groups=codes)
    return [Fold(train, test) for train, test in splits]
