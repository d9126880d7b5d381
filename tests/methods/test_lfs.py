"""LFS: its eigenproblem by dense matrices, its constraint, its descent, its units."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import INFORMATIVE, make_data
from scipy.linalg import eigh
from sklearn.datasets import load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from l20fs.inputs.targets import encode_targets
from l20fs.methods.lfs import LFS, Scatter

seeds = st.integers(0, 2**32 - 1)
shapes = st.sampled_from([(40, 12), (12, 40), (25, 25)])
may_stop_early = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def scatter_matrices(X, y):
    """S_w and S_b by their definition."""
    mean = X.mean(axis=0)
    groups = [X[y == c] for c in np.unique(y)]
    within = sum((group - group.mean(axis=0)).T @ (group - group.mean(axis=0)) for group in groups)
    between = sum(len(group) * np.outer(group.mean(axis=0) - mean, group.mean(axis=0) - mean) for group in groups)
    return within, between


def twin(X, y, variances, n_directions):
    """The generalised eigenproblem with dense matrices; S_b is singular, so it is turned round."""
    within, between = scatter_matrices(X, y)
    values, vectors = eigh(between, within + np.diag(1 / variances))
    values, vectors = values[-n_directions:], vectors[:, -n_directions:]
    return vectors / np.sqrt(values)


def random_variances(seed, n_features):
    return 10.0 ** np.random.default_rng(seed).uniform(-3, 1, n_features)


@given(seeds, shapes)
@settings(max_examples=20)
def test_one_solve_meets_the_dense_eigenproblem(seed, shape):
    """Directions may be turned, so W W' is compared; and the residual of the equation, for each direction."""
    X, y = make_data(seed, *shape)
    scatter, variances = Scatter.of(X, encode_targets(y)), random_variances(seed, shape[1])
    W = scatter.directions(variances)
    expected = twin(X, y, variances, 2)
    np.testing.assert_allclose(W @ W.T, expected @ expected.T, atol=1e-7 * np.abs(expected @ expected.T).max())
    within, between = scatter_matrices(X, y)
    left, right = (within + np.diag(1 / variances)) @ W, between @ W
    multipliers = np.diag(W.T @ left)
    np.testing.assert_allclose(left, right * multipliers, atol=1e-8 * np.abs(left).max())


@may_stop_early
@given(seeds, shapes, st.sampled_from([1e-3, 1.0, 1e3]))
@settings(max_examples=25)
def test_the_constraint_holds_and_the_objective_never_rises(seed, shape, penalty):
    X, y = make_data(seed, *shape)
    selector = LFS(3, penalty=penalty).fit(X, y)
    within, between = scatter_matrices(X, y)
    W = selector.coef_.T
    np.testing.assert_allclose(W.T @ between @ W, np.eye(2), atol=1e-10)
    assert np.all(np.diff(selector.objective_) <= 1e-9 * selector.objective_[:-1])
    objective = np.trace(W.T @ within @ W) + penalty * np.linalg.norm(W, axis=1).sum()
    assert selector.objective_[-1] == pytest.approx(objective, rel=1e-6)  # norms are smoothed by 1e-8


def test_the_end_is_a_fixed_point():
    X, y = make_data(1)
    selector = LFS(3, max_iter=2000, tol=1e-12).fit(X, y)
    W = selector.coef_.T
    again = twin(X, y, 2 * np.linalg.norm(W, axis=1) + 1e-12, 2)
    alive = np.linalg.norm(W, axis=1) > 1e-3 * np.linalg.norm(W, axis=1).max()
    np.testing.assert_allclose(np.linalg.norm(again, axis=1)[alive], selector.scores_[alive], rtol=1e-3)
    assert set(np.flatnonzero(alive)) >= set(INFORMATIVE)


def test_a_small_penalty_is_discriminant_analysis():
    """Without a penalty the directions are those of scikit-learn, up to a factor each."""
    X, y = load_iris(return_X_y=True)
    scatter = Scatter.of(X, encode_targets(y))
    W = scatter.directions(np.full(4, 1e9))[:, ::-1]
    expected = LinearDiscriminantAnalysis(solver="eigen").fit(X, y).scalings_[:, :2]
    for ours, theirs in zip(W.T, expected.T, strict=True):
        cosine = ours @ theirs / (np.linalg.norm(ours) * np.linalg.norm(theirs))
        assert abs(cosine) == pytest.approx(1, abs=1e-9)


def test_equal_means_are_refused():
    X = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    with pytest.raises(ValueError, match="All classes have the same mean in every feature"):
        LFS(1).fit(X, [0, 0, 1, 1])
