"""Weights of samples and classes in the selector: a sample of weight 2 is the sample twice."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import CONTAINERS, HOMOTOPIES, SOLVERS, make_data, make_solver
from sklearn import config_context
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import KFold, cross_validate
from sklearn.pipeline import make_pipeline

from l20fs import L20Selector

SETTINGS = [{"solver": make_solver(solver, max_iter=3000)} for solver in SOLVERS] + [
    {"loss": "l21"},
    {"loss": "l21", "solver": "swap"},
    {"solver": "ahiht", "scale": "none", "class_weight": None, "ridge": 0.0},
    {"class_weight": {1: 3.0}},
]


@pytest.mark.parametrize("params", SETTINGS, ids=str)
@given(seed=st.integers(0, 2**32 - 1), container=st.sampled_from(CONTAINERS))
@settings(max_examples=5)
def test_weight_two_is_the_sample_twice(container, params, seed):
    X, y = make_data(seed)
    counts = np.random.default_rng(seed).integers(0, 4, len(y))
    repeated = np.repeat(np.arange(len(y)), counts)
    weighted = L20Selector(5, **params).fit(container(X), y, sample_weight=counts)
    plain = L20Selector(5, **params).fit(container(X[repeated]), y[repeated])
    assert np.array_equal(weighted.ranking_, plain.ranking_)
    for k in (1, 5):
        np.testing.assert_allclose(weighted.path_.refit(k).coef, plain.path_.refit(k).coef, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(weighted.path_.coef(k), plain.path_.coef(k), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(
        weighted.path_.objectives, plain.path_.objectives, rtol=1e-10, atol=1e-10 * plain.path_.objectives[0]
    )


@pytest.mark.parametrize("params", SETTINGS, ids=str)
def test_multiplying_all_weights_changes_nothing_at_a_given_ridge(params):
    """To the automatic one, weights ten times as large are ten times as many samples."""
    params = {"ridge": 10.0} | params
    X, y = make_data(1)
    weights = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    one, ten = (L20Selector(5, **params).fit(X, y, factor * weights) for factor in (1.0, 10.0))
    solver = params.get("solver")
    if getattr(solver, "name", solver) not in HOMOTOPIES:  # L starts from min(1, w) times the energy of a sample
        assert np.array_equal(one.ranking_, ten.ranking_)
        np.testing.assert_allclose(one.coef_, ten.coef_, rtol=1e-7, atol=1e-9)


def test_a_rare_class_counts_as_much_as_a_common_one():
    """Feature 0 marks a class of 6 among 126; unweighted squares hardly notice it."""
    random = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [60, 60, 6])
    X = random.standard_normal((126, 40))
    X[:, 0] += 2.5 * (y == 2)
    X[:, 1:4] += 1.2 * (y == 1)[:, None]
    ranks = {w: L20Selector(3, class_weight=w).fit(X, y).ranking_[0] for w in ("balanced", None)}
    assert ranks["balanced"] <= 3 < ranks[None]
    heavy = np.where(y == 2, 10.0, 1.0)
    assert L20Selector(3, class_weight=None).fit(X, y, heavy).ranking_[0] <= 3


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([-1.0] + [1.0] * 59, r"sample_weight\[0\]=-1 is not valid"),
        ([0.0] * 60, "sample_weight is zero for all 60 samples"),
        ([np.nan] * 60, r"sample_weight\[0\]=nan is not valid \(60 such values\)"),
        ([1.0] * 59, r"sample_weight has shape \(59,\) for 60 samples"),
        (["heavy"] * 60, "sample_weight must hold numbers only"),
    ],
)
def test_odd_weights_are_refused(weights, message):
    X, y = make_data()
    with pytest.raises(ValueError, match=message):
        L20Selector(3).fit(X, y, sample_weight=weights)


def test_weights_that_leave_nothing_to_tell_apart_are_refused():
    X, y = make_data()
    with pytest.raises(ValueError, match="sample_weight leaves one class only, '2'"):
        L20Selector(3).fit(X, y, sample_weight=y == 2)
    with pytest.raises(ValueError, match="y is constant over the 2 samples with a positive weight"):
        L20Selector(3).fit(X, np.r_[1.0, 1.0, np.arange(58) / 3.0], sample_weight=np.arange(60) < 2)


def test_a_series_of_weights_is_read_by_position():
    X, y = make_data()
    weights = pd.Series(np.arange(60) % 3, index=np.arange(60)[::-1])
    assert np.array_equal(L20Selector(3).fit(X, y, weights).scores_, L20Selector(3).fit(X, y, weights.to_numpy()).scores_)


def test_weights_are_routed_to_where_they_are_asked_for():
    X, y = make_data()
    weights = np.random.default_rng(0).uniform(size=60) < 0.5
    with config_context(enable_metadata_routing=True):
        selector = L20Selector(3).set_fit_request(sample_weight=True)
        pipeline = make_pipeline(selector, LogisticRegression().set_fit_request(sample_weight=False))
        pipeline.fit(X, y, sample_weight=weights)
        assert np.array_equal(pipeline[0].scores_, L20Selector(3).fit(X, y, weights).scores_)
        assert not np.array_equal(pipeline[0].scores_, L20Selector(3).fit(X, y).scores_)
        folds = KFold(3)
        scorer = make_scorer(accuracy_score).set_score_request(sample_weight=False)
        given = {"sample_weight": weights}
        found = cross_validate(pipeline, X, y, cv=folds, scoring=scorer, params=given, return_estimator=True)
    for fitted, (train, _) in zip(found["estimator"], folds.split(X), strict=True):
        assert np.array_equal(fitted[0].scores_, L20Selector(3).fit(X[train], y[train], weights[train]).scores_)
