"""fit_intercept=False: the problem without 1b', on X and Y as they are.

A slow twin of every fit to numbers: with each sample (x, y) also its reflection (-x, -y), both with half the weight, all
means are zero and the intercept that is fitted is zero.
"""

from __future__ import annotations

from itertools import combinations

import array_api_strict
import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from blocked import cut
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import SOLVERS, make_data, make_solver
from sklearn.linear_model import Ridge

from l20fs import Constraints, L20Classifier, L20Regressor, L20Selector
from l20fs.inspection import certify
from l20fs.prediction import discriminant

CONTAINERS = {
    "dense": np.asarray,
    "csr": sp.csr_array,
    "csc": sp.csc_array,
    "blocks of samples": lambda X: cut(X, 0, 3),
    "blocks of columns": lambda X: cut(X, 1, 3),
    "sparse blocks of samples": lambda X: cut(sp.csr_array(X), 0, 3),
    "sparse blocks of columns": lambda X: cut(sp.csr_array(X), 1, 3),
    "Dask": lambda X: da.from_array(X, chunks=(7, -1) if X.shape[0] > X.shape[1] else (-1, 7)),
    "device": lambda X: array_api_strict.asarray(X, device=array_api_strict.Device("device1")),
}
in_each_container = pytest.mark.parametrize("container", CONTAINERS.values(), ids=CONTAINERS)

CONSTANT, ZERO = 3, 4


def make_outputs(seed=0, shape=(30, 12)):
    """Features with means, many zeros and different units, a constant one and one of zeros; two targets with means."""
    random = np.random.default_rng(seed)
    X = random.standard_normal(shape) + random.normal(0.0, 3.0, shape[1])
    X *= (random.random(shape) < 0.7) * random.uniform(0.5, 20.0, shape[1])
    X[:, CONSTANT], X[:, ZERO] = 0.3, 0.0
    Y = X[:, [1, CONSTANT, 8]] @ random.standard_normal((3, 2)) + 0.3 * random.standard_normal((shape[0], 2)) + 1.0
    return X, Y


def minimum(X, Y, support, mu=0.0):
    """Solve the problem on some columns from its definition: the loss and the weights."""
    columns, size = X[:, list(support)], len(support)
    lifted = np.vstack([columns, np.sqrt(mu) * np.eye(size)])
    W = np.linalg.lstsq(lifted, np.vstack([Y, np.zeros((size, Y.shape[1]))]), rcond=None)[0]
    return 0.5 * np.sum((columns @ W - Y) ** 2) + 0.5 * mu * np.sum(W**2), W


# Numbers: closed form, brute force, the twin


@pytest.mark.parametrize("scale", ["none", "zscore"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_all_features_without_ridge_are_least_squares_of_numpy(solver, scale):
    X, Y = make_outputs()
    X = np.delete(X, ZERO, axis=1)
    model = L20Regressor(11, solver=make_solver(solver, max_iter=20000), ridge=0.0, scale=scale, fit_intercept=False)
    model.fit(X, Y)
    np.testing.assert_allclose(model.coef_, np.linalg.lstsq(X, Y, rcond=None)[0].T, rtol=1e-8, atol=1e-10)
    np.testing.assert_array_equal(model.intercept_, np.zeros(2))
    np.testing.assert_allclose(model.predict(X), X @ model.coef_.T, rtol=1e-12)


@pytest.mark.parametrize("weights", [None, "some"])
def test_all_features_with_ridge_are_the_ridge_of_scikit_learn(weights):
    X, Y = make_outputs(1)
    X = np.delete(X, ZERO, axis=1)
    weights = None if weights is None else np.random.default_rng(1).uniform(0.0, 2.0, 30)
    model = L20Regressor(11, ridge=0.5, scale="none", fit_intercept=False).fit(X, Y, weights)
    energies = (np.ones(30) if weights is None else weights) @ X**2
    expected = Ridge(0.5 * energies.mean(), fit_intercept=False).fit(X, Y, weights)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-9)
    np.testing.assert_array_equal(model.intercept_, expected.intercept_)
    np.testing.assert_allclose(model.predict(X), expected.predict(X), rtol=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_brute_force_over_all_supports(seed):
    X, Y = make_outputs(seed, (30, 9))
    mu = 0.01 * np.mean(np.delete((X**2).sum(axis=0), ZERO))
    losses = {S: minimum(X, Y, S, mu)[0] for k in range(4) for S in combinations(range(9), k)}
    options = {"ridge": 0.01, "scale": "none", "fit_intercept": False}
    forward = L20Selector(3, **options).fit(X, Y).path_
    order: tuple[int, ...] = ()
    for _ in range(3):
        order = min((tuple(sorted((*order, j))) for j in range(9) if j not in order), key=losses.__getitem__)
    assert forward.refit(3).loss == pytest.approx(losses[order], rel=1e-9)
    swapped = L20Selector(3, solver="swap", **options).fit(X, Y)
    support = tuple(swapped.get_support(indices=True).tolist())
    assert losses[support] == pytest.approx(swapped.path_.refit(3).loss, rel=1e-9)
    exchanges = [tuple(sorted({*support} - {i} | {j})) for i in support for j in range(9) if j not in support]
    assert losses[support] <= min(losses[S] for S in exchanges) * (1.0 + 1e-9)
    best = min(losses[S] for S in losses if len(S) == 3)
    assert certify(swapped, X, Y).lower_bound <= best * (1.0 + 1e-9)
    assert losses[support] == pytest.approx(best, rel=1e-9)  # with features that explain so much no exchange is missed


# The first L of a homotopy is the energy of a sample, which the twin has with half the weight: it is given here.
SETTINGS = [{"solver": make_solver(solver, lipschitz_start=50.0, max_iter=5000)} for solver in SOLVERS] + [
    {"loss": "l21"},
    {"constraints": Constraints(groups=[[0, CONSTANT], [ZERO, 5]], include=[2])},
]


@pytest.mark.parametrize("params", SETTINGS, ids=str)
@given(
    seed=st.integers(0, 2**32 - 1),
    shape=st.sampled_from([(30, 12), (10, 24)]),
    scale=st.sampled_from(["none", "zscore"]),
    container=st.sampled_from([np.asarray, sp.csr_array]),
)
@settings(max_examples=6)
def test_it_is_the_fit_with_an_intercept_to_reflected_samples(params, seed, shape, scale, container):
    X, Y = make_outputs(seed, shape)
    params = {"n_features_to_select": 4, "ridge": 0.1, "scale": scale} | params
    found = L20Selector(**params, fit_intercept=False).fit(container(X), Y)
    halves = np.full(2 * len(X), 0.5)
    twin = L20Selector(**params).fit(container(np.vstack([X, -X])), np.vstack([Y, -Y]), halves)
    np.testing.assert_allclose(found.path_.objectives, twin.path_.objectives, rtol=1e-7)
    np.testing.assert_array_equal(found.support_, twin.support_)
    assert not found.support_[ZERO]
    np.testing.assert_allclose(found.coef_, twin.coef_, rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(found.intercept_, np.zeros(2))


# Containers and weights


@in_each_container
@given(
    shape=st.sampled_from([(30, 12), (10, 24)]),
    scale=st.sampled_from(["none", "zscore"]),
    solver=st.sampled_from(["forward", "ahiht"]),
)
@settings(max_examples=4)
def test_every_container_gives_the_same(container, shape, scale, solver):
    X, Y = make_outputs(2, shape)
    params = {"solver": solver, "ridge": 0.1, "scale": scale, "fit_intercept": False}
    weights = np.random.default_rng(2).integers(0, 3, shape[0]).astype(float)
    for sample_weight in (None, weights):
        expected = L20Selector(4, **params).fit(X, Y, sample_weight)
        found = L20Selector(4, **params).fit(container(X), Y, sample_weight)
        np.testing.assert_array_equal(found.path_.indices, expected.path_.indices)
        np.testing.assert_allclose(found.path_.objectives, expected.path_.objectives, rtol=1e-9)
        np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-7, atol=1e-10)
        np.testing.assert_allclose(found.path_.refit(4).coef, expected.path_.refit(4).coef, rtol=1e-7, atol=1e-10)
        np.testing.assert_array_equal(found.intercept_, np.zeros(2))


@in_each_container
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=2)
def test_weight_two_is_the_sample_twice(container, seed):
    X, Y = make_outputs(seed)
    counts = np.random.default_rng(seed).integers(0, 4, len(X))
    repeated = np.repeat(np.arange(len(X)), counts)
    weighted = L20Selector(4, ridge=0.1, fit_intercept=False).fit(container(X), Y, sample_weight=counts)
    plain = L20Selector(4, ridge=0.1, fit_intercept=False).fit(X[repeated], Y[repeated])
    np.testing.assert_array_equal(weighted.support_, plain.support_)
    np.testing.assert_allclose(weighted.path_.refit(4).coef, plain.path_.refit(4).coef, rtol=1e-7, atol=1e-9)


# What counts as informative


@in_each_container
@pytest.mark.parametrize("scale", ["none", "zscore"])
def test_a_constant_feature_explains_the_mean_and_zeros_explain_nothing(container, scale):
    random = np.random.default_rng(0)
    X = random.standard_normal((40, 12))
    X[:, CONSTANT], X[:, ZERO] = 2.0, 0.0
    y = 5.0 + 0.1 * random.standard_normal(40)
    selector = L20Selector(11, fit_intercept=False, scale=scale, ridge=0.0).fit(container(X), y)
    assert selector.ranking_[CONSTANT] == 1
    assert selector.path_.refit(1).coef[0, CONSTANT] == pytest.approx(y.mean() / 2.0, rel=1e-9)
    assert selector.get_support(indices=True).tolist() == [j for j in range(12) if j != ZERO]
    with pytest.warns(UserWarning, match="n_features_to_select=12, but only 11 of 12 features are not zero"):
        L20Selector(12, fit_intercept=False, scale=scale).fit(container(X), y)


@in_each_container
def test_targets_that_are_constant_are_explained_and_zeros_are_refused(container):
    X = np.random.default_rng(0).standard_normal((40, 12)) + 1.0
    model = L20Regressor(2, ridge=0.0, solver="swap", fit_intercept=False)
    support = model.fit(X, np.full(40, 2.5)).get_support(indices=True)
    expected = min((minimum(X, np.full((40, 1), 2.5), S)[0], S) for S in combinations(range(12), 2))
    assert tuple(support.tolist()) == expected[1]
    with pytest.raises(ValueError, match=r"y is zero, so no feature can explain it\. Give targets that differ"):
        L20Selector(2, fit_intercept=False).fit(container(X), np.zeros((40, 2)))
    weights = np.arange(40) >= 20
    with pytest.raises(ValueError, match=r"y is zero over the 20 samples with a positive weight"):
        L20Regressor(2, fit_intercept=False).fit(X, np.where(weights, 0.0, 1.5), weights)
    with pytest.raises(ValueError, match="y is constant"):
        L20Regressor(2).fit(X, np.full(40, 2.5))
    with pytest.raises(ValueError, match=r"All 12 features of X are zero, .* Give at least one feature that is not zero"):
        L20Selector(2, fit_intercept=False).fit(container(0.0 * X), X[:, 0])


@pytest.mark.parametrize("value", ["no", None, 1, 0.0])
@pytest.mark.parametrize("kind", [L20Selector, L20Classifier, L20Regressor])
def test_what_is_no_flag_is_refused(kind, value):
    X, y = make_data()
    with pytest.raises(ValueError, match=r"fit_intercept=.* is not valid\. Use True or False\."):
        kind(2, fit_intercept=value).fit(X, y)
    kind(2, fit_intercept=np.False_).fit(X, y)


# Labels


def unequal_classes(seed=0):
    X, y = make_data(seed, n_samples=150)
    keep = (y != 2) | (np.arange(150) % 2 == 0)
    return X[keep] + 1.0, y[keep]


def without_mean(values):
    """Only differences between classes matter."""
    return values - values.mean(axis=-1, keepdims=True)


@pytest.mark.parametrize("class_weight", ["balanced", None, {0: 1.0, 1: 4.0, 2: 0.5}])
@pytest.mark.parametrize("ridge", [0.01, 10.0])
def test_the_scores_are_least_squares_of_the_indicators_on_the_predictions(class_weight, ridge, monkeypatch):
    monkeypatch.setattr(discriminant, "LEAST_SCATTER", 1e-6)  # hardly any
    X, y = unequal_classes()
    model = L20Classifier(4, class_weight=class_weight, ridge=ridge, fit_intercept=False).fit(X, y)
    predictions = X @ model.path_.refit(4).coef.T
    sizes = np.bincount(y) * np.array([1.0, 4.0, 0.5] if isinstance(class_weight, dict) else [1.0, 1.0, 1.0])
    shares = np.full(3, 1 / 3) if class_weight == "balanced" else sizes / sizes.sum()
    centres = np.array([predictions[y == label].mean(axis=0) for label in range(3)])
    errors = predictions - centres[y]
    moments = errors.T @ errors / len(y) + (centres.T * shares) @ centres
    expected = predictions @ np.linalg.solve(moments, centres.T * shares)
    found = model.decision_function(X)
    np.testing.assert_allclose(found, without_mean(expected), rtol=1e-3, atol=1e-3 * np.abs(expected).max())
    np.testing.assert_array_equal(model.predict(7.0 * X), model.predict(X))  # through the origin


@pytest.mark.parametrize("class_weight", ["balanced", None])
def test_two_classes_are_told_apart_by_the_sign(class_weight):
    X, y = make_data(2, n_classes=2)
    model = L20Classifier(3, class_weight=class_weight, fit_intercept=False).fit(X, y)
    scores = model.decision_function(X)
    assert scores.shape == (60,)
    np.testing.assert_array_equal(model.predict(X), (scores > 0.0).astype(int))
    np.testing.assert_allclose(model.decision_function(-X), -scores)
    assert model.score(X, y) > 0.7


def test_samples_far_from_the_origin_are_still_classified():
    """Without its constants a discriminant analysis would give nearly all of them to one class."""
    X, y = make_data(0, n_samples=150)
    near, far = (L20Classifier(5, ridge=0.1, fit_intercept=False).fit(X + shift, y) for shift in (0.0, 20.0))
    assert far.score(X + 20.0, y) > near.score(X, y) - 0.1


def test_a_class_of_weight_zero_is_never_predicted():
    X, y = make_data(0)
    model = L20Classifier(3, fit_intercept=False).fit(X, y, sample_weight=(y != 1).astype(float))
    assert 1 not in model.predict(X)
    assert model.intercept_[[0, 2]].tolist() == [0.0, 0.0]


# Searches
