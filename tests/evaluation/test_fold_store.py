"""Folds that are kept: the same predictions, computed once, and never those of another run."""

from __future__ import annotations

import numpy as np
import pytest
from samples import make_data

from l20fs import L20Selector
from l20fs.evaluation.fold_store import FoldStore
from l20fs.evaluation.folds import make_stratified_folds
from l20fs.evaluation.predictions import nested_scores, predictions_by_k


@pytest.fixture
def fits(monkeypatch):
    """The fits that are made."""
    made, fit = [], L20Selector.fit
    monkeypatch.setattr(L20Selector, "fit", lambda self, *given, **named: made.append(1) or fit(self, *given, **named))
    return made


@pytest.fixture(scope="module")
def data():
    X, y = make_data(0)
    return X, y, make_stratified_folds(y, seed=0)


def predict(data, store, **options):
    X, y, folds = data
    return predictions_by_k(L20Selector(), X, y, [1, 2, 3], folds, store=store, **options)


def same(one, other):
    assert all(np.array_equal(one.predicted[judge], other.predicted[judge]) for judge in one.predicted)
    np.testing.assert_array_equal(one.values, other.values)
    np.testing.assert_array_equal(one.n_features, other.n_features)


def test_kept_folds_are_not_computed_again(data, fits, tmp_path):
    wanted = predict(data, None)
    n_folds = len(fits)
    same(predict(data, FoldStore(tmp_path, {"run": 1})), wanted)
    fits.clear()
    progress = []
    same(predict(data, FoldStore(tmp_path, {"run": 1}), on_fold=lambda: progress.append(1)), wanted)
    assert (len(fits), len(progress)) == (0, n_folds)
    files = sorted(tmp_path.iterdir())
    assert len(files) == n_folds
    files[1].unlink()
    files[2].write_bytes(files[2].read_bytes()[:-100])
    same(predict(data, FoldStore(tmp_path, {"run": 1})), wanted)
    assert len(fits) == 2, "one was missing and one damaged"


@pytest.mark.parametrize("change", ["run", "sizes", "judges", "folds"])
def test_folds_of_another_run_are_not_taken(data, fits, tmp_path, change):
    X, y, folds = data
    predict(data, FoldStore(tmp_path, {"run": 1}))
    fits.clear()
    other = {"sizes": [1, 2], "folds": make_stratified_folds(y, seed=1), "judges": ("linear",)}
    options = {"sizes": [1, 2, 3], "folds": folds} | {name: other[name] for name in (change,) if name in other}
    predictions_by_k(L20Selector(), X, y, **options, store=FoldStore(tmp_path, {"run": 2 if change == "run" else 1}))
    assert len(fits) == len(folds)


def test_nested_folds_are_kept_too(data, fits, tmp_path):
    X, y, folds = data
    outer = predict(data, None)
    wanted = nested_scores(L20Selector(), X, y, outer, "best")
    for n_fits in (len(folds) ** 2, 0):
        fits.clear()
        found = nested_scores(L20Selector(), X, y, outer, "best", store=FoldStore(tmp_path, {}))
        assert found.sizes == wanted.sizes
        assert len(fits) == n_fits
