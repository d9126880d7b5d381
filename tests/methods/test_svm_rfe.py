"""SVM-RFE: the machines, the update of the Gram matrix, and the order of elimination."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import RFE
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from l20fs.inputs.targets import encode_targets
from l20fs.methods.svm_rfe import SVMRFE, Machine, class_signs, fit_machines

seeds = st.integers(0, 2**32 - 1)


def planted(seed, n_samples=40, n_features=12, n_classes=3, shift=1.0):
    """Feature c, for every class c, is shifted for the samples of that class; the others are noise."""
    random = np.random.default_rng(seed)
    y = random.permutation(np.arange(n_samples) % n_classes)
    X = random.standard_normal((n_samples, n_features))
    X[np.arange(n_samples), y] += shift
    return X, y


def ranking_of_scikit_learn(X, y, C):
    """Eliminate one by one with the machines that see the features themselves."""
    machines = OneVsRestClassifier(SVC(kernel="linear", C=C, tol=1e-4))
    peer = RFE(
        machines,
        n_features_to_select=1,
        step=1,
        importance_getter=lambda fitted: np.vstack([machine.coef_ for machine in fitted.estimators_]),
    )
    return peer.fit(StandardScaler().fit_transform(X), y).ranking_


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("shape", "n_classes"), [((40, 12), 3), ((30, 12), 2), ((12, 20), 4)])
@pytest.mark.parametrize("C", [0.1, 1.0, 5.0])
def test_one_by_one_is_the_elimination_of_scikit_learn(seed, shape, n_classes, C):
    X, y = planted(seed, *shape, n_classes=n_classes)
    selector = SVMRFE(1, C=C, step=1).fit(X, y)
    assert np.array_equal(selector.ranking_, ranking_of_scikit_learn(X, y, C))
    assert np.array_equal(SVMRFE(1, C=C).fit(X, y).ranking_, selector.ranking_), "few features go one by one anyway"


def test_iris_is_ranked_as_by_scikit_learn():
    X, y = load_iris(return_X_y=True)
    assert np.array_equal(SVMRFE(2).fit(X, y).ranking_, ranking_of_scikit_learn(X, y, 1.0))


@given(seed=seeds, C=st.sampled_from([0.01, 1.0, 10.0]))
def test_machines_close_the_duality_gap(seed, C):
    X, y = planted(seed, n_samples=15, n_features=6)
    signs = class_signs(encode_targets(y))
    machine = Machine(C, None, 1e-4, 100_000)
    dual, _, _ = fit_machines(X @ X.T, signs, machine)
    assert np.allclose(dual.sum(axis=0), 0.0, atol=1e-9), "a free bias"
    for sign, beta in zip(signs, dual.T, strict=True):
        w = X.T @ beta
        margin_of = sign * (X @ w)
        # The best bias makes some sample sit on its margin.
        biases = sign * (1.0 - margin_of)
        hinge = min(np.maximum(0.0, 1.0 - margin_of - sign * bias).sum() for bias in biases)
        primal_value = 0.5 * w @ w + C * hinge
        dual_value = np.abs(beta).sum() - 0.5 * w @ w
        violation = machine.violation(X @ X.T, sign, beta, None)
        assert violation <= 2e-4  # tol, and as much again for the single precision of the solver
        assert -1e-9 <= primal_value - dual_value <= 15 * C * 2e-4, "each sample adds at most C times the violation"


def test_halves_until_twice_max_features_then_goes_one_by_one():
    X, y = planted(0, n_samples=20, n_features=90)
    assert SVMRFE(3, max_features=5).fit(X, y).n_survivors_.tolist() == [90, 45, 22, 11, 5, 4, 3, 2]
    assert SVMRFE(3, max_features=20).fit(X, y).n_survivors_.tolist() == [90, 45, *range(22, 1, -1)]
    assert SVMRFE(3).fit(X, y).n_survivors_.tolist() == list(range(90, 1, -1))
    assert SVMRFE(3, step=40).fit(X, y).n_survivors_.tolist() == [90, 50, 10]
    assert SVMRFE(3, step=0.449).fit(X, y).n_survivors_.tolist() == [90, 50, 10], "a share of all features"
    assert SVMRFE(3, step=0.001).fit(X, y).n_survivors_.tolist() == list(range(90, 1, -1)), "one at least"


def test_a_dropped_chunk_is_ordered_by_its_weights():
    X, y = planted(1)
    selector = SVMRFE(3, step=5).fit(X, y)
    assert selector.n_survivors_.tolist() == [12, 7, 2]
    scaled = StandardScaler().fit_transform(X)
    best_first = np.argsort(selector.ranking_)
    machines = OneVsRestClassifier(SVC(kernel="linear", tol=1e-4)).fit(scaled, y)
    weights = sum(machine.coef_[0] ** 2 for machine in machines.estimators_)
    assert np.array_equal(best_first[7:], np.argsort(-weights)[7:])
    assert np.allclose(selector.criteria_[7:], np.sort(weights)[4::-1], rtol=1e-4)
    assert np.all(np.diff(selector.criteria_[2:7]) < 0)
    assert np.array_equal(selector.scores_[best_first], np.arange(12, 0, -1))


def test_one_warning_tells_that_machines_stopped_early():
    X, y = planted(0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        SVMRFE(3, max_iter=2).fit(X, y)
    assert [entry.category for entry in caught] == [ConvergenceWarning]
    assert str(caught[0].message).startswith("SVMRFE stopped at max_iter=2")


# Sparse X, sample weights, numbers ------------------------------------------------------------------------------------


def counts(seed, n_samples=40, n_features=30):
    """Counts with many zeros, of which feature c is larger for the samples of class c."""
    random = np.random.default_rng(seed)
    y = random.permutation(np.arange(n_samples) % 3)
    X = random.poisson(0.5, (n_samples, n_features)).astype(float)
    X[np.arange(n_samples), y] += random.poisson(3.0, n_samples)
    return X, y


@pytest.mark.parametrize("container", [sp.csr_matrix, sp.csc_array, sp.coo_array])
@pytest.mark.parametrize("scale", ["zscore", "moderated", "none"])
def test_a_sparse_X_is_ranked_as_the_dense_one(container, scale):
    X, y = counts(0)
    dense = SVMRFE(5, scale=scale, max_features=5).fit(X, y)
    sparse = SVMRFE(5, scale=scale, max_features=5).fit(container(X), y)
    assert np.array_equal(sparse.ranking_, dense.ranking_)
    np.testing.assert_allclose(sparse.criteria_, dense.criteria_, rtol=1e-3)
    assert np.array_equal(sparse.transform(container(X)).toarray(), dense.transform(X))


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_weights_are_numbers_of_samples(task, is_sparse):
    X, y = counts(2, n_features=12)
    y = y if task == "classification" else X[:, 0] - 2.0 * X[:, 4] + np.random.default_rng(0).standard_normal(40)
    container = sp.csr_array if is_sparse else np.asarray
    weights = np.random.default_rng(1).integers(0, 3, 40)
    weighted = SVMRFE(5, task=task).fit(container(X), y, sample_weight=weights)
    repeated = SVMRFE(5, task=task).fit(container(np.repeat(X, weights, axis=0)), np.repeat(y, weights))
    assert np.array_equal(weighted.ranking_, repeated.ranking_)
    assert not np.array_equal(weighted.ranking_, SVMRFE(5, task=task).fit(container(X), y).ranking_)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("C", [0.1, 1.0])
def test_numbers_are_ranked_as_by_scikit_learn(seed, C):
    random = np.random.default_rng(seed)
    X = random.standard_normal((40, 10))
    y = 50.0 + 20.0 * X[:, 1] - 10.0 * X[:, 6] + 5.0 * random.standard_normal(40)
    scaled = StandardScaler().fit_transform(np.column_stack([X, y]))
    peer = RFE(SVR(kernel="linear", C=C, tol=1e-4), n_features_to_select=1).fit(scaled[:, :-1], scaled[:, -1])
    found = SVMRFE(2, C=C).fit(X, y)
    assert np.array_equal(found.ranking_, peer.ranking_)
    assert set(found.get_support(indices=True)) == {1, 6}
    assert np.array_equal(SVMRFE(2, C=C).fit(X, 1e4 * y - 7.0).ranking_, found.ranking_), "whatever the unit"
