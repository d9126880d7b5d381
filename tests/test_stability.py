"""StabilitySelector as an estimator: checks, answers, seeds, checkpoints, processes, routing."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import has_fit_parameter

from l20fs import L20Selector, StabilitySelector, methods


def expected_failures(estimator):
    """Weights do not stand for repeated samples where samples are drawn; and not every selector takes them."""
    drawn = ["check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data"]
    handed = ["pandas_series", "not_an_array", "list", "shape", "not_overwritten"]
    failures = dict.fromkeys(drawn, "samples are drawn, whatever they weigh")
    if estimator.selector is not None and not has_fit_parameter(estimator.selector, "sample_weight"):
        failures |= dict.fromkeys([f"check_sample_weights_{name}" for name in handed], "the selector takes no weights")
        failures["check_all_zero_sample_weights_error"] = "the selector takes no weights"
    return failures


@pytest.mark.filterwarnings("ignore:n_features_to_select=.* is greater than n_features")
@pytest.mark.filterwarnings("ignore:n_features_to_select=.*, but the resamples selected only")
@parametrize_with_checks(
    [
        StabilitySelector(n_resamples=4),
        StabilitySelector(L20Selector(2), 3, n_resamples=4),
        StabilitySelector(methods.FisherScore(2), n_resamples=4),
        StabilitySelector(methods.UDFS(2), n_resamples=2, fraction=0.4),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
