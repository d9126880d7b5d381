"""StabilitySelector as an estimator: checks, answers, seeds, checkpoints, processes, routing."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from l20fs import L20Selector, StabilitySelector, methods

UNEQUAL = "weights do not stand for repeated samples when the samples are drawn at random"
@pytest.mark.filterwarnings("ignore:n_features_to_select=.* is greater than n_features")
@parametrize_with_checks([
    StabilitySelector(n_resamples=4),
    StabilitySelector(L20Selector(2), 3, n_resamples=4),
    StabilitySelector(methods.FisherScore(2), n_resamples=4),
    StabilitySelector(methods.UDFS(2), n_resamples=2, fraction=0.4),
    ])
def test_scikit_learn_checks(estimator, check):
    check(estimator)
