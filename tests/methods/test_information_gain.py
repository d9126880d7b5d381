"""InformationGain against closed forms and scikit-learn's mutual information."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import mutual_info_score

from l20fs.data import make_planted
from l20fs.methods.information_gain import InformationGain

seeds = st.integers(0, 2**32 - 1)

# The weather of Quinlan's paper: outlook, temperature, humidity and wind of 14 days, good for tennis or not.
OUTLOOK = [0, 0, 1, 2, 2, 2, 1, 0, 0, 2, 0, 1, 1, 2]
TEMPERATURE = [0, 0, 0, 1, 2, 2, 2, 1, 2, 1, 1, 1, 0, 1]
HUMIDITY = [0, 0, 0, 0, 1, 1, 1, 0, 1, 1, 1, 0, 1, 0]
WIND = [0, 1, 0, 0, 0, 1, 1, 0, 0, 0, 1, 1, 0, 1]
PLAY = ["no", "no", "yes", "yes", "yes", "no", "yes", "no", "yes", "yes", "yes", "yes", "yes", "no"]
WEATHER = np.column_stack([OUTLOOK, TEMPERATURE, HUMIDITY, WIND])


def entropy(values):
    shares = np.unique(values, return_counts=True)[1] / len(values)
    return -sum(share * math.log2(share) for share in shares)


def test_gains_of_the_weather():
    """The gains that Quinlan prints, to three digits."""
    scores = InformationGain(1, binning="floor").fit(WEATHER, PLAY).scores_
    assert np.allclose(scores, [0.246, 0.029, 0.151, 0.048], atol=1e-3)


@given(seed=seeds)
def test_criteria_by_their_definitions(seed):
    random = np.random.default_rng(seed)
    X, y = random.integers(0, 4, (40, 5)), np.arange(40) % 3
    X[:4] = np.arange(4)[:, None]  # no constant feature
    gain = np.array([mutual_info_score(x, y) / math.log(2.0) for x in X.T])
    own = np.array([entropy(x) for x in X.T])
    for criterion, expected in (("gain", gain), ("ratio", gain / own), ("su", 2 * gain / (entropy(y) + own))):
        selector = InformationGain(2, criterion=criterion, binning="floor").fit(X, y)
        assert np.allclose(selector.scores_, expected, rtol=1e-9, atol=1e-13)


def test_labels_in_random_order_leave_almost_nothing():
    random = np.random.default_rng(0)
    X = random.standard_normal((3000, 20))
    y = X[:, 0] > 0
    for binning in ("width", "quantile", "sigma3", "mdlp"):
        informed = InformationGain(1, binning=binning).fit(X, y).scores_[0]
        # The expected gain of b states without information is about (b - 1) / (2 N ln 2) = 0.002 bits.
        assert InformationGain(1, binning=binning).fit(X, random.permutation(y)).scores_.max() < 0.01 < informed


def test_features_that_mdlp_does_not_cut_score_zero():
    X, y, _ = make_planted(60, 50, 2, 2)
    X[:, 7] += 5 * y
    scores = InformationGain(1).fit(X, y).scores_
    assert scores[7] > 0.9
    assert np.sum(scores == 0.0) > 40
    for criterion in ("ratio", "su"):
        assert np.array_equal(InformationGain(1, criterion=criterion).fit(X, y).scores_ == 0.0, scores == 0.0)
