"""Methods on an X of another library: the answer of NumPy, where X is."""

from __future__ import annotations

import numpy as np
import pytest
from libraries import MOVERS
from sklearn.base import clone

from l20fs import methods
from l20fs.inputs.devices import Place, as_numpy
from l20fs.methods import discover

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

SELECTORS = {
    "FisherScore": methods.FisherScore(5),
    "ChiSquare": methods.ChiSquare(5),
    "ChiSquare, quantiles": methods.ChiSquare(5, binning="quantile"),
    "ChiSquare, sigma3": methods.ChiSquare(5, binning="sigma3"),
    "ChiSquare, floor": methods.ChiSquare(5, binning="floor"),
    "ChiSquare, counts": methods.ChiSquare(5, counts=True),
    "RFS": methods.RFS(5),
    "RFS, unpenalised": methods.RFS(5, bias="unpenalised"),
    "RLSR": methods.RLSR(5),
    "RLSR, unlabelled": methods.RLSR(5, p=0.5, semi_supervised=True),
    "L21": methods.L21(5, n_alphas=10),
    "L21, norm": methods.L21(5, ranking="norm", alpha=0.02, n_alphas=20),
    "MRMR": methods.MRMR(5, max_features=8),
    "MRMR, many quantiles": methods.MRMR(5, variant="miq", binning="quantile", n_bins=70, max_features=8),
    "MRMR, correlations": methods.MRMR(5, variant="fcq", max_features=8),
    "ReliefF": methods.ReliefF(5, n_neighbors=4),
    "ReliefF, numbers": methods.ReliefF(5, n_neighbors=4, task="regression"),
    "ReliefF, nearest": methods.ReliefF(5, variant="nearest"),
    "ReliefF, feast": methods.ReliefF(5, variant="feast"),
}


def make_data(selector, shape, dtype, n_classes=3):
    """Features with means, one constant, one far from zero, one tiny, two equal and one of whole numbers."""
    random = np.random.default_rng(0)
    y = random.permutation(np.arange(shape[0]) % n_classes)
    X = random.standard_normal(shape) + random.uniform(-2.0, 2.0, shape[1])
    X[:, :5] += np.eye(n_classes)[y] @ random.standard_normal((n_classes, 5))
    X[:, 7], X[:, 14] = 0.3, np.round(X[:, 14])
    if not isinstance(selector, methods.L21):  # where equal features share a weight as rounding has it
        X[:, 12] = X[:, 11]
    X[:, 9] += 300.0
    X[:, 10] *= 1e-4
    if getattr(selector, "counts", False):
        X = np.abs(X)
    if getattr(selector, "semi_supervised", False):
        y[::3] = -1
    return X.astype(dtype), y


@pytest.mark.parametrize("move", MOVERS)
@pytest.mark.parametrize("name", SELECTORS)
def test_scores_are_those_of_numpy(name, move):
    selector = SELECTORS[name]
    for shape, dtype in (((30, 60), np.float64), ((60, 24), np.float32)):
        X, y = make_data(selector, shape, dtype)
        there, expected = move(X), clone(selector).fit(X, y)
        found = clone(selector).fit(there, y)
        # Samples that RFS fits exactly have huge weights: the order of the samples changes its scores by as much.
        loose = isinstance(selector, methods.RFS) and shape[0] > shape[1]
        np.testing.assert_allclose(found.scores_, expected.scores_, rtol=1e-5 if loose else 1e-9, atol=1e-11)
        np.testing.assert_array_equal(found.support_, expected.support_)
        if not loose:
            np.testing.assert_array_equal(found.ranking_, expected.ranking_)
        for attribute in ("coef_", "intercept_", "label_distributions_", "step_scores_", "objective_"):
            if hasattr(expected, attribute):
                assert isinstance(getattr(found, attribute), np.ndarray)
                np.testing.assert_allclose(getattr(found, attribute), getattr(expected, attribute), rtol=1e-4, atol=1e-5)
        reduced = found.transform(there)
        assert (Place(reduced).device, reduced.dtype) == (Place(there).device, there.dtype)
        np.testing.assert_array_equal(as_numpy(reduced), expected.transform(X))


@pytest.mark.parametrize("move", MOVERS)
def test_others_refuse_and_name_the_conversion(move):
    X, y = make_data(None, (30, 60), np.float64)
    for name, method in discover().items():
        if not method._takes_device_arrays:
            with pytest.raises(TypeError, match=r"X is a (torch|array_api_strict) array, .* Convert it first") as caught:
                method().fit(move(X), y)
            assert "\n" not in str(caught.value), name


@pytest.mark.parametrize("move", MOVERS)
def test_what_a_method_cannot_take_is_refused(move):
    X, y = make_data(None, (30, 60), np.float64)
    for method in (methods.MRMR, methods.ChiSquare):
        with pytest.raises(TypeError, match=r"binning='mdlp' cuts one feature after the other, .* Use another binning"):
            method(3, binning="mdlp").fit(move(X), y)
    with pytest.raises(ValueError, match=r"X has \d+ negative values, the lowest -.*Use counts=False"):
        methods.ChiSquare(3, counts=True).fit(move(X), y)
    with pytest.raises(ValueError, match="All 60 features of X are constant"):
        methods.FisherScore(3).fit(move(np.ones_like(X)), y)
    X[:, 3] *= 1e80
    methods.ReliefF(3).fit(X, y)  # in memory it shifts exponents
    with pytest.raises(ValueError, match=r"Column 3 of X has values from .* Divide X by a constant"):
        methods.ReliefF(3).fit(move(X), y)
