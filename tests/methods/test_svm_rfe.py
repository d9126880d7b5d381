"""SVM-RFE: the machines, the update of the Gram matrix, and the order of elimination."""

from __future__ import annotations

import tracemalloc
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
from l20fs.methods.svm_rfe import SVMRFE, Machine, Survivors, class_signs, divided_rows, fit_machines

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


@given(seed=seeds, n_kept=st.integers(1, 11))
def test_updated_gram_is_the_fresh_one(seed, n_kept):
    random = np.random.default_rng(seed)
    X = random.standard_normal((6, 12))
    survivors = Survivors(np.ascontiguousarray(X.T))
    kept = np.sort(random.permutation(12)[:n_kept])
    survivors.keep(kept)
    assert np.array_equal(survivors.index, kept)
    assert np.allclose(survivors.gram, X[:, kept] @ X[:, kept].T, rtol=1e-12, atol=1e-12)
    again = np.arange(n_kept)[: n_kept // 2 + 1]
    survivors.keep(again)
    assert np.array_equal(survivors.index, kept[again])
    assert np.allclose(survivors.gram, X[:, kept[again]] @ X[:, kept[again]].T, rtol=1e-12, atol=1e-12)


def test_dropping_a_huge_column_leaves_no_rounding_behind():
    X = np.random.default_rng(0).standard_normal((6, 5))
    X[:, 0] *= 1e8
    survivors = Survivors(np.ascontiguousarray(X.T))
    survivors.keep(np.arange(1, 5))
    assert np.allclose(survivors.gram, X[:, 1:] @ X[:, 1:].T, rtol=1e-12)


def test_two_samples_have_the_machine_of_the_textbook():
    """Samples at a and -a: w = 1 / a, with dual weights 1 / (2 a^2) where C allows that, else C."""
    column = np.array([[2.0], [-2.0]])
    for C, dual_weight in ((1.0, 0.125), (0.1, 0.1)):
        found = fit_machines(column @ column.T, np.array([[1.0, -1.0]]), Machine(C, None, 1e-9, 1000))
        assert np.allclose(found.dual[:, 0], [dual_weight, -dual_weight])
        assert found.violation == 0.0
        assert found.n_iter >= 1


@given(seed=seeds, C=st.sampled_from([0.01, 1.0, 10.0]))
def test_machines_close_the_duality_gap(seed, C):
    X, y = planted(seed, n_samples=15, n_features=6)
    signs = class_signs(encode_targets(y))
    machine = Machine(C, None, 1e-4, 100_000)
    dual = fit_machines(X @ X.T, signs, machine).dual
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


def test_violation_of_a_wrong_solution_is_the_profit_of_the_best_pair():
    gram = np.array([[4.0, -4.0], [-4.0, 4.0]])
    sign, machine = np.array([1.0, -1.0]), Machine(1.0, None, 1e-4, 1000)
    assert machine.violation(gram, sign, np.zeros(2), None) == 2.0
    assert machine.violation(gram, sign, np.array([0.125, -0.125]), None) == 0.0
    assert machine.violation(gram, sign, np.array([0.25, -0.25]), None) == 2.0, "too much is as wrong as too little"
    assert machine.violation(gram, sign, np.array([0.1, -0.1]), np.full(2, 0.1)) < 0.0, "no weight can increase"


def test_violation_of_a_wrong_solution_for_numbers():
    """Samples at 2 and -2 with the numbers 1 and -1: the weight is 0.45, whose errors are 0.1, with dual weights 0.1125."""
    gram, goal, machine = np.array([[4.0, -4.0], [-4.0, 4.0]]), np.array([1.0, -1.0]), Machine(1.0, 0.1, 1e-4, 1000)
    for dual_weight, expected in ((0.0, 1.8), (0.1125, 0.0), (0.2, 1.4)):
        found = machine.violation(gram, goal, np.array([dual_weight, -dual_weight]), None)
        assert found == pytest.approx(expected, abs=1e-12)
    assert fit_machines(gram, goal[None, :], machine).dual[:, 0] == pytest.approx([0.1125, -0.1125], abs=1e-4)


def test_two_classes_share_a_machine_and_more_have_their_own():
    assert class_signs(encode_targets(np.array(["b", "a", "b"]))).tolist() == [[1.0, -1.0, 1.0]]
    assert class_signs(encode_targets(np.array(["a", "b", "a"]))).tolist() == [[1.0, -1.0, 1.0]], "whatever their names"
    assert class_signs(encode_targets(np.array([2, 0, 1]))).tolist() == [[-1, 1, -1], [-1, -1, 1], [1, -1, -1]]


def test_halves_until_twice_max_features_then_goes_one_by_one():
    X, y = planted(0, n_samples=20, n_features=90)
    assert SVMRFE(3, max_features=5).fit(X, y).n_survivors_.tolist() == [90, 45, 22, 11, 5, 4, 3, 2]
    assert SVMRFE(3, max_features=20).fit(X, y).n_survivors_.tolist() == [90, 45, *range(22, 1, -1)]
    assert SVMRFE(3).fit(X, y).n_survivors_.tolist() == list(range(90, 1, -1))
    assert SVMRFE(3, step=40).fit(X, y).n_survivors_.tolist() == [90, 50, 10]
    assert SVMRFE(3, step=0.449).fit(X, y).n_survivors_.tolist() == [90, 50, 10], "a share of all features"
    assert SVMRFE(3, step=0.001).fit(X, y).n_survivors_.tolist() == list(range(90, 1, -1)), "one at least"


def test_one_by_one_begins_early_enough_for_the_features_asked_for(monkeypatch):
    monkeypatch.setattr("l20fs.methods.svm_rfe.FINE_FEATURES", 10)
    X, y = planted(0, n_samples=12, n_features=65)
    assert SVMRFE(2).fit(X, y).n_survivors_[:4].tolist() == [65, 32, 16, 15]
    assert SVMRFE(17).fit(X, y).n_survivors_[:4].tolist() == [65, 32, 31, 30]
    assert SVMRFE(0.5).fit(X, y).n_survivors_[:3].tolist() == [65, 32, 31]
    assert SVMRFE(0.6).fit(X, y).n_survivors_[:3].tolist() == [65, 64, 63]


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


@pytest.mark.parametrize(("max_features", "step"), [(10, None), (None, 1), (None, 50)])
def test_informative_features_survive(max_features, step):
    X, y = planted(3, n_samples=60, n_features=150, shift=4.0)
    assert set(SVMRFE(3, max_features=max_features, step=step).fit(X, y).get_support(indices=True)) == {0, 1, 2}


def test_zscore_makes_units_irrelevant_and_none_does_not():
    X, y = planted(4)
    factors = 2.0 ** np.random.default_rng(0).integers(-6, 7, size=12)  # powers of two scale without rounding
    assert np.array_equal(SVMRFE(3).fit(X * factors, y).ranking_, SVMRFE(3).fit(X, y).ranking_)
    raw = SVMRFE(3, scale="none", C=0.01)
    assert not np.array_equal(raw.fit(X * factors, y).ranking_, SVMRFE(3, scale="none", C=0.01).fit(X, y).ranking_)


def test_a_shift_of_features_changes_nothing():
    X, y = planted(5)
    shifted = SVMRFE(3, scale="none").fit(X + 1000.0, y)
    assert np.array_equal(shifted.ranking_, SVMRFE(3, scale="none").fit(X, y).ranking_)


def test_of_equal_columns_the_first_is_kept_longest():
    X, y = planted(6, n_features=5)
    selector = SVMRFE(1, step=10).fit(np.hstack([X, X]), y)
    assert np.array_equal(selector.ranking_[5:], selector.ranking_[:5] + 1)


def test_one_feature_is_ranked():
    X, y = planted(0, n_features=3)
    selector = SVMRFE(1).fit(X[:, :1], y)
    assert selector.ranking_.tolist() == [1]
    assert selector.n_survivors_.tolist() == [1]


def test_one_warning_tells_that_machines_stopped_early():
    X, y = planted(0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        SVMRFE(3, max_iter=2).fit(X, y)
    assert [entry.category for entry in caught] == [ConvergenceWarning]
    assert str(caught[0].message).startswith("SVMRFE stopped at max_iter=2")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"C": 0.0}, r"C=0\.0 is not valid\. Use a number above 0"),
        ({"scale": "unit"}, "scale='unit' is unknown"),
        ({"max_features": 0}, "max_features=0 is not valid"),
        ({"step": 1.5}, r"step=1\.5 is not valid\. Use a number above 0 and below 1"),
        ({"step": 0}, r"step=0 is not valid\. Use a whole number at least 1"),
        ({"epsilon": -0.1}, r"epsilon=-0\.1 is not valid"),
        ({"task": "numbers"}, "task='numbers' is unknown"),
        ({"tol": 0.0}, r"tol=0\.0 is not valid"),
        ({"max_iter": 0}, "max_iter=0 is not valid"),
    ],
)
def test_bad_parameters_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        SVMRFE(1, **parameters).fit(*planted(0))


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


@pytest.mark.parametrize("weights", [None, np.arange(1.0, 41.0)])
def test_a_sparse_gram_matrix_is_the_dense_one(weights):
    """Up to a shift of all features, on which no machine depends where weights say that another mean is taken out."""
    X, _ = counts(1)
    dense, sparse = (Survivors(divided_rows(each, "zscore", weights)) for each in (X, sp.csr_array(X)))
    middle = np.eye(40) - 1.0 / 40.0
    np.testing.assert_allclose(sparse.gram, middle @ dense.gram @ middle, atol=1e-10)
    for survivors in (dense, sparse):
        survivors.keep(np.arange(0, 30, 2))
        survivors.keep(np.arange(10))
    np.testing.assert_allclose(sparse.gram, middle @ dense.gram @ middle, atol=1e-10)


def test_memory_of_a_sparse_X_is_that_of_its_values():
    random = np.random.default_rng(0)
    X = sp.random_array((30, 200_000), density=0.001, random_state=random, format="csr")
    X = sp.hstack([sp.csr_array(np.arange(30.0)[:, None] % 2), X[:, 1:]], format="csr")
    tracemalloc.start()
    try:
        assert SVMRFE(1, max_features=1).fit(X, np.arange(30) % 2).get_support(indices=True).tolist() == [0]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 30 * 200_000 * 8, "less than a dense copy"


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


def test_a_class_whose_samples_have_no_weight_has_no_machine():
    X, y = counts(3)
    found = SVMRFE(5).fit(X, y, sample_weight=(y < 2).astype(float))
    assert np.array_equal(found.ranking_, SVMRFE(5).fit(X[y < 2], y[y < 2]).ranking_)


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


@given(seed=seeds, C=st.sampled_from([0.01, 1.0]), epsilon=st.sampled_from([0.0, 0.1, 0.5]))
def test_machines_of_numbers_meet_their_conditions(seed, C, epsilon):
    random = np.random.default_rng(seed)
    X, goal, weights = random.standard_normal((15, 6)), random.standard_normal(15), random.uniform(0.5, 2.0, 15)
    machine = Machine(C, epsilon, 1e-4, 100_000)
    dual = fit_machines(X @ X.T, goal[None, :], machine, weights).dual[:, 0]
    assert machine.violation(X @ X.T, goal, dual, weights) <= 3e-4
    assert machine.violation(X @ X.T, goal, np.zeros(15), weights) == pytest.approx(np.ptp(goal) - 2.0 * epsilon)
    w = X.T @ dual
    errors = goal - X @ w
    loss = min(
        (weights * np.maximum(0.0, np.abs(errors - b) - epsilon)).sum()
        for b in [*errors, *(errors - epsilon), *(errors + epsilon)]
    )
    primal_value, dual_value = 0.5 * w @ w + C * loss, goal @ dual - epsilon * np.abs(dual).sum() - 0.5 * w @ w
    assert -1e-6 <= primal_value - dual_value <= 30 * C * 3e-4
