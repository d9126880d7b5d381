"""What predicts from the selected features: rules, probabilities and panels, each from its definition.

A classifier is a discriminant analysis of least-squares predictions; its probabilities are a softmax of its scores, beside
the class shares of the samples, that is calibrated on samples that the rule has not seen; a panel is the model, also where
features are missing, as text and as ONNX.
"""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import product

import numpy as np
import pandas as pd
import pytest
from acceptance import doors
from scipy.optimize import minimize_scalar
from scipy.special import softmax
from sklearn.linear_model import Ridge
from sklearn.model_selection import StratifiedKFold

NAMES, RIDGE, K, N = np.array(["ape", "bee", "cat"]), 0.5, 4, 45
SIZES, ONES = [1, 2, 3, 4], np.ones(N)
SPLITS = [(np.delete(np.arange(N), test), test) for test in np.random.default_rng(5).permutation(N).reshape(5, 9)]
OPTIONS = {"solver": "forward", "loss": "squared", "scale": "none", "fit_intercept": True, "class_weight": "balanced"}
kinds = pytest.mark.parametrize("kind", [2, 3, 0, -1], ids=["two", "three", "number", "numbers"])


def draw(kind):
    """Return samples of two or three classes, or with one (0) or two (-1) numbers, their weights, and new samples."""
    rng = np.random.default_rng(kind + 1)
    X = rng.standard_normal((2 * N, 10)) @ rng.standard_normal((10, 10))
    Y = X[:, :3] @ rng.standard_normal((3, 3)) + 3.0 * rng.standard_normal((2 * N, 3))
    y = NAMES[Y[:, :kind].argmax(axis=1)] if kind > 0 else Y[:, : 1 - kind].squeeze()
    X = pd.DataFrame(X, columns=[f"g{j}" for j in range(10)]).assign(g9=2.0)
    return X[:N], y[:N], rng.choice([0.5, 1.0, 3.0], N), X[N:].reset_index(drop=True)


def fit(X, y, weights, **options):
    own = {"model": "classifier", "calibration": SPLITS} if y.dtype.kind == "U" else {"model": "regressor"}
    return doors.fit(X, y, K, sample_weight=weights, limit=K, ridge=RIDGE, **OPTIONS | own | options)


def search(X, y, class_weight="balanced", **options):
    template = doors.selector(K, task="classification", ridge=RIDGE, **OPTIONS | {"class_weight": class_weight})
    return doors.search(X, y, 3, selector=template, sizes=SIZES, cv=SPLITS, scoring="neg_log_loss", **options)


def targets(y):
    return (y[:, None] == np.unique(y)).astype(float) if y.dtype.kind == "U" else y.reshape(len(y), -1)


def strength(X, weights):
    """Return mu: the ridge in units of the mean energy of the features that vary."""
    energies = weights @ np.square(X - np.average(X, axis=0, weights=weights))
    return RIDGE * energies[energies > 1e-9].mean()


def discriminant(s, y, weights, class_weight):
    """Return weights and intercepts of class scores, which add up to zero, from predictions of the indicators."""
    sizes = weights @ targets(y)
    factors = 1.0 / sizes if class_weight == "balanced" else [(class_weight or {}).get(name, 1.0) for name in np.unique(y)]
    priors, centres = sizes * factors / np.sum(sizes * factors), (targets(y).T * weights) @ s / sizes[:, None]
    within = ((s - targets(y) @ centres).T * weights) @ (s - targets(y) @ centres) / weights.sum()
    spread = np.trace(within) + priors @ np.square(centres - priors @ centres).sum(axis=1)
    axes = np.linalg.solve(within + 0.01 * spread / len(sizes) * np.eye(len(sizes)), centres.T)
    level = np.log(priors) - 0.5 * (centres * axes.T).sum(axis=1)
    return axes - axes.mean(axis=1, keepdims=True), level - level.mean()


def expected_values(rows, X, y, weights, new, class_weight="balanced"):
    """Return the scores of the classes, or the numbers, of new samples by a model on some features."""
    model = Ridge(alpha=strength(X.values, weights)).fit(X.values[:, rows], targets(y), weights)
    if y.dtype.kind != "U":
        return model.predict(new.values[:, rows]).reshape(len(new), -1)
    axes, level = discriminant(model.predict(X.values[:, rows]), y, weights, class_weight)
    return model.predict(new.values[:, rows]) @ axes + level


def values_of(model, y, X, *k):
    """Return the scores of the classes, or the numbers, by a model of the package."""
    found = (model.decision_function if y.dtype.kind == "U" else model.predict)(X, *k).reshape(len(X), -1)
    return found * [-0.5, 0.5] if len(np.unique(y)) == 2 else found  # that of the second class less that of the first


@kinds
@pytest.mark.parametrize("class_weight", ["balanced", None, {"ape": 1.0, "bee": 3.0}], ids=str)
def test_rules_are_a_discriminant_analysis_of_least_squares_or_a_ridge_regression(kind, class_weight):
    X, y, weights, new = draw(kind)
    for given, k in product((ONES, weights), SIZES):
        fitted = fit(X, y, given, class_weight=class_weight).at(k)
        expected = expected_values(fitted.support(), X, y, given, new, class_weight)
        np.testing.assert_allclose(values_of(fitted.estimator, y, new), expected, rtol=1e-7, atol=1e-9)


def shares_of(y, weights, class_weight="balanced"):
    """Return the shares of the classes among the samples, and those that a rule decides with."""
    sizes = weights @ targets(y)
    factors = 1.0 / sizes if class_weight == "balanced" else np.ones(len(sizes))
    return sizes / sizes.sum(), sizes * factors / np.sum(sizes * factors)


def probabilities(scores, slope, doubt, shares):
    scores = slope * (scores - np.log(shares[1])) + np.log(shares[0])
    return (1.0 - doubt) * softmax(scores, axis=-1) + doubt * softmax(0.25 * scores, axis=-1)


def calibrated(values, y, weights, shares):
    """Return the slopes of several rules, (n_rules, n_samples, n_classes), and the share of doubt that they have in common.

    Both minimise the log loss: first each slope without doubt, then the doubt, with one of 13 factors from 1 to 8 for all
    slopes. One sample of unknown class is added.
    """
    share, factors, exact = 1 / (weights.sum() + 1), np.geomspace(1.0, 8.0, 13), {"xatol": 1e-10}
    belief = weights[:, None] * ((1.0 - share) * targets(y) + share * shares[0])

    def loss(slope, doubt, values):
        return -np.sum(belief * np.log(probabilities(values, slope, doubt, shares)))

    slopes = np.array([minimize_scalar(loss, bounds=(0, 50), args=(0, v), options=exact).x for v in values])[:, None, None]
    found = [minimize_scalar(lambda d, f=f: loss(f * slopes, d, values), bounds=(0, 0.9), options=exact) for f in factors]
    best = np.argmin([each.fun for each in found])
    return factors[best] * slopes.ravel(), found[best].x


@pytest.mark.parametrize("class_weight", ["balanced", None])
@pytest.mark.parametrize("kind", [2, 3])
def test_folds_calibrate_by_selections_and_rules_without_their_test_samples(kind, class_weight):
    X, y, weights, new = draw(kind)
    values = np.zeros((K, N, kind))
    for (train, test), k in product(SPLITS, SIZES):
        part = X.iloc[train], y[train], weights[train]
        own = fit(*part, class_weight=class_weight, calibration=None)
        values[k - 1, test] = expected_values(own.support(k), *part, X.iloc[test], class_weight)
    shares = shares_of(y, weights, class_weight)
    slopes, doubt = calibrated(values, y, weights, shares)
    fitted = fit(X, y, weights, class_weight=class_weight)
    searched = search(X, y, class_weight, sample_weight=weights)
    for k, model in (*((k, fitted.at(k)) for k in SIZES), (3, searched.final)):
        scores = expected_values(fitted.support(k), X, y, weights, new, class_weight)
        expected = probabilities(scores, 1.25 * slopes[k - 1], doubt, shares)
        np.testing.assert_allclose(model.predict_proba(new), expected, rtol=2e-5)
        assert np.array_equal(model.predict(new), NAMES[scores.argmax(axis=1)]), "which class_weight decides"
    for fold, (train, test) in enumerate(SPLITS):  # is calibrated by the others where it is scored
        slopes, doubt = calibrated(values[:, train], y[train], ONES[train], shares)
        for k in SIZES:
            of_truth = probabilities(values[k - 1, test], slopes[k - 1], doubt, shares)[targets(y)[test] > 0.0]
            assert searched.fold_scores[RIDGE, k][fold] == pytest.approx(np.log(of_truth).mean(), rel=1e-5)


def test_by_default_five_shuffled_folds_with_the_shares_of_the_classes_calibrate():
    X, y, _, new = draw(3)
    X, new = (np.hstack([part.values[:, :9], part.values[:, :9] ** 3, np.sin(part.values[:, :9])]) for part in (X, new))
    folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))
    by_default = doors.fit_by_default(X, y, model="classifier").predict_proba(new)
    for calibration in (5, folds):
        found = doors.fit(X, y, 20, model="classifier", calibration=calibration).predict_proba(new)
        np.testing.assert_allclose(by_default, found, rtol=1e-9)


@pytest.mark.parametrize("shares", [(0.7, 0.3), (0.7, 0.2, 0.1), (0.9, 0.1)], ids=str)
def test_probabilities_on_noise_are_the_shares_of_the_classes(shares):
    losses = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        y = np.repeat(NAMES[: len(shares)], np.round(100 * np.array(shares)).astype(int))
        found = doors.fit(rng.standard_normal((100, 300)), y, 10, model="classifier", calibration=5)
        chances = found.predict_proba(rng.standard_normal((500, 300)))
        losses.append(-(np.log(chances) @ shares).mean() + np.log(shares) @ shares)
    assert np.mean(losses) < 0.02 + 2.0 * np.std(losses) / np.sqrt(12)


def test_the_log_loss_of_folds_on_noise_is_that_of_guessing():
    streams = map(np.random.default_rng, range(20))
    found = [search(rng.standard_normal((N, 300)), NAMES[rng.permutation(N) % 2]).fold_scores for rng in streams]
    assert np.mean([list(scores.values()) for scores in found]) == pytest.approx(-np.log(2.0), abs=0.02)


def panel_of(kind):
    X, y, weights, new = draw(kind)
    fitted = fit(X, y, weights)
    return fitted, doors.panel(fitted, X, y, sample_weight=weights, n_substitutes=2), X, y, weights, new


@kinds
def test_a_panel_with_gaps_is_the_model_on_the_features_that_are_there(kind):
    _, panel, X, y, weights, new = panel_of(kind)
    names = doors.panel_features(panel)
    gaps = new.where(np.random.default_rng(0).random(new.shape) < 0.6).fillna({names[0]: 1.0})
    found = values_of(panel, y, gaps)
    for sample, row in gaps.groupby(level=0):
        there = X.columns.get_indexer([name for name in names if row[name].notna().all()])
        np.testing.assert_allclose(found[[sample]], expected_values(there, X, y, weights, row), rtol=1e-7, atol=1e-9)


@kinds
@pytest.mark.parametrize("k", [2, K])
def test_a_substitute_lowers_the_loss_most_and_the_weights_are_solved_anew(kind, k):
    _, panel, X, y, weights, new = panel_of(kind)
    names, peer = doors.panel_features(panel, K), Ridge(alpha=strength(X.values, weights))
    alike = X.iloc[:, :-1].corr().abs().drop(columns=names)
    others = [*names[k:], *{other for name in names for other in alike.loc[name].nlargest(2).index}]
    Y = targets(y) / (np.sqrt(weights @ targets(y)) if kind > 0 else 1.0)  # all classes weigh the same

    def loss(chosen):
        left = Y - peer.fit(X[chosen], Y, weights).predict(X[chosen]).reshape(Y.shape)
        return weights @ np.square(left).sum(axis=1) + peer.alpha * np.square(peer.coef_).sum()

    for gone in names[:k]:
        kept, there = [name for name in names[:k] if name != gone], new.drop(columns=gone)
        adapted, best = panel.adapted(there, k), min(others, key=lambda other, kept=kept: loss([*kept, other]))
        assert doors.panel_replaced(adapted) == {gone: best}
        expected = expected_values(X.columns.get_indexer([*kept, best]), X, y, weights, new)
        np.testing.assert_allclose(values_of(adapted, y, there), expected, rtol=1e-7, atol=1e-9)


@kinds
def test_a_panel_its_formula_its_r_code_and_its_onnx_model_are_the_model(kind, tmp_path):
    fitted, panel, _, y, _, new = panel_of(kind)
    panel.save(tmp_path / "panel.json")
    panel = doors.load_panel(tmp_path / "panel.json")
    for k in SIZES:
        expected = values_of(fitted.at(k).estimator, y, new)
        np.testing.assert_allclose(values_of(panel, y, new, k), expected, rtol=1e-8, atol=1e-10)
        if kind > 0:
            expected = fitted.at(k).predict_proba(new)
            np.testing.assert_allclose(panel.predict_proba(new, k), expected, rtol=1e-8)
            assert np.array_equal(panel.predict(new, k), fitted.at(k).predict(new))
    for sample, values in enumerate(expected):
        tables = defaultdict(dict, x=dict(new.iloc[sample]), exp=np.exp)
        exec(panel.formula(), {}, tables)
        assert list(tables["probability" if kind > 0 else "y"].values()) == pytest.approx(values)
    numbers = np.array(re.findall(r"-?\d+\.\d+(?:e[+-]\d+)?", panel.to_r()), dtype=float)
    for number in np.concatenate([np.ravel(part) for part in fitted.rule()]):
        assert number == 0.0 or np.isclose(numbers, number, rtol=1e-9).any()
    session = pytest.importorskip("onnxruntime").InferenceSession(panel.to_onnx().SerializeToString())
    found = session.run(None, {"X": new[doors.panel_features(panel)].values})
    np.testing.assert_allclose(found[-1], expected, rtol=1e-8, atol=1e-10)
    assert kind <= 0 or np.array_equal(found[0], fitted.predict(new))
