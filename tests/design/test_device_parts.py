"""Fits that share an X of another library: designs of some samples, cross-validation and halves are those of NumPy."""

from __future__ import annotations

import pickle

import array_api_strict
import numpy as np
import pytest
from libraries import move_to_each
from sklearn.linear_model import RidgeClassifier
from sklearn.metrics import accuracy_score, make_scorer

from l20fs import HIHT, L20Selector, L20SelectorCV, SolutionPath, StabilitySelector, Swap
from l20fs.design import DeviceDesign, make_design, share_samples
from l20fs.inputs.devices import Place, as_numpy, is_device_array
from l20fs.methods import FisherScore

in_each_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def make_samples(dtype=np.float64, n_samples=60, n_features=40):
    """Classes, and features of which one is constant, one zero, one constant in a part, one far from zero, one tiny."""
    random = np.random.default_rng(0)
    y = np.arange(n_samples) % 3
    X = random.standard_normal((n_samples, n_features)) + random.uniform(-2.0, 2.0, n_features)
    X[:, :5] += np.eye(3)[y] @ random.standard_normal((3, 5))
    X[:, 7], X[:, 8], X[:45, 9] = 0.3, 0.0, 1.5
    X[:, 10] += 300.0
    X[:, 11] *= 1e-4
    X[:45, 12] *= 1e-3
    return X.astype(dtype), y


OPTIONS = {
    "plain": {},
    "zscore": {"scale": "zscore"},
    "moderated": {"scale": "moderated"},
    "without intercept": {"scale": "zscore", "fit_intercept": False},
    "weights": {"scale": "zscore", "sample_weight": np.arange(45) % 3 + 0.5},
    "nuisances": {"scale": "zscore", "nuisances": np.eye(3)[np.arange(45) // 15]},
    "weighted nuisances": {"sample_weight": np.arange(45) % 3, "nuisances": np.eye(3)[np.arange(45) // 15]},
}


@in_each_dtype
@move_to_each
@pytest.mark.parametrize("name", OPTIONS)
def test_design_of_a_part_is_that_of_its_samples(move, dtype, name):
    X, _ = make_samples(dtype)
    X[:45, 13] = X[:45, 14] + X[15, 14]  # of no use for a part, but for all samples
    rows, options = np.random.default_rng(1).permutation(45), OPTIONS[name]
    samples = share_samples(move(X))
    expected, found = make_design(X[rows], **options), make_design(samples[rows], **options)
    assert isinstance(found, DeviceDesign)
    assert found.varies.tolist() == expected.varies.tolist()
    assert not found.varies[9] or name == "without intercept"
    close = {"rtol": 1e-9, "atol": 1e-9} if dtype == np.float64 else {"rtol": 2e-4, "atol": 5e-4}
    counted = expected.varies
    np.testing.assert_allclose(found.mean[counted], expected.mean[counted], rtol=close["rtol"], atol=1e-6)
    for attribute in ("scale", "column_energy", "max_sample_energy", "explained_energy"):
        np.testing.assert_allclose(getattr(found, attribute), getattr(expected, attribute), **close)
    weights, random = expected.sample_weights, np.random.default_rng(2)
    multiplied = X[rows].astype(np.float64) - samples.shared.base(weights.fit_intercept).origin
    norms = np.linalg.norm(weights.times_root(multiplied.T), axis=1) / expected.scale
    np.testing.assert_allclose(found.pull_norms()[counted], norms[counted], **close)
    residual = weights.centred(random.standard_normal((2, 45)))
    if weights.root is not None:
        residual[:, weights.root == 0.0] = 0.0
        residual = weights.centred(residual)
    few, values = np.array([0, 10, 3, 12]), random.standard_normal((2, 4))
    for operation in (
        lambda design: design.pull(residual),
        lambda design: design.pull(residual, few),
        lambda design: design.pull_exactly(residual),
        lambda design: design.push(few, values),
        lambda design: design.take(few, slice(3, 9)),
        lambda design: design.column(12),
        lambda design: np.abs(design.triangle(few, residual, 0.5)),
    ):
        scale = np.abs(operation(expected)).max()
        np.testing.assert_allclose(operation(found) / scale, operation(expected) / scale, **close)


def results_of(selector):
    return {name: values for name, values in selector.cv_results_.items() if "_time" not in name}


SEARCHES = {
    "classes": {},
    "all ridges": {"ridge": [0.1, "auto"], "n_features_to_select": 2},
    "swap": {"selector": L20Selector(solver=Swap())},
    "HIHT": {"selector": L20Selector(solver=HIHT())},
    "groups": {"selector": L20Selector(feature_groups=np.arange(40) // 2, exclude=[3])},
    "own scorer": {"scoring": make_scorer(lambda truth, found: accuracy_score(truth, found))},
    "other estimator": {"estimator": RidgeClassifier()},
}


@move_to_each
@pytest.mark.parametrize("name", SEARCHES)
def test_cross_validation_is_that_of_numpy(move, name):
    X, y = make_samples()
    options = {"n_features_to_select": 3, "max_features": 4, "cv": 3} | SEARCHES[name]
    expected, found = (L20SelectorCV(**options).fit(x, y) for x in (X, move(X)))
    assert found.support_.tolist() == expected.support_.tolist()
    assert found.ranking_.tolist() == expected.ranking_.tolist()
    assert (found.best_index_, found.n_features_) == (expected.best_index_, expected.n_features_)
    for key, values in results_of(expected).items():
        np.testing.assert_allclose(found.cv_results_[key], values, rtol=1e-9, err_msg=key)
    np.testing.assert_allclose(found.corrected_score_, expected.corrected_score_, rtol=1e-9)
    predicted = found.predict(move(X))
    assert as_numpy(predicted).tolist() == expected.predict(X).tolist()
    assert is_device_array(predicted) == (name != "other estimator")
    assert as_numpy(found.transform(move(X))).tolist() == X[:, expected.support_].tolist()


@move_to_each
def test_cross_validation_of_numbers_with_weights_and_nuisances_is_that_of_numpy(move):
    X, y = make_samples()
    given = {"sample_weight": np.arange(60) % 4 + 0.5, "adjust_for": np.arange(60) % 2, "groups": np.arange(60) // 6}
    target = X[:, 0] - 2.0 * X[:, 4] + y
    options = {"n_features_to_select": 3, "max_features": 4, "cv": 3, "task": "regression"}
    expected, found = (L20SelectorCV(**options).fit(x, target, **given) for x in (X, move(X)))
    assert found.ranking_.tolist() == expected.ranking_.tolist()
    for key, values in results_of(expected).items():
        np.testing.assert_allclose(found.cv_results_[key], values, rtol=1e-7, err_msg=key)
    np.testing.assert_allclose(as_numpy(found.predict(move(X))), expected.predict(X), rtol=1e-7)
    assert found.score(X, target) == pytest.approx(expected.score(X, target))


@in_each_dtype
@move_to_each
@pytest.mark.parametrize(
    "selector", [L20Selector(4), L20Selector(4, solver=Swap(), scale="zscore")], ids=["forward", "swap"]
)
def test_halves_are_those_of_numpy(move, dtype, selector):
    X, y = make_samples(dtype)
    expected, found = (StabilitySelector(selector, n_resamples=6, random_state=0).fit(x, y) for x in (X, move(X)))
    assert found.orders_.tolist() == expected.orders_.tolist()
    assert found.frequencies_.tolist() == expected.frequencies_.tolist()
    assert as_numpy(found.transform(move(X))).tolist() == X[:, expected.support_].tolist()


@move_to_each
def test_halves_with_weights_and_nuisances_are_those_of_numpy(move):
    X, y = make_samples()
    given = {"sample_weight": np.arange(60) % 4, "adjust_for": np.arange(60) // 20, "groups": np.arange(60) // 2}
    stable = StabilitySelector(L20Selector(4), n_resamples=4, random_state=0)
    expected = stable.fit(X, y, **given).orders_.tolist()
    assert stable.fit(move(X), y, **given).orders_.tolist() == expected


def count_products(monkeypatch):
    """Record the number of lines of each product with all samples."""
    lines, products = [], DeviceDesign.products

    def counted(design, residual):
        if design.n_samples == 60:
            lines.append(residual.shape[0])
        return products(design, residual)

    monkeypatch.setattr(DeviceDesign, "products", counted)
    return lines


@move_to_each
def test_a_pass_serves_all_folds(move, monkeypatch):
    X, y = make_samples()
    there, lines = move(X), count_products(monkeypatch)
    L20Selector(4).fit(there, y)
    n_alone, n_lines = len(lines), sum(lines)
    lines.clear()
    StabilitySelector(L20Selector(4), n_resamples=6, random_state=0).fit(there, y)
    assert len(lines) <= n_alone + 1
    assert sum(lines) >= 5 * n_lines
    lines.clear()
    L20SelectorCV(4, max_features=4, cv=5).fit(there, y)
    assert len(lines) <= 2 * n_alone + 2  # the folds, and all samples


@move_to_each
def test_a_part_gives_a_few_columns_in_memory(move):
    X, _ = make_samples()
    samples = share_samples(move(X))
    assert samples[np.array([5, 2])][:, np.array([3, 0])].tolist() == X[np.ix_([5, 2], [3, 0])].tolist()
    assert samples[np.array([5, 2])].whole().tolist() == X[[5, 2]].tolist()


def test_fits_in_memory_that_look_for_the_step_size_do_not_wait_for_each_other():
    X, y = make_samples()
    assert L20SelectorCV(2, selector=L20Selector(solver=HIHT()), max_features=2, cv=3).fit(X, y).n_features_ == 2


def test_halves_of_a_selector_without_parts_are_taken_where_x_is():
    X, y = make_samples()
    X[:, 7:9] += np.random.default_rng(3).standard_normal((60, 2))
    if not FisherScore.takes_device_arrays:
        pytest.skip("FisherScore takes no arrays on a device")
    there = array_api_strict.asarray(X)
    expected, found = (StabilitySelector(FisherScore(4), n_resamples=4, random_state=0).fit(x, y) for x in (X, there))
    assert found.orders_.tolist() == expected.orders_.tolist()


@in_each_dtype
@move_to_each
def test_path_of_a_part_has_all_that_numpy_has(move, dtype):
    X, y = make_samples(dtype)
    rows = np.random.default_rng(1).permutation(45)
    found = L20Selector(4).fit(share_samples(move(X))[rows], y[rows]).path_
    expected = L20Selector(4).fit(X[rows], y[rows]).path_
    assert (found.n_ranked, found.n_units, found.n_selectable) == (
        expected.n_ranked,
        expected.n_units,
        expected.n_selectable,
    )
    assert (found.n_included, found.least_size) == (expected.n_included, expected.least_size)
    assert found.sizes.tolist() == expected.sizes.tolist()
    assert found.leading(4).tolist() == expected.leading(4).tolist()
    assert "scores" not in vars(found)  # which were not needed so far
    copied = pickle.loads(pickle.dumps(found))
    assert type(copied) is SolutionPath
    close = {"rtol": 1e-9, "atol": 1e-12} if dtype == np.float64 else {"rtol": 2e-3, "atol": 1e-3}
    by_norm = [each.ranked_by("norm") for each in (found, copied, expected)]
    for path, other in ((found, expected), (copied, expected), (by_norm[0], by_norm[2]), (by_norm[1], by_norm[2])):
        assert path.rules.tolist() == other.rules.tolist()
        assert path.ranking[other.support(4)].tolist() == [1, 2, 3, 4]
        if dtype == np.float64:
            assert path.ranking.tolist() == other.ranking.tolist()
        varies = np.isfinite(other.scores)
        np.testing.assert_allclose(path.scores[varies], other.scores[varies], **close)
        np.testing.assert_allclose(path.x_mean[varies], other.x_mean[varies], **close)
        np.testing.assert_allclose(path.refit(3).coef, other.refit(3).coef, **close)


def record_fetches(monkeypatch):
    """Record the shapes of what is copied to the host."""
    shapes, fetch = [], Place.fetch

    def recorded(place, array):
        found = fetch(place, array)
        shapes.append(np.shape(found))
        return found

    monkeypatch.setattr(Place, "fetch", recorded)
    return shapes


@move_to_each
def test_a_half_brings_nothing_to_the_host_that_is_as_long_as_x_has_features(move, monkeypatch):
    X, y = make_samples(n_features=900)
    X[:, 7:13] = np.random.default_rng(3).standard_normal((60, 6))  # which needs no other look
    there, shapes, n_long = move(X), record_fetches(monkeypatch), []
    monkeypatch.setattr(DeviceDesign, "triangle", lambda *_: pytest.fail("a half is refitted"))
    for n_resamples in (2, 6):
        shapes.clear()
        StabilitySelector(L20Selector(4), n_resamples=n_resamples, random_state=0).fit(there, y)
        n_long.append(sum(900 in shape for shape in shapes))
    assert n_long[0] == n_long[1]
