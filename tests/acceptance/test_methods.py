"""All published methods: stored scores (make_methods.py), formulas, scikit-learn, and the numbers of other packages."""

from __future__ import annotations

import json

import numpy as np
import pytest
from acceptance import doors, make_methods
from sklearn.datasets import load_digits
from sklearn.feature_selection import RFE, chi2
from sklearn.linear_model import Lasso, MultiTaskLasso
from sklearn.metrics import mutual_info_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC

STORED = json.loads(make_methods.FILE.read_text())
TABLES = make_methods.tables()
by_table = pytest.mark.parametrize("table", TABLES)


def fit(name, table, **options):
    return make_methods.fit(name, STORED["methods"][name]["parameters"] | options, *TABLES[table])


@by_table
@pytest.mark.parametrize("name", doors.method_names())
def test_scores_and_ranking_are_those_that_were_stored(name, table):
    found, stored = fit(name, table), np.array(STORED["methods"][name]["scores"][table])
    near = 1e-6 * max(stored)
    np.testing.assert_allclose(found.scores_, stored, rtol=1e-6, atol=near)
    order = np.argsort(found.ranking_)
    assert found.ranking_[order].tolist() == list(range(1, len(stored) + 1))
    assert np.diff(stored[order]).max() <= near
    assert np.flatnonzero(found.support_).tolist() == sorted(order[:4])


@by_table
def test_filters_are_their_formulas(table):
    X, y = TABLES[table]
    of_class = [X[y == c] for c in np.unique(y)]
    between = sum(len(own) * (own.mean(axis=0) - X.mean(axis=0)) ** 2 for own in of_class)
    within = sum(len(own) * own.var(axis=0) for own in of_class)
    np.testing.assert_allclose(fit("FisherScore", table).scores_, between / within, rtol=1e-9)
    states = np.floor((X - X.min(axis=0)) / np.ptp(X, axis=0) * 4.0 * (1.0 - 1e-12))
    counts = make_methods.fit("ChiSquare", {"counts": True, "rank_by": "statistic"}, states, y)
    np.testing.assert_allclose(counts.scores_, chi2(states, y)[0], rtol=1e-9)
    gain = make_methods.fit("InformationGain", {"criterion": "gain", "binning": "floor"}, states, y).scores_
    np.testing.assert_allclose(gain, [mutual_info_score(x, y) / np.log(2.0) for x in states.T], rtol=1e-9)
    assert fit("Baseline", table).ranking_.tolist() == list(range(1, X.shape[1] + 1))


@by_table
def test_embedded_methods_are_the_estimators_of_scikit_learn(table):
    X, y = TABLES[table]
    X, Y = X - X.mean(axis=0), np.eye(max(y) + 1)[y] - np.eye(max(y) + 1)[y].mean(axis=0)
    pulls, options = 0.2 * np.abs(X.T @ Y) / len(X), {"tol": 1e-12, "max_iter": 100_000}
    of_classes = [Lasso(alpha=pulls.max(), **options).fit(X, target).coef_ for target in Y.T]
    joint = MultiTaskLasso(alpha=np.linalg.norm(pulls, axis=1).max(), **options).fit(X, Y).coef_
    for name, weights in (("LassoOVR", of_classes), ("L21", joint)):
        lengths = np.linalg.norm(weights, axis=0)
        found, is_in = fit(name, table, ranking="norm", alpha=0.2).scores_, lengths > 0.0
        np.testing.assert_allclose(found[is_in], lengths[is_in], rtol=1e-4)
        assert found[~is_in].max() < found[is_in].min()
    machines = OneVsRestClassifier(SVC(kernel="linear", C=1.0, tol=1e-6))
    peer = RFE(machines, n_features_to_select=1, importance_getter=lambda own: np.vstack([m.coef_ for m in own.estimators_]))
    assert fit("SVMRFE", table, step=1, tol=1e-6).ranking_.tolist() == peer.fit(X / X.std(axis=0), y).ranking_.tolist()


@by_table
def test_reweighted_methods_are_their_iterations(table):
    """RFS: min sum |x_i W - y_i| + gamma sum |w_j|. RLSR: importances theta of the rescaled regression."""
    X, y = TABLES[table]
    Y, p, s = np.eye(max(y) + 1)[y], np.ones(X.shape[1]), np.ones(len(X))
    for _ in range(3000):
        W = p[:, None] * (X.T @ np.linalg.solve((X * p) @ X.T + np.diag(s), Y))
        p, s = (2.0 * np.sqrt(np.square(E).sum(axis=1) + 1e-20) for E in (W, X @ W - Y))
    np.testing.assert_allclose(fit("RFS", table, gamma=1.0).scores_, p / 2.0, atol=1e-4 * p.max())
    X, Y, theta = X - X.mean(axis=0), Y - Y.mean(axis=0), np.full(X.shape[1], 1.0 / X.shape[1])
    for _ in range(3000):
        V = theta[:, None] * (X.T @ np.linalg.solve((X * theta) @ X.T + np.eye(len(X)), Y))
        theta = np.linalg.norm(V, axis=1) / np.linalg.norm(V, axis=1).sum()
    np.testing.assert_allclose(fit("RLSR", table, gamma=1.0).scores_, theta, atol=1e-4 * theta.max())


def relief_table(n, d, shares, seed):
    random = np.random.default_rng(seed)
    y = random.permutation(np.repeat(np.arange(len(shares)), np.rint(np.multiply(shares, n)).astype(int)))
    X = random.standard_normal((n, d)) * np.logspace(-2, 2, d)
    X[:, 0] += 0.02 * y
    X[:, 3] *= 1 + y
    return X, y


def planted():
    random = np.random.default_rng(0)
    X = random.standard_normal((63, 300))
    signal = X[:, np.sort(random.choice(300, 10, replace=False))] @ random.standard_normal((10, 4))
    return X, (signal + 0.5 * signal.std() * random.standard_normal(signal.shape)).argmax(axis=1)


def test_relieff_is_that_of_skrebate():
    for name, table in (("two classes", (50, 12, [0.4, 0.6], 1)), ("five balanced classes", (100, 15, [0.2] * 5, 2))):
        options = {"n_neighbors": 10, "variant": "relieff", "task": "classification"}
        found = make_methods.fit("ReliefF", options, *relief_table(*table))
        np.testing.assert_allclose(found.scores_, STORED["peers"]["skrebate"][name], rtol=0, atol=1e-12)


def test_mrmr_is_that_of_mrmr_selection_and_of_scikit_feature():
    X, y = (part[:400] for part in load_digits(return_X_y=True))
    tables = {"digits": (X[:, np.ptp(X, axis=0) > 0], y), "planted": planted(), "srbct": doors.builtin("srbct")}
    for peer, options in (("skfeature", {"variant": "mid", "binning": "floor"}), ("mrmr_selection", {"variant": "fcq"})):
        for name in tables.keys() & STORED["peers"][peer]:
            stored, ranking = STORED["peers"][peer][name], make_methods.fit("MRMR", options, *tables[name]).ranking_
            assert np.argsort(ranking)[: len(stored)].tolist() == stored
