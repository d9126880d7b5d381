"""Methods on an X of another library: the answer of NumPy, where X is."""

from __future__ import annotations

import array_api_strict
import numpy as np
import pytest
from libraries import MOVERS, WITHOUT_TORCH
from sklearn.base import clone

from l20fs import methods
from l20fs.inputs.devices import Place, as_numpy
from l20fs.methods import _columns, _discretise, discover
from l20fs.methods._columns import Columns
from l20fs.methods._linalg import solve_positive
from l20fs.methods.chi_square import chi_square_of_counts

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
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", SELECTORS)
def test_scores_are_those_of_numpy(name, dtype, move, monkeypatch):
    selector = SELECTORS[name]
    # The second time in parts of few columns and samples.
    for shape, n_elements in (((30, 60), _columns.PART_ELEMENTS), ((60, 24), 300)):
        monkeypatch.setattr(_columns, "PART_ELEMENTS", n_elements)
        monkeypatch.setattr(_discretise, "_BLOCK_THERE", n_elements)
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


def test_every_method_that_takes_such_arrays_is_tested():
    taken = {name for name, method in discover().items() if method.takes_device_arrays}
    assert taken == {type(selector).__name__ for selector in SELECTORS.values()}


@pytest.mark.parametrize("move", MOVERS)
def test_others_refuse_and_name_the_conversion(move):
    X, y = make_data(None, (30, 60), np.float64)
    for name, method in discover().items():
        if not method.takes_device_arrays:
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


def test_nothing_as_long_as_x_comes_to_the_host(monkeypatch):
    fetched = []

    def watch(place, array):
        fetched.append(array.shape)
        return as_numpy(array)

    monkeypatch.setattr(Place, "fetch", watch)
    for name, selector in SELECTORS.items():
        X, y = make_data(selector, (30, 400), np.float64)
        clone(selector).fit(array_api_strict.asarray(X), y)
        assert max(np.prod(shape, dtype=int) for shape in fetched) < X.size / 2, name
        fetched.clear()
        monkeypatch.setattr(_columns, "PART_ELEMENTS", 3000)


def test_singular_systems_are_solved_on_a_device():
    for move in (array_api_strict.asarray, np.asarray):
        found = solve_positive(move(np.ones((2, 2))), move(np.zeros(2)), move(np.ones((2, 1))))
        np.testing.assert_allclose(as_numpy(found).sum(), 1.0, rtol=1e-3)


@WITHOUT_TORCH
def test_singular_systems_are_solved_by_torch():
    import torch

    found = solve_positive(torch.ones((2, 2), dtype=torch.float64), torch.zeros(2), torch.ones((2, 1), dtype=torch.float64))
    np.testing.assert_allclose(float(found.sum()), 1.0, rtol=1e-3)


def test_columns_are_shifted_and_divided_as_by_hand(monkeypatch):
    monkeypatch.setattr(_columns, "PART_ELEMENTS", 12)
    X = np.random.default_rng(0).standard_normal((6, 5)) + 1e3
    by_hand = (X - X.mean(axis=0)) / 2.0 - 0.0
    for there in (X, array_api_strict.asarray(X)):
        place = Place(there)
        columns = Columns(there).centred().divided(place.send(np.full(5, 2.0)))
        np.testing.assert_allclose(columns.on_host(), by_hand, atol=1e-12)
        np.testing.assert_allclose(columns.take(np.array([3, 1])).on_host(), by_hand[:, [3, 1]], atol=1e-12)
        weights = place.send(np.arange(1.0, 7.0))
        np.testing.assert_allclose(
            as_numpy(columns.feature_products(weights)), (by_hand.T * np.arange(1.0, 7.0)) @ by_hand, atol=1e-10
        )


def test_sums_of_counts_are_tested_as_in_scikit_learn():
    from sklearn.feature_selection import chi2

    X, y = make_data(methods.ChiSquare(counts=True), (60, 24), np.float64)
    np.testing.assert_allclose(chi_square_of_counts(X, np.eye(3)[y]), chi2(X, y)[0], rtol=1e-12, atol=1e-20)


def test_cells_are_counted_by_products_and_by_sorting(monkeypatch):
    random = np.random.default_rng(0)
    binned, other = _discretise.bin_codes(random.integers(0, 5, (40, 7))), random.integers(0, 3, 40)
    expected = _discretise.joint_entropies(binned, other)
    there = _discretise.bin_codes(array_api_strict.asarray(binned.codes))
    for n_bins in (64, 1):
        monkeypatch.setattr(_discretise, "_BINS_THERE", n_bins)
        np.testing.assert_allclose(_discretise.joint_entropies(there, other), expected, rtol=1e-12)
