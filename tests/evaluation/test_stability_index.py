"""The stability index against a case worked by hand and a slow twin; the error bounds against linear programs and noise."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import linprog

from l20fs import StabilitySelector
from l20fs.evaluation.stability_index import expected_false, nogueira
from l20fs.methods import FisherScore


def test_a_case_worked_by_hand():
    """Three selections of two out of four features.

    p = (1, 2/3, 1/3, 0) and s^2 = 3/2 p (1 - p) = (0, 1/3, 1/3, 0), on average 1/6. On average 2 of 4 are selected, so that
    the unit is 1/2 * 1/2 = 1/4, and the index 1 - (1/6) / (1/4) = 1/3.
    The parts: 1/4 (1 + 2/3) - 2 * 2/16 + 1/6 (2 * 2 * 2/16 - 2/4 - 2/4 + 1) = 5/12 - 3/12 + 1/12 = 1/4, over the unit: 1,
    for the first two; 1/4 (1 + 1/3) - 3/12 + 1/12 = 1/6, over the unit: 2/3, for the third. Their mean is 8/9, the squared
    deviations sum up to (1 + 1 + 4) / 81 = 2/27, and the variance is 4/9 * 2/27 = 8/243.
    """
    found = nogueira([[1, 1, 0, 0], [1, 1, 0, 0], [1, 0, 1, 0]])
    assert found.index == pytest.approx(1 / 3, rel=1e-14)
    assert found.variance == pytest.approx(8 / 243, rel=1e-14)
    reach = 1.959963984540054 * math.sqrt(8 / 243)
    assert found == pytest.approx((1 / 3, 8 / 243, 1 / 3 - reach, 1 / 3 + reach), rel=1e-13)


def slow_index(Z):
    """The formulas of the paper, letter by letter, feature by feature."""
    M, d = Z.shape
    p = [sum(Z[i, j] for i in range(M)) / M for j in range(d)]
    k = [sum(Z[i, j] for j in range(d)) for i in range(M)]
    mean_k = sum(k) / M
    unit = mean_k / d * (1 - mean_k / d)
    index = 1 - sum(M / (M - 1) * p[j] * (1 - p[j]) for j in range(d)) / d / unit
    parts = []
    for i in range(M):
        overlap = sum(Z[i, j] * p[j] for j in range(d)) / d
        middle = index / 2 * (2 * mean_k * k[i] / d**2 - k[i] / d - mean_k / d + 1)
        parts.append((overlap - k[i] * mean_k / d**2 + middle) / unit)
    mean = sum(parts) / M
    return index, 4 / M**2 * sum((part - mean) ** 2 for part in parts)


selections = st.tuples(st.integers(2, 7), st.integers(2, 9)).flatmap(
    lambda shape: arrays(np.int8, shape, elements=st.integers(0, 1))
)


@given(selections)
def test_slow_twin(Z):
    if Z.all() or not Z.any():
        assert np.isnan(nogueira(Z)).all()
        return
    index, variance = slow_index(Z.astype(float))
    found = nogueira(Z)
    assert found.index == pytest.approx(index, rel=1e-9, abs=1e-12)
    assert found.variance == pytest.approx(variance, rel=1e-7, abs=1e-12)
    with_zeros = sp.coo_array((Z.ravel(), np.indices(Z.shape).reshape(2, -1)), shape=Z.shape)
    assert nogueira(Z.astype(bool)) == nogueira(sp.csc_array(Z)) == nogueira(Z.tolist()) == nogueira(with_zeros) == found
    order = np.random.default_rng(0)
    shuffled = order.permutation(order.permutation(Z, axis=0), axis=1)
    assert nogueira(shuffled) == pytest.approx(found, rel=1e-7, abs=1e-12)


def test_selections_by_lot_have_index_zero_on_average():
    random = np.random.default_rng(0)
    found = [nogueira(random.random((10, 40)).argsort(axis=1) < 8).index for _ in range(400)]
    assert abs(np.mean(found)) < 4 * np.std(found) / 20


def test_what_is_no_selection_is_refused():
    with pytest.raises(ValueError, match=r"Z has 1 selection\. Give 2 or more"):
        nogueira([[1, 0, 1]])
    with pytest.raises(ValueError, match=r"Z holds 2\. Give True or 1 for a selected feature"):
        nogueira([[1, 0, 2], [1, 0, 1]])
    with pytest.raises(ValueError, match="Z holds nan"):
        nogueira([[1, 0, np.nan], [1, 0, 1]])
    assert np.isnan(nogueira(np.zeros((3, 4)))).all()
    assert np.isnan(nogueira(np.ones((3, 4)))).all()


@pytest.mark.parametrize("spread", [0.5, 3.0], ids=["vague", "clear"])
def test_the_interval_covers_the_truth_as_often_as_it_says(spread):
    """Features that are selected independently, with known probabilities: the index of the population is known."""
    random = np.random.default_rng(1)
    p = random.beta(1 / spread, 3 / spread, size=60)
    share = p.mean()
    truth = 1 - (p * (1 - p)).mean() / (share * (1 - share))
    n_trials = 600
    covered = 0
    for _ in range(n_trials):
        found = nogueira(random.random((100, 60)) < p)
        covered += found.lower <= truth <= found.upper
    # Three standard deviations of a binomial count, and 1 % for an interval that is exact for many selections only.
    assert abs(covered / n_trials - 0.95) < 3 * math.sqrt(0.95 * 0.05 / n_trials) + 0.01


@given(st.integers(1, 100), st.integers(1, 60), st.integers(1, 60))
def test_the_worst_case_is_markovs_inequality(n_pairs, n_selected, n_both):
    """At the thresholds that occur, by exact fractions: q^2 / (p (2 tau - 1))."""
    threshold = Fraction(n_pairs + min(n_both, n_pairs), 2 * n_pairs)
    bound = Fraction(n_selected**2, 100) / (2 * threshold - 1)
    assert expected_false(n_selected, 100, float(threshold), n_pairs) == pytest.approx(float(bound), rel=1e-12)


def largest_tail(n_pairs, n_both, mean, modes):
    """Largest P(at least n_both of n_pairs) over distributions with this mean and a peak at one of ``modes``, by LP.

    Those with a peak at m are the mixtures of uniform ones over intervals around m.
    """
    best = 0.0
    for mode in modes:
        intervals = [(low, high) for low in range(mode + 1) for high in range(mode, n_pairs + 1)]
        means = [(low + high) / 2 / n_pairs for low, high in intervals]
        tails = [max(0, high + 1 - max(low, n_both)) / (high + 1 - low) for low, high in intervals]
        solved = linprog([-t for t in tails], A_eq=[means, [1.0] * len(means)], b_eq=[mean, 1.0])
        if solved.status == 0:
            best = max(best, -solved.fun)
    return best


@pytest.mark.parametrize("n_pairs", [3, 4, 7, 10])
@pytest.mark.parametrize("theta", [0.05, 0.3, 0.5, 0.57])
def test_the_unimodal_bound_is_above_every_distribution_with_one_peak(n_pairs, theta):
    """By linear programming over all of them; with few selected features it is reached."""
    n_held = 0
    for n_both in range(2, n_pairs + 1):
        try:
            factor = expected_false(theta * 100, 100, 0.5 + n_both / (2 * n_pairs), n_pairs, "unimodal") / (theta**2 * 100)
        except ValueError:  # refused: too close to 1/2
            continue
        n_held += 1
        for share in (0.2, 0.6, 1.0):
            mean = share * theta**2
            tail = largest_tail(n_pairs, n_both, mean, range(n_pairs + 1))
            assert tail <= factor * mean * (1 + 1e-7)
            if theta == 0.05:
                assert tail == pytest.approx(factor * mean, rel=1e-6)
    assert n_held > 0


def test_bounds_that_do_not_exist_are_refused():
    for threshold in (0.5, 0.2, 1.1, math.nan):
        with pytest.raises(ValueError, match=r"has no error bound\. Use a number above 0\.5 and up to 1\.0"):
            expected_false(5, 100, threshold, 10)
    with pytest.raises(ValueError, match=r"does not hold for threshold=0\.55 with 5 of 100 .* Use a higher threshold"):
        expected_false(5, 100, 0.55, 10, "unimodal")  # one pair of ten
    with pytest.raises(ValueError, match=r"does not hold for threshold=0\.6 with 40 of 100 features"):
        expected_false(40, 100, 0.6, 50, "unimodal")
    with pytest.raises(ValueError, match=r"does not hold for threshold=0\.9 with 60 of 100 features"):
        expected_false(60, 100, 0.9, 50, "unimodal")


@pytest.mark.filterwarnings("ignore:No features were selected")
def test_noise_is_selected_no_more_often_than_the_bounds_allow():
    """All features are equal, so that each is selected with probability q / p: unlikely, every one of them."""
    random = np.random.default_rng(2)
    counts = []
    for seed in range(60):
        X, y = random.standard_normal((24, 60)), np.arange(24) % 2
        fitted = StabilitySelector(FisherScore(9), n_resamples=40, random_state=seed).fit(X, y)
        counts.append([np.count_nonzero(fitted.frequencies_ >= threshold) for threshold in (0.6, 0.7, 0.8)])
    means, errors = np.mean(counts, axis=0), np.std(counts, axis=0) / math.sqrt(len(counts))
    for kind in ("worst_case", "unimodal"):
        bounds = [fitted.error_bound(threshold, kind=kind) for threshold in (0.6, 0.7, 0.8)]
        assert np.all(means <= bounds + 3 * errors)
    assert means[0] > 0.1, "a test without any false feature would show nothing"
