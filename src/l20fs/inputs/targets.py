"""Encoding of targets, and weights of classes and samples."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import column_or_1d

from l20fs.inputs.devices import as_numpy
from l20fs.inputs.validation import check_number, refuse_foreign_array, refuse_odd_tensor
from l20fs.text import quoted
from l20fs.typing import Array, Task

#: With a class of this weight the others are below the rounding error.
LARGEST_CLASS_WEIGHT = 1e15


#: More distinct whole numbers than this, most of which occur once or twice, are no labels.
MOST_LABELS = 20

#: Larger numbers in float64 are whole by rounding, which makes no labels of them.
LARGEST_WHOLE = 2.0**53


class Targets(NamedTuple):
    """Encoded targets of a fit.

    ``Y`` is (n_samples, n_targets): one-hot labels, label indicators or numbers. ``classes`` holds the labels in sorted
    order, None for numbers; ``codes`` the index of the label of each sample, None unless each sample has one label.
    ``sample_weight`` is None if all weights are 1. Without an intercept, which ``fit_intercept`` tells, targets that are all
    the same number have to be explained as well. ``nuisances`` (n_samples, n_nuisances) are the columns that are projected
    out of X and Y, None if there are none.
    """

    Y: Array
    classes: Array | None
    codes: Array | None
    sample_weight: Array | None = None
    fit_intercept: bool = True
    nuisances: Array | None = None


class OneClassError(ValueError):
    """Error for samples of one class, ``label``, from which nothing can be selected; ``where`` names them."""

    def __init__(self, label: Any, where: str = "y", way_out: str = "Give samples of 2 or more classes.") -> None:
        super().__init__(f"{where} has one class only, {str(label)!r}; selection needs 2 or more. {way_out}")
        self.label = label
        self._made_of = (label, where, way_out)

    def __reduce__(self) -> Any:  # on its way from another process
        return type(self), self._made_of


def encode_targets(y: Array, task: Task = "auto", *, fit_intercept: bool = True, needs_labels: bool = False) -> Targets:
    """Encode validated targets: labels one-hot in sorted order, indicators and numbers unchanged.

    ``"auto"`` goes by ``sklearn.utils.multiclass.type_of_target``: whole numbers in one column are labels, fractions and
    several columns that are no label indicator are numbers; so are floats beyond 2**53, which are whole by rounding, and
    more than 20 distinct whole numbers of which most occur once or twice, unless something ``needs_labels``.
    ``"classification"`` takes fractions for labels too, ``"regression"`` takes all for numbers.

    Examples
    --------
    >>> encode_targets(np.array(["b", "a", "b"])).Y
    array([[0., 1.],
           [1., 0.],
           [0., 1.]])
    >>> encode_targets(np.array([3, 1, 3]), "regression").Y.T
    array([[3., 1., 3.]])
    """
    if y.ndim == 2 and y.shape[1] == 1:
        y = column_or_1d(y, warn=True)
    if task == "regression":
        return numeric_targets(y, for_labels="task='classification'", fit_intercept=fit_intercept)
    is_large = y.dtype.kind == "f" and np.abs(y).max(initial=0.0) > LARGEST_WHOLE
    if task == "auto" and (is_large or (not needs_labels and are_counted_once(y))):
        return numeric_targets(y, for_labels="task='classification'", fit_intercept=fit_intercept)
    if y.ndim == 1 and y.dtype.kind in "biuU":  # labels, of which scikit-learn warns if they hardly repeat
        targets = _one_hot(y)
        if 2 * targets.Y.shape[1] <= len(y):
            return targets
    try:
        with np.errstate(invalid="ignore"):  # large numbers are no whole numbers, which it finds out by a conversion
            kind = type_of_target(y, input_name="y", raise_unknown=True)
    except TypeError as error:
        raise ValueError(
            f"y has labels that cannot be compared ({error}). Drop samples without a label and use one type of label, "
            "for example y.astype(str)."
        ) from error
    if kind == "multiclass-multioutput" and y.dtype.kind in "iu" and task == "auto" and not needs_labels:
        raise ValueError(
            f"y has {y.shape[1]} columns of whole numbers that are no label indicator, which is 0 or 1 everywhere. Give one "
            "label per sample, or use task='regression' if they are numbers."
        )
    if kind in ("binary", "multiclass") or (kind == "continuous" and task == "classification"):
        return _one_hot(y)
    if kind != "multilabel-indicator" and task == "classification":
        raise ValueError(
            f"y has {y.shape[1]} columns that are no label indicator, which is 0 or 1 everywhere. Give one label per sample "
            "or an indicator, or use task='regression'."
        )
    targets = numeric_targets(y, fit_intercept=fit_intercept)
    return targets._replace(classes=np.arange(targets.Y.shape[1])) if kind == "multilabel-indicator" else targets


def _one_hot(y: Array) -> Targets:
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise OneClassError(classes[0])
    return Targets(np.eye(len(classes))[codes], classes, codes)


def are_counted_once(y: Array) -> bool:
    """Return whether y has more than 20 distinct whole numbers of which most occur once or twice, as a measurement has.

    Examples
    --------
    >>> are_counted_once(np.arange(21)), are_counted_once(np.arange(20)), are_counted_once(np.repeat(np.arange(30), 3))
    (True, False, False)
    """
    if y.ndim != 1 or y.dtype.kind not in "iuf" or not ((np.abs(y) <= LARGEST_WHOLE) & (y == np.floor(y))).all():
        return False
    sizes = np.unique(y, return_counts=True)[1]
    return bool(len(sizes) > MOST_LABELS and 2 * np.count_nonzero(sizes <= 2) > len(sizes))


def warn_of_numbers(y: Array, targets: Targets) -> None:
    """Warn of what ``"auto"`` took whole numbers for, where that is in doubt: numbers, or classes of one or two samples.

    Examples
    --------
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn_of_numbers(y := np.array([151, 75, 141, 206, 135]), encode_targets(y))
    >>> len(caught)
    1
    """
    if targets.classes is None and are_counted_once(y):
        warnings.warn(
            f"y holds {len(np.unique(y))} distinct whole numbers, most of them once or twice, and is taken for numbers to "
            "predict. Use task='classification' if they are labels, or task='regression' to say so.",
            UserWarning,
            stacklevel=7,  # the caller of fit
        )
    if targets.codes is None or targets.classes is None or targets.classes.dtype.kind not in "iuf":
        return
    sizes = np.bincount(targets.codes)
    n_small = np.count_nonzero(sizes <= 2)
    if len(sizes) > 2 and 2 * n_small > len(sizes):
        warnings.warn(
            f"y holds numbers, which are taken for {len(sizes)} class labels, {n_small} of them with one or two samples. "
            "Use task='regression' to take them as numbers, or task='classification' if they are labels.",
            UserWarning,
            stacklevel=7,  # the caller of fit
        )


def numeric_targets(y: Array, *, for_labels: str = "L20Classifier or L20Selector", fit_intercept: bool = True) -> Targets:
    """Return validated targets as numbers; an error for labels names ``for_labels`` as the way out.

    Examples
    --------
    >>> numeric_targets(np.array([3, 1, 3])).Y.T
    array([[3., 1., 3.]])
    """
    try:
        Y = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
    except (TypeError, ValueError) as error:
        raise ValueError(f"y must hold numbers ({error}). For labels use {for_labels}.") from error
    if not np.isfinite(Y).all():
        raise ValueError(f"y has {int((~np.isfinite(Y)).sum())} values that are NaN or infinite. Drop these samples.")
    _refuse_constant(Y, "", "Give targets that differ between samples.", fit_intercept)
    return Targets(Y, None, None, fit_intercept=fit_intercept)


def _refuse_constant(Y: Array, where: str, way_out: str, fit_intercept: bool) -> None:
    """Raise an error for numbers that leave nothing to explain: all the same, or all zero without an intercept."""
    if not (Y != Y[:1] if fit_intercept else Y).any():
        raise ValueError(f"y is {'constant' if fit_intercept else 'zero'}{where}, so no feature can explain it. {way_out}")


def weights_of_targets(targets: Targets, class_weight: Any) -> Array | None:
    """Return the weight of each column of ``targets.Y`` by ``class_weight``; None if all are equal.

    Examples
    --------
    >>> weights_of_targets(encode_targets(np.array(["a", "b", "b", "b"])), "balanced")
    array([2.        , 0.66666667])
    """
    is_balanced = isinstance(class_weight, str) and class_weight == "balanced"
    if not (is_balanced or class_weight is None or isinstance(class_weight, dict)):
        raise ValueError(f"class_weight={class_weight!r} is unknown. Use 'balanced', a dict of label: weight, or None.")
    if class_weight is None or targets.classes is None:
        return None
    if is_balanced:
        counts = np.ones(len(targets.Y)) if targets.sample_weight is None else targets.sample_weight
        sizes = counts @ targets.Y
        return np.asarray(counts.sum() / (len(sizes) * np.where(sizes > 0.0, sizes, 1.0)))
    unknown = [label for label in class_weight if label not in targets.classes]
    if unknown:
        raise ValueError(
            f"class_weight names {quoted([str(label) for label in unknown])}, which y does not have. Its classes are "
            f"{quoted([str(label) for label in targets.classes])}."
        )
    for label, weight in class_weight.items():
        check_number(f"class_weight[{label!r}]", weight, minimum=0.0, below=LARGEST_CLASS_WEIGHT)
    return np.array([class_weight.get(label, 1.0) for label in targets.classes], dtype=np.float64)


def forget_absent_classes(estimator: Any, y: Array | None) -> None:
    """Remove classes that are absent from ``y`` from the ``class_weight`` and the quotas of an estimator."""
    params = estimator.get_params()
    for key, given in params.items():
        owner, _, name = key.rpartition("__")
        is_quota = name in ("min_per_class", "max_per_class") and params[f"{owner}__sets"] is None
        if (is_quota or name == "class_weight") and isinstance(given, dict) and y is not None:
            present = set(np.unique(y).tolist())
            estimator.set_params(**{key: {label: number for label, number in given.items() if label in present}})


def with_weights(targets: Targets, sample_weight: Any) -> Targets:
    """Return the targets with sample weights, if there are any.

    Examples
    --------
    >>> with_weights(encode_targets(np.array(["a", "b", "b"])), [1, 2, 0]).sample_weight
    array([1., 2., 0.])
    """
    if sample_weight is None:
        return targets
    refuse_odd_tensor(sample_weight, "sample_weight")
    sample_weight = as_numpy(sample_weight)
    refuse_foreign_array(sample_weight, "sample_weight")
    weights = checked_weights(sample_weight, len(targets.Y))
    counted = targets.Y[weights > 0.0]
    if targets.codes is not None and targets.classes is not None:
        present = np.flatnonzero(counted.any(axis=0))
        if len(present) < 2:
            raise ValueError(
                f"sample_weight leaves one class only, {str(targets.classes[present[0]])!r}; selection needs 2 or more. "
                "Give samples of 2 or more classes a weight above 0."
            )
    else:
        where = f" over the {len(counted)} samples with a positive weight"
        way_out = "Give samples with different targets a weight above 0."
        _refuse_constant(counted, where, way_out, targets.fit_intercept)
    return targets._replace(sample_weight=weights)


def checked_weights(sample_weight: Any, n_samples: int) -> Array:
    """Return validated sample weights as a new float64 array."""
    try:
        weights = np.array(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"sample_weight must hold numbers only ({error}). Give one number per sample.") from error
    if weights.shape != (n_samples,):
        raise ValueError(f"sample_weight has shape {weights.shape} for {n_samples} samples. Give one number per sample.")
    bad = np.flatnonzero(~((weights >= 0.0) & np.isfinite(weights)))
    if len(bad):
        raise ValueError(
            f"sample_weight[{bad[0]}]={weights[bad[0]]:g} is not valid ({len(bad)} such values): a weight is a finite "
            "number of at least 0. Use 0 to leave a sample out."
        )
    if not weights.any():
        raise ValueError(
            f"sample_weight is zero for all {n_samples} samples, which leaves none to fit. Give samples a weight above 0."
        )
    return weights
