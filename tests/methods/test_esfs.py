"""ESFS: the identities behind its coding, stage 1 by brute force and by t-tests, stage 2 by its descent."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import make_data
from sklearn.exceptions import ConvergenceWarning

from l20fs.inputs.targets import encode_targets
from l20fs.methods.esfs import (
    ESFS,
    code_labels,
    refit,
)
from l20fs.methods.fisher import FisherScore

seeds = st.integers(0, 2**32 - 1)
may_stop_early = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def uneven_data(seed, n_samples=40, n_features=8):
    """Correlated features and classes of different sizes, so that the coding matters."""
    X, y = make_data(seed, n_samples, 12)
    y[: n_samples // 3] = 0
    return X[:, :n_features] @ np.random.default_rng(seed).standard_normal((n_features, n_features)), y


def centred(X, y):
    return X - X.mean(axis=0), code_labels(encode_targets(y).Y)


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


def test_labels_are_needed():
    X, _ = make_data()
    with pytest.raises(ValueError, match="Unknown label type"):
        ESFS(2).fit(X, X[:, 0])
