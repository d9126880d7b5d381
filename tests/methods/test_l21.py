"""L21: closed form, a slow twin, scikit-learn's estimator, optimality conditions and the certificate."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso, MultiTaskLasso

from l20fs.data import load_srbct
from l20fs.methods import l21
from l20fs.methods.l21 import L21, duality_gap, entry_scores, largest_penalty, norm_scores, objective, solve_path
from l20fs.objective.prox import shrink_rows

seeds = st.integers(0, 2**32 - 1)


def make_problem(seed, n_samples=20, n_features=30, n_targets=3):
    """Centred data whose targets depend on three features, with scales that differ by feature."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((n_samples, n_features)) * random.uniform(0.5, 2.0, n_features)
    Y = X[:, :3] @ random.standard_normal((3, n_targets)) + random.standard_normal((n_samples, n_targets))
    return X - X.mean(axis=0), Y - Y.mean(axis=0)


def norms(V):
    return np.linalg.norm(V, axis=1)


def value_of(X, Y, W, lam):
    return np.linalg.norm(X @ W - Y) ** 2 + lam * norms(W).sum()


def solve(X, Y, lam, tol=1e-11):
    """The end of a short path."""
    penalties = np.geomspace(max(lam, largest_penalty(X, Y)), lam, 5)
    return list(solve_path(X, Y, penalties, tol=tol, max_iter=100_000))[-1]


def slow_block_descent(X, Y, lam, n_sweeps=3000):
    """One row at a time, from zero, with the residual computed afresh."""
    W = np.zeros((X.shape[1], Y.shape[1]))
    for _ in range(n_sweeps):
        before = W.copy()
        for j, x in enumerate(X.T):
            W[j] = 0.0
            pull = x @ (Y - X @ W)
            length = np.linalg.norm(pull)
            if length > lam / 2:
                W[j] = (1 - lam / 2 / length) * pull / (x @ x)
        if np.abs(W - before).max() < 1e-13:
            break
    return W


@given(seeds, st.floats(0.01, 0.95), st.integers(4, 40), st.integers(1, 4))
@settings(max_examples=40)
def test_gap_and_optimality_conditions(seed, share, n_features, n_targets):
    X, Y = make_problem(seed, n_features=n_features, n_targets=n_targets)
    lam = share * largest_penalty(X, Y)
    W = solve(X, Y, lam).W
    assert duality_gap(X, Y, W, lam) < 1e-8 * value_of(X, Y, W, lam)
    pulls = 2 * X.T @ (Y - X @ W)
    # A gap g leaves the residual within sqrt(g) of the best: 1e-11 becomes 3e-6, times the norms of the features.
    slack = 1e-4 * lam / share
    assert np.all(norms(pulls) <= lam + slack)
    nonzero = W.any(axis=1)
    assert nonzero.any()
    assert not nonzero.all() or n_features < 30
    directions = W[nonzero] / norms(W[nonzero])[:, None]
    np.testing.assert_allclose(pulls[nonzero], lam * directions, atol=slack)


@pytest.mark.parametrize("share", [0.5, 0.1, 0.02])
@pytest.mark.parametrize("shape", [(20, 30), (40, 8)])
def test_slow_twin_agrees(share, shape):
    X, Y = make_problem(1, *shape)
    lam = share * largest_penalty(X, Y)
    W = solve(X, Y, lam, tol=1e-14).W
    expected = slow_block_descent(X, Y, lam)
    np.testing.assert_allclose(W, expected, atol=1e-6 * np.abs(expected).max())
    assert np.array_equal(W.any(axis=1), expected.any(axis=1))
    assert value_of(X, Y, W, lam) == pytest.approx(value_of(X, Y, expected, lam), rel=1e-10)


def test_orthogonal_features_have_a_closed_form():
    random = np.random.default_rng(0)
    basis = np.linalg.qr(random.standard_normal((40, 9)) - random.standard_normal(9))[0]
    basis -= basis.mean(axis=0)
    basis = np.linalg.qr(basis)[0]  # orthonormal, and orthogonal to the ones
    sizes = random.uniform(0.5, 3.0, 9)
    X, Y = basis * sizes, random.standard_normal((40, 3))
    Y -= Y.mean(axis=0)
    pulls = X.T @ Y
    lam_max = 2 * norms(pulls).max()
    assert largest_penalty(X, Y) == pytest.approx(lam_max)
    path = list(solve_path(X, Y, np.geomspace(lam_max, 0.05 * lam_max, 4), tol=1e-13, max_iter=1000))
    for stage in path:
        np.testing.assert_allclose(stage.W, shrink_rows(pulls, stage.lam / 2) / sizes[:, None] ** 2, atol=1e-8)
    # Four penalties for nine features: several enter between two of them, and still each has its own score.
    np.testing.assert_allclose(entry_scores(path[-1], lam_max), 2 * norms(pulls) / lam_max, rtol=1e-6)


@given(seeds)
@settings(max_examples=25)
def test_nothing_enters_above_the_largest_penalty(seed):
    X, Y = make_problem(seed)
    lam_max = 2 * max(np.linalg.norm(x @ Y) for x in X.T)
    assert largest_penalty(X, Y) == pytest.approx(lam_max)
    for lam in (1.5 * lam_max, 1.000001 * lam_max):
        stage = solve(X, Y, lam)
        assert not stage.W.any()
        assert stage.gap == pytest.approx(0.0, abs=1e-12)
    assert solve(X, Y, 0.99 * lam_max).W.any()


@given(seeds, st.floats(0.05, 0.9))
@settings(max_examples=25)
def test_the_gap_bounds_the_distance_to_the_minimum_from_above(seed, share):
    X, Y = make_problem(seed)
    lam = share * largest_penalty(X, Y)
    best = solve(X, Y, lam)
    random = np.random.default_rng(seed)
    for size in (0.0, 0.01, 1.0):
        W = best.W + size * random.standard_normal(best.W.shape)
        excess = value_of(X, Y, W, lam) - best.objective
        assert -1e-9 <= excess <= duality_gap(X, Y, W, lam) + 1e-9 * best.objective


@pytest.mark.parametrize("ranking", ["entry", "norm"])
def test_scikit_learns_estimator_agrees(ranking):
    X, y = load_iris(return_X_y=True)
    selector = L21(2, alpha=0.05, ranking=ranking, tol=1e-13).fit(X, y)
    reference = MultiTaskLasso(alpha=selector.alphas_[-1] / (2 * len(X)), tol=1e-13, max_iter=100_000)
    reference.fit(X, np.eye(3)[y])
    np.testing.assert_allclose(selector.coef_, reference.coef_, atol=1e-7)
    residual = np.eye(3)[y] - reference.predict(X)
    expected = np.sum(residual**2) + selector.alphas_[-1] * norms(reference.coef_.T).sum()
    assert selector.objective_[-1] == pytest.approx(expected, rel=1e-9)
    assert objective(residual, reference.coef_.T, selector.alphas_[-1]) == pytest.approx(expected)


def test_real_data_with_more_features_than_samples():
    tumours = load_srbct()
    X, y = tumours.data, tumours.target
    selector = L21(20).fit(X, y)
    assert selector.gap_ <= 1e-6
    assert selector.n_iter_ == len(selector.objective_) == len(selector.alphas_) == 50
    assert np.all(np.diff(selector.objective_) < 0), "a smaller penalty has a smaller minimum"
    centred, Y = X - X.mean(axis=0), selector.classes_ == np.asarray(y)[:, None]
    empty = np.sum((Y - Y.mean(axis=0)) ** 2)
    assert selector.objective_[0] == pytest.approx(empty), "W is zero at the start of the path"
    W = selector.coef_.T
    gap = duality_gap(centred, Y - Y.mean(axis=0), W, selector.alphas_[-1]) / empty
    assert 0 < gap <= selector.gap_ * (1 + 1e-9)
    n_nonzero = int(W.any(axis=1).sum())
    assert 5 < n_nonzero < 40
    assert np.all(selector.scores_[~W.any(axis=1)] <= 0.1 + 1e-12)


def test_entry_scores_of_a_coarse_path_agree_with_a_fine_one():
    X, Y = make_problem(3)
    lam_max = largest_penalty(X, Y)

    def scores(n):
        penalties = np.geomspace(lam_max, 0.05 * lam_max, n)
        return entry_scores(list(solve_path(X, Y, penalties, tol=1e-12, max_iter=10_000))[-1], lam_max)

    coarse, fine = scores(20), scores(1000)
    # Both lie between the same two penalties of the coarse path, or next to one of them in the fine path.
    between = (1 / 0.05) ** (1 / 19) * (1 / 0.05) ** (1 / 999)
    entered = fine > 0.05
    assert 10 < entered.sum() < 30
    assert np.all(coarse[entered] <= fine[entered] * between)
    assert np.all(fine[entered] <= coarse[entered] * between)
    assert fine.max() == pytest.approx(1.0, rel=1e-9)
    # The guess between the penalties is worth having: far closer than half a step of the coarse path.
    assert np.median(np.abs(np.log(coarse / fine)[entered])) < 0.1 * np.log(between)


@given(seeds)
@settings(max_examples=15)
def test_a_row_enters_between_the_penalties_where_it_is_zero_and_where_it_is_not(seed):
    random = np.random.default_rng(seed)
    X, Y = make_problem(seed)
    X = X @ (np.eye(30) + 0.3 * random.standard_normal((30, 30)))  # correlated: a row moves the others
    penalties = largest_penalty(X, Y) * np.geomspace(1.0, 0.02, 12)
    path = list(solve_path(X, Y, penalties, tol=1e-9, max_iter=10_000))
    was_nonzero = np.cumsum([stage.W.any(axis=1) for stage in path], axis=0) > 0
    for j, entry in enumerate(path[-1].entries):
        if not was_nonzero[-1, j]:
            assert entry == 0.0
            continue
        first = was_nonzero[:, j].argmax()
        assert penalties[first] <= entry <= penalties[first - 1]
        assert all(stage.entries[j] == (entry if n >= first else 0.0) for n, stage in enumerate(path))


def test_norm_ranking_puts_zero_rows_last_by_what_pulls_them():
    X, Y = make_problem(4)
    lam = 0.3 * largest_penalty(X, Y)
    stage = solve(X, Y, lam)
    scores = norm_scores(stage)
    zero = ~stage.W.any(axis=1)
    assert 0 < zero.sum() < len(zero)
    np.testing.assert_allclose(scores[~zero], norms(stage.W[~zero]), rtol=1e-12)
    assert scores[zero].max() <= 0 < scores[~zero].min()
    pulls = norms(X.T @ (Y - X @ stage.W))
    assert np.array_equal(np.argsort(scores[zero]), np.argsort(pulls[zero]))


def test_ranking_by_norm_is_that_of_the_weights():
    X, y = load_iris(return_X_y=True)
    X = np.hstack([X, np.random.default_rng(0).standard_normal((150, 6))])
    selector = L21(3, ranking="norm", alpha=0.02).fit(X, y)
    lengths = norms(selector.coef_.T)
    ranked = lengths[np.argsort(selector.ranking_)]
    assert np.all(np.diff(ranked) <= 0)
    assert 0 < (lengths > 0).sum() < 10
    entry = L21(3, ranking="entry", alpha=0.02).fit(X, y)
    np.testing.assert_array_equal(entry.coef_, selector.coef_)
    assert not np.array_equal(entry.ranking_, selector.ranking_)


def test_numbers_are_targets_too():
    X, Y = make_problem(5, n_targets=1)
    single = L21(3, alpha=0.05, tol=1e-13).fit(X + 7.0, Y[:, 0] - 2.0)
    reference = Lasso(alpha=single.alphas_[-1] / (2 * len(X)), tol=1e-13, max_iter=100_000).fit(X, Y[:, 0])
    np.testing.assert_allclose(single.coef_[0], reference.coef_, atol=1e-7)
    twice = L21(3, alpha=0.05, tol=1e-13).fit(X, np.hstack([Y, Y]))
    assert twice.coef_.shape == (2, 30)
    # Two equal targets are one that is sqrt(2) times as long.
    np.testing.assert_allclose(twice.coef_, np.vstack([single.coef_] * 2), atol=1e-6)


def test_a_copy_of_a_feature_changes_nothing_but_how_its_weight_is_shared():
    X, Y = make_problem(6)
    lam = 0.1 * largest_penalty(X, Y)
    alone, copied = solve(X, Y, lam), solve(np.hstack([X, X[:, [0]]]), Y, lam)
    assert alone.W[0].any()
    assert copied.objective == pytest.approx(alone.objective, rel=1e-9)
    np.testing.assert_allclose(copied.W[0] + copied.W[30], alone.W[0], atol=1e-4)
    np.testing.assert_allclose(copied.W[1:30], alone.W[1:], atol=1e-4)
    assert entry_scores(copied, lam / 0.1)[[0, 30]].min() >= 0.1 * (1 - 1e-4)


def test_features_without_any_relation_score_zero():
    X = np.array([[1.0, 2.0], [-1.0, -2.0], [1.0, 2.0], [-1.0, -2.0]])
    for ranking, expected in (("entry", 0.0), ("norm", -1.0)):
        selector = L21(1, ranking=ranking).fit(X, ["a", "a", "b", "b"])
        assert selector.scores_.tolist() == [expected, expected]
        assert not selector.coef_.any()
        assert selector.ranking_.tolist() == [1, 2]


def test_too_few_sweeps_warn_and_report_the_gap():
    X, Y = make_problem(7)
    with pytest.warns(ConvergenceWarning, match="L21 stopped at max_iter=1;"):
        selector = L21(3, max_iter=1, tol=1e-12, alpha=0.01).fit(X, Y)
    assert selector.gap_ > 1e-12


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"alpha": 0.0}, "alpha=0.0 is not valid. Use a number above 0 and below 1"),
        ({"alpha": 1.0}, "alpha=1.0 is not valid"),
        ({"n_alphas": 1}, "n_alphas=1 is not valid. Use a whole number at least 2"),
        ({"ranking": "path"}, "ranking='path' is unknown. Use 'entry' or 'norm'"),
        ({"max_iter": 0}, "max_iter=0 is not valid"),
        ({"tol": 0.0}, "tol=0.0 is not valid"),
    ],
)
def test_bad_parameters_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        L21(**parameters).fit(*load_iris(return_X_y=True))


def test_features_that_the_strong_rule_discards_wrongly_join(monkeypatch):
    random = np.random.default_rng(273)
    X, shared = random.standard_normal((6, 8)), random.standard_normal((6, 1))
    X += random.uniform(0, 3) * shared * random.choice([-1, 1], 8)
    X -= X.mean(axis=0)
    Y = X[:, :1] - 0.9 * X[:, 1:2] + 0.1 * random.standard_normal((6, 1))
    Y -= Y.mean(axis=0)
    tried, descend = [], l21.descend

    def watch(own, *args, **kwargs):
        tried.append(own.shape[1])
        return descend(own, *args, **kwargs)

    monkeypatch.setattr(l21, "descend", watch)
    path = list(solve_path(X, Y, largest_penalty(X, Y) * np.geomspace(1.0, 0.02, 25), tol=1e-7, max_iter=100_000))
    assert len(tried) > 24  # one solution for each penalty below the largest, and some again
    assert min(tried) < X.shape[1]
    assert max(solution.gap for solution in path) <= 1e-7
