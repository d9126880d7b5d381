from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import INFORMATIVE, make_data
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import MultiTaskLasso

from l20fs.data import load_srbct
from l20fs.methods._reweighting import descend
from l20fs.methods.l21 import duality_gap, solve_path
from l20fs.methods.rlsr import RLSR, RescaledRegression, encode_some, scales, squared_norm

SHAPES = st.sampled_from([(9, 20), (20, 6), (12, 12)])
SEEDS = st.integers(0, 2**32 - 1)
POWERS = st.sampled_from([1.0, 0.7, 0.5])


def draw(seed, shape, n_classes=3):
    random = np.random.default_rng(seed)
    X = random.standard_normal(shape)
    return X - X.mean(axis=0), np.eye(n_classes)[random.permutation(np.arange(shape[0]) % n_classes)]


def row_norms(V):
    return np.linalg.norm(V, axis=1)


def value(X, Y, V, gamma, p=1.0):
    """The objective, with the best intercept and without smoothing."""
    centred = Y - Y.mean(axis=0)
    return np.sum((X @ V - centred) ** 2) + gamma * np.sum(row_norms(V) ** p) ** (2 / p)


def solve(X, Y, gamma, p=1.0, *, is_open=None, accelerate=True, max_iter=3000, tol=1e-12, form="auto"):
    closed = np.zeros(len(X), dtype=bool)
    problem = RescaledRegression(X, closed if is_open is None else is_open, gamma, p, form=form)
    first = problem.start(Y)
    return descend(first, problem.step, floor=problem.epsilon, max_iter=max_iter, tol=tol, accelerate=accelerate)


def published_iteration(X, Y, gamma, p, n_iter):
    """Alternate W and theta as the problem states them, by d equations in the rescaled features."""
    Y = Y - Y.mean(axis=0)
    n_features = X.shape[1]
    theta = np.full(n_features, 1 / n_features)
    for _ in range(n_iter):
        root = np.diag(theta ** (1 / p - 0.5))
        W = np.linalg.solve(root @ X.T @ X @ root + gamma * np.eye(n_features), root @ X.T @ Y)
        V = root @ W
        theta = row_norms(V) ** p / np.sum(row_norms(V) ** p)
    return V, theta


@settings(max_examples=30)
@given(seed=SEEDS, shape=SHAPES, p=POWERS)
def test_it_is_the_published_iteration(seed, shape, p):
    X, Y = draw(seed, shape)
    point, *_ = solve(X, Y, 0.5, p, max_iter=4, tol=0.0, accelerate=False)
    V, theta = published_iteration(X, Y, 0.5, p, 4)
    assert np.allclose(point.weights, V, atol=1e-7 * np.abs(V).max())
    assert np.allclose(scales(point.norms, p), theta, atol=1e-7)


@settings(max_examples=30)
@given(norms=st.lists(st.floats(0.01, 10), min_size=3, max_size=3), p=POWERS, seed=SEEDS)
def test_the_scales_are_the_best_on_the_simplex(norms, p, seed):
    """The penalty with its best scales is the squared l2,p norm; no other scales do better."""
    norms = np.array(norms)
    power = 2 / p - 1
    best = scales(norms, p)
    assert best.sum() == pytest.approx(1.0)
    assert np.sum(norms**2 / best**power) == pytest.approx(squared_norm(norms, p))
    others = np.random.default_rng(seed).dirichlet(np.ones(3), size=200) + 1e-12
    assert np.all(np.sum(norms**2 / others**power, axis=1) >= squared_norm(norms, p) * (1 - 1e-9))


@settings(max_examples=25)
@given(seed=SEEDS, shape=SHAPES, gamma=st.sampled_from([0.1, 1.0, 10.0]))
def test_with_p_1_it_is_least_squares_with_an_l21_penalty(seed, shape, gamma):
    X, Y = draw(seed, shape)
    point, *_ = solve(X, Y, gamma, max_iter=20000, tol=1e-13)
    lam = 2 * gamma * row_norms(point.weights).sum()
    # Optimal for ||X V - Y||^2 + lam ||V||_{2,1}: no row of the gradient is longer than lam, and those of live rows are.
    lengths = row_norms(2 * X.T @ (Y - Y.mean(axis=0) - X @ point.weights))
    assert lengths.max() <= lam * (1 + 1e-3)
    live = row_norms(point.weights) > 1e-3 * row_norms(point.weights).max()
    assert np.allclose(lengths[live], lam, rtol=1e-3)


@pytest.mark.parametrize("gamma", [0.1, 1.0, 10.0])
def test_the_matching_multi_task_lasso_has_the_same_weights(gamma):
    X, y = load_digits(return_X_y=True)
    X, y = X[:60, np.ptp(X[:60], axis=0) > 0], y[:60]
    selector = RLSR(10, gamma=gamma, tol=1e-13, max_iter=20000).fit(X, y)
    lam = 2 * gamma * row_norms(selector.coef_.T).sum()
    lasso = MultiTaskLasso(alpha=lam / (2 * len(X)), tol=1e-10, max_iter=100000).fit(X, np.eye(10)[y])
    assert np.allclose(selector.coef_, lasso.coef_, atol=1e-4 * np.abs(lasso.coef_).max())
    assert np.allclose(selector.intercept_, lasso.intercept_, atol=1e-4)
    dead = ~lasso.coef_.any(axis=0)
    assert dead.any()
    assert selector.scores_[dead].max() < 1e-4


@settings(max_examples=30)
@given(seed=SEEDS, shape=SHAPES, p=POWERS, gamma=st.sampled_from([0.1, 1.0, 10.0]), accelerate=st.booleans())
def test_the_objective_never_rises(seed, shape, p, gamma, accelerate):
    X, Y = draw(seed, shape)
    point, objective, _ = solve(X, Y, gamma, p, accelerate=accelerate, max_iter=60, tol=0.0)
    assert np.all(np.diff(objective) <= 0)
    assert point.objective == pytest.approx(value(X, Y, point.weights, gamma, p), rel=1e-5)


@settings(max_examples=30)
@given(seed=SEEDS, shape=SHAPES, p=POWERS, n_open=st.integers(0, 4))
def test_a_plain_step_descends_but_for_rounding(seed, shape, p, n_open):
    """Without the guards of ``descend``: weights, scales and open classes each lower the objective."""
    X, Y = draw(seed, shape)
    is_open = np.arange(len(X)) < n_open
    problem = RescaledRegression(X, is_open, 1.0, p)
    point = problem.start(np.where(is_open[:, None], 1 / 3, Y))
    for _ in range(30):
        following = problem.step(point.norms, point)
        assert following.objective <= point.objective * (1 + 1e-9)
        point = following


@settings(max_examples=30)
@given(seed=SEEDS, shape=SHAPES, p=POWERS)
def test_primal_and_dual_agree(seed, shape, p):
    X, Y = draw(seed, shape)
    primal, dual = (solve(X, Y, 1.0, p, form=form, max_iter=8, tol=0.0)[0].weights for form in ("primal", "dual"))
    assert np.allclose(primal, dual, atol=1e-7 * np.abs(dual).max())


@settings(max_examples=30)
@given(seed=SEEDS, exponent=st.integers(-40, 40), p=POWERS)
def test_units_do_not_matter(seed, exponent, p):
    """X times c with gamma times c squared leaves the scales as they are."""
    X, Y = draw(seed, (10, 15))
    factor = 2.0**exponent
    one, other = (solve(X * c, Y, 2.0 * c * c, p, max_iter=30, tol=1e-8)[0].norms for c in (1.0, factor))
    assert np.allclose(scales(one, p), scales(other, p), atol=1e-9)


@settings(max_examples=25)
@given(seed=SEEDS, shape=SHAPES)
def test_momentum_reaches_the_same_minimum(seed, shape):
    X, Y = draw(seed, shape)
    plain, fast = (solve(X, Y, 1.0, accelerate=flag, tol=1e-10)[0].objective for flag in (False, True))
    assert fast == pytest.approx(plain, rel=1e-5)


def test_momentum_saves_steps():
    srbct = load_srbct()
    fast, plain = (RLSR(accelerate=flag).fit(srbct.data, srbct.target) for flag in (True, False))
    assert fast.n_iter_ * 3 < plain.n_iter_
    assert fast.objective_[-1] <= plain.objective_[-1]


def test_fitted_attributes_belong_together():
    X, y = load_iris(return_X_y=True)
    selector = RLSR(2).fit(X, y)
    assert selector.scores_.sum() == pytest.approx(1.0, abs=1e-12)
    norms = row_norms(selector.coef_.T)
    assert np.allclose(selector.scores_, norms / norms.sum(), atol=1e-8)
    Y = np.eye(3)[y]
    loss = np.sum((X @ selector.coef_.T + selector.intercept_ - Y) ** 2)
    assert loss + norms.sum() ** 2 == pytest.approx(selector.objective_[-1], rel=1e-7)
    assert value(X - X.mean(axis=0), Y, selector.coef_.T, 1.0) == pytest.approx(selector.objective_[-1], rel=1e-7)
    assert not hasattr(selector, "label_distributions_")


def test_shifting_a_feature_changes_nothing():
    X, y = make_data()
    assert np.allclose(RLSR(3).fit(X + 1e4, y).scores_, RLSR(3).fit(X, y).scores_, atol=1e-6)


def test_the_scales_sum_to_1_over_features_that_vary():
    X, y = make_data()
    X[:, 4] = 7.0
    scores = RLSR(3).fit(X, y).scores_
    assert scores[4] == -np.inf
    assert np.delete(scores, 4).sum() == pytest.approx(1.0, abs=1e-12)


def test_a_smaller_p_concentrates_the_scales():
    X, y = make_data(n_samples=90)
    largest = [np.sort(RLSR(3, p=p).fit(X, y).scores_)[-3:].sum() for p in (1.0, 0.6, 0.3)]
    assert largest[0] < largest[1] < largest[2]


def test_a_p_whose_scales_underflow_is_refused_and_the_one_named_works():
    X, y = make_data(n_features=40)
    with pytest.raises(ValueError, match=r"p=0.01 is too small for 40 features: .* Use p=0.04 or more"):
        RLSR(3, p=0.01).fit(X, y)
    assert set(RLSR(3, p=0.04).fit(X, y).get_support(indices=True)) & set(INFORMATIVE)


def test_one_iteration_is_a_ridge_regression_and_warns():
    X, y = make_data()
    with pytest.warns(ConvergenceWarning, match="RLSR stopped at max_iter=1"):
        selector = RLSR(3, max_iter=1, gamma=2.0).fit(X, y)
    centred, Y = X - X.mean(axis=0), np.eye(3)[y]
    ridge = np.linalg.solve(centred.T @ centred + 2.0 * 12 * np.eye(12), centred.T @ (Y - Y.mean(axis=0)))
    assert np.allclose(selector.coef_.T, ridge)


# Samples without label.


def hide(y, share, seed=0):
    """Hide the labels of a share of the samples, but of no class entirely."""
    hidden = np.random.default_rng(seed).random(len(y)) < share
    hidden[[np.flatnonzero(y == label)[0] for label in np.unique(y)]] = False
    return np.where(hidden, -1, y)


@settings(max_examples=25)
@given(seed=SEEDS, share=st.sampled_from([0.3, 0.8]))
def test_samples_without_label_end_on_the_simplex(seed, share):
    X, y = make_data(seed, n_samples=45)
    some = hide(y, share, seed)
    selector = RLSR(3, semi_supervised=True, max_iter=5000).fit(X, some)
    shares = selector.label_distributions_
    assert selector.classes_.tolist() == [0, 1, 2]
    assert np.all(shares >= 0)
    assert np.allclose(shares.sum(axis=1), 1)
    assert np.array_equal(shares[some != -1], np.eye(3)[y[some != -1]])
    assert np.all(np.diff(selector.objective_) <= 0)
    assert selector.scores_.sum() == pytest.approx(1.0)


@settings(max_examples=25)
@given(seed=SEEDS)
def test_the_shares_are_a_fixed_point(seed):
    """At the end every open sample holds the projection of its own prediction."""
    X, y = make_data(seed, n_samples=45)
    some = hide(y, 0.5, seed)
    selector = RLSR(3, semi_supervised=True, tol=1e-14, max_iter=20000).fit(X, some)
    predicted = X @ selector.coef_.T + selector.intercept_
    is_open = some == -1
    distance = np.sum((predicted - selector.label_distributions_)[is_open] ** 2, axis=1)
    corners = np.sum((predicted[is_open][:, None, :] - np.eye(3)) ** 2, axis=2)
    middle = np.sum((predicted[is_open] - 1 / 3) ** 2, axis=1)
    assert np.all(distance <= np.minimum(corners.min(axis=1), middle) + 1e-4)


def test_few_labels_suffice_where_classes_lie_apart():
    """15 labels of 150 samples: the features are found, and so are the hidden classes."""
    random = np.random.default_rng(0)
    y = np.arange(150) % 3
    X = random.standard_normal((150, 40))
    for label, feature in enumerate((3, 11, 17)):
        X[:, feature] += 4.0 * (y == label)
    selector = RLSR(3, gamma=10.0, semi_supervised=True).fit(X, np.where(np.arange(150) < 15, y, -1))
    assert selector.get_support(indices=True).tolist() == [3, 11, 17]
    assert np.mean(selector.label_distributions_.argmax(axis=1) == y) > 0.9


def test_without_open_samples_it_is_the_supervised_answer():
    X, y = make_data()
    supervised, semi = RLSR(3).fit(X, y), RLSR(3, semi_supervised=True).fit(X, y)
    assert np.array_equal(supervised.scores_, semi.scores_)
    assert np.array_equal(semi.label_distributions_, np.eye(3)[y])


def test_minus_1_is_a_class_like_any_other_unless_asked():
    X, y = make_data()
    assert RLSR(3).fit(X, y - 1).classes_.tolist() == [-1, 0, 1]
    assert RLSR(3, semi_supervised=True, max_iter=5000).fit(X, y - 1).classes_.tolist() == [0, 1]


def test_codes_of_open_samples():
    targets = encode_some(np.array([7, -1, 3, 7]))
    assert targets.codes.tolist() == [1, -1, 0, 1]
    assert targets.classes.tolist() == [3, 7]
    assert targets.Y.tolist() == [[0, 1], [0.5, 0.5], [1, 0], [0, 1]]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([-1, -1, -1, -1], "y has no label: all samples are -1"),
        ([2, -1, 2, -1], "y has one class only, '2'"),
        (["a", "b", "-1", "-1"], "y holds text labels. Turn the labels into numbers"),
    ],
)
def test_bad_labels_are_refused(y, message):
    with pytest.raises(ValueError, match=message):
        RLSR(1, semi_supervised=True).fit(np.arange(8.0).reshape(4, 2), y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"gamma": 0.0}, "gamma=0.0 is not valid. Use a number above 0"),
        ({"p": 0.0}, "p=0.0 is not valid. Use a number above 0"),
        ({"p": 1.5}, "p=1.5 is not valid. Use a number above 0 and up to 1"),
        ({"max_iter": 0}, "max_iter=0 is not valid"),
        ({"tol": -1e-3}, "tol=-0.001 is not valid"),
    ],
)
def test_bad_parameters_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        RLSR(**parameters).fit(*make_data())


@pytest.mark.parametrize("gamma", [1.0, 100.0])
def test_the_duality_gap_of_the_matching_l21_problem_certifies_the_answer(gamma):
    """lambda = 2 gamma ||V||_{2,1} makes V the minimum of the l2,1 problem, whose gap bounds what is left to gain."""
    tumours = load_srbct()
    selector = RLSR(20, gamma=gamma).fit(tumours.data, tumours.target)
    X = tumours.data - tumours.data.mean(axis=0)
    Y = np.eye(4)[np.unique(tumours.target, return_inverse=True)[1]]
    Y -= Y.mean(axis=0)
    V = selector.coef_.T
    lam = 2 * gamma * row_norms(V).sum()
    # Reweighting creeps near zero rows: at the default tolerance the gap is below 1e-4 of the zero model.
    assert 0.0 <= duality_gap(X, Y, V, lam) <= 1e-3 * np.sum(Y**2)
    *_, exact = solve_path(X, Y, np.array([lam]), tol=1e-8, max_iter=10000)
    assert np.abs(exact.W - V).max() <= 0.02 * np.abs(exact.W).max()
    best = np.argsort(-row_norms(exact.W))[:5]
    assert set(best) == set(np.flatnonzero(selector.ranking_ <= 5))
