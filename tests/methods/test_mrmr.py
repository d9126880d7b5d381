"""MRMR against a slow twin, hand-made cases and the orders of two other packages."""

from __future__ import annotations

import json
import warnings
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits
from sklearn.feature_selection import f_classif
from sklearn.metrics import mutual_info_score

from l20fs.data import load_srbct, make_planted
from l20fs.inputs.targets import encode_targets
from l20fs.methods.mrmr import MRMR, VARIANTS, f_statistic, greedy_order

GOLDEN = json.loads((Path(__file__).parent / "golden" / "mrmr.json").read_text())
seeds = st.integers(0, 2**32 - 1)


def order_of(selector):
    return np.argsort(selector.ranking_).tolist()


def bits(x, z):
    return mutual_info_score(x, z) / np.log(2.0)


def slow_mrmr(X, y, k, variant):
    """Every relevance and every redundancy anew in each step; X holds states for mid and miq."""
    d = X.shape[1]
    if variant in ("mid", "miq"):
        relevance = [bits(X[:, j], y) for j in range(d)]
        redundancy = [[bits(X[:, i], X[:, j]) for i in range(d)] for j in range(d)]
    else:
        relevance = f_classif(X, y)[0]
        redundancy = np.maximum(np.abs(np.corrcoef(X.T)), 0.001)
    chosen, values = [], []
    for _ in range(k):
        best, best_value = None, -np.inf
        for j in range(d):
            if j in chosen:
                continue
            mean = sum(redundancy[j][s] for s in chosen) / max(len(chosen), 1)
            if not chosen:
                value = relevance[j]
            elif variant in ("mid", "fcd"):
                value = relevance[j] - mean
            elif variant == "miq":
                value = relevance[j] / (mean + 1e-12)
            else:
                value = relevance[j] / mean
            if value > best_value + 1e-10 * max(1.0, abs(value)):
                best, best_value = j, value
        chosen.append(best)
        values.append(best_value)
    return chosen, values


@pytest.mark.parametrize("variant", VARIANTS)
@settings(max_examples=12)
@given(seed=seeds)
def test_order_and_step_scores_equal_the_slow_twin(variant, seed):
    random = np.random.default_rng(seed)
    y = random.permutation(np.arange(90) % 3)
    X = random.standard_normal((90, 8)) + np.outer(y == 1, random.uniform(0, 2, 8))
    X[:, 5] += X[:, 2]
    if variant in ("mid", "miq"):
        X = np.floor(X)
    selector = MRMR(4, variant=variant, binning="floor", max_features=6).fit(X, y)
    chosen, values = slow_mrmr(X, y, 6, variant)
    assert order_of(selector)[:6] == chosen
    assert np.allclose(selector.step_scores_, values, rtol=1e-7, atol=1e-12)


def golden_data(name):
    if name == "srbct":
        bunch = load_srbct()
        return bunch.data, bunch.target
    if name == "digits":
        digits = load_digits()
        X = digits.data[:400]
        return X[:, np.ptp(X, axis=0) > 0], digits.target[:400]
    X, y, _ = make_planted(63, 300, 10, 4)
    return X, y


@pytest.mark.parametrize("name", ["srbct", "planted"])
def test_quotient_of_correlations_orders_like_mrmr_selection(name):
    expected = GOLDEN["fcq"][name]
    X, y = golden_data(name)
    selector = MRMR(len(expected), variant="fcq").fit(X, y)
    assert order_of(selector)[: len(expected)] == expected


@pytest.mark.parametrize("name", ["digits", "planted"])
def test_difference_of_information_orders_like_scikit_feature(name):
    expected = GOLDEN["mid"][name]
    X, y = golden_data(name)
    selector = MRMR(len(expected), variant="mid", binning="floor").fit(X if name == "digits" else 2 * X, y)
    assert order_of(selector)[: len(expected)] == expected


def test_mrmr_selection_live():
    peer = pytest.importorskip("mrmr", reason="mrmr_selection is not installed")
    pandas = pytest.importorskip("pandas")
    X, y, _ = make_planted(60, 40, 5, 3, random_state=5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = peer.mrmr_classif(pandas.DataFrame(X), pandas.Series(y), 15, n_jobs=1, show_progress=False)
    assert order_of(MRMR(15, variant="fcq").fit(X, y))[:15] == [int(j) for j in expected]


def test_scikit_feature_live():
    pytest.importorskip("skfeature", reason="scikit-feature is not installed")
    try:
        release = version("skfeature-chappers")
    except PackageNotFoundError:
        pytest.skip("skfeature is not the distribution skfeature-chappers")
    if tuple(map(int, release.split(".")[:2])) >= (1, 2):
        pytest.skip("this release of skfeature-chappers does not divide the redundancy by the number of selected features")
    from skfeature.function.information_theoretical_based import MRMR as peer

    X, y, _ = make_planted(60, 40, 5, 3, random_state=5)
    expected = peer.mrmr(np.floor(2 * X).astype(int), y, mode="index", n_selected_features=15)
    assert order_of(MRMR(15, binning="floor").fit(2 * X, y))[:15] == expected.tolist()


def test_scikit_feature_live_for_two_features():
    """With one feature selected the sum is the mean, so that every release agrees."""
    lcsi = pytest.importorskip(
        "skfeature.function.information_theoretical_based.LCSI", reason="scikit-feature is not installed"
    )
    for seed in range(5):
        X, y, _ = make_planted(60, 40, 5, 3, random_state=seed)
        found = lcsi.lcsi(np.floor(2 * X).astype(int), y, beta=1.0, gamma=0.0, n_selected_features=2)
        selector = MRMR(2, binning="floor", max_features=2).fit(2 * X, y)
        # What it calls J: the criterion of each step.
        assert np.allclose(selector.step_scores_, found[1], rtol=1e-10)


# What the criterion is for


def copies_and_news():
    """Feature 0 tells 4 classes in pairs, 1 copies it, 2 tells the pairs apart less well, 3 is noise."""
    random = np.random.default_rng(0)
    y = np.arange(80) % 4
    first, second = y // 2, y % 2
    second = np.where(random.random(80) < 0.15, 1 - second, second)
    return np.column_stack([first, first, second, random.integers(0, 2, 80)]).astype(float), y


@pytest.mark.parametrize("variant", ["mid", "miq", "fcq"])
def test_a_copy_is_never_second_while_something_new_is_left(variant):
    X, y = copies_and_news()
    if variant == "fcq":
        X += 0.3 * np.random.default_rng(1).standard_normal(X.shape)
        X[:, 1] = X[:, 0]
    assert order_of(MRMR(2, variant=variant).fit(X, y))[:2] == [0, 2]


def test_quotient_gives_a_copy_nothing_even_after_noise():
    random = np.random.default_rng(0)
    y = np.repeat([0, 1], 30)
    X = random.standard_normal((60, 4))
    X[:, 1] += 100.0 * y
    X[:, 3] = 7.0 - 3.0 * X[:, 1]
    selector = MRMR(4, variant="fcq", max_features=2).fit(X, y)
    assert order_of(selector)[0] == 1
    assert selector.ranking_[3] == 4, "its F is that of the first, and its denominator 1"


def test_negative_scores_do_not_end_the_search():
    X, y = copies_and_news()
    selector = MRMR(4).fit(X[:, [3, 3, 3, 3]], y)
    assert order_of(selector) == [0, 1, 2, 3]
    assert np.all(selector.step_scores_[1:] < -0.5)


def test_features_without_relevance_come_after_copies():
    y = np.repeat([0, 1], 4)
    informative = np.array([0.0, 1.0, 0.0, 1.0, 4.0, 5.0, 4.0, 5.0])
    useless = np.array([0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0])
    for variant in ("fcq", "fcd"):
        selector = MRMR(3, variant=variant).fit(np.column_stack([useless, informative, informative]), y)
        assert order_of(selector) == [1, 2, 0]


def test_difference_of_correlations_by_hand():
    y = np.array([0, 0, 1, 1])
    X = np.array([[0.0, 0.0], [2.0, 1.0], [10.0, 1.0], [12.0, 2.0]])
    selector = MRMR(2, variant="fcd").fit(X, y)
    # F = 100 / 2 and 1 / 0.5; the correlation is 12 / sqrt(104 * 2).
    assert order_of(selector) == [0, 1]
    assert np.allclose(selector.step_scores_, [50.0, 2.0 - 12.0 / np.sqrt(208.0)])


# Numbers of steps


@given(seed=seeds, n_steps=st.integers(1, 12))
def test_fewer_steps_give_the_same_beginning(seed, n_steps):
    X, y, _ = make_planted(50, 12, 3, 2, random_state=seed)
    full = MRMR(3).fit(X, y)
    short = MRMR(3, max_features=n_steps).fit(X, y)
    assert order_of(short)[:n_steps] == order_of(full)[:n_steps]
    assert np.array_equal(short.step_scores_, full.step_scores_[:n_steps])
    assert sorted(order_of(short)) == list(range(12))


def test_the_rest_follows_by_the_last_criterion():
    relevance = np.array([0.1, 0.9, 0.5, 0.4, 0.45])
    table = np.zeros((5, 5))
    table[1] = [0.0, 1.0, 0.3, 0.0, 0.0]
    table[4] = [0.9, 0.0, 0.0, 0.9, 1.0]
    calls = []

    def redundancy_with(j):
        calls.append(j)
        return table[j]

    found = greedy_order(relevance, redundancy_with, lambda relevance, mean: relevance - mean, 2)
    assert found.order.tolist() == [1, 4, 3, 2, 0]
    assert found.step_scores.tolist() == [0.9, 0.45]
    assert calls == [1], "one column of redundancies for each step but the last"


@pytest.mark.parametrize(("k", "n_steps"), [(5, 100), (120, 120), (0.9, 135), (150, 150)])
def test_by_default_the_search_goes_as_far_as_asked_and_at_least_to_100(k, n_steps):
    X, y, _ = make_planted(20, 150, 3, 2)
    assert len(MRMR(k, variant="fcd").fit(X, y).step_scores_) == n_steps


# Numerical traps


@given(seed=seeds, offset=st.sampled_from([0.0, 1e6]))
def test_f_statistic_equals_that_of_scikit_learn(seed, offset):
    X, y, _ = make_planted(40, 6, 3, 3, random_state=seed)
    assert np.allclose(f_statistic(X + offset, encode_targets(y)), f_classif(X, y)[0], rtol=1e-7)


@pytest.mark.parametrize("variant", ["fcq", "fcd"])
@pytest.mark.parametrize("scale", [2.0**600, 2.0**-600])
def test_units_do_not_matter(variant, scale):
    X, y, _ = make_planted(40, 8, 3, 3)
    assert order_of(MRMR(8, variant=variant).fit(X * scale, y)) == order_of(MRMR(8, variant=variant).fit(X, y))


@pytest.mark.parametrize("variant", VARIANTS)
def test_features_that_are_constant_in_every_class_come_first(variant):
    random = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 10)
    X = random.standard_normal((30, 5))
    X[:, 3] = y
    X[:, 4] = y == 1
    selector = MRMR(2, variant=variant).fit(X, y)
    assert order_of(selector)[0] in (3, 4)
    assert np.isfinite(selector.step_scores_).all()


@pytest.mark.parametrize("variant", VARIANTS)
def test_as_many_classes_as_samples(variant):
    X = np.random.default_rng(0).standard_normal((6, 4))
    assert sorted(order_of(MRMR(2, variant=variant).fit(X, range(6)))) == [0, 1, 2, 3]


@pytest.mark.parametrize("variant", VARIANTS)
def test_equal_features_are_taken_in_their_order(variant):
    X, y, _ = make_planted(40, 6, 2, 2, random_state=2)
    assert order_of(MRMR(3, variant=variant).fit(X[:, [0, 1, 2, 0, 1, 2]], y))[0] < 3


def test_information_is_blind_to_the_names_of_states():
    X, y, _ = make_planted(60, 10, 3, 3)
    states = np.floor(2 * X) + 20
    renamed = np.choose((states % 5).astype(int), [3, 0, 4, 1, 2])
    one, two = MRMR(10, binning="floor").fit(states % 5, y), MRMR(10, binning="floor").fit(renamed, y)
    assert order_of(one) == order_of(two)
    assert np.allclose(one.step_scores_, two.step_scores_)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"variant": "max"}, "variant='max' is unknown. Use 'mid', 'miq', 'fcq' or 'fcd'"),
        ({"binning": "equal"}, "binning='equal' is unknown"),
        ({"n_bins": 1}, "n_bins=1 is not valid"),
        ({"tau": "wide"}, "tau='wide' is not valid"),
        ({"max_features": 0}, "max_features=0 is not valid"),
    ],
)
def test_bad_parameters_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        MRMR(**parameters).fit([[0.0], [1.0]], [0, 1])
