"""ESFS: the identities behind its coding, stage 1 by brute force and by t-tests, stage 2 by its descent."""

from __future__ import annotations

from itertools import combinations, islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import make_data
from scipy.stats import ttest_ind
from sklearn.exceptions import ConvergenceWarning

from l20fs.inputs.targets import encode_targets
from l20fs.methods.esfs import (
    ESFS,
    code_labels,
    projected_gradient,
    refit,
    separable_start,
    squared_loss,
    squared_spectral_norm,
)
from l20fs.methods.fisher import FisherScore, class_scatter

seeds = st.integers(0, 2**32 - 1)
may_stop_early = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def scatter_matrices(X, y):
    """S_b and S_t by their definition."""
    mean = X.mean(axis=0)
    between = sum(
        (y == c).sum() * np.outer(X[y == c].mean(axis=0) - mean, X[y == c].mean(axis=0) - mean) for c in np.unique(y)
    )
    return between, (X - mean).T @ (X - mean)


def uneven_data(seed, n_samples=40, n_features=8):
    """Correlated features and classes of different sizes, so that the coding matters."""
    X, y = make_data(seed, n_samples, 12)
    y[: n_samples // 3] = 0
    return X[:, :n_features] @ np.random.default_rng(seed).standard_normal((n_features, n_features)), y


def centred(X, y):
    return X - X.mean(axis=0), code_labels(encode_targets(y).Y)


@given(seeds)
@settings(max_examples=20)
def test_coded_labels_give_the_scatter_between_classes(seed):
    X, y = uneven_data(seed)
    centre, coded = centred(X, y)
    between, total = scatter_matrices(X, y)
    tolerance = 1e-9 * np.abs(total).max()
    np.testing.assert_allclose(centre.T @ coded @ coded.T @ centre, between, atol=tolerance)
    np.testing.assert_allclose(centre.T @ centre, total, atol=tolerance)
    np.testing.assert_allclose(class_scatter(X, encode_targets(y)), [np.diag(between), np.diag(total)], atol=tolerance)


@given(seeds, st.integers(1, 8))
@settings(max_examples=20)
def test_the_loss_of_a_support_is_the_trace_criterion(seed, k):
    X, y = uneven_data(seed)
    centre, coded = centred(X, y)
    between, total = scatter_matrices(X, y)
    support = np.random.default_rng(seed).permutation(8)[:k]
    inside = np.ix_(support, support)
    expected = np.sum(coded**2) - np.trace(np.linalg.solve(total[inside], between[inside]))
    assert refit(centre, coded, support).loss == pytest.approx(expected, rel=1e-6, abs=1e-9)


@may_stop_early
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("k", [1, 2, 3])
def test_uncorrelated_features_are_solved_exactly(seed, k):
    """Where S_t is diagonal, no support of all there are beats that of stage 1, and stage 2 keeps it."""
    X, y = uneven_data(seed)
    random = np.random.default_rng(seed)
    X = np.linalg.qr(X - X.mean(axis=0))[0] * random.uniform(0.5, 2.0, X.shape[1])
    centre, coded = centred(X, y)
    losses = {support: refit(centre, coded, np.array(support)).loss for support in combinations(range(8), k)}
    best = min(losses, key=losses.get)
    selector = ESFS(k).fit(X, y)
    assert tuple(np.flatnonzero(FisherScore(k).fit(X, y).support_)) == best
    assert tuple(np.flatnonzero(selector.support_)) == best
    assert selector.loss_ == pytest.approx(losses[best], rel=1e-9)


@may_stop_early
def test_the_order_outside_the_support_is_that_of_fisher():
    X, y = uneven_data(3)
    selector, fisher = ESFS(2).fit(X, y), FisherScore(2).fit(X, y)
    rest = np.flatnonzero(~selector.support_)
    assert np.array_equal(np.argsort(selector.ranking_[rest]), np.argsort(fisher.ranking_[rest]))
    between, total = class_scatter(X, encode_targets(y))
    np.testing.assert_allclose(selector.scores_[rest], (between / total)[rest])
    np.testing.assert_allclose(between / total, fisher.scores_ / (1 + fisher.scores_))


def test_two_classes_are_ordered_by_the_t_statistic():
    X, y = make_data(4, n_classes=2)
    between, total = class_scatter(X, encode_targets(y))
    t = np.abs(ttest_ind(X[y == 0], X[y == 1]).statistic)
    assert np.argsort(-between / total).tolist() == np.argsort(-t).tolist()
    # One feature is a support without correlations: the fit itself must take the one with the largest t.
    assert ESFS(1).fit(X, y).get_support(indices=True).tolist() == [t.argmax()]


@given(seeds, st.integers(1, 8), st.booleans())
@settings(max_examples=25)
def test_the_loss_never_rises_and_k_rows_stay(seed, k, is_wide):
    X, y = uneven_data(seed, n_samples=7 if is_wide else 40)
    centre, coded = centred(X, y)
    start = separable_start(centre, coded, np.sum(centre**2, axis=0), np.arange(k))
    steps = list(islice(projected_gradient(centre, coded, start, k), 50))
    losses = [squared_loss(centre, coded, start)] + [loss for _, loss in steps]
    assert np.all(np.diff(losses) <= 1e-12 * losses[0])
    for W, loss in steps[-3:]:
        assert W.any(axis=1).sum() == k
        assert loss == pytest.approx(np.sum((centre @ W - coded) ** 2), rel=1e-9)


def test_a_step_is_the_gradient_step_of_its_definition():
    X, y = uneven_data(5)
    centre, coded = centred(X, y)
    start = separable_start(centre, coded, np.sum(centre**2, axis=0), np.array([0, 3]))
    for j in (0, 3):
        np.testing.assert_allclose(start[j], np.linalg.lstsq(centre[:, [j]], coded, rcond=None)[0][0])
    moved = start - centre.T @ (centre @ start - coded) / (1.01 * np.linalg.norm(centre, 2) ** 2)
    moved[np.argsort(-np.linalg.norm(moved, axis=1))[2:]] = 0
    np.testing.assert_allclose(next(projected_gradient(centre, coded, start, 2))[0], moved, atol=1e-12)


@pytest.mark.parametrize("shape", [(5, 9), (9, 5)])
def test_the_spectral_norm_from_the_smaller_gram_matrix(shape):
    X = np.random.default_rng(0).standard_normal(shape)
    assert squared_spectral_norm(X) == pytest.approx(np.linalg.norm(X, 2) ** 2, rel=1e-12)


@may_stop_early
@given(seeds, st.integers(1, 8))
@settings(max_examples=25)
def test_never_worse_than_stage_1(seed, k):
    X, y = uneven_data(seed)
    selector = ESFS(k, max_iter=200).fit(X, y)
    centre, coded = centred(X, y)
    first = np.flatnonzero(FisherScore(k).fit(X, y).support_)
    assert selector.loss_ <= refit(centre, coded, first).loss * (1 + 1e-12)
    assert selector.loss_ <= selector.objective_[-1] * (1 + 1e-9)
    assert np.array_equal(selector.coef_.any(axis=0), selector.support_)
    weights = np.linalg.norm(selector.coef_, axis=0)[np.argsort(selector.ranking_)]
    assert np.all(np.diff(weights) <= 1e-8 * weights[:-1])
    assert selector.loss_ == pytest.approx(np.sum((centre @ selector.coef_.T - coded) ** 2), rel=1e-9)


def test_stage_2_can_improve_on_stage_1(paper_set):
    """On prostate the descent exchanges a few features and the loss falls from 0.253 to 0.235."""
    X, y = paper_set("prostate")
    with pytest.warns(ConvergenceWarning, match="stopped at max_iter=1000"):
        selector = ESFS(10).fit(X, y)
    first = np.flatnonzero(FisherScore(10).fit(X, y).support_)
    assert refit(*centred(X, y), first).loss == pytest.approx(0.253, abs=5e-4)
    assert selector.loss_ == pytest.approx(0.235, abs=5e-4)
    assert not np.array_equal(np.flatnonzero(selector.support_), first)


@may_stop_early
def test_the_better_of_both_stages_is_kept(monkeypatch):
    """Should the descent end on worse features than it began with, the first ones are returned."""
    X, y = uneven_data(6)
    ratio_order = np.argsort(FisherScore(2).fit(X, y).ranking_)
    worst = np.sort(ratio_order[-2:])
    monkeypatch.setattr(ESFS, "_descend", lambda self, *args: (worst, [1.0]))
    assert set(ESFS(2).fit(X, y).get_support(indices=True)) == set(ratio_order[:2])


@may_stop_early
def test_equal_and_perfect_features():
    """A feature that is its class has ratio 1; its copy makes the least squares singular."""
    y = np.arange(30) % 2
    X = np.random.default_rng(0).standard_normal((30, 5))
    X[:, 1] = X[:, 3] = 1e-3 * y
    selector = ESFS(1, sizes=[2]).fit(X, y)
    assert selector.get_support(indices=True).tolist() == [1]
    assert selector.ranking_[3] == 2
    selector.set_params(n_features_to_select=2)
    assert selector.get_support(indices=True).tolist() == [1, 3]
    assert selector.loss_ < 1e-20
    np.testing.assert_allclose(selector.coef_[:, 1], selector.coef_[:, 3])


@pytest.mark.parametrize(
    ("options", "message"),
    [({"max_iter": 0}, "max_iter=0 is not valid"), ({"tol": -1}, "tol=-1 is not valid. Use a number above 0")],
)
def test_parameters_that_make_no_sense_are_refused(options, message):
    X, y = make_data()
    with pytest.raises(ValueError, match=message):
        ESFS(**options).fit(X, y)


def test_labels_are_needed():
    X, _ = make_data()
    with pytest.raises(ValueError, match="Unknown label type"):
        ESFS(2).fit(X, X[:, 0])
