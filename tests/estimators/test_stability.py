"""StabilitySelector as an estimator: checks, answers, seeds, processes, routing."""

from __future__ import annotations

import re

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from libraries import array_api_failures
from samples import INFORMATIVE, make_data
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning
from sklearn.feature_selection import RFE, VarianceThreshold
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import has_fit_parameter

from l20fs import AHIHT, Constraints, L20Classifier, L20Selector, L20SelectorCV, StabilitySelector, methods
from l20fs.data import make_planted
from l20fs.evaluation.resampling import plan_pairs
from l20fs.evaluation.stability_index import expected_false, nogueira
from l20fs.inputs.targets import Targets, encode_targets, with_weights
from l20fs.methods import FisherScore

#: What an unsupervised selector knows of the targets of 60 samples.
NOTHING = Targets(np.empty((60, 0)), None, None)


def expected_failures(estimator):
    """Weights do not stand for repeated samples where samples are drawn; and not every selector takes them."""
    drawn = ["check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data"]
    handed = ["pandas_series", "not_an_array", "list", "shape", "not_overwritten"]
    failures = dict.fromkeys(drawn, "samples are drawn, whatever they weigh")
    if estimator.selector is not None and not has_fit_parameter(estimator.selector, "sample_weight"):
        failures |= dict.fromkeys([f"check_sample_weights_{name}" for name in handed], "the selector takes no weights")
        failures["check_all_zero_sample_weights_error"] = "the selector takes no weights"
    return failures | array_api_failures(estimator)


@pytest.mark.filterwarnings("ignore:n_features_to_select=.* is greater than n_features")
@pytest.mark.filterwarnings("ignore:n_features_to_select=.*, but the resamples selected only")
@parametrize_with_checks(
    [
        StabilitySelector(n_resamples=4),
        StabilitySelector(methods.FisherScore(2), n_resamples=4),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def fit(selector=None, k=None, data=None, **parameters):
    X, y = make_data(0, 60, 20) if data is None else data
    parameters = {"n_resamples": 10, "random_state": 0} | parameters
    return StabilitySelector(L20Selector(3) if selector is None else selector, n_features_to_select=k, **parameters).fit(
        X, y
    )


def clear_data():
    """Each class has a feature of its own that tells it apart."""
    X, y = make_data(0, 60, 20)
    X[:, INFORMATIVE] = np.random.default_rng(0).standard_normal((60, 3)) + 6.0 * np.eye(3)[y]
    return X, y


FITTED = ["orders_", "sizes_", "frequencies_", "mean_ranks_", "ranking_", "support_", "selected_", "scores_"]


def assert_same(one, other):
    for name in FITTED:
        a, b = getattr(one, name), getattr(other, name)
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b, err_msg=name)
    assert (
        np.array([one.stability_, *one.stability_interval_]).tobytes()
        == np.array([other.stability_, *other.stability_interval_]).tobytes()
    )


def slow_orders(selector, X, y, stable, k):
    """Fit the selector to each half, one by one, and read its best k."""
    pairs = plan_pairs(encode_targets(y), None, 0.5, stable.random_state)
    for i in range(stable.n_resamples):
        fitted = clone(selector).fit(X[pairs.rows(i)], y[pairs.rows(i)])
        yield np.argsort(fitted.ranking_)[:k]


def test_frequencies_ranks_and_selections_are_those_of_single_fits():
    X, y = make_data(0, 60, 20)
    selector = L20Selector(4, max_features_to_select=7)
    stable = fit(selector, data=(X, y))
    orders = np.array(list(slow_orders(selector, X, y, stable, 7)))
    np.testing.assert_array_equal(stable.orders_, orders)
    assert stable.sizes_.tolist() == [4] * 10
    for k in range(1, 8):
        frequencies = [np.mean([j in order[:k] for order in orders]) for j in range(20)]
        np.testing.assert_array_equal(stable.frequencies_at(k), frequencies)
        np.testing.assert_allclose(stable.frequencies_by_k()[k - 1], frequencies, rtol=1e-15)
        np.testing.assert_array_equal(stable.frequencies_by_k([5, 2])[k - 1], stable.frequencies_by_k()[k - 1, [5, 2]])
        Z = np.array([[j in order[:k] for j in range(20)] for order in orders])
        assert stable.stability_at(k) == nogueira(Z)
        if k == 4:
            np.testing.assert_array_equal(stable.frequencies_, frequencies)
            np.testing.assert_array_equal(stable.selected_, Z)
            assert (stable.stability_, *stable.stability_interval_) == tuple(np.array(nogueira(Z))[[0, 2, 3]])
    ranks = [np.mean([order.tolist().index(j) + 1 if j in order else 8 for order in orders]) for j in range(20)]
    np.testing.assert_allclose(stable.mean_ranks_, ranks, rtol=1e-14)
    by_hand = sorted(range(20), key=lambda j: (-stable.frequencies_[j], ranks[j], j))
    assert np.argsort(stable.ranking_).tolist() == by_hand


def test_standard_errors_are_those_of_the_means_of_the_pairs():
    stable = fit(L20Selector(6), n_resamples=30)
    frame = stable.to_frame()
    pairs = stable.selected_.reshape(15, 2, 20).mean(axis=1)
    expected = pairs.std(axis=0, ddof=1) / np.sqrt(15)
    columns = [int(name[1:]) for name in frame["feature"]]
    np.testing.assert_allclose(frame["standard_error"], expected[columns], rtol=1e-9, atol=1e-12)
    assert expected.max() > 0.05
    assert fit(n_resamples=2).to_frame()["standard_error"].isna().all()


def test_ties_go_to_the_better_mean_rank_and_then_to_the_lower_index():
    """Of two equal columns FisherScore takes the lower first; a third is always the very best."""
    X, y = make_data(0, 60, 12)
    X[:, 6] = X[:, 1] = y + 0.1 * X[:, 1]
    X[:, 7] = y
    stable = fit(FisherScore(3), 2, data=(X, y))
    assert stable.frequencies_[[1, 6, 7]].tolist() == [1.0, 1.0, 1.0]
    assert stable.mean_ranks_[[1, 6, 7]].tolist() == [2.0, 3.0, 1.0]
    assert stable.get_support(indices=True).tolist() == [1, 7]


def test_the_error_bound_is_that_of_the_fit():
    stable = fit(L20Selector(3), threshold=0.7)
    assert stable.error_bound_ == stable.error_bound() == pytest.approx(9 / 20 / 0.4)
    assert stable.error_bound(0.9) == pytest.approx(9 / 20 / 0.8)
    assert stable.error_bound(0.9, kind="unimodal") == expected_false(3, 20, 0.9, 5, "unimodal")
    with pytest.raises(ValueError, match=r"threshold=0\.5 has no error bound"):
        stable.set_params(threshold=0.5).error_bound()
    assert np.isnan(stable.error_bound_)
    assert stable.set_params(threshold=0.51).error_bound_ == expected_false(3, 20, 0.51, 5)
    with pytest.raises(ValueError, match="kind='other' is unknown"):
        stable.error_bound(0.9, kind="other")


def test_the_error_bound_of_a_number_of_features_is_that_of_the_least_frequent_one():
    """Whatever the threshold is, which then selects nothing."""
    stable = fit(L20Selector(5, ridge=10.0, scale="zscore"), n_resamples=20)
    levels = np.sort(stable.frequencies_)[::-1]
    assert levels[0] == 1.0
    assert np.count_nonzero(levels) < 20
    for k in range(1, 21):
        stable.set_params(n_features_to_select=k, threshold=0.99)
        level = levels[min(k, np.count_nonzero(levels)) - 1]
        if level > 0.5:
            assert stable.error_bound_ == stable.error_bound() == expected_false(5, 20, level, 10)
        else:
            assert np.isnan(stable.error_bound_)
            with pytest.raises(ValueError, match=rf"threshold={level} has no error bound"):
                stable.error_bound()
    assert min(levels[levels > 0.5]) < 0.99


def test_sizes_may_differ_between_resamples():
    X, y = make_data(0, 60, 20)
    alpha = 0.5 * L20Selector(3).fit(X, y).path_.alphas[2]
    selector = L20Selector(None, solver=AHIHT(alpha_min=alpha))
    stable = fit(selector, data=(X, y), n_resamples=20)
    assert len(set(stable.sizes_)) > 1
    pairs = plan_pairs(encode_targets(y), None, 0.5, 0)
    for i in range(20):
        expected = clone(selector).fit(X[pairs.rows(i)], y[pairs.rows(i)]).support_
        np.testing.assert_array_equal(stable.selected_[i], expected)
        assert np.count_nonzero(stable.orders_[i] >= 0) == stable.sizes_[i] == expected.sum()
    np.testing.assert_array_equal(stable.frequencies_, stable.selected_.mean(axis=0))
    np.testing.assert_array_equal(stable.frequencies_by_k()[-1], stable.frequencies_)
    assert stable.stability_ == nogueira(stable.selected_).index
    assert stable.error_bound(0.8) == pytest.approx(stable.sizes_.mean() ** 2 / 20 / 0.6)
    many = fit(L20Selector(None, solver=AHIHT(alpha_min=alpha), max_features_to_select=15), data=(X, y), n_resamples=20)
    assert many.orders_.shape == (20, 15)
    np.testing.assert_array_equal(many.frequencies_, stable.frequencies_)


def test_e17_nothing_selected_anywhere():
    X, y = make_data(0, 60, 20)
    stable = fit(L20Selector(None, solver=AHIHT(alpha_min=1e9)), data=(X, y))
    assert not stable.frequencies_.any()
    assert np.isnan(stable.stability_)
    assert stable.error_bound_ == 0.0
    assert stable.to_frame().empty
    with pytest.warns(UserWarning, match="No features were selected"):
        assert stable.transform(X).shape == (60, 0)


def test_e3_permuting_features_permutes_the_answer():
    X, y = make_data(0, 60, 20)
    order = np.random.default_rng(1).permutation(20)
    stable, permuted = fit(data=(X, y)), fit(data=(X[:, order], y))
    np.testing.assert_array_equal(permuted.frequencies_, stable.frequencies_[order])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("Selector", [L20Selector, *methods.discover().values()], ids=lambda selector: selector.__name__)
def test_every_method_runs_and_keeps_its_answers(Selector):
    X, y = clear_data()
    selector = Selector().set_params(n_features_to_select=4)
    stable = fit(selector, data=(X, y), n_resamples=4)
    assert stable.orders_.shape == (4, 4)
    rows = plan_pairs(encode_targets(y) if Selector.about.supervised else NOTHING, None, 0.5, 0).rows(3)
    expected = clone(selector).fit(X[rows], y[rows])
    np.testing.assert_array_equal(stable.selected_[3], expected.support_)
    assert not hasattr(selector, "ranking_"), "what is given is not fitted"
    if Selector.about.supervised and Selector.__name__ != "Baseline":
        assert stable.frequencies_[INFORMATIVE].mean() == 1.0


def test_selectors_of_other_packages_that_rank():
    X, y = make_data(0, 60, 12)
    rfe = RFE(LogisticRegression(), n_features_to_select=3)
    stable = fit(rfe, data=(X, y), n_resamples=4)
    assert stable.sizes_.tolist() == [3] * 4
    rows = plan_pairs(encode_targets(y), None, 0.5, 0).rows(2)
    np.testing.assert_array_equal(stable.selected_[2], clone(rfe).fit(X[rows], y[rows]).support_)
    with pytest.raises(TypeError, match=r"VarianceThreshold has no ranking_ and support_ after fit\. Use a sel"):
        fit(VarianceThreshold())


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_resamples": 1}, "n_resamples=1 is not valid. Use a whole number at least 2"),
        ({"n_resamples": 7}, "n_resamples=7 is odd, but the halves come in pairs. Use an even number"),
        ({"n_resamples": 4.0}, "n_resamples=4.0 is not valid"),
        ({"threshold": 0.0}, "threshold=0.0 is not valid. Use a number above 0.0 and up to 1.0"),
        ({"threshold": np.nan}, "threshold=nan is not valid"),
        ({"k": 0}, "n_features_to_select=0 is not valid"),
    ],
    ids=str,
)
def test_parameters_without_meaning_are_refused(parameters, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        fit(**parameters)


def test_a_failing_resample_is_named():
    X, y = make_data(0, 60, 20)
    for n_jobs in (1, 2):
        with pytest.raises(ValueError, match=r"Resample \d+ of 10, with 30 samples, failed: rate=2 is not valid"):
            fit(L20Selector(3, solver=AHIHT(rate=2)), data=(X, y), n_jobs=n_jobs)
    # Of three donors one has both classes: whoever has only the first is now and then alone, or with its like.
    donors = np.repeat([0, 1, 2], 20)
    labels = np.where(donors == 1, np.arange(60) % 2, donors // 2)
    with pytest.raises(ValueError, match=r"Resample \d+ of 10, with \d+ samples, has one class only, '0'.* groups with"):
        StabilitySelector(L20Selector(3), n_resamples=10, random_state=0).fit(X, labels, groups=donors)
    with pytest.raises(ValueError, match="Resample 1 of 10, with 1 samples, failed: Found array with 1 sample"):
        fit(methods.UDFS(2), data=(X[:3], None))


def test_more_features_than_there_are_get_one_warning():
    X, y = make_data()
    selector = StabilitySelector(L20Selector(X.shape[1] + 1), n_resamples=4, random_state=0)
    with pytest.warns(UserWarning, match="greater than n_features") as told:
        selector.fit(X, y)
    assert len(told) == 1


def test_a_resample_of_one_sample_says_so():
    selector = StabilitySelector(L20Selector(2, task="regression"), n_resamples=4, random_state=0)
    with pytest.raises(ValueError, match=r"Resample 1 of 4.*minimum of 2 is required by L20Selector"):
        selector.fit(np.eye(3), np.arange(3.0))


def test_e23_processes_change_nothing():
    X, y = make_data(0, 60, 20)
    selector = L20Selector(3, solver=AHIHT(init="gaussian"))
    parallel = fit(selector, data=(X, y), n_jobs=2)
    assert_same(parallel, fit(selector, data=(X, y)))
    with joblib.parallel_config("threading", n_jobs=2):
        assert_same(fit(selector, data=(X, y)), parallel)


def test_weights_reach_the_selector():
    X, y = make_data(0, 60, 20)
    weights = np.random.default_rng(0).choice([0.0, 1.0, 5.0], 60)
    stable = StabilitySelector(L20Selector(3), n_resamples=4, random_state=0).fit(X, y, sample_weight=weights)
    pairs = plan_pairs(with_weights(encode_targets(y), weights), None, 0.5, 0)
    for i in range(4):
        rows = pairs.rows(i)
        assert weights[rows].all()
        expected = L20Selector(3).fit(X[rows], y[rows], sample_weight=weights[rows])
        np.testing.assert_array_equal(stable.selected_[i], expected.support_)
    assert np.any(stable.orders_ != fit(n_resamples=4).orders_)
    with pytest.raises(TypeError, match=r"FisherScore takes no sample_weight\. Leave it out, or use a selector"):
        StabilitySelector(FisherScore(3)).fit(X, y, sample_weight=weights)
    for bad in (np.full(60, np.nan), -weights, np.zeros(60), weights[:5]):  # E8, E19
        with pytest.raises(ValueError, match="sample_weight"):
            StabilitySelector().fit(X, y, sample_weight=bad)


def test_groups_reach_the_draws():
    X, y = make_data(0, 60, 20)
    groups = np.array([f"donor {i}" for i in np.arange(60) // 6])
    stable = StabilitySelector(L20Selector(3), n_resamples=4, random_state=0).fit(X, y, groups=groups)
    rows = plan_pairs(encode_targets(y), groups, 0.5, 0).rows(1)
    assert len(set(groups[rows])) == 5
    np.testing.assert_array_equal(stable.selected_[1], L20Selector(3).fit(X[rows], y[rows]).support_)


def test_selection_frame_is_tidy():
    stable = fit(L20Selector(4), threshold=0.5, n_resamples=20)
    frame = stable.to_frame()
    assert frame.columns.tolist() == ["feature", "rank", "stability", "standard_error", "mean_rank", "selected"]
    assert frame["rank"].tolist() == list(range(1, len(frame) + 1))
    assert len(frame) == np.count_nonzero(stable.frequencies_)
    assert frame["stability"].is_monotonic_decreasing
    assert (frame["selected"] == (frame["stability"] >= 0.5)).all()
    assert {f"x{j}" for j in INFORMATIVE} <= set(frame["feature"])


@pytest.mark.parametrize("container", [sp.csr_array, sp.csc_array, sp.coo_array, np.asfortranarray, pd.DataFrame])
def test_e12_e13_containers_give_the_same(container):
    X, y = make_data(0, 60, 20)
    X = np.where(X > 0, X, 0.0)
    given = container(X)
    assert_same(fit(data=(given, y)), fit(data=(X, y)))
    np.testing.assert_array_equal(given.toarray() if sp.issparse(given) else given, X)


def test_targets_of_several_columns_and_numbers():
    X, y = clear_data()
    for targets in (X[:, 2] + X[:, 5], np.eye(3)[y], np.column_stack([X[:, 2], X[:, 5]]), np.eye(3, dtype=int)[y]):
        assert fit(L20Selector(3), data=(X, targets)).frequencies_.max() == 1.0
    with pytest.warns(DataConversionWarning, match="A column-vector y was passed") as caught:
        column = fit(data=(X, y[:, None]))
    assert len(caught) == 1, "told once, not in every resample"
    assert_same(column, fit(data=(X, y)))


def test_planted_features_are_found_and_noise_is_not():
    X, y, informative = make_planted(n_samples=300, n_features=200, n_informative=4, random_state=1)
    stable = fit(L20Selector(8), data=(X, y), n_resamples=40)
    assert set(informative) == set(stable.get_support(indices=True))
    assert stable.stability_interval_[0] > 0.3


def grouped_data():
    """Of features 1, 4 and 9 none is much on its own; 9 is constant but for a few samples, 15 altogether."""
    X, y = clear_data()
    X[:, [1, 4]] += 0.7 * np.column_stack([y == 0, y == 1])
    X[:, 9] = np.isin(np.arange(60), np.flatnonzero(y == 2)[:2])
    X[:, 15] = 3.0
    return X, y


GROUPS = [[1, 4, 9, 15], [3, 12], [7, 8]]


def slow_units(stable, selector, X, y, k):
    """For each half the best k units, by name of their features: groups without the constant feature 15, or singles."""
    unit_of = {j: frozenset([j]) for j in range(20)} | {j: frozenset(g) - {15} for g in GROUPS for j in g if j != 15}
    pairs = plan_pairs(encode_targets(y), None, 0.5, 0)
    for i in range(stable.n_resamples):
        fitted = clone(selector).fit(X[pairs.rows(i)], y[pairs.rows(i)])
        ranks = {}
        for j in np.flatnonzero(np.isfinite(fitted.scores_)):
            ranks[unit_of[j]] = min(fitted.ranking_[j], ranks.get(unit_of[j], 99))
        yield sorted(ranks, key=ranks.get)[:k]


@pytest.mark.parametrize("sparse", [False, True])
def test_groups_are_counted_kept_and_dropped_together(sparse):
    X, y = grouped_data()
    selector = L20Selector(5, max_features_to_select=7, constraints=Constraints(groups=GROUPS))
    stable = fit(selector, data=(sp.csr_array(X) if sparse else X, y), n_resamples=20)
    best = list(slow_units(stable, selector, X, y, 7))
    assert stable.orders_.tolist() == [[min(unit) for unit in units] for units in best]
    assert stable.sizes_.tolist() == [5] * 20
    for k in range(1, 8):
        frequencies = [np.mean([any(j in unit for unit in units[:k]) for units in best]) for j in range(20)]
        np.testing.assert_array_equal(stable.frequencies_at(k), frequencies)
        np.testing.assert_allclose(stable.frequencies_by_k()[k - 1], frequencies, rtol=1e-15)
        np.testing.assert_array_equal(stable.frequencies_by_k([9, 5, 1])[k - 1], stable.frequencies_by_k()[k - 1, [9, 5, 1]])
        heads = [j for j in range(20) if j not in (4, 9, 12, 8)]
        Z = np.array([[any(j in unit for unit in units[:k]) for j in heads] for units in best])
        np.testing.assert_allclose(stable.stability_at(k), nogueira(Z), rtol=1e-12)
    frequencies = stable.frequencies_
    np.testing.assert_array_equal(frequencies, stable.frequencies_at(5))
    np.testing.assert_array_equal(frequencies, stable.selected_.mean(axis=0))
    assert 0.0 < frequencies[1] < 1.0
    assert frequencies[15] == 0.0, "it is constant, and no part of its group"
    for name in ("frequencies_", "mean_ranks_", "standard_errors_", "ranking_"):
        values = getattr(stable, name)
        assert values[1] == values[4] == values[9], name
        assert values[3] == values[12], name
    assert sorted(set(stable.ranking_)) == list(range(1, 17))
    assert stable.error_bound(0.8) == pytest.approx(25 / 16 / 0.6)
    for k in range(1, 8):
        support = stable.set_params(n_features_to_select=k).support_
        assert len(set(stable.ranking_[support])) == k
        np.testing.assert_array_equal(support, stable.ranking_ <= k)
    assert stable.set_params(n_features_to_select=0.25).support_.sum() == (stable.ranking_ <= 4).sum(), "a quarter of 16"
    frame = stable.to_frame()
    assert len(frame) == np.count_nonzero(frequencies)
    assert frame["rank"].is_monotonic_increasing
    with pytest.raises(ValueError, match="k=8 is more than the 7 features and groups that are kept"):
        stable.frequencies_at(8)
    with pytest.warns(UserWarning, match=r"n_features_to_select=16, but .* only \d+ of 16 features and groups"):
        fit(selector, 16, data=(X, y))


def test_groups_of_a_selector_inside_another():
    X, y = grouped_data()
    inner = L20Selector(constraints=Constraints(groups=GROUPS))
    for selector in (
        L20SelectorCV(5, selector=inner, sizes=range(1, 7), cv=2),
        StabilitySelector(
            L20Selector(5, constraints=Constraints(groups=GROUPS)), n_features_to_select=5, n_resamples=4, random_state=0
        ),
        L20Classifier(5, constraints=Constraints(groups=GROUPS)),
    ):
        stable = fit(selector, data=(X, y), n_resamples=4)
        assert stable.frequencies_[1] == stable.frequencies_[9]
        assert stable.ranking_.max() == 16
        assert stable.sizes_.tolist() == [5] * 4


@pytest.mark.parametrize("by_factor", [False, True])
def test_forced_features_are_no_evidence_of_stability(by_factor):
    """The index and the bound of forced features and a free choice are those of the free choice alone."""
    X, y = make_data(0, 60, 20)
    X[:, 12:] = np.random.default_rng(1).standard_normal((60, 8))
    forced, banned = [12, 15, 16, 19], [2, 13]
    factors = np.ones(20)
    factors[forced], factors[banned] = 0.0, np.inf
    wishes = Constraints(costs=factors) if by_factor else Constraints(include=forced, exclude=banned)
    stable = fit(L20Selector(7, max_features_to_select=9, constraints=wishes), data=(X, y), n_resamples=20)
    assert (stable.frequencies_[forced] == 1.0).all()
    assert (stable.frequencies_[banned] == 0.0).all()
    free = np.setdiff1d(np.arange(20), forced + banned)
    expected = nogueira(stable.selected_[:, free])
    np.testing.assert_allclose([stable.stability_, *stable.stability_interval_], np.array(expected)[[0, 2, 3]], rtol=1e-12)
    assert expected.index < nogueira(stable.selected_).index - 0.1
    assert stable.error_bound(0.8) == pytest.approx(3**2 / 14 / 0.6)
    assert stable.stability_at(7).index == stable.stability_
    for k in (1, 4):
        assert np.isnan(stable.stability_at(k).index), "nothing but what is included"
    assert stable.sizes_.tolist() == [7] * 20
