"""Nuisances in every design: X and Y are those that explicit least squares on the nuisances leaves."""

from __future__ import annotations

import array_api_strict
import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from blocked import cut

from l20fs.blocks import as_blocks
from l20fs.design import SampleWeights, make_design
from l20fs.objective import make_problem

N_SAMPLES, N_FEATURES = 40, 60
CONSTANT, EXPLAINED, FAR, ALMOST = 3, 4, 5, 6


def make_batches(seed=0):
    """Sparse features with effects of four batches and of an age, one of each odd kind; three classes; and nuisances."""
    rng = np.random.default_rng(seed)
    batch, age = rng.permutation(np.arange(N_SAMPLES) % 4), rng.normal(50.0, 10.0, N_SAMPLES)
    X = rng.standard_normal((N_SAMPLES, N_FEATURES)) * rng.uniform(0.5, 2.0, N_FEATURES)
    X += 2.0 * batch[:, None] * rng.standard_normal(N_FEATURES)
    X[rng.random(X.shape) < 0.3] = 0.0
    X[:, CONSTANT], X[:, EXPLAINED] = 7.0, 2.0 * batch + 1.0
    X[:, FAR] = 1e4 + rng.standard_normal(N_SAMPLES)
    X[:, ALMOST] = 1000.0 * batch + 0.01 * rng.standard_normal(N_SAMPLES)
    # The last columns say again what others said.
    nuisances = np.column_stack([np.eye(4)[batch], age, 2.0 * age + 1.0, np.eye(4)[batch][:, 2]])
    return X, np.eye(3)[rng.integers(0, 3, N_SAMPLES)], nuisances


def residuals(values, nuisances, weights=None, fit_intercept=True):
    """What weighted least squares on the nuisances leaves, times the root of the weights."""
    root = np.ones((len(values), 1)) if weights is None else np.sqrt(weights)[:, None]
    columns = root * (np.column_stack([np.ones(len(values)), nuisances]) if fit_intercept else nuisances)
    columns = columns / np.maximum(np.linalg.norm(columns, axis=0), 1e-300)
    left = root * values
    for _ in range(3):  # again, for what rounding has left
        left = left - columns @ np.linalg.lstsq(columns, left, rcond=1e-10)[0]
    return left


MATRICES = {
    "dense": np.asarray,
    "float32": lambda X: X.astype(np.float32),
    "sparse": sp.csr_array,
    "device": array_api_strict.asarray,
    "device float32": lambda X: array_api_strict.asarray(X.astype(np.float32)),
    "blocks of samples": lambda X: cut(X, 0, 3),
    "blocks of columns": lambda X: cut(X, 1, 3),
    "sparse blocks of samples": lambda X: cut(sp.csr_array(X), 0, 3),
    "sparse blocks of columns": lambda X: cut(sp.csr_array(X), 1, 3),
    "Dask": lambda X: as_blocks(da.from_array(X, chunks=(15, -1))),
}
of_each_kind = pytest.mark.parametrize("make", MATRICES.values(), ids=MATRICES)


@of_each_kind
@pytest.mark.parametrize("scale", ["none", "zscore", "moderated"])
@pytest.mark.parametrize("has_weights", [False, True])
def test_the_design_is_that_of_residuals(make, scale, has_weights):
    X, Y, nuisances = make_batches()
    rng = np.random.default_rng(1)
    weights = rng.integers(0, 4, N_SAMPLES).astype(float) if has_weights else None
    left, targets = residuals(X, nuisances, weights), residuals(Y, nuisances, weights).T
    varies = np.ones(N_FEATURES, dtype=bool)
    varies[[CONSTANT, EXPLAINED]] = False
    deviation = np.linalg.norm(left, axis=0) / np.sqrt(N_SAMPLES if weights is None else weights.sum())
    deviation[~varies] = 0.0
    divisors = {
        "none": np.ones(N_FEATURES),
        "zscore": np.where(varies, deviation, 1.0),
        "moderated": deviation + np.median(deviation[varies]),
    }[scale]
    expected = np.where(varies, left / divisors, 0.0)

    given = make(X)
    problem = make_problem(given, Y, scale=scale, sample_weight=weights, nuisances=nuisances)
    design = problem.design
    is_single = design.dtype == np.float32
    if is_single:  # whose rounding is as large as what is left of this feature
        expected[:, ALMOST] = 0.0
        design.column_energy[ALMOST] = 0.0
    rtol = 2e-3 if is_single else 1e-7

    def equal(found, wanted):
        np.testing.assert_allclose(np.asarray(found), wanted, atol=rtol * max(1.0, np.abs(wanted).max()), rtol=0.0)

    np.testing.assert_array_equal(design.varies, varies)
    equal(design.column_energy, np.square(expected).sum(axis=0))
    equal(problem.null_loss, 0.5 * np.vdot(targets, targets))
    rows, every = np.array([1, EXPLAINED, 7, FAR, CONSTANT, 20]), np.delete(np.arange(N_FEATURES), ALMOST)
    gram = expected[:, rows].T @ expected[:, rows]
    membership = Y if weights is None else Y * np.sqrt(weights)[:, None]
    products, found_gram = problem.products_among(rows, membership)
    equal(products, membership.T @ expected[:, rows])
    equal(found_gram, gram)
    largest = np.square(expected).sum(axis=1) / (1.0 if weights is None else np.maximum(weights, 1.0))
    if not is_single:
        assert design.max_sample_energy == pytest.approx(largest.max(), rel=1e-6)
        assert np.linalg.norm(expected, 2) ** 2 * 0.999 <= design.gram_top() <= np.linalg.norm(expected, 2) ** 2 * 1.02
    if design.vectors == "features":
        equal(problem.targets[:, every], targets @ expected[:, every])
        equal(design.column(7)[every], expected[:, every].T @ expected[:, 7])
        equal(design.matrix.twice(np.eye(N_FEATURES)[rows])[:, rows], gram)
        return
    equal(problem.targets, targets)
    equal(design.take(rows, slice(3, 20)), expected[3:20, rows])
    equal(design.column(FAR), expected[:, FAR])
    values = rng.standard_normal((2, len(rows)))
    equal(design.push(rows, values), values @ expected[:, rows].T)
    of_all = rng.standard_normal((2, len(every)))
    equal(design.push(every, of_all), of_all @ expected[:, every].T)
    residual = expected[:, [7, 20]].T
    equal(design.pull(residual)[:, every], residual @ expected[:, every])
    equal(design.pull(residual, rows), residual @ expected[:, rows])
    equal(design.pull_among(rows)(residual), residual @ expected[:, rows])
    equal(design.squared_lengths(residual)[every], np.square(residual @ expected[:, every]).sum(axis=0))


@of_each_kind
def test_a_constant_nuisance_changes_nothing(make):
    X, Y, _ = make_batches()
    plain = make_problem(make(X), Y, scale="auto")
    adjusted = make_problem(make(X), Y, scale="auto", nuisances=np.full((N_SAMPLES, 2), 3.0))
    np.testing.assert_array_equal(adjusted.design.column_energy, plain.design.column_energy)
    np.testing.assert_array_equal(adjusted.targets, plain.targets)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array, lambda X: cut(X, 1, 3)], ids=["dense", "sparse", "blocks"])
def test_without_an_intercept_there_is_no_constant_column(make):
    X, Y, nuisances = make_batches()
    age = nuisances[:, 4:5]
    problem = make_problem(make(X), Y, fit_intercept=False, nuisances=age)
    np.testing.assert_allclose(problem.targets, residuals(Y, age, fit_intercept=False).T, atol=1e-12)
    np.testing.assert_allclose(
        problem.design.column(FAR), residuals(X, age, fit_intercept=False)[:, FAR], rtol=1e-9, atol=1e-9
    )


def test_the_basis_is_orthonormal_and_has_no_dependent_vector():
    _, _, nuisances = make_batches()
    weights = np.random.default_rng(2).integers(0, 3, N_SAMPLES).astype(float)
    for own in (SampleWeights(N_SAMPLES, nuisances=nuisances), SampleWeights(N_SAMPLES, weights, nuisances=nuisances)):
        np.testing.assert_allclose(own.basis @ own.basis.T, np.eye(4), atol=1e-12)  # 3 batches beyond the mean, and an age
        root = np.ones(N_SAMPLES) if own.root is None else own.root
        np.testing.assert_allclose(own.basis @ root, 0.0, atol=1e-12)


def test_leverage_is_the_diagonal_of_the_projection():
    _, _, nuisances = make_batches()
    weights = np.random.default_rng(2).integers(1, 3, N_SAMPLES).astype(float)
    root = np.sqrt(weights)[:, None]
    columns = root * np.column_stack([np.ones(N_SAMPLES), nuisances])
    hat = columns @ np.linalg.pinv(columns, rcond=1e-10)
    own = SampleWeights(N_SAMPLES, weights, nuisances=nuisances)
    np.testing.assert_allclose(own.leverage() * weights, np.diagonal(hat), atol=1e-10)
    centred = np.arange(N_SAMPLES, dtype=float)[:, None] - np.average(np.arange(N_SAMPLES), weights=weights)
    np.testing.assert_allclose(root * own.without_nuisances(centred), residuals(centred, nuisances, weights), atol=1e-9)


def test_all_features_explained_is_an_error():
    batch = np.arange(12) % 3
    with pytest.raises(ValueError, match=r"constant, or explained by adjust_for altogether.*Give at least one feature"):
        make_design(np.column_stack([batch, 2.0 * batch]), nuisances=np.eye(3)[batch])
