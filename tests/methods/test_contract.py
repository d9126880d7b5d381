"""One suite for every selector that discovery finds: whoever adds a method is tested here without another line."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from libraries import array_api_failures
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from l20fs import L20Selector, methods
from l20fs.estimators.scoring import SolvesForOneK
from l20fs.methods import discover

CLASSES = [L20Selector, *discover().values()]
SUPERVISED = [selector for selector in CLASSES if selector.about.supervised]
by_name = pytest.mark.parametrize("Selector", CLASSES, ids=lambda selector: selector.__name__)
supervised_by_name = pytest.mark.parametrize("Selector", SUPERVISED, ids=lambda selector: selector.__name__)

pytestmark = [
    # Small random data of a check are no place to ask for 20 features, nor for convergence to the last digit.
    pytest.mark.filterwarnings("ignore:n_features_to_select=.* is greater than n_features"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:No features were selected"),
]


@parametrize_with_checks([selector() for selector in discover().values()], expected_failed_checks=array_api_failures)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


SCALED = [selector for selector in CLASSES if "scale" in selector().get_params()]


@pytest.mark.parametrize("Selector", SCALED, ids=lambda selector: selector.__name__)
@pytest.mark.parametrize("rule", ["moderated", "zscore", "auto"])
def test_a_scaling_is_the_division_by_hand(Selector, rule):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((40, 12)) * np.geomspace(0.5, 8.0, 12)
    y = np.arange(40) % 2
    X[:, -3:] += 2.0 * X[:, -3:].std(axis=0) * y[:, None]  # of large deviation, so that "auto" is "moderated"
    deviations = X.std(axis=0)
    divisors = deviations + (0.0 if rule == "zscore" else np.median(deviations))
    found = Selector(4, scale=rule).fit(X, y)
    expected = Selector(4, scale="none").fit(X / divisors, y)
    np.testing.assert_array_equal(found.ranking_, expected.ranking_)
    np.testing.assert_allclose(found.scores_, expected.scores_, rtol=1e-5)


@pytest.fixture(scope="module")
def data():
    """Sixty samples in three classes; features 3, 11 and 17 of 25 shift with the class, each for another one."""
    random = np.random.default_rng(0)
    y = random.permutation(np.arange(60) % 3)
    X = random.standard_normal((60, 25))
    for label, feature in enumerate((3, 11, 17)):
        X[:, feature] += 4.0 * (y == label)
    return X, y


INFORMATIVE = {3, 11, 17}


def fit(Selector, X, y, k=3, sizes=()):
    selector = Selector().set_params(n_features_to_select=k)
    if issubclass(Selector, SolvesForOneK):
        selector.set_params(sizes=sizes)
    return selector.fit(X, y)


@by_name
@pytest.mark.filterwarnings("ignore:n_features_to_select=.* goes beyond")
def test_any_k_gives_k_distinct_features_and_a_nested_or_solved_answer(Selector, data):
    X, y = data
    selector = fit(Selector, X, y, sizes=(1, 2, 7, 24, 25))
    for k in (1, 2, 7, 24, 25):
        selector.set_params(n_features_to_select=k)
        assert selector.support_.sum() == k
        assert sorted(selector.ranking_.tolist()) == list(range(1, 26))
        assert selector.transform(X).shape == (60, k)
        assert np.array_equal(selector.support_, selector.ranking_ <= k)


one_k_by_name = pytest.mark.parametrize(
    "Selector", [s for s in CLASSES if issubclass(s, SolvesForOneK)], ids=lambda s: s.__name__
)


@one_k_by_name
def test_a_method_for_one_k_answers_for_the_sizes_that_fit_was_asked_for(Selector, data):
    X, y = data
    selector = fit(Selector, X, y, sizes=[7, 2, 40])
    assert sorted(selector.solutions_) == [2, 3, 7, 25]
    for k in (3, 2, 7, 25, 30):
        alone = Selector(min(k, 25)).fit(X, y)
        assert np.array_equal(selector.at(k).support_, alone.support_)
        assert np.array_equal(selector.at(k).coef_, alone.coef_)
        for copy in (selector.at(k), pickle.loads(pickle.dumps(selector)).set_params(n_features_to_select=k)):
            for attribute in ("coef_", "objective_", "n_iter_", "ranking_", "scores_", "loss_"):
                assert np.array_equal(getattr(copy, attribute), getattr(alone, attribute))
            assert np.array_equal(copy.transform(X), alone.transform(X))
    assert selector.n_features_to_select == 3


@one_k_by_name
def test_a_method_for_one_k_says_to_fit_again_for_another(Selector, data):
    X, y = data
    selector = fit(Selector, X, y, sizes=[7])
    message = r"n_features_to_select=5 was not solved for, only 3, 7: each number is a problem of its own\. Fit again"
    for attribute in ("support_", "coef_"):
        with pytest.raises(ValueError, match=message):
            getattr(selector.at(5), attribute)
    with pytest.raises(ValueError, match=r"n_features_to_select=0 is not valid"):
        selector.at(0)
    selector.set_params(n_features_to_select=5)
    for attribute in ("support_", "coef_", "scores_", "ranking_", "objective_", "n_iter_", "loss_"):
        with pytest.raises(ValueError, match=message):
            getattr(selector, attribute)
    with pytest.raises(ValueError, match=message):
        selector.transform(X)
    assert not any(isinstance(value, np.ndarray) and value.shape == X.shape for value in vars(selector).values())
    for wrong in (5, [0], ["a"]):
        with pytest.raises(ValueError, match=r"sizes=.* is not"):
            Selector(sizes=wrong).fit(X, y)
    with pytest.raises(AttributeError, match="no attribute 'weight_'"):
        _ = selector.weight_


@supervised_by_name
def test_informative_features_come_first(Selector, data):
    X, y = data
    if Selector.__name__ == "Baseline":
        pytest.skip("Baseline takes the columns as they come")
    selector = fit(Selector, X, y)
    assert set(selector.get_support(indices=True)) == INFORMATIVE


@by_name
def test_input_is_untouched_and_the_result_repeats(Selector, data):
    X, y = data
    X_before, y_before = X.copy(), y.copy()
    one, two = fit(Selector, X, y), fit(Selector, X, y)
    assert np.array_equal(X, X_before)
    assert np.array_equal(y, y_before)
    assert np.array_equal(one.scores_, two.scores_)
    copy = pickle.loads(pickle.dumps(one))
    assert np.array_equal(copy.ranking_, one.ranking_)
    assert np.array_equal(copy.transform(X), one.transform(X))
    assert clone(one).get_params() == one.get_params()


@by_name
def test_reading_changes_nothing(Selector, data):
    X, y = data
    selector = fit(Selector, X, y)
    before, fresh = list(vars(selector)), pickle.dumps(selector)
    for name in dir(selector):
        if not name.startswith("_"):
            getattr(selector, name, None)
    assert list(vars(selector)) == before
    expected = pickle.loads(fresh)
    assert np.array_equal(selector.scores_, expected.scores_)
    assert np.array_equal(selector.transform(X), expected.transform(X))


@supervised_by_name
def test_renaming_classes_changes_nothing(Selector, data):
    X, y = data
    selector = fit(Selector, X, y)
    renamed = fit(Selector, X, np.array(["pear", "apple", "fig"])[y])
    assert np.allclose(renamed.scores_, selector.scores_, rtol=1e-6, atol=1e-9)
    assert renamed.classes_.tolist() == ["apple", "fig", "pear"]


@by_name
def test_permuting_features_permutes_the_answer(Selector, data):
    X, y = data
    if Selector.__name__ == "Baseline":
        pytest.skip("Baseline takes the columns as they come")
    order = np.random.default_rng(1).permutation(25)
    selector, permuted = fit(Selector, X, y), fit(Selector, X[:, order], y)
    assert set(order[permuted.get_support(indices=True)]) == set(selector.get_support(indices=True))


@by_name
def test_the_order_of_the_samples_does_not_matter(Selector, data):
    X, y = data
    order = np.random.default_rng(2).permutation(60)
    assert np.array_equal(fit(Selector, X, y).support_, fit(Selector, X[order], y[order]).support_)


@by_name
def test_a_constant_feature_comes_last_and_is_not_selected(Selector, data):
    X, y = data
    constant = X.copy()
    constant[:, 5] = 0.1
    constant[:, 0] = -7.0
    selector = fit(Selector, constant, y)
    assert selector.scores_[[0, 5]].tolist() == [-np.inf, -np.inf]
    assert set(selector.ranking_[[0, 5]]) == {24, 25}
    assert np.isfinite(np.delete(selector.scores_, [0, 5])).all()
    with pytest.warns(UserWarning, match="only 23 of 25 features vary"):
        many = fit(Selector, constant, y, k=25)
    assert not many.support_[[0, 5]].any()
    with pytest.raises(ValueError, match="All 4 features of X are constant"):
        fit(Selector, np.ones((60, 4)), y)


@by_name
def test_names_survive(Selector, data):
    X, y = data
    frame = pd.DataFrame(X, columns=[f"gene {j}" for j in range(25)])
    selector = fit(Selector, frame, y).set_output(transform="pandas")
    chosen = [f"gene {j}" for j in selector.get_support(indices=True)]
    assert selector.get_feature_names_out().tolist() == chosen
    assert selector.transform(frame).columns.tolist() == chosen


@by_name
def test_missing_values_are_refused_by_name(Selector, data):
    X, y = data
    frame = pd.DataFrame(X.copy(), columns=[f"gene {j}" for j in range(25)])
    frame.iloc[3, 4] = np.nan
    if Selector()._takes_missing:
        assert fit(Selector, frame, y).__sklearn_tags__().input_tags.allow_nan
        return
    with pytest.raises(ValueError, match=r"1 missing values \(NaN\), first in 'gene 4'\. Impute"):
        fit(Selector, frame, y)


@by_name
def test_iterative_methods_report_their_progress(Selector, data):
    X, y = data
    if not hasattr(fit(Selector, X, y), "n_iter_") or Selector is L20Selector:
        pytest.skip("not iterative, or tested on its own")
    seen = []
    selector = Selector(callback=seen.append).set_params(n_features_to_select=3).fit(X, y)
    assert [progress.n_iter for progress in seen] == list(range(1, len(seen) + 1))
    if Selector is methods.SVMRFE:
        assert [progress.objective for progress in seen] == [*selector.n_survivors_[1:], 0]
        return
    assert len(selector.objective_) == selector.n_iter_ == len(seen)
    assert [progress.objective for progress in seen] == selector.objective_.tolist()


@supervised_by_name
@pytest.mark.parametrize("y", [["a"] * 60, None, [0.5, 1.5] * 29], ids=["one class", "none", "wrong length"])
def test_bad_targets_are_refused(Selector, data, y):
    with pytest.raises(ValueError, match=r"one class only|requires y|inconsistent numbers of samples|Unknown label"):
        fit(Selector, data[0], y)


def edge_case(name):
    random = np.random.default_rng(3)
    X, y = random.standard_normal((24, 80)), np.arange(24) % 3
    X[:, :4] += 3.0 * y[:, None]
    if name == "duplicate features":
        X[:, 40:] = X[:, :40]
    elif name == "duplicate samples":
        X[12:], y = X[:12], np.tile(np.arange(12) % 3, 2)
    elif name == "class with one sample":
        y = np.where(np.arange(24) == 5, 2, np.arange(24) % 2)
    elif name == "two classes":
        y = y % 2
    elif name == "more samples than features":
        X, y = np.vstack([X[:, :8], X[:, 20:28]]), np.tile(y, 2)
    elif name == "perfect feature":
        X, y = random.standard_normal((24, 80)), y % 2
        X[:, 6] = 10.0 * y
    return X, y


CASES = [
    "more features than samples",
    "more samples than features",
    "duplicate features",
    "duplicate samples",
    "class with one sample",
    "two classes",
    "perfect feature",
]


@by_name
def test_edge_cases(Selector):
    for case in CASES:
        X, y = edge_case(case)
        selector = fit(Selector, X, y)
        assert selector.support_.sum() == 3, case
        assert np.isfinite(selector.scores_).all(), case
        # RFS as published has no intercept, so that a feature that is 0 in one class cannot fit that class.
        if case == "perfect feature" and Selector.about.supervised and Selector not in (methods.Baseline, methods.RFS):
            assert selector.ranking_[6] == 1
        if case == "duplicate features" and Selector.about.kind == "filter":
            # Of two equal features the lower index comes first; methods that fit them together may share or shift weight.
            assert np.all(selector.ranking_[:40] < selector.ranking_[40:])


@by_name
def test_shifting_the_features_changes_nothing(Selector, data):
    X, y = data
    if Selector in (methods.RFS, methods.Baseline):
        pytest.skip("RFS as published has no intercept; Baseline ignores the values")
    assert np.array_equal(fit(Selector, X + 100.0, y).support_, fit(Selector, X, y).support_)
