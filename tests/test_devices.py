"""X of another library: the same answer as NumPy's, where X is; cross-validation and halves, too."""

from __future__ import annotations

import pickle
import warnings

import array_api_compat as xpc
import numpy as np
import pytest
from libraries import move_to_each
from samples import make_data
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import RidgeClassifier
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.preprocessing import StandardScaler

from l20fs import AHIHT, HIHT, Constraints, L20Selector, L20SelectorCV, StabilitySelector, Swap
from l20fs.inputs.devices import as_numpy, is_device_array
from l20fs.methods import LFS

in_each_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def make_problem_data(n_samples, n_features, dtype, seed=0):
    """Classes, and features with means; one is constant, one zero, one far from zero, one tiny.

    In float64 two are the same; in float32 rounding may tell such features apart, in NumPy as well as elsewhere.
    """
    random = np.random.default_rng(seed)
    y = random.permutation(np.arange(n_samples) % 3)
    X = random.standard_normal((n_samples, n_features)) + random.uniform(-2.0, 2.0, n_features)
    X[:, :5] += np.eye(3)[y] @ random.standard_normal((3, 5))
    X[:, 7], X[:, 8] = 0.3, 0.0
    X[:, 9] += 300.0
    X[:, 10] *= 1e-4
    if dtype == np.float64:
        X[:, 12] = X[:, 11]
    return X.astype(dtype), np.eye(3)[y], y


@move_to_each
def test_correlated_features_are_chosen_as_by_numpy(move):
    """Groups of near copies: the best one of a group takes the worth of the others with it."""
    random = np.random.default_rng(0)
    factors = random.standard_normal((100, 15))
    X = np.repeat(factors, 20, axis=1) + 0.1 * random.standard_normal((100, 300))
    Y = factors @ random.standard_normal((15, 4)) + random.standard_normal((100, 4))
    for ridge in (0.0, 0.5):
        expected, found = (L20Selector(40, ridge=ridge, scale="none").fit(there, Y) for there in (X, move(X)))
        assert found.path_.order[:40].tolist() == expected.path_.order[:40].tolist()
        np.testing.assert_allclose(found.path_.losses, expected.path_.losses, rtol=1e-9)


@move_to_each
def test_a_row_is_foreseen_once_where_the_last_ones_gain_no_more_than_rounding(move):
    """As many features as samples leave to them, in float32: one of the draws in which a row came twice."""
    random = np.random.default_rng(2250)
    n_samples = random.integers(6, 25)
    X = random.standard_normal((n_samples, 10)) * random.choice([1, 1, 3], 10)
    X, y = X.astype(random.choice([np.float32, np.float64])), random.integers(0, random.choice([2, 3]), n_samples)
    rows = L20Selector(10).fit(move(X), y).path_.stage_rows(-1)
    assert len(np.unique(rows)) == len(rows)


@in_each_dtype
@move_to_each
@pytest.mark.parametrize("solver", ["forward", "ahiht"])
def test_selector_answers_as_with_numpy_and_where_x_is(move, dtype, solver):
    X, _, y = make_problem_data(60, 80, dtype)
    there = move(X)
    before = as_numpy(there)
    expected = L20Selector(6, solver=solver, max_features_to_select=10).fit(X, y)
    selector = L20Selector(6, solver=solver, max_features_to_select=10).fit(there, move(y))
    assert selector.support_.tolist() == expected.support_.tolist()
    assert selector.ranking_[:13].tolist() == expected.ranking_[:13].tolist()
    np.testing.assert_allclose(selector.coef_, expected.coef_, rtol=1e-2 if dtype == np.float32 else 1e-7, atol=1e-5)
    assert selector.n_features_in_ == 80
    assert selector.classes_.tolist() == [0, 1, 2]
    for name, value in vars(selector).items():
        assert not is_device_array(value), name
    reduced = selector.transform(there)
    assert type(reduced) is type(there)
    assert reduced.dtype == there.dtype
    assert xpc.device(reduced) == xpc.device(there)
    np.testing.assert_array_equal(as_numpy(reduced), X[:, selector.support_])
    np.testing.assert_array_equal(selector.transform(X), X[:, selector.support_])
    np.testing.assert_array_equal(as_numpy(there), before)
    again = pickle.loads(pickle.dumps(selector))
    np.testing.assert_array_equal(as_numpy(again.set_params(n_features_to_select=3).transform(there)), X[:, again.support_])


SETTINGS = [
    {"n_features_to_select": None, "solver": AHIHT(alpha_min=0.5), "ridge": 0.1},
    {"n_features_to_select": 4, "class_weight": {0: 2.0}, "scale": "none", "ridge": 0.01},
    {"n_features_to_select": 4, "constraints": Constraints(include=[30], exclude=[1])},
    {"n_features_to_select": 4, "solver": "ahiht", "constraints": Constraints(costs={1: 2.0, 3: 0.5})},
    {"n_features_to_select": 3, "constraints": Constraints(groups=[[0, 20], [1, 2, 3]])},
    {"n_features_to_select": 3, "loss": "l21"},
    {"n_features_to_select": 4, "solver": HIHT(init="gaussian", random_state=0, max_iter=20)},
    {"n_features_to_select": 4, "solver": AHIHT(ranking="norm")},
]


@move_to_each
@pytest.mark.parametrize("parameters", SETTINGS, ids=str)
def test_all_settings_work(move, parameters):
    X, _, y = make_problem_data(50, 40, np.float64)
    weights = np.random.default_rng(2).uniform(0.5, 2.0, 50)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        expected = L20Selector(**parameters).fit(X, y, sample_weight=weights)
        selector = L20Selector(**parameters).fit(move(X), y, sample_weight=move(weights))
    assert selector.support_.tolist() == expected.support_.tolist()
    np.testing.assert_allclose(selector.coef_, expected.coef_, rtol=1e-5, atol=1e-8)


@move_to_each
def test_numbers_as_targets_from_any_place(move):
    X, _, _ = make_problem_data(50, 40, np.float64)
    Y = X[:, [3, 5]] + 0.1 * np.random.default_rng(0).standard_normal((50, 2))
    expected = L20Selector(2).fit(X, Y)
    for targets in (Y, move(Y), Y.tolist()):
        assert L20Selector(2).fit(move(X), targets).support_.tolist() == expected.support_.tolist()


@move_to_each
def test_what_cannot_be_taken_is_refused(move):
    X, y = make_data()
    there = move(X)
    with pytest.raises(TypeError, match=r"it must be float32 or float64\. Convert"):
        L20Selector(3).fit(move(X.astype(np.int64)), y)
    with pytest.raises(ValueError, match="1 dimensions; expected 2"):
        L20Selector(3).fit(move(X[0]), y)
    with pytest.raises(ValueError, match=r"X has the shape \(12,\)\. Give a matrix of two axes"):
        L20Selector(3).fit(X, y).transform(move(X[0]))
    with pytest.raises(ValueError, match=r"shape \(1, 12\)\. Give at least 2 samples"):
        L20Selector(3).fit(move(X[:1]), y[:1])
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[60, 59\]"):
        L20Selector(3).fit(there, y[:-1])
    with pytest.raises(ValueError, match="one class only"):
        L20Selector(3).fit(there, np.zeros(60))
    with pytest.raises(NotFittedError):
        L20Selector(3).transform(there)
    selector = L20Selector(3).fit(X, y)
    with pytest.raises(ValueError, match="X has 11 features, but L20Selector is expecting 12"):
        selector.transform(move(X[:, :11]))
    for value, message in ((np.nan, r"X has 2 missing values \(NaN\)\."), (-np.inf, r"X has 2 infinite values \(inf\)\.")):
        spoilt = X.copy()
        spoilt[3, 4:6] = value
        with pytest.raises(ValueError, match=message):
            L20Selector(3).fit(move(spoilt), y)
    for estimator in (L20SelectorCV(sizes=range(1, 4), preprocess=StandardScaler()), StabilitySelector(LFS(3))):
        with pytest.raises(TypeError, match=r"X is a (torch|array_api_strict) array, .* Convert it first, for example"):
            estimator.fit(there, y)
    with pytest.raises(TypeError, match="Convert it first"):
        selector.to_frame(there)


@move_to_each
def test_large_values_work_and_larger_ones_are_refused(move):
    """Neither are infinite values, even where their sum is."""
    X, _, y = make_problem_data(40, 20, np.float32)
    X[:, 3] = np.where(y == 0, np.float32(2e16), np.float32(1e16))
    expected = L20Selector(3).fit(X, y)
    assert expected.support_[3]
    assert L20Selector(3).fit(move(X), y).support_.tolist() == expected.support_.tolist()
    X[:, 3] *= np.float32(1e22)
    for scale in ("none", "zscore"):
        with pytest.raises(ValueError, match=r"overflow(s| in) float32\. Divide X by a constant"):
            L20Selector(3, scale=scale).fit(move(X), y)


@move_to_each
def test_nothing_is_selected(move):
    X, y = make_data()
    selector = L20Selector(None, solver=AHIHT(alpha_min=1e9)).fit(X, y)
    with pytest.warns(UserWarning, match="No features were selected"):
        reduced = selector.transform(move(X))
    assert tuple(reduced.shape) == (60, 0)


@pytest.mark.filterwarnings("ignore:Sparse CSC tensor support")
def test_tensors_that_are_no_plain_arrays_are_refused():
    torch = pytest.importorskip("torch")
    X, y = make_data()
    there, selector = torch.tensor(X), L20Selector(3).fit(X, y)
    weights = torch.ones(60)
    for sparse in (there.to_sparse(), there.to_sparse_csc()):
        for method in (lambda X: L20Selector(3).fit(X, y), selector.transform):
            with pytest.raises(TypeError, match=r"X is a tensor of the layout torch\.sparse_c.*\. Use X\.to_dense\(\)"):
                method(sparse)
    with pytest.raises(ValueError, match="X is on the device 'meta', where tensors have no values"):
        L20Selector(3).fit(there.to("meta"), y)
    with pytest.raises(ValueError, match="y is on the device 'meta'"):
        L20Selector(3).fit(there, torch.tensor(y, device="meta"))
    with pytest.raises(TypeError, match=r"y is a tensor of the layout .* Use y\.to_dense\(\)"):
        L20Selector(3).fit(there, torch.tensor(y).to_sparse())
    with pytest.raises(ValueError, match="sample_weight is on the device 'meta'"):
        L20Selector(3).fit(there, y, sample_weight=weights.to("meta"))
    with pytest.raises(TypeError, match=r"sample_weight is a tensor of the layout .* Use sample_weight\.to_dense\(\)"):
        L20Selector(3).fit(there, y, sample_weight=weights.to_sparse())


def test_types_that_numpy_does_not_have():
    torch = pytest.importorskip("torch")
    X, y = make_data()
    weights = np.arange(60) % 3
    expected = L20Selector(3).fit(X, y, sample_weight=weights)
    found = L20Selector(3).fit(
        torch.tensor(X), torch.tensor(y).bfloat16(), sample_weight=torch.tensor(weights, dtype=torch.bfloat16)
    )
    assert found.support_.tolist() == expected.support_.tolist()
    there = torch.tensor(X).bfloat16()
    with pytest.raises(TypeError, match=r"X has the type torch\.bfloat16; .* Convert it first: X\.float\(\)") as caught:
        L20Selector(3).fit(there, y)
    L20Selector(3).fit(eval(str(caught.value).rpartition(": ")[2].rstrip("."), {"X": there}), y)


def test_gradients_of_torch_are_not_recorded():
    torch = pytest.importorskip("torch")
    X, y = make_data()
    there = torch.tensor(X, requires_grad=True)
    expected = L20Selector(3).fit(X, y)
    assert L20Selector(3).fit(there, y).support_.tolist() == expected.support_.tolist()
    assert there.grad is None


def test_layouts_of_torch_give_the_same_answer():
    torch = pytest.importorskip("torch")
    X, _, y = make_problem_data(40, 30, np.float64)
    expected = L20Selector(5).fit(X, y)
    for there in (torch.tensor(X.T.copy()).T, torch.tensor(np.repeat(X, 2, axis=0))[::2]):
        assert L20Selector(5).fit(there, y).support_.tolist() == expected.support_.tolist()


# Folds and halves


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


def results_of(selector):
    return {name: values for name, values in selector.cv_results_.items() if "_time" not in name}


SEARCHES = {
    "classes": {},
    "all ridges": {"ridges": [0.1, "auto"], "n_features_to_select": 2},
    "swap": {"selector": L20Selector(solver=Swap())},
    "HIHT": {"selector": L20Selector(solver=HIHT())},
    "groups": {"selector": L20Selector(constraints=Constraints(groups=np.arange(40) // 2, exclude=[3]))},
    "own scorer": {"scoring": make_scorer(lambda truth, found: accuracy_score(truth, found))},
    "other estimator": {"estimator": RidgeClassifier()},
}


@move_to_each
@pytest.mark.parametrize("name", SEARCHES)
def test_cross_validation_is_that_of_numpy(move, name):
    X, y = make_samples()
    options = {"n_features_to_select": 3, "sizes": range(1, 5), "cv": 3} | SEARCHES[name]
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
    options = {"n_features_to_select": 3, "sizes": range(1, 5), "cv": 3, "selector": L20Selector(task="regression")}
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
