"""Values of the rules of a classifier at samples that they have not seen, for its probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from l20fs.design import SampleWeights, share_samples
from l20fs.evaluation.engine import Samples, dense_columns, evaluate
from l20fs.evaluation.folds import Fold, make_folds
from l20fs.evaluation.judges import OwnPredictions
from l20fs.evaluation.metrics import Outputs
from l20fs.evaluation.out_of_fold import OutOfFold
from l20fs.inputs.devices import is_dask, is_device_array
from l20fs.inputs.targets import Targets
from l20fs.objective.nested_rules import NestedSquares, nested_axes
from l20fs.objective.solution_path import SolutionPath
from l20fs.prediction.calibration import UNKNOWN_IF_SELECTED, Calibrations, evenly_spaced, fit_calibrations
from l20fs.prediction.discriminant import ClassScatter
from l20fs.typing import Array

if TYPE_CHECKING:
    from l20fs.estimators.models import L20Classifier

#: The least part of a sample that its own prediction may leave to all others.
LEAST_REST = 1e-6


class LeftOut(NamedTuple):
    """Values of rules, (n_rules, n_samples, n_values), at samples with the class indices ``codes`` and given weights."""

    values: Array
    codes: Array
    weights: Array | None

    def calibrations(self) -> Calibrations:
        """Return the calibrations of the rules, whose features were selected with the labels of the samples."""
        slopes, doubt = fit_calibrations(self.values, self.codes, self.weights, n_unknown=UNKNOWN_IF_SELECTED)
        return Calibrations(np.arange(len(slopes)), slopes, doubt)


def sample_entries(X: Any, samples: Array, columns: Array) -> Array:
    """Return ``X[samples][:, columns]`` as a dense array."""
    if is_device_array(X):
        return dense_columns(X, columns)[samples]
    if is_dask(X):
        X, columns = X[:, columns].compute(), np.arange(len(columns))
    return dense_columns(X[samples], columns)


def leave_one_out(
    path: SolutionPath, scatter: ClassScatter, X: Any, targets: Targets, robust_weights: Array | None
) -> LeftOut:
    """Return the values of the rules on 0, 1, 2, ... units at samples, each without the sample itself, in closed form.

    The selection, the scaling and the class means are those of all samples; the weights are solved without the sample.
    That takes no fit: in the orthogonal basis :math:`Q = X R^{-1}` of the selected features, with the triangle R of the
    least-squares problem, the prediction and the leverage of a sample on the first k features are sums over the first k
    entries of its row, and without the sample the prediction moves by residual times leverage / (1 - leverage). With
    nuisances the residual and the leverage are those of the adjusted sample, and the prediction is that of its features as
    they were measured.
    """
    codes, weights = targets.codes, targets.sample_weight
    assert codes is not None
    chosen = np.arange(len(codes))[evenly_spaced(len(codes))]
    rows, centred = path.support(path.largest_refit), targets.Y[chosen] - path.y_mean
    given = np.ones(len(codes)) if weights is None else weights
    counts = given if robust_weights is None else robust_weights
    columns = (sample_entries(X, chosen, rows) - path.x_mean[rows]) / path.x_scale[rows]
    inverse = _inverse(path.refit_triangle)
    basis = columns @ inverse
    solution = np.zeros((len(rows), targets.Y.shape[1]))
    solution[: len(path.refit_targets)] = path.refit_targets / path.y_scale
    # A sample of weight 2 is two samples, of which one is left out.
    once = (counts / np.maximum(given, 1.0))[chosen, None]
    leverage = once * (np.square(basis).cumsum(axis=1) + scatter.fit_intercept / counts.sum())
    adjusted, moves = columns, leverage  # of the sample as it was fitted, and how far the prediction of its features moves
    if targets.nuisances is not None:
        fitted_with = SampleWeights(len(codes), counts, fit_intercept=scatter.fit_intercept, nuisances=targets.nuisances)
        whole = (sample_entries(X, np.arange(len(codes)), rows) - path.x_mean[rows]) / path.x_scale[rows]
        adjusted = fitted_with.without_nuisances(whole)[chosen]
        fitted = adjusted @ inverse
        centred = fitted_with.without_nuisances(targets.Y - path.y_mean)[chosen]
        moves = once * ((basis * fitted).cumsum(axis=1) + scatter.fit_intercept / counts.sum())
        leverage = once * (np.square(fitted).cumsum(axis=1) + fitted_with.leverage()[chosen, None])
    ends = np.searchsorted(path.ranking[rows], np.arange(path.largest_refit + 1), side="right")
    squares = NestedSquares(inverse, solution, ends, {})
    predicted = squares.products(columns)
    left_out = (predicted if adjusted is columns else squares.products(adjusted)) - centred
    own = np.minimum(_at(leverage, ends), 1.0 - LEAST_REST)
    left_out *= (own if moves is leverage else _at(moves, ends)) / (1.0 - own)
    left_out += predicted
    axes, intercept = nested_axes(squares, scatter)
    return LeftOut(left_out @ axes + intercept[:, None, :], codes[chosen], None if weights is None else weights[chosen])


def _at(sums: Array, ends: Array) -> Array:
    """Return sums over the first ``ends`` columns, (n_ends, n_samples, 1), from those up to each; zero over no columns."""
    return np.pad(sums, ((0, 0), (1, 0))).T[ends, :, None]


def _inverse(triangle: Array) -> Array:
    """Return the inverse of a triangle; columns that depend on those before them, which have no corner, become zero."""
    n_rows = triangle.shape[1]
    corners = np.zeros(n_rows)
    corners[: len(triangle)] = np.abs(np.diagonal(triangle))
    is_free = np.flatnonzero(corners > 1e-12 * corners.max(initial=0.0))
    found = np.zeros((n_rows, n_rows))
    found[np.ix_(is_free, is_free)] = np.linalg.inv(triangle[np.ix_(is_free, is_free)])
    return found


def gain_of(folds: Sequence[Fold], n_samples: int) -> float:
    """Return the number of all samples per sample of a fold's training part."""
    return n_samples / float(np.mean([len(fold.train) for fold in folds]))


def calibrations_of_search(
    sizes: Sequence[int | None], found: OutOfFold, setting: int, targets: Targets, folds: Sequence[Fold]
) -> Calibrations | None:
    """Return the calibrations of one setting by the values of its rules in the folds; None if it has no rules."""
    unseen, codes, weights = found.values_of(setting), targets.codes, targets.sample_weight
    if unseen is None or codes is None:
        return None
    of_sizes = np.array([0 if size is None else size for size in sizes])
    of_samples = None if weights is None else weights[unseen.samples]
    return Calibrations.of_folds(of_sizes, unseen.values, codes[unseen.samples], gain_of(folds, len(codes)), of_samples)


def folded_calibrations(model: L20Classifier, X: Any, targets: Targets) -> Calibrations:
    """Return the calibrations of the rules on 1, 2, ... units by the folds of ``calibration``, which select anew."""
    codes = targets.codes
    assert codes is not None
    X = share_samples(X.tocsr() if sp.issparse(X) else X)  # of which samples can be taken
    folds = make_folds(model.calibration, X, codes, None, classify=True)
    sizes = range(max(1, model.path_.least_size), model.path_.largest_refit + 1)
    unfitted = type(model)(**model.get_params(deep=False) | {"calibration": None})
    names = getattr(model, "feature_names_in_", None)
    truth = Outputs(codes, targets.Y.shape[1])
    judges: dict[str, Any] = {"": OwnPredictions("labels", np.arange(truth.n_classes))}
    samples = Samples(X, codes, targets.sample_weight, names=names, nuisances=targets.nuisances, n_targets=truth.n_classes)
    results = evaluate([unfitted], samples, folds, sizes, judges, one_ranking=True)
    responses: list[Any] = [judged.by_judge[""] for judged in results]
    found = calibrations_of_search(sizes, OutOfFold.of(responses, truth, "labels", folds, None), 0, targets, folds)
    assert found is not None
    return found
