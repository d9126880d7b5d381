"""Rules on many numbers of features at once against one at a time."""

from __future__ import annotations

import numpy as np
import pytest
from reference import discriminant, values_of_rule
from samples import make_data

from l20fs import L20Classifier, L20Regressor
from l20fs.evaluation.engine import Samples, select
from l20fs.evaluation.folds import Fold
from l20fs.evaluation.judges import OwnPredictions, OwnRule, RefittedRule
from l20fs.inputs.targets import encode_targets, weights_of_targets
from l20fs.objective.class_scatter import class_scatter
from l20fs.objective.least_squares import LeastSquares
from l20fs.objective.nested_rules import NestedSquares
from l20fs.prediction.linear_rule import decide

DUPLICATES = np.array([0, 1, 2, 0, 3, 1, 4, 5, 2, 6])


def triangle_of(kind):
    """Return a triangle and right-hand sides of ten columns."""
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((30, 10)), rng.standard_normal((30, 3))
    if kind == "dependent":
        X = X[:, DUPLICATES]
    if kind == "zeros":
        X[:, 4] = 0.0
    if kind == "few samples":
        X, Y = X[:6], Y[:6]
    if kind == "close":
        X[:, 7] = X[:, 2] + 1e-12 * X[:, 7]
    if kind == "units":
        X *= 10.0 ** np.arange(-5, 5)
    Q, R = np.linalg.qr(X)
    return R, Q.T @ Y


#: How many of the first columns are clearly independent.
KINDS = {"plain": 10, "dependent": 3, "zeros": 4, "few samples": 6, "close": 7, "units": 8}


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("ends", [np.arange(11), np.array([2, 2, 5, 9]), np.array([0]), np.array([], dtype=int)], ids=len)
def test_least_squares_are_those_of_each_number_of_columns(kind, ends):
    R, B = triangle_of(kind)
    rng = np.random.default_rng(1)
    lines, square = rng.standard_normal((4, 10)), rng.standard_normal((10, 10))
    square = square + square.T
    found = NestedSquares.of(R, B, ends)
    products, scatters = found.products(lines), found.scatters(square)
    assert products.shape == (len(ends), 4, 3)
    assert scatters.shape == (len(ends), 3, 3)
    for place, end in enumerate(ends):
        weights = np.linalg.lstsq(R[:, :end], B, rcond=None)[0]
        close = {"rtol": 1e-9, "atol": 1e-9 * np.abs(weights).max(initial=1.0)}
        np.testing.assert_allclose(found.weights(end), weights, **close)
        np.testing.assert_allclose(products[place], lines[:, :end] @ weights, **close)
        close["atol"] *= np.abs(weights).max(initial=1.0)
        np.testing.assert_allclose(scatters[place], weights.T @ square[:end, :end] @ weights, **close)


@pytest.mark.parametrize(("kind", "n_clear"), list(KINDS.items()), ids=list(KINDS))
def test_only_columns_that_depend_on_others_are_solved_one_by_one(kind, n_clear):
    found = NestedSquares.of(*triangle_of(kind), np.arange(11))
    assert found.inverse.shape == (n_clear, n_clear)
    assert list(found.others) == list(range(n_clear + 1, 11))


def classified(n_classes=3, n_samples=40):
    X, y = make_data(n_samples=n_samples, n_features=14, n_classes=n_classes)
    return X, y


CASES = {
    "plain": {},
    "two classes": {"n_classes": 2},
    "no ridge": {"ridge": 0.0},
    "duplicates": {"ridge": 0.0, "columns": DUPLICATES},
    "few samples": {"ridge": 0.0, "n_samples": 8},
    "without an intercept": {"fit_intercept": False},
    "unbalanced": {"class_weight": None, "scale": "none"},
    "weights": {"sample_weight": True},
    "nuisances": {"adjust_for": True},
    "groups": {"feature_groups": np.repeat(np.arange(7), 2)},
    "costs": {"penalty_factor": np.arange(1.0, 15.0)},
    "included": {"include": [3, 13], "constant": 13},
    "swap": {"solver": "swap"},
    "hiht": {"solver": "hiht"},
    "ahiht": {"solver": "ahiht"},
    "by lambda": {"alpha": 1e9},
    "robust": {"loss": "l21"},
}


def fitted(make, case):
    """Return a model with the path of a case, and its X."""
    options = dict(CASES[case])
    X, y = classified(options.pop("n_classes", 3), options.pop("n_samples", 40))
    rng = np.random.default_rng(2)
    X = X[:, options.pop("columns", np.arange(14))]
    if "constant" in options:
        X[:, options.pop("constant")] = 2.0
    given = {}
    if options.pop("sample_weight", False):
        given["sample_weight"] = rng.choice([0.0, 0.5, 1.0, 2.0], len(y))
    if options.pop("adjust_for", False):
        given["adjust_for"] = np.tile(["north", "south"], len(y) // 2)
    if make is L20Regressor:
        y = y + rng.standard_normal(len(y))
    n_units = len(set(options.get("feature_groups", np.arange(X.shape[1])).tolist()))
    return make(2, max_features=n_units, **options).fit(X, y, **given), X


@pytest.mark.filterwarnings("ignore:.*(constant|do not vary|vary|idle)")
@pytest.mark.parametrize("case", list(CASES))
@pytest.mark.parametrize("make", [L20Classifier, L20Regressor])
def test_values_of_all_sizes_are_those_of_each(make, case):
    model, X = fitted(make, case)
    ends = np.arange(model.path_.refit_triangle.shape[1] + 1)
    rules = model.models_on(ends)
    found = rules.apply(X[:, rules.rows])
    for end, rule in zip(ends, rules, strict=True):
        expected = values_of_rule(model, X, end)
        close = {"rtol": 1e-9, "atol": 1e-9 * np.abs(expected[np.isfinite(expected)]).max()}
        np.testing.assert_allclose(found[:, end], expected, **close)
        np.testing.assert_allclose(rule.apply(X[:, rule.rows]), expected, **close)
        np.testing.assert_array_equal(rule.rows, model.path_.order[:end])


@pytest.mark.filterwarnings("ignore:.*(constant|do not vary|vary|idle)")
@pytest.mark.parametrize("case", list(CASES))
def test_a_rule_has_the_features_of_its_size(case):
    model, _ = fitted(L20Classifier, case)
    for k in range(max(1, model.path_.least_size), model.path_.n_ranked + 1):
        np.testing.assert_array_equal(model.model_for(k).rows, model.order_for(k))


def test_more_than_the_path_has_is_refused():
    model = L20Classifier(3).fit(*classified())
    with pytest.raises(ValueError, match=r"refit\(k=4\): the path can be refitted up to k=3. Fit with max_features=4"):
        model.models_on(np.array([1, 4]))


class Part:
    """Samples that give their columns and nothing else, as those on a device do."""

    def __init__(self, X):
        self._X, self.shape = X, X.shape

    def __getitem__(self, key):
        rows, columns = key
        assert rows == slice(None)
        return self._X[:, columns]


def a_fold(y):
    """Return training samples without the last class, and test samples with it."""
    is_test = (np.arange(len(y)) % 4 == 0) | (y == y.max())
    return Fold(np.flatnonzero(~is_test), np.flatnonzero(is_test))


@pytest.mark.parametrize("needs", ["labels", "probabilities"])
@pytest.mark.parametrize("n_classes", [3, 4])
def test_predictions_in_a_fold_are_those_of_the_rules_where_a_class_is_missing(needs, n_classes):
    X, y = classified(n_classes, 60)
    fold = a_fold(y)
    selection = select(
        L20Classifier(calibration=None), Samples(X[fold.train], y[fold.train]), [1, 2, 5, 30], one_ranking=True
    )
    train, test = (Samples(Part(X[rows]), y[rows]) for rows in fold)
    found = OwnPredictions(needs, np.arange(n_classes))(selection, train, test)
    values = OwnRule()(selection, train, test)
    for place, end in enumerate([1, 2, 5, 14]):
        expected = values_of_rule(selection.selector, X[fold.test], end)
        np.testing.assert_allclose(values[:, place], expected, rtol=1e-9, atol=1e-9)
        if needs == "labels":
            np.testing.assert_array_equal(found.needed[:, place], decide(expected))
        else:
            assert np.isneginf(found.needed[:, place, -1]).all()
            scores = expected * [-0.5, 0.5] if n_classes == 3 else expected
            np.testing.assert_allclose(found.needed[:, place, :-1], scores, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("ridge", [0.0, 2.0])
@pytest.mark.parametrize("columns", [np.arange(10), DUPLICATES], ids=["plain", "duplicates"])
def test_refitted_rules_are_those_of_each_size(task, ridge, columns):
    X, y = classified(3, 60)
    X, y = X[:, columns], y if task == "classification" else y + X[:, 1]
    fold = a_fold(y)
    train, test = (Samples(X[rows], y[rows]) for rows in fold)
    model = L20Classifier(calibration=None, scale="zscore") if task == "classification" else L20Regressor(scale="zscore")
    selection = select(model.set_params(ridge=ridge), train, [1, 3, 4, 7], one_ranking=True)
    found = RefittedRule(ridge, task=task)(selection, train, test)
    targets = encode_targets(train.y, task)
    for place, features in enumerate(selection.features):
        problem = LeastSquares(
            train.X[:, features],
            targets.Y,
            ridge=ridge,
            scale="zscore",
            target_weights=weights_of_targets(targets, "balanced"),
        )
        triangle, sides = problem.factor(np.arange(len(features)))
        weights, intercept = np.linalg.lstsq(triangle, sides, rcond=None)[0] / problem.y_scale, problem.y_mean
        if task == "classification":
            weights, intercept = discriminant(class_scatter(problem, np.arange(len(features)), targets, "balanced"), weights)
        expected = (test.X[:, features] - problem.design.mean) / problem.design.scale @ weights + intercept
        np.testing.assert_allclose(found[:, place], expected, rtol=1e-9, atol=1e-9)
