"""scikit-learn's array API checks on every estimator that claims it, less what they say of attributes."""

from __future__ import annotations

import functools
import inspect

import pytest
from libraries import MOVERS, needs_sklearn
from samples import make_data
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import (
    estimator_checks_generator,
)

import l20fs
from l20fs import L20Selector
from l20fs.estimators.base import BaseSelector

pytestmark = [
    needs_sklearn("1.9", "its checks of estimators that take arrays of a device have other parameters"),
    pytest.mark.filterwarnings("ignore:n_features_to_select=.* is greater than n_features"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]

PUBLIC = [
    value for name in l20fs.__all__ if inspect.isclass(value := getattr(l20fs, name)) and issubclass(value, BaseSelector)
]
SELECTORS = [Selector() for Selector in PUBLIC if Selector._takes_device_arrays]
SELECTORS = sorted(SELECTORS, key=lambda selector: type(selector).__name__)
NAMES = [type(selector).__name__ for selector in SELECTORS]


class Reduces(TransformerMixin, BaseEstimator):
    """A selector that shows no attributes of its fit, so that the checks go on to what it does with X."""

    def __init__(self, selector):
        self.selector = selector

    def fit(self, X, y):
        self.fitted_ = [clone(self.selector).fit(X, y)]
        return self

    def transform(self, X):
        return self.fitted_[0].transform(X)

    def inverse_transform(self, X):
        return self.fitted_[0].inverse_transform(X)

    def __sklearn_tags__(self):
        return get_tags(self.selector)


def name_of(check):
    while isinstance(check, functools.partial):
        check = check.func
    return check.__name__


def arguments_of(check):
    """Return namespaces, devices and types as a text."""
    return "-".join(
        "+".join(map(str, value)) if isinstance(value, tuple) else str(value) for value in check.keywords.values()
    )


def array_api_checks():
    """Each check that scikit-learn itself would run, but for the one whose statement does not hold."""
    for selector, name in zip(SELECTORS, NAMES, strict=True):
        for estimator, check in estimator_checks_generator(Reduces(selector)):
            kind = name_of(check)
            if "array_api" in kind and kind != "check_array_api_same_namespace":
                yield pytest.param(estimator, check, id=f"{name}-{kind}-{arguments_of(check)}")


@pytest.mark.parametrize(("estimator", "check"), list(array_api_checks()))
def test_scikit_learn_array_api_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("move", MOVERS)
def test_the_way_back_refuses_other_columns(move):
    X, y = make_data()
    selector = L20Selector(3).fit(X, y)
    with pytest.raises(ValueError, match=r"X has the shape \(60, 2\), but 3 features are selected\. Give the columns"):
        selector.inverse_transform(move(X[:, :2]))
