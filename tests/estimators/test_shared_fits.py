"""Folds and halves that share their passes over X: results are those of fits one by one, in memory."""

from __future__ import annotations

from functools import cache, partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from blocked import cut
from sklearn.base import clone
from sklearn.linear_model import RidgeClassifier
from sklearn.metrics import accuracy_score, make_scorer

from l20fs import AHIHT, Constraints, L20Selector, L20SelectorCV, StabilitySelector, open_large
from l20fs.evaluation import engine, parallel

N_SAMPLES, N_FEATURES = 90, 30


def make_samples(n_samples=N_SAMPLES, n_features=N_FEATURES):
    """Classes, and features of which two are constant, one is far from zero and one is constant in some folds."""
    random = np.random.default_rng(0)
    y = np.arange(n_samples) % 3
    X = random.standard_normal((n_samples, n_features)) * (random.random((n_samples, n_features)) < 0.6)
    X[:, :6] += np.eye(3)[y] @ random.standard_normal((3, 6))
    X[:, 7], X[:, 8], X[:, 10] = 0.0, 0.3, 0.0
    X[:, 9] += 50.0
    X[:5, 10] = 1.0
    return X, y


def from_npy(X, folder):
    np.save(folder / "X.npy", X)
    return open_large(folder / "X.npy")


def dask_array(X, folder, *, chunks):
    return pytest.importorskip("dask.array").from_array(X, chunks=chunks)


def dask_frame(X, folder):
    frames = pytest.importorskip("dask.dataframe")
    return frames.from_pandas(pd.DataFrame(X, columns=[f"g{column}" for column in range(X.shape[1])]), npartitions=3)


CONTAINERS = {
    "in memory": lambda X, folder: X,
    "in a file": from_npy,
    "blocks of samples": lambda X, folder: cut(X, 0, 4),
    "blocks of columns": lambda X, folder: cut(X, 1, 4),
    "sparse blocks of samples": lambda X, folder: cut(sp.csr_array(X), 0, 4),
    "sparse blocks of columns": lambda X, folder: cut(sp.csr_array(X), 1, 4),
    "Dask, samples": partial(dask_array, chunks=(25, -1)),
    "Dask, columns": partial(dask_array, chunks=(-1, 8)),
    "Dask frame": dask_frame,
}


@pytest.fixture
def share(monkeypatch):
    """Let small arrays in memory be shared as well, and no fit run alone."""

    def start():
        for module in (engine, parallel):
            monkeypatch.setattr(module, "results_of", None, raising=False)

    return start


WEIGHTS = np.arange(N_SAMPLES) % 3 + 0.5
NUMBERS = make_samples()[0][:, [0, 3]] @ [1.0, -1.0] + 0.1 * np.random.default_rng(1).standard_normal(N_SAMPLES)
BOTH = np.column_stack([NUMBERS, make_samples()[0][:, 4]])
OWN_SCORER = make_scorer(lambda truth, found: accuracy_score(truth, found))

#: Options of L20SelectorCV and of its fit.
SEARCHES = {
    "plain": ({}, {}),
    "weights of zero": ({"n_features_to_select": 4}, {"sample_weight": WEIGHTS * (np.arange(N_SAMPLES) % 7 > 0)}),
    "groups": ({}, {"groups": np.arange(N_SAMPLES) // 9}),
    "nuisances": ({}, {"adjust_for": np.arange(N_SAMPLES) // 30}),
    "two outputs": ({"selector": L20Selector(task="regression"), "scoring": "neg_mean_squared_error"}, {"y": BOTH}),
    "ridges": ({"ridges": [0.1, "auto", 1.0]}, {}),
    "no intercept": ({"selector": L20Selector(fit_intercept=False)}, {}),
    "swap": ({"selector": L20Selector(solver="swap")}, {}),
    "included": ({"selector": L20Selector(constraints=Constraints(include=[3], exclude=[0]))}, {}),
    "own scorer": ({"scoring": OWN_SCORER}, {}),
    "own estimator": ({"estimator": RidgeClassifier()}, {}),
    "processes": ({"n_jobs": 2}, {}),
}


def search(X, y, options, given):
    options = {"n_features_to_select": "best", "sizes": range(1, 7), "cv": 3} | options
    return L20SelectorCV(**options).fit(X, given.get("y", y), **{k: v for k, v in given.items() if k != "y"})


@cache
def one_by_one(name):
    """Return the search in memory without shared passes, in this process."""
    options, given = SEARCHES[name]
    return search(*make_samples(), options | {"n_jobs": None}, given)


def assert_same_search(found, expected):
    assert found.support_.tolist() == expected.support_.tolist()
    assert found.ranking_.tolist() == expected.ranking_.tolist()
    assert list(found.cv_results_) == list(expected.cv_results_)
    for name, values in expected.cv_results_.items():
        np.testing.assert_allclose(found.cv_results_[name], values, rtol=1e-7, atol=1e-9, err_msg=name)
    for name in ("best_index_", "n_features_", "n_splits_"):
        assert getattr(found, name) == getattr(expected, name), name
    for name in ("best_score_", "corrected_score_", "corrected_interval_", "ridge_", "coef_", "intercept_"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-6, atol=1e-8, err_msg=name)


@pytest.mark.parametrize(
    ("container", "name"),
    [("in memory", name) for name in ("weights of zero", "nuisances", "two outputs", "ridges", "included", "own scorer")]
    + [(container, "plain") for container in CONTAINERS if container != "in memory"]
    + [("sparse blocks of samples", name) for name in ("groups", "no intercept", "swap", "own estimator", "processes")],
)
def test_cross_validation_is_that_of_fits_one_by_one(container, name, share, tmp_path):
    X, y = make_samples()
    expected = one_by_one(name)
    share()
    assert_same_search(search(CONTAINERS[container](X, tmp_path), y, *SEARCHES[name]), expected)


#: Selectors of StabilitySelector, its options, and those of its fit.
HALVES = {
    "plain": (L20Selector(4, max_features_to_select=6), {}, {}),
    "weights of zero": (L20Selector(4), {}, {"sample_weight": WEIGHTS * (np.arange(N_SAMPLES) % 7 > 0)}),
    "groups": (L20Selector(4), {}, {"groups": np.arange(N_SAMPLES) // 9}),
    "nuisances": (L20Selector(4), {}, {"adjust_for": np.arange(N_SAMPLES) // 30}),
    "alpha": (L20Selector(None, solver=AHIHT(alpha_min=2.0)), {}, {}),
    "groups of features": (
        L20Selector(3, solver="ahiht", constraints=Constraints(groups=np.arange(N_FEATURES) // 2)),
        {},
        {},
    ),
    "a search": (L20SelectorCV("best", sizes=range(1, N_FEATURES + 1), cv=2), {}, {}),
    "a stability selection": (StabilitySelector(L20Selector(3), n_resamples=2, random_state=1), {}, {}),
}


def select_stably(X, y, selector, options, given):
    stable = StabilitySelector(selector, n_resamples=4, random_state=0, **options)
    return stable.fit(X, given.get("y", y), **{k: v for k, v in given.items() if k != "y"})


@cache
def halves_one_by_one(name):
    return select_stably(*make_samples(), *HALVES[name])


def assert_same_halves(found, expected):
    for name in ("orders_", "sizes_", "frequencies_", "mean_ranks_", "ranking_", "support_"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)
    assert found.stability_ == expected.stability_


@pytest.mark.parametrize(
    ("container", "name"),
    [("in memory", name) for name in ("weights of zero", "nuisances", "groups of features", "a search")]
    + [(container, "plain") for container in ("in a file", "sparse blocks of columns", "Dask, samples", "Dask frame")]
    + [("Dask, samples", name) for name in ("groups", "alpha", "a stability selection")],
)
def test_stability_selection_is_that_of_fits_one_by_one(container, name, share, tmp_path):
    X, y = make_samples()
    expected = halves_one_by_one(name)
    share()
    assert_same_halves(select_stably(CONTAINERS[container](X, tmp_path), y, *HALVES[name]), expected)


def counted_passes(monkeypatch):
    """Return the list of all Dask arrays that are taken apart from now on."""
    dask_module = pytest.importorskip("l20fs.design.dask")
    made, begin, read = [], dask_module.DaskMatrix.__init__, dask_module.DaskMatrix._pass

    def remember(self, *given, **options):
        begin(self, *given, **options)
        self.n_passes = 0
        made.append(self)

    def count(self, jobs):
        self.n_passes += 1
        return read(self, jobs)

    monkeypatch.setattr(dask_module.DaskMatrix, "__init__", remember)
    monkeypatch.setattr(dask_module.DaskMatrix, "_pass", count)
    return made


#: Shape, number of features, chunks, parameters of the search, whether samples have weights.
COUNTED = {
    "many features": ((1500, 2100), 100, (500, -1), {}, False),
    "few features": ((1500, 2500), 10, (500, -1), {}, False),
    "blocks of columns": ((300, 2500), 30, (-1, 500), {}, False),
    "estimator": ((1500, 2500), 30, (500, -1), {"estimator": RidgeClassifier()}, False),
    "ahiht": ((1500, 2500), 20, (500, -1), {"selector": L20Selector(solver="ahiht")}, False),
}


@pytest.mark.parametrize("name", COUNTED)
def test_cross_validation_takes_little_more_passes_than_a_fit(monkeypatch, name):
    made, (shape, k, chunks, options, weighted) = counted_passes(monkeypatch), COUNTED[name]
    random = np.random.default_rng(0)
    y = np.arange(shape[0]) % 4
    X = random.standard_normal(shape)
    X[:, :k] += 0.5 * np.eye(4)[y] @ random.standard_normal((4, k))
    array, weights = dask_array(X, None, chunks=chunks), 0.5 + random.random(shape[0]) if weighted else None
    clone(options.get("selector", L20Selector())).set_params(n_features_to_select=k).fit(array, y, sample_weight=weights)
    L20SelectorCV(k, sizes=range(1, k + 1), **options).fit(array, y, sample_weight=weights)
    n_passes = [blocks.n_passes for blocks in made]
    assert n_passes[0] >= (9 if k == 100 else 3)
    # An estimator of one's own leaves the probabilities of the path's model to folds of their own.
    assert n_passes[1] <= {"estimator": 2.3, "ahiht": 1.7}.get(name, 1.5) * n_passes[0]


def test_halves_take_no_more_passes_than_a_fit_to_one(monkeypatch):
    made = counted_passes(monkeypatch)
    random, k = np.random.default_rng(0), 60
    y = np.arange(1500) % 4
    X = random.standard_normal((1500, 2100))
    X[:, :k] += 0.5 * np.eye(4)[y] @ random.standard_normal((4, k))
    L20Selector(k).fit(dask_array(X[::2], None, chunks=(250, -1)), y[::2])
    StabilitySelector(L20Selector(k), n_resamples=4, random_state=0).fit(dask_array(X, None, chunks=(500, -1)), y)
    n_passes = [blocks.n_passes for blocks in made]
    assert n_passes[0] > 60 / 16
    assert n_passes[1] <= 1.5 * n_passes[0]
