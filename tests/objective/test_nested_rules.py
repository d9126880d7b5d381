"""Rules on many numbers of features at once against one at a time."""

from __future__ import annotations

import numpy as np
import pytest
from reference import values_of_rule
from samples import make_data

from l20fs import AHIHT, Constraints, L20Classifier, L20Regressor

DUPLICATES = np.array([0, 1, 2, 0, 3, 1, 4, 5, 2, 6])


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
    "groups": {"constraints": Constraints(groups=np.repeat(np.arange(7), 2))},
    "costs": {"constraints": Constraints(costs=np.arange(1.0, 15.0))},
    "included": {"constraints": Constraints(include=[3, 13]), "constant": 13},
    "swap": {"solver": "swap"},
    "hiht": {"solver": "hiht"},
    "ahiht": {"solver": "ahiht"},
    "by lambda": {"solver": AHIHT(alpha_min=1e9)},
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
        options.pop("class_weight", None)
        y = y + rng.standard_normal(len(y))
    groups = options["constraints"].groups if "constraints" in options else None
    n_units = X.shape[1] if groups is None else len(set(groups.tolist()))
    return make(2, max_features_to_select=n_units, **options).fit(X, y, **given), X


@pytest.mark.filterwarnings("ignore:.*(constant|do not vary|vary|idle)")
@pytest.mark.parametrize("case", list(CASES))
@pytest.mark.parametrize("make", [L20Classifier, L20Regressor])
def test_values_of_all_sizes_are_those_of_each(make, case):
    model, X = fitted(make, case)
    ends = np.arange(model.path_.refit_triangle.shape[1] + 1)
    rules = model._models_on(ends)
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
        np.testing.assert_array_equal(model.at(k)._linear_rule().rows, model._order_for(k))


def test_more_than_the_path_has_is_refused():
    model = L20Classifier(3).fit(*classified())
    with pytest.raises(
        ValueError, match=r"refit\(k=4\): the path can be refitted up to k=3. Fit with max_features_to_select=4"
    ):
        model._models_on(np.array([1, 4]))
