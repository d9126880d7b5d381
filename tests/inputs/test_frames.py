"""Frames that are not yet computed: polars LazyFrames and Dask data frames select what pandas frames select."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

from l20fs import L20Classifier, L20Regressor, L20Selector, L20SelectorCV, StabilitySelector
from l20fs.methods import FisherScore
from l20fs.plots import SelectionHeatmapDisplay


@pytest.fixture(scope="module")
def frame():
    chance = np.random.default_rng(0)
    y = np.repeat(["a", "b", "c"], 20)
    X = chance.normal(size=(60, 8))
    X[y == "b", 2] += 2.0
    X[y == "c", 5] += 2.0
    order = chance.permutation(60)
    return pd.DataFrame(X[order], columns=[f"g{j}" for j in range(8)]), pd.Series(y[order], name="type")


@pytest.fixture(scope="module")
def dd():
    pytest.importorskip("pyarrow")
    return pytest.importorskip("dask.dataframe")


class Counted:
    """A LazyFrame that counts how often it is computed."""

    def __init__(self, X):
        self.n = 0
        self.lazy = pl.from_pandas(X).lazy().map_batches(self.count)

    def count(self, frame):
        self.n += 1
        return frame


ESTIMATORS = {
    "L20Selector": L20Selector(3),
    "L20Classifier": L20Classifier(3),
    "FisherScore": FisherScore(3),
    "StabilitySelector": StabilitySelector(L20Selector(3), n_resamples=4, random_state=0),
    "L20SelectorCV": L20SelectorCV(3, cv=3),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_lazy_frame_selects_as_a_pandas_frame_does(frame, name):
    X, y = frame
    estimator = ESTIMATORS[name]
    expected = estimator.fit(X, y)
    support, values = expected.get_support(), expected.transform(X)
    counted = Counted(X)
    found = estimator.fit(counted.lazy, pl.Series(y))
    assert counted.n == 1
    np.testing.assert_array_equal(found.get_support(), support)
    assert found.get_feature_names_out().tolist() == X.columns[support].tolist()
    np.testing.assert_array_equal(found.transform(counted.lazy), values)
    counted = Counted(X)
    np.testing.assert_array_equal(estimator.fit_transform(counted.lazy, pl.LazyFrame({"type": y.tolist()})), values)
    assert counted.n == 1
    if hasattr(estimator, "predict"):
        np.testing.assert_array_equal(found.predict(counted.lazy), found.predict(X))


def test_a_lazy_frame_everywhere_else(frame):
    X, y = frame
    lazy = pl.from_pandas(X).lazy()
    model = L20Classifier(3).fit(X, y)
    pd.testing.assert_frame_equal(model.to_frame(lazy), model.to_frame(X))
    panel = model.to_panel(lazy, pl.LazyFrame({"type": y.tolist()}))
    assert panel.to_json() == model.to_panel(X, y).to_json()
    drawn, expected = (SelectionHeatmapDisplay.from_estimator(model, data, y) for data in (lazy, X))
    np.testing.assert_array_equal(drawn.means, expected.means)


@pytest.mark.parametrize("model", [L20Selector(3), L20Classifier(3)])
@pytest.mark.parametrize("n_parts", [1, 4])
def test_a_dask_frame_selects_as_a_pandas_frame_does(frame, dd, model, n_parts):
    X, y = frame
    lazy, targets = dd.from_pandas(X, npartitions=n_parts), dd.from_pandas(y, npartitions=n_parts)
    expected = model.fit(X, y)
    support, values, table = expected.get_support(), expected.transform(X), expected.to_frame(X)
    found = model.fit(lazy, targets)
    np.testing.assert_array_equal(found.get_support(), support)
    assert found.get_feature_names_out().tolist() == X.columns[support].tolist()
    reduced = found.transform(lazy)
    assert (reduced.shape, reduced.chunks[0]) == ((60, 3), (60 // n_parts,) * n_parts)
    np.testing.assert_array_equal(reduced.compute(), values)
    pd.testing.assert_frame_equal(found.to_frame(lazy), table)
    if hasattr(model, "predict"):
        np.testing.assert_array_equal(found.predict(lazy), found.predict(X))
        panels = [found.to_panel(data, labels) for data, labels in ((lazy, targets), (X, y))]
        np.testing.assert_allclose(*(panel.predict_proba(X) for panel in panels))


def test_a_dask_frame_is_computed_by_its_partitions_and_never_as_a_whole(frame, dd):
    X, y = frame
    sizes = []

    def watch(part):
        sizes.append(len(part))
        return part

    lazy = dd.from_pandas(X, npartitions=6).map_partitions(watch, meta=X.head(0))
    L20Selector(3).fit(lazy, y)
    assert max(sizes) == 10


def test_numbers_of_pandas_that_may_be_missing_and_single_precision(frame, dd):
    X, y = frame
    single = dd.from_pandas(X.astype("float32"), npartitions=2)
    assert L20Selector(3).fit(single, y).transform(single).dtype == np.float32
    whole = (10 * X).round().astype("Int64")
    found = L20Regressor(3).fit(dd.from_pandas(whole, npartitions=2), X["g1"].to_numpy())
    np.testing.assert_array_equal(found.support_, L20Regressor(3).fit(whole, X["g1"]).support_)
    whole.loc[7, "g3"] = pd.NA
    with pytest.raises(ValueError, match="X has 1 missing values"):
        L20Selector(3).fit(dd.from_pandas(whole, npartitions=2), y)


def test_dask_frames_with_other_columns_are_refused(frame, dd):
    X, y = frame
    fitted = L20Classifier(3).fit(dd.from_pandas(X, npartitions=2), y)
    other = dd.from_pandas(X.rename(columns={"g1": "h1"}), npartitions=2)
    for call in (fitted.transform, fitted.predict, fitted.to_frame):
        with pytest.raises(ValueError, match="feature names should match"):
            call(other)
    with pytest.raises(ValueError, match="Columns that are not numbers: 'g1'"):
        L20Selector(3).fit(dd.from_pandas(X.assign(g1="a"), npartitions=2), y)
    with pytest.raises(ValueError, match="X has 60 samples, but y has 59"):
        L20Selector(3).fit(dd.from_pandas(X, npartitions=2), y[1:])
    unnamed = dd.from_pandas(X.set_axis(range(8), axis=1), npartitions=2)
    assert not hasattr(L20Selector(3).fit(unnamed, y), "feature_names_in_")
    with pytest.raises(TypeError, match=r"X\.rename\(columns=str\)"):
        L20Selector(3).fit(dd.from_pandas(X.rename(columns={"g1": 1}), npartitions=2), y)


@pytest.mark.parametrize("name", ["FisherScore"])
def test_estimators_that_refuse_dask_arrays_refuse_dask_frames_in_the_same_words(frame, dd, name):
    X, y = frame
    lazy = dd.from_pandas(X, npartitions=2)
    messages = []
    for data in (lazy, lazy.to_dask_array(lengths=True)):
        with pytest.raises(TypeError) as caught:
            ESTIMATORS[name].fit(data, y)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    assert "X is a dask array, which this selector does not support" in messages[0]
