"""Values of the rules of a classifier at samples that they have not seen, for its probabilities."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from l20fs.design import share_samples
from l20fs.evaluation.engine import Samples, evaluate
from l20fs.evaluation.folds import Fold, make_folds, number_of_folds
from l20fs.evaluation.judges import OwnPredictions, OwnRule
from l20fs.evaluation.out_of_fold import OutOfFold, Truth
from l20fs.inputs.targets import Targets
from l20fs.prediction.calibration import Calibrations
from l20fs.typing import Array

if TYPE_CHECKING:
    from l20fs.estimators.models import L20Classifier


def gain_of(folds: Sequence[Fold], n_samples: int) -> float:
    """Return the number of all samples per sample of a fold's training part."""
    return n_samples / float(np.mean([len(fold.train) for fold in folds]))


def calibrations_of_search(
    sizes: Sequence[int | None], found: OutOfFold, setting: int, sample_weight: Array | None
) -> Calibrations | None:
    """Return the calibrations of one setting by the values of its rules in the folds; None if it has no rules."""
    if found.shares is None or not found.has_rules:
        return None
    values, samples = found.values_of(setting)
    weights = 1.0 / np.bincount(samples)[samples]  # all repeats together count a sample once
    weights *= 1.0 if sample_weight is None else sample_weight[samples]
    of_sizes, gain = np.array([0 if size is None else size for size in sizes]), gain_of(found.folds, len(found.truth))
    return Calibrations.of_folds(of_sizes, values, found.truth[samples], gain, found.shares, weights)


def folded_calibrations(model: L20Classifier, X: Any, targets: Targets) -> Calibrations:
    """Return the calibrations of the rules on 1, 2, ... units by the folds of ``calibration``, which select anew."""
    codes, truth = targets.codes, Truth.of(targets, model.class_weight)
    assert codes is not None
    folds = _folds(model.calibration, X, codes)
    if not folds:
        assert truth.shares is not None
        return Calibrations.unknown(truth.shares)
    X = share_samples(X.tocsr() if sp.issparse(X) else X)  # of which samples can be taken
    sizes = range(max(1, model.path_.least_size), model.path_.largest_refit + 1)
    unfitted = type(model)(**model.get_params(deep=False) | {"calibration": None})
    names = getattr(model, "feature_names_in_", None)
    n_classes = targets.Y.shape[1]
    samples = Samples(X, codes, targets.sample_weight, names=names, nuisances=targets.nuisances, n_targets=n_classes)
    judge = OwnPredictions(OwnRule(), np.arange(n_classes))
    responses = [
        judged.by_judge[""] for judged in evaluate([unfitted], samples, folds, sizes, {"": judge}, one_ranking=True)
    ]
    found = OutOfFold(truth.values, truth.shares, folds, targets.sample_weight, [responses])
    calibrations = calibrations_of_search(sizes, found, 0, targets.sample_weight)
    assert calibrations is not None
    return calibrations


def _folds(calibration: Any, X: Any, codes: Any) -> list[Fold]:
    """Return the folds; by number as many as there can be, and those alone that learn from two classes."""
    if not isinstance(calibration, numbers.Integral):
        return make_folds(calibration, X, codes, None, classify=True)
    n_folds = number_of_folds(codes, most=int(calibration))
    return make_folds(n_folds, X, codes, None, classify=True, strict=False) if n_folds > 1 else []
