"""StabilitySelector as an estimator: checks, answers, seeds, checkpoints, processes, routing."""

from __future__ import annotations

import pickle
import re
import tracemalloc
from copy import deepcopy

import joblib
import numpy as np
import pandas as pd
import polars
import pytest
import scipy.sparse as sp
import sklearn
from libraries import array_api_failures
from matplotlib.figure import Figure
from samples import INFORMATIVE, contents, make_data, make_frame
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.feature_selection import RFE, VarianceThreshold
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.parallel import Parallel
from sklearn.utils.validation import has_fit_parameter

from l20fs import AHIHT, L20Classifier, L20Regressor, L20Selector, L20SelectorCV, StabilitySelector, methods
from l20fs.data import make_planted
from l20fs.evaluation import parallel as parallel_module
from l20fs.evaluation.resampling import plan_pairs
from l20fs.evaluation.stability_index import expected_false, nogueira
from l20fs.inputs.targets import Targets, encode_targets, numeric_targets, with_weights
from l20fs.methods import FisherScore
from l20fs.plots import StabilityDisplay

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


@pytest.mark.parametrize("selector", [None, FisherScore(), methods.UDFS()], ids=repr)
def test_tags_are_those_of_the_selector(selector):
    tags, expected = get_tags(StabilitySelector(selector)), get_tags(selector or L20Selector())
    assert tags.target_tags == expected.target_tags
    assert tags.input_tags.sparse == expected.input_tags.sparse


def fit(selector=None, k=None, data=None, **parameters):
    X, y = make_data(0, 60, 20) if data is None else data
    parameters = {"n_resamples": 10, "random_state": 0} | parameters
    return StabilitySelector(L20Selector(3) if selector is None else selector, k, **parameters).fit(X, y)


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
    pairs = plan_pairs(encode_targets(y), None, stable.fraction, stable.random_state)
    for i in range(stable.n_resamples):
        fitted = clone(selector).fit(X[pairs.rows(i)], y[pairs.rows(i)])
        yield np.argsort(fitted.ranking_)[:k]


@pytest.mark.parametrize("fraction", [0.5, 0.3])
def test_frequencies_ranks_and_selections_are_those_of_single_fits(fraction):
    X, y = make_data(0, 60, 20)
    selector = L20Selector(4, max_features=7)
    stable = fit(selector, data=(X, y), fraction=fraction)
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
    frame = stable.selection_frame()
    pairs = stable.selected_.reshape(15, 2, 20).mean(axis=1)
    expected = pairs.std(axis=0, ddof=1) / np.sqrt(15)
    columns = [int(name[1:]) for name in frame["feature"]]
    np.testing.assert_allclose(frame["standard_error"], expected[columns], rtol=1e-9, atol=1e-12)
    assert expected.max() > 0.05
    assert fit(n_resamples=2).selection_frame()["standard_error"].isna().all()


def test_the_answer_follows_threshold_and_number_without_a_second_fit(monkeypatch):
    X, y = make_data(0, 60, 20)
    stable = fit(L20Selector(5), data=(X, y))
    monkeypatch.setattr(StabilitySelector, "_run", None)
    for threshold in (0.1, 0.5, 0.7, 1.0):
        stable.set_params(threshold=threshold)
        np.testing.assert_array_equal(stable.support_, stable.frequencies_ >= threshold)
        assert stable.transform(X).shape == (60, stable.support_.sum())
    for k in (1, 3, np.int64(5), 0.25):
        stable.set_params(n_features_to_select=k)
        wanted = 5 if k == 0.25 else k
        np.testing.assert_array_equal(stable.support_, stable.ranking_ <= wanted)
    found = np.count_nonzero(stable.frequencies_)
    assert found < 20
    stable.set_params(n_features_to_select=20)
    np.testing.assert_array_equal(stable.support_, stable.frequencies_ > 0)
    with pytest.raises(ValueError, match=r"threshold=1\.5 is not valid\. Use a number above 0\.0 and up to 1\.0"):
        _ = stable.set_params(n_features_to_select=None, threshold=1.5).support_
    with pytest.raises(ValueError, match="n_features_to_select=0 is not valid"):
        _ = stable.set_params(n_features_to_select=0).support_


def test_e16_more_features_than_were_selected_is_a_warning():
    with pytest.warns(
        UserWarning, match=r"n_features_to_select=20, but the resamples selected only \d+ of 20 features; these"
    ):
        fit(L20Selector(2), 20)


def test_ties_go_to_the_better_mean_rank_and_then_to_the_lower_index():
    """Of two equal columns FisherScore takes the lower first; a third is always the very best."""
    X, y = make_data(0, 60, 12)
    X[:, 6] = X[:, 1] = y + 0.1 * X[:, 1]
    X[:, 7] = y
    stable = fit(FisherScore(3), 2, data=(X, y))
    assert stable.frequencies_[[1, 6, 7]].tolist() == [1.0, 1.0, 1.0]
    assert stable.mean_ranks_[[1, 6, 7]].tolist() == [2.0, 3.0, 1.0]
    assert stable.get_support(indices=True).tolist() == [1, 7]


def test_a_k_beyond_what_is_kept_is_refused():
    stable = fit(L20Selector(3, max_features=5))
    assert stable.orders_.shape == (10, 5)
    message = (
        r"k=6 is more than the 5 features that are kept .* Fit with a selector that selects 6, or that has max_features=6"
    )
    for method in (stable.frequencies_at, stable.stability_at):
        with pytest.raises(ValueError, match=message):
            method(6)
        with pytest.raises(ValueError, match="k=0 is not valid"):
            method(0)
        with pytest.raises(NotFittedError):
            getattr(StabilitySelector(), method.__name__)(1)


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
    selector = L20Selector(None, alpha=alpha)
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
    many = fit(L20Selector(None, alpha=alpha, max_features=15), data=(X, y), n_resamples=20)
    assert many.orders_.shape == (20, 15)
    np.testing.assert_array_equal(many.frequencies_, stable.frequencies_)


def test_e17_nothing_selected_anywhere():
    X, y = make_data(0, 60, 20)
    stable = fit(L20Selector(None, alpha=1e9), data=(X, y))
    assert not stable.frequencies_.any()
    assert np.isnan(stable.stability_)
    assert stable.error_bound_ == 0.0
    assert stable.selection_frame().empty
    with pytest.warns(UserWarning, match="No features were selected"):
        assert stable.transform(X).shape == (60, 0)


def test_e1_features_that_are_constant_in_a_half_are_not_selected_there():
    """A feature that is 1 for a single sample varies in the halves that hold it; one that never varies is never selected."""
    X, y = make_data(0, 24, 10)
    X[:, 0] = 0.0
    X[:, 1] = np.arange(24) == 5
    stable = fit(L20Selector(1, max_features=10), data=(X, y))
    has_it = [5 in plan_pairs(encode_targets(y), None, 0.5, 0).rows(i) for i in range(10)]
    assert stable.frequencies_at(9)[[0, 1]].tolist() == [0.0, 0.5]
    np.testing.assert_array_equal((stable.orders_ == 1).any(axis=1), has_it)


def test_e6_a_class_with_one_sample_fits_and_is_warned_about():
    X, y = make_data(0, 60, 20)
    y[7] = 3
    stable = StabilitySelector(L20Selector(3), n_resamples=4, random_state=0)
    with pytest.warns(UserWarning, match=r"1 of 4 classes in one sample only: '3'\. One half of each pair") as caught:
        stable.fit(X, y)
    assert caught[0].filename == __file__
    assert stable.sizes_.tolist() == [3] * 4


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


def test_a_selector_that_decides_on_the_number_itself():
    stable = fit(methods.CFS(None), data=clear_data(), n_resamples=6)
    assert stable.sizes_.min() >= 1
    assert stable.selected_.sum() == stable.sizes_.sum()


def test_selectors_of_other_packages_that_rank():
    X, y = make_data(0, 60, 12)
    rfe = RFE(LogisticRegression(), n_features_to_select=3)
    stable = fit(rfe, data=(X, y), n_resamples=4)
    assert stable.sizes_.tolist() == [3] * 4
    rows = plan_pairs(encode_targets(y), None, 0.5, 0).rows(2)
    np.testing.assert_array_equal(stable.selected_[2], clone(rfe).fit(X[rows], y[rows]).support_)
    with pytest.raises(TypeError, match=r"VarianceThreshold has no ranking_ and support_ after fit\. Use a sel"):
        fit(VarianceThreshold())


class Correlation(BaseEstimator):
    """A selector of another package: it needs y, and its tags do not say so."""

    def fit(self, X, y=None):
        if y is None:
            raise ValueError("requires y")
        self.ranking_ = np.argsort(np.argsort(-np.abs((X - X.mean(axis=0)).T @ (y - y.mean())))) + 1
        self.support_ = self.ranking_ <= 3
        return self


def test_y_reaches_selectors_of_other_packages_whatever_their_tags_say():
    X, y = make_data(0, 60, 12)
    assert not get_tags(Correlation()).target_tags.required
    for targets, pairs in (
        (y, plan_pairs(encode_targets(y), None, 0.5, 0)),
        (X[:, 4] + 1.0, plan_pairs(encode_targets(X[:, 4]), None, 0.5, 0)),
    ):
        stable = fit(Correlation(), data=(X, targets), n_resamples=4)
        for i in range(4):
            rows = pairs.rows(i)
            np.testing.assert_array_equal(stable.selected_[i], Correlation().fit(X[rows], targets[rows]).support_)
    nested = fit(fit(Correlation(), data=(X, y), n_resamples=2), data=(X, y), n_resamples=2)
    assert nested.selected_.any()
    with pytest.raises(ValueError, match="Resample 1 of 10, with 30 samples, failed: requires y"):
        fit(Correlation(), data=(X, None))
    for wrong in (y[:5], np.where(y == 0, np.nan, y)):
        with pytest.raises(ValueError, match=r"inconsistent numbers of samples|Input y contains NaN"):
            fit(Correlation(), data=(X, wrong))


def test_unsupervised_methods_see_no_y():
    """Their halves are drawn without it: what it holds does not matter."""
    X, y = make_data(0, 60, 12)
    for selector in (methods.UDFS(2), StabilitySelector(methods.UDFS(2), n_resamples=2, random_state=0)):
        without = fit(selector, data=(X, None), n_resamples=4)
        for ignored in (y, np.zeros(60), np.full(60, np.nan)):
            assert_same(fit(selector, data=(X, ignored), n_resamples=4), without)


def test_a_pipeline_is_refused_with_the_way_out(monkeypatch):
    monkeypatch.setattr(StabilitySelector, "_run", None)
    way_out = r"selector is a Pipeline, .* in front: make_pipeline\(\.\.\., StabilitySelector\(L20Selector\(\.\.\.\)\)\)"
    with pytest.raises(TypeError, match=way_out):
        fit(make_pipeline(StandardScaler(), L20Selector(4)))


def test_seeds_of_random_selectors():
    """Where the selector has no seed, each resample has its own; a seed that was given is kept."""
    seen = {None: [], 7: []}

    class Spy(L20Selector):
        def fit(self, X, y=None, sample_weight=None):
            seen[wanted].append(self.solver.random_state)
            return super().fit(X, y, sample_weight)

    np.random.seed(0)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    for wanted in (None, None, 7):
        fit(Spy(3, solver=AHIHT(init="gaussian", random_state=wanted)))
    assert seen[7] == [7] * 10
    assert len(set(seen[None])) == 10
    assert seen[None][:10] == seen[None][10:]
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_random_states():
    X, y = make_data(0, 60, 20)
    assert_same(fit(data=(X, y), random_state=5), fit(data=(X, y), random_state=np.int32(5)))
    assert_same(
        fit(data=(X, y), random_state=np.random.RandomState(5)), fit(data=(X, y), random_state=np.random.RandomState(5))
    )
    one, two = fit(data=(X, y), random_state=None), fit(data=(X, y), random_state=None)
    assert np.any(one.orders_ != two.orders_)
    assert np.any(fit(data=(X, y), random_state=5).orders_ != fit(data=(X, y), random_state=6).orders_)
    # More resamples are the same ones, and more.
    np.testing.assert_array_equal(fit(data=(X, y), n_resamples=6).orders_, fit(data=(X, y)).orders_[:6])
    for wrong in (-1, 1.5, "seed", True):
        with pytest.raises(ValueError, match=r"random_state=.* is not valid\. Use a whole number at least 0"):
            fit(random_state=wrong)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_resamples": 1}, "n_resamples=1 is not valid. Use a whole number at least 2"),
        ({"n_resamples": 7}, "n_resamples=7 is odd, but the halves come in pairs. Use an even number"),
        ({"n_resamples": 4.0}, "n_resamples=4.0 is not valid"),
        ({"fraction": 0.6}, "fraction=0.6 is not valid. Use a number above 0.0 and up to 0.5"),
        ({"fraction": 0.0}, "fraction=0.0 is not valid"),
        ({"fraction": True}, "fraction=True is not valid"),
        ({"threshold": 0.0}, "threshold=0.0 is not valid. Use a number above 0.0 and up to 1.0"),
        ({"threshold": np.nan}, "threshold=nan is not valid"),
        ({"k": 0}, "n_features_to_select=0 is not valid"),
        ({"checkpoint": "x", "random_state": None}, "random_state=None with a checkpoint: a resumed run would be another"),
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


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_e22_an_interrupted_fit_leaves_no_trace(n_jobs):
    X, y = make_data(0, 60, 20)

    def stop(progress):
        if progress.n_done == 2:
            raise KeyboardInterrupt

    fresh = StabilitySelector(L20Selector(3), n_resamples=10, callback=stop, n_jobs=n_jobs)
    with pytest.raises(KeyboardInterrupt):
        fresh.fit(X, y)
    with pytest.raises(NotFittedError):
        fresh.transform(X)
    assert not [name for name in vars(fresh) if name.endswith("_")]
    fitted = fit(data=(X, y))
    expected = pickle.loads(pickle.dumps(fitted))
    with pytest.raises(KeyboardInterrupt):
        fitted.set_params(callback=stop).fit(X[:, :7], y)
    assert_same(fitted, expected)
    assert fitted.n_features_in_ == 20


def test_e22_the_rest_is_cancelled_at_once(monkeypatch):
    """Not when the traceback, which a notebook keeps, happens to be forgotten."""
    ended = []

    class Watched(Parallel):
        def __call__(self, tasks):
            try:
                yield from super().__call__(tasks)
            finally:
                ended.append(True)

    def stop(progress):
        raise KeyboardInterrupt

    monkeypatch.setattr(parallel_module, "Parallel", Watched)
    with pytest.raises(KeyboardInterrupt) as caught:
        fit(callback=stop)
    assert ended
    assert caught.tb is not None


def test_e23_processes_change_nothing():
    X, y = make_data(0, 60, 20)
    seen = []
    selector = L20Selector(3, solver=AHIHT(init="gaussian"))
    parallel = fit(selector, data=(X, y), n_jobs=2, callback=seen.append)
    assert_same(parallel, fit(selector, data=(X, y)))
    assert seen == [(i, 10) for i in range(1, 11)]
    with joblib.parallel_config("threading", n_jobs=2):
        assert_same(fit(selector, data=(X, y)), parallel)


def test_progress_is_told(capsys):
    seen = []
    fit(n_resamples=4, callback=seen.append, verbose=1)
    assert [progress.n_done for progress in seen] == [1, 2, 3, 4]
    assert {progress.n_resamples for progress in seen} == {4}
    assert capsys.readouterr().out.splitlines() == [f"[StabilitySelector] {i} of 4 resamples" for i in range(1, 5)]


def test_c1_an_interrupted_and_resumed_fit_is_an_uninterrupted_one(tmp_path):
    X, y = make_data(0, 60, 20)
    selector = L20Selector(3, solver=AHIHT(init="gaussian"), max_features=5)

    def stop(progress):
        if progress.n_done == 4:
            raise KeyboardInterrupt

    whole = fit(selector, data=(X, y), checkpoint=tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        fit(selector, data=(X, y), checkpoint=tmp_path / "resumed", callback=stop)
    assert len(contents(tmp_path / "resumed")) == 4
    resumed = fit(selector, data=(X, y), checkpoint=tmp_path / "resumed")
    assert contents(tmp_path / "resumed") == contents(tmp_path / "whole")
    assert len(contents(tmp_path / "whole")) == 10
    for stable in (resumed, fit(selector, data=(X, y))):
        assert_same(stable, whole)


def test_c1_what_is_stored_is_not_computed_again(tmp_path, monkeypatch):
    X, y = make_data(0, 60, 20)
    whole = fit(data=(X, y), checkpoint=tmp_path)
    files = sorted(tmp_path.iterdir())
    before = contents(tmp_path)
    files[2].write_bytes(files[2].read_bytes()[:-9])
    files[5].unlink()
    fits = []
    original = L20Selector.fit
    monkeypatch.setattr(L20Selector, "fit", lambda self, *args, **kwargs: fits.append(1) or original(self, *args, **kwargs))
    assert_same(fit(data=(X, y), checkpoint=tmp_path), whole)
    assert len(fits) == 2, "the damaged one and the missing one"
    assert contents(tmp_path) == before
    fit(data=(X, y), checkpoint=tmp_path, n_resamples=14, threshold=0.9, k=2, n_jobs=1, verbose=0)
    assert len(fits) == 6, "four more, and neither threshold nor number needs a new fit"


def test_c5_a_changed_configuration_or_other_data_are_computed_again(tmp_path):
    X, y = make_data(0, 60, 20)
    weights, groups = 1.0 + np.arange(60) % 2, np.arange(60) // 3
    n_files = 0

    def run(selector=None, X=X, y=y, sample_weight=None, groups=None, **parameters):
        nonlocal n_files
        parameters = {"n_resamples": 4, "random_state": 0} | parameters
        stable = StabilitySelector(selector or L20Selector(3), checkpoint=tmp_path, **parameters)
        stable.fit(X, y, sample_weight=sample_weight, groups=groups)
        plain = clone(stable).set_params(checkpoint=None).fit(X, y, sample_weight=sample_weight, groups=groups)
        assert_same(stable, plain)
        n_new, n_files = len(contents(tmp_path)) - n_files, len(contents(tmp_path))
        return n_new

    changed = X.copy()
    changed[17, 3] += 1e-12
    swapped = y.copy()
    swapped[[0, 1]] = (y[[0, 1]] + 1) % 3
    assert run() == 4
    assert run() == 0
    for other in (
        {"selector": L20Selector(4)},
        {"selector": L20Selector(3, ridge=1.0)},
        {"selector": methods.FisherScore(3)},
        {"random_state": 1},
        {"fraction": 0.4},
        {"X": changed},
        {"X": X.astype(np.float32)},
        {"y": swapped},
        {"sample_weight": weights},
        {"groups": groups},
        {"groups": groups // 2},
    ):
        assert run(**other) == 4, other
        assert run(**other) == 0, other
    assert run() == 0, "and the first ones are still there"


def test_a_checkpoint_holds_every_order_of_all_features(tmp_path, monkeypatch):
    """The limit on the size of a file leaves room for all features, whatever their numbers."""
    X = np.random.default_rng(0).standard_normal((8, 20_000))
    stable = StabilitySelector(FisherScore(20_000), n_resamples=2, random_state=0, checkpoint=tmp_path)
    whole = clone(stable).fit(X, np.arange(8) % 2)
    monkeypatch.setattr(FisherScore, "fit", None)  # nothing is computed again
    again = clone(stable).fit(X, np.arange(8) % 2)
    np.testing.assert_array_equal(again.orders_, whole.orders_)
    assert again.sizes_.tolist() == [20_000, 20_000]


def test_c2_a_checkpoint_that_cannot_be_written_is_refused_before_anything_is_computed(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(StabilitySelector, "_run", None)
    with pytest.raises(OSError, match=r"checkpoint=.* cannot be written to"):
        fit(checkpoint=tmp_path / "file")
    with pytest.raises(TypeError, match="class_weight is a set, which a checkpoint cannot compare"):
        fit(L20Selector(3, class_weight={1}), checkpoint=tmp_path)


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


def test_groups_reach_a_selector_that_takes_them():
    """One that chooses its size by cross-validation keeps donors together in its folds, too."""
    X, y = make_data(0, 60, 12)
    groups = np.array([f"donor {i}" for i in np.arange(60) // 5])
    selector = L20SelectorCV("best", max_features=8, cv=2)
    stable = StabilitySelector(selector, n_resamples=4, random_state=0).fit(X, y, groups=groups)
    pairs = plan_pairs(encode_targets(y), groups, 0.5, 0)
    sizes = {"with": [], "without": []}
    for i in range(4):
        rows = pairs.rows(i)
        fitted = clone(selector).fit(X[rows], y[rows], groups=groups[rows])
        np.testing.assert_array_equal(stable.selected_[i], fitted.support_)
        sizes["with"].append(fitted.support_.sum())
        sizes["without"].append(clone(selector).fit(X[rows], y[rows]).support_.sum())
    assert sizes["with"] != sizes["without"], "or this test would show nothing"


def test_metadata_routing_in_a_pipeline():
    X, y = make_data(0, 60, 20)
    groups, weights = np.arange(60) // 6, 1.0 + np.arange(60) % 3
    scaled = StandardScaler().fit_transform(X)
    expected = StabilitySelector(L20Selector(3), n_resamples=4, random_state=0).fit(
        scaled, y, groups=groups, sample_weight=weights
    )
    with sklearn.config_context(enable_metadata_routing=True):
        stable = StabilitySelector(L20Selector(3), n_resamples=4, random_state=0)
        stable.set_fit_request(sample_weight=True)  # groups are asked for from the start
        classifier = LogisticRegression().set_fit_request(sample_weight=True)
        pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), stable, classifier)
        pipeline.fit(X, y, groups=groups, sample_weight=weights)
        with pytest.raises(TypeError, match="groups"):
            clone(pipeline).set_params(stabilityselector=clone(stable).set_fit_request(groups=False)).fit(
                X, y, groups=groups, sample_weight=weights
            )
    assert_same(pipeline["stabilityselector"], expected)
    assert np.any(expected.orders_ != fit(data=(scaled, y), n_resamples=4).orders_)


def test_e24_copies():
    stable = fit(k=2)
    for copy in (pickle.loads(pickle.dumps(stable)), deepcopy(stable)):
        assert_same(copy, stable)
        assert copy.set_params(n_features_to_select=1).support_.sum() == 1
    fresh = clone(stable)
    assert str(fresh.get_params()) == str(stable.get_params())
    assert not hasattr(fresh, "orders_")
    assert fresh.get_params()["selector__n_features_to_select"] == 3


def test_names_survive_in_pandas_and_polars():
    frame, y = make_frame()
    for container in (frame, polars.from_pandas(frame)):
        stable = fit(L20Selector(3), 2, data=(container, y))
        chosen = frame.columns[stable.support_].tolist()
        assert stable.get_feature_names_out().tolist() == chosen
        assert stable.selection_frame()["feature"].tolist()[:2] == [
            frame.columns[j] for j in np.argsort(stable.ranking_)[:2]
        ]
        for kind in ("pandas", "polars"):
            assert list(stable.set_output(transform=kind).transform(container).columns) == chosen


def test_selection_frame_is_tidy():
    stable = fit(L20Selector(4), threshold=0.5, n_resamples=20)
    frame = stable.selection_frame()
    assert frame.columns.tolist() == ["feature", "rank", "stability", "standard_error", "mean_rank", "selected"]
    assert frame["rank"].tolist() == list(range(1, len(frame) + 1))
    assert len(frame) == np.count_nonzero(stable.frequencies_)
    assert frame["stability"].is_monotonic_decreasing
    assert (frame["selected"] == (frame["stability"] >= 0.5)).all()
    assert {f"x{j}" for j in INFORMATIVE} <= set(frame["feature"])


def test_tables_and_pictures_take_it():
    frame, y = make_frame()
    stable = fit(L20Selector(3), data=(frame, y))
    table = L20Selector(3).fit(frame, y).selection_frame(stability=stable)
    expected = dict(zip(stable.feature_names_in_, stable.frequencies_, strict=True))
    assert table["stability"].tolist() == [expected[name] for name in table["feature"]]
    display = StabilityDisplay.from_estimator(stable, ax=Figure().add_subplot())
    assert display.names.tolist() == stable.selection_frame()["feature"].tolist()


@pytest.mark.parametrize("container", [sp.csr_array, sp.csc_array, sp.coo_array, np.asfortranarray, pd.DataFrame])
def test_e12_e13_containers_give_the_same(container):
    X, y = make_data(0, 60, 20)
    X = np.where(X > 0, X, 0.0)
    given = container(X)
    assert_same(fit(data=(given, y)), fit(data=(X, y)))
    np.testing.assert_array_equal(given.toarray() if sp.issparse(given) else given, X)


def test_e10_whole_numbers_and_e11_words():
    X, y = make_data(0, 60, 20)
    counts = np.round(10 * X).astype(np.int16)
    assert_same(fit(data=(counts, y)), fit(data=(counts.astype(float), y)))
    assert fit(data=(X.astype(np.float32), y)).frequencies_.max() == 1.0
    with pytest.raises(ValueError, match="X must hold numbers only"):
        fit(data=(X.astype(str), y))


def test_e5_e8_e15_bad_data_are_refused_by_name_before_any_resample(monkeypatch):
    frame, y = make_frame()
    monkeypatch.setattr(StabilitySelector, "_run", None)
    with pytest.raises(ValueError, match="y has one class only, '0'"):
        fit(data=(frame, np.zeros(60, dtype=int)))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        fit(data=(frame, y[:5]))
    with pytest.raises(ValueError, match="requires y"):
        fit(data=(frame, None))
    frame.iloc[3, 4] = np.nan
    with pytest.raises(ValueError, match=r"1 missing values \(NaN\), first in 'g4'\. Impute .*StabilitySelector"):
        fit(data=(frame, y))


def test_e25_other_names_at_transform():
    frame, y = make_frame()
    with pytest.raises(ValueError, match="feature names should match"):
        fit(k=2, data=(frame, y)).transform(frame.rename(columns={"g0": "other"}))


def test_e27_foreign_arrays_are_taken_where_the_selector_takes_them():
    dask_array = pytest.importorskip("dask.array")
    X, y = make_data(0, 60, 20)
    with pytest.raises(TypeError, match="X is a dask array"):
        fit(FisherScore(3), data=(dask_array.from_array(X), y))
    assert_same(fit(k=2, data=(dask_array.from_array(X), y)), fit(k=2, data=(X, y)))
    there = fit(k=2).transform(dask_array.from_array(X))
    np.testing.assert_array_equal(there.compute(), fit(k=2).transform(X))


def test_targets_of_several_columns_and_numbers():
    X, y = clear_data()
    for targets in (X[:, 2] + X[:, 5], np.eye(3)[y], np.column_stack([X[:, 2], X[:, 5]]), np.eye(3, dtype=int)[y]):
        assert fit(L20Selector(3), data=(X, targets)).frequencies_.max() == 1.0
    with pytest.warns(DataConversionWarning, match="A column-vector y was passed") as caught:
        column = fit(data=(X, y[:, None]))
    assert len(caught) == 1, "told once, not in every resample"
    assert_same(column, fit(data=(X, y)))


def test_classifiers_and_regressors_that_select():
    X, y = clear_data()
    assert_same(fit(L20Classifier(3), data=(X, y)), fit(L20Selector(3), data=(X, y)))
    ages = np.arange(60) + np.round(5 * X[:, 2]).astype(int)  # whole numbers, hardly two alike: no classes
    stable = fit(L20Regressor(1), data=(X, ages), n_resamples=4)
    pairs = plan_pairs(numeric_targets(ages), None, 0.5, 0)
    for i in range(4):
        expected = L20Regressor(1).fit(X[pairs.rows(i)], ages[pairs.rows(i)])
        np.testing.assert_array_equal(stable.selected_[i], expected.support_)


def test_the_number_may_be_found_in_each_resample():
    stable = fit(L20Selector("ebic", max_features=8), data=clear_data())
    assert stable.orders_.shape == (10, 8)
    assert stable.frequencies_[INFORMATIVE].tolist() == [1.0, 1.0, 1.0]


def test_planted_features_are_found_and_noise_is_not():
    X, y, informative = make_planted(n_samples=300, n_features=200, n_informative=4, random_state=1)
    stable = fit(L20Selector(8), data=(X, y), n_resamples=40)
    assert set(informative) == set(stable.get_support(indices=True))
    assert stable.stability_interval_[0] > 0.3


def test_no_array_of_resamples_by_features_in_floats():
    X = np.random.default_rng(0).standard_normal((8, 20_000))
    stable = StabilitySelector(FisherScore(5), n_resamples=60, random_state=0)
    tracemalloc.start()
    try:
        stable.fit(X, np.arange(8) % 2)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 5 * X.nbytes, "60 x 20 000 floats would be 7.5 times X, beside what a fit needs"


def test_features_are_named_as_in_the_frame():
    """Resamples are arrays; what the selector is asked for by name still holds."""
    frame, y = make_frame(0)
    wishes = {"include": ["g0"], "exclude": ["g2"], "penalty_factor": {"g5": 0.5}, "feature_groups": [["g7", "g8"]]}
    indices = {"include": [0], "exclude": [2], "penalty_factor": {5: 0.5}, "feature_groups": [[7, 8]]}
    by_name = StabilitySelector(L20Selector(4, **wishes), n_resamples=6, random_state=0).fit(frame, y)
    by_position = StabilitySelector(L20Selector(4, **indices), n_resamples=6, random_state=0).fit(frame.to_numpy(), y)
    assert np.array_equal(by_name.frequencies_, by_position.frequencies_)
    assert by_name.frequencies_[0] == 1.0
    assert by_name.frequencies_[2] == 0.0
    assert by_name.frequencies_[7] == by_name.frequencies_[8]
    assert by_name.selector.include == ["g0"], "the selector that was given is not changed"
    inside = L20SelectorCV(3, selector=L20Selector(include=["g0"]), max_features=4, cv=2)
    assert StabilitySelector(inside, n_resamples=2, random_state=0).fit(frame, y).frequencies_[0] == 1.0
    with pytest.raises(ValueError, match="include names 'g99', which X does not have"):
        StabilitySelector(L20Selector(4, include=["g99"]), n_resamples=2).fit(frame, y)


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
    selector = L20Selector(5, max_features=7, feature_groups=GROUPS)
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
    frame = stable.selection_frame()
    assert len(frame) == np.count_nonzero(frequencies)
    assert frame["rank"].is_monotonic_increasing
    with pytest.raises(ValueError, match="k=8 is more than the 7 features and groups that are kept"):
        stable.frequencies_at(8)
    with pytest.warns(UserWarning, match=r"n_features_to_select=16, but .* only \d+ of 16 features and groups"):
        fit(selector, 16, data=(X, y))


def test_a_feature_that_is_constant_in_a_half_counts_with_its_group():
    X, y = grouped_data()
    stable = fit(L20Selector(15, feature_groups=GROUPS), data=(X, y))
    pairs = plan_pairs(encode_targets(y), None, 0.5, 0)
    assert any(np.ptp(X[pairs.rows(i), 9]) == 0 for i in range(10)), "or this test would show nothing"
    assert stable.frequencies_[[1, 4, 9, 15]].tolist() == [1.0, 1.0, 1.0, 0.0]


def test_groups_of_a_selector_inside_another_and_of_a_checkpoint(tmp_path):
    X, y = grouped_data()
    inner = L20Selector(feature_groups=GROUPS)
    for selector in (
        L20SelectorCV(5, selector=inner, max_features=6, cv=2),
        StabilitySelector(L20Selector(5, feature_groups=GROUPS), 5, n_resamples=4, random_state=0),
        L20Classifier(5, feature_groups=GROUPS),
    ):
        stable = fit(selector, data=(X, y), n_resamples=4, checkpoint=tmp_path)
        assert stable.frequencies_[1] == stable.frequencies_[9]
        assert stable.ranking_.max() == 16
        assert stable.sizes_.tolist() == [5] * 4
        assert_same(fit(selector, data=(X, y), n_resamples=4, checkpoint=tmp_path), stable)


def test_weights_decide_who_is_constant_and_no_part_of_a_group():
    X, y = grouped_data()
    weights = np.where(X[:, 9] > 0, 0.0, 1.0)
    selector = L20Selector(15, feature_groups=GROUPS)
    stable = StabilitySelector(selector, n_resamples=4, random_state=0).fit(X, y, sample_weight=weights)
    assert stable.frequencies_[[1, 9]].tolist() == [1.0, 0.0]


@pytest.mark.parametrize("by_factor", [False, True])
def test_forced_features_are_no_evidence_of_stability(by_factor):
    """The index and the bound of forced features and a free choice are those of the free choice alone."""
    X, y = make_data(0, 60, 20)
    X[:, 12:] = np.random.default_rng(1).standard_normal((60, 8))
    forced, banned = [12, 15, 16, 19], [2, 13]
    factors = np.ones(20)
    factors[forced], factors[banned] = 0.0, np.inf
    wishes = {"penalty_factor": factors} if by_factor else {"include": forced, "exclude": banned}
    stable = fit(L20Selector(7, max_features=9, **wishes), data=(X, y), n_resamples=20)
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


def test_where_all_is_forced_nothing_is_free_to_agree():
    stable = fit(L20Selector(3, include=[0, 1, 2], exclude=list(range(3, 20))))
    assert stable.get_support(indices=True).tolist() == [0, 1, 2]
    assert np.isnan([stable.stability_, *stable.stability_interval_]).all()
    assert stable.error_bound_ == 0.0


def test_a_class_weight_of_a_class_that_a_half_does_not_have():
    X, y = make_data()
    y = np.where(np.arange(60) == 7, 3, y)
    with pytest.warns(UserWarning, match="1 of 4 classes in one sample only"):
        stable = StabilitySelector(L20Selector(3, class_weight={3: 5.0}), n_resamples=4, random_state=0).fit(X, y)
    assert stable.selector.class_weight == {3: 5.0}
