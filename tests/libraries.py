"""Array libraries that stand for a GPU, and scikit-learn's checks of estimators that take their arrays."""

from __future__ import annotations

import importlib.util

import array_api_strict
import pytest
import sklearn
from sklearn.utils import get_tags
from sklearn.utils.fixes import parse_version


def on_second_device(X):
    """Nothing comes from the second device of array-api-strict to the host, or goes there, by itself."""
    return array_api_strict.asarray(X, device=array_api_strict.Device("device1"))


def in_torch(X):
    """On a GPU where there is one: the same tests then run there."""
    import torch

    return torch.tensor(X, device="cuda" if torch.cuda.is_available() else "cpu")


WITHOUT_TORCH = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="torch is not installed; array-api-strict stands for it"
)

#: What moves an array to a library. One that is not installed is skipped with a reason, not left out.
MOVERS = [pytest.param(on_second_device, id="strict"), pytest.param(in_torch, id="torch", marks=WITHOUT_TORCH)]
move_to_each = pytest.mark.parametrize("move", MOVERS)


def needs_sklearn(least, why):
    """Skip with an earlier version of scikit-learn than a test needs; the package itself does not need it."""
    is_old = parse_version(sklearn.__version__) < parse_version(least)
    return pytest.mark.skipif(is_old, reason=f"scikit-learn before {least}: {why}")


_ATTRIBUTES = "fitted attributes are NumPy's, wherever X was, so that a fit is read, pickled and reported without its device"

#: Statements of scikit-learn's checks that do not hold here, with the reason. The rest of these checks is run on
#: :class:`tests.estimators.test_array_api.Reduces`, which shows no attributes.
ARRAY_API_FAILURES = {
    "check_array_api_input": _ATTRIBUTES,
    "check_array_api_mixed_inputs": _ATTRIBUTES,
    "check_array_api_same_namespace": "a selection is a list of columns: it is transformed wherever the samples are",
}


def array_api_failures(estimator):
    """Return what is expected of an estimator in ``parametrize_with_checks``: nothing, if it takes no arrays of a device."""
    return ARRAY_API_FAILURES if get_tags(estimator).array_api_support else {}
