"""Folds of a cross-validation."""

from __future__ import annotations

import numbers
import warnings
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold, check_cv
from sklearn.utils import check_random_state

from l20fs.design import Part
from l20fs.evaluation.resampling import encode_groups
from l20fs.inputs.devices import is_dask, is_device_array
from l20fs.inputs.targets import OneClassError
from l20fs.typing import Array

#: Default number of folds, and how often they are drawn.
N_FOLDS, N_REPEATS = 5, 4

#: Way out of parts of samples that groups leave with one class.
OTHER_GROUPS = "Samples of a group stay together: give groups with samples of several classes, or no groups."


#: What is said where no folds can be made.
TOO_FEW = (
    "Cross-validation needs at least 2 samples of one class, or 4 samples with numbers, and at least 2 groups if groups are "
    "given. Add samples or groups."
)


class Fold(NamedTuple):
    """Training and test samples of one split, by index."""

    train: Array
    test: Array


def make_folds(
    cv: Any, X: Any, y: Array, groups: Any, *, classify: bool, n_repeats: int = N_REPEATS, seed: Any = 0, strict: bool = True
) -> list[Fold]:
    """Split the samples as scikit-learn does; folds by number are shuffled, and keep the samples of a group together.

    ``cv=None`` is ``n_repeats`` times five folds, with as many as there are groups, or samples of the largest class, where
    these are fewer. The repeats share one random stream, as those of scikit-learn's ``RepeatedStratifiedKFold``. Folds that
    learn from one class alone are refused, or left out unless ``strict``, which also warns of classes that some folds lack.
    """
    groups = None if groups is None else encode_groups(groups, len(y))
    is_number = cv is None or isinstance(cv, numbers.Integral)
    if is_number and groups is not None:
        n_groups = int(groups.max()) + 1
        if cv is not None and cv > n_groups:
            raise ValueError(f"cv={cv} means {cv} folds, but there are {n_groups} groups. Use cv={n_groups} or less.")
    if classify and groups is not None and strict:
        warn_of_lonely_classes(y, groups)
    is_in_blocks = is_dask(X) or (isinstance(X, Part) and X.is_in_blocks)
    is_here = not (is_in_blocks or is_device_array(X) or isinstance(X, Part))
    X = X if is_here else np.zeros((X.shape[0], 1))  # splitters look at the number of samples
    if is_number:
        n_splits = number_of_folds(y, groups, classify=classify) if cv is None else int(cv)
        if n_splits < 2 and cv is None:
            raise ValueError(TOO_FEW)
        splitters = [_splitter(n_splits, groups is not None, classify, random) for random in _streams(cv, n_repeats, seed)]
        if classify and groups is None and strict:
            warn_of_rare_classes(y, n_splits)
    else:
        splitters = [check_cv(cv, y, classifier=classify)]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The least populated class", category=UserWarning)
        folds = [Fold(*split) for splitter in splitters for split in splitter.split(X, y, groups)]
    folds = [fold for fold in folds if len(fold.test) or not is_number]  # of uneven groups some get none
    if classify and not strict:
        folds = [fold for fold in folds if (y[fold.train] != y[fold.train][:1]).any()]
    elif classify:
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


def _streams(cv: Any, n_repeats: int, seed: Any) -> list[Any]:
    """Return the source of random numbers of each repeat."""
    return [seed] if cv is not None else [check_random_state(seed)] * n_repeats


def _splitter(n_splits: int, has_groups: bool, classify: bool, random: Any) -> Any:
    kinds = (StratifiedGroupKFold, GroupKFold) if has_groups else (StratifiedKFold, KFold)
    return kinds[0 if classify else 1](n_splits, shuffle=True, random_state=random)


def number_of_folds(y: Array, groups: Any = None, *, classify: bool = True, most: int = N_FOLDS) -> int:
    """Return the number of folds by default: five, or as many as there are groups, or samples of the largest class.

    Numbers have at least two samples in each.

    Examples
    --------
    >>> number_of_folds(["a"] * 9 + ["b"]), number_of_folds(["a", "a", "a", "b"]), number_of_folds(range(7), classify=False)
    (5, 3, 3)
    """
    y = np.asarray(y)
    limits = [most, int(np.unique(y, return_counts=True)[1].max()) if classify else len(y) // 2]
    if groups is not None:
        limits.append(len(np.unique(np.asarray(groups))))
    return min(limits)
