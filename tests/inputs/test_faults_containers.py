"""Faults of L20Selector, E10 to E15 and E27: types, layouts, frames, sparse forms, targets and foreign arrays."""

from __future__ import annotations

import sys
import types

import anndata
import dask.array as da
import h5py
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import SOLVERS, assert_same_fit, make_data, make_frame, make_solver
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning
from sklearn.neighbors import KNeighborsClassifier

from l20fs import L20Classifier, L20Regressor, L20Selector, L20SelectorCV, StabilitySelector, open_large
from l20fs.estimators.selection_table import substitutes
from l20fs.evaluation.metrics import METRICS
from l20fs.evaluation.predictions import predictions_by_k
from l20fs.evaluation.target_summary import summarise
from l20fs.methods import CFS, SVMRFE, FisherScore, InformationGain, discover


@pytest.mark.parametrize("scale", ["none", "zscore", "moderated"])
@pytest.mark.parametrize("dtype", ["float16", "bool", "uint8", "int8", "uint16", "int64"])
def test_e10_other_numbers_are_read_as_float64(dtype, scale):
    X, y = make_data()
    # Up to the largest value of the type, so that a sum or a square in that type would overflow.
    top = {"float16": 65000.0, "bool": 1.0, "int8": 127.0, "uint8": 255.0, "uint16": 65535.0, "int64": 2.0**40}[dtype]
    X = np.clip(X / np.abs(X).max(), 0.0, 1.0)
    X = (X > 0.1) if dtype == "bool" else (X * top).astype(dtype)
    selector = L20Selector(4, scale=scale).fit(X, y)
    assert_same_fit(selector, L20Selector(4, scale=scale).fit(X.astype(np.float64), y))
    assert selector.transform(X).dtype == X.dtype


COLOURS = ["red", "blue"] * 30


@pytest.mark.parametrize(
    "column",
    [
        np.array(COLOURS, dtype=object),
        pd.array(COLOURS, dtype="string"),
        pd.Categorical(COLOURS),
        pd.Categorical([1, 2] * 30),
        pd.array(["1", "2"] * 30, dtype="string"),
        np.array([{"a": 1}] * 60),
    ],
    ids=["object", "string", "category", "category of numbers", "string of numbers", "dict"],
)
def test_e11_columns_that_are_not_numbers_are_refused_with_a_recipe(column):
    X, y = make_frame()
    X["g2"] = column
    with pytest.raises((ValueError, TypeError), match=r"not numbers: 'g2'\. Encode categories first, .*OneHotEncoder"):
        L20Selector(3).fit(X, y)


@pytest.mark.parametrize(
    "X",
    [np.full((60, 4), "red"), np.full((60, 4), b"red"), np.full((60, 4), "red", dtype=object), [["red", "blue"]] * 60],
    ids=["str", "bytes", "object", "list"],
)
def test_e11_arrays_that_are_not_numbers_are_refused_with_a_recipe(X):
    with pytest.raises(ValueError, match=r"X must hold numbers only \(.*red.*\).* Encode categories first, .*OneHotEncoder"):
        L20Selector(3).fit(X, make_data()[1])


DAYS = pd.date_range("2020-01-01", periods=60)


@pytest.mark.parametrize(
    "column",
    [DAYS, DAYS.tz_localize("UTC"), DAYS - DAYS[0], DAYS.astype("timestamp[ns][pyarrow]"), DAYS.to_period("D"), DAYS.date],
    ids=["datetime", "with zone", "timedelta", "arrow", "period", "object"],
)
def test_e11_dates_are_refused_with_a_recipe(column):
    X, y = make_frame()
    X["g2"] = column
    with pytest.raises((ValueError, TypeError), match=r"'g2'.*(Turn them into numbers|Encode|Convert).*drop these columns"):
        L20Selector(3).fit(X, y)


@pytest.mark.parametrize(
    "lay_out",
    [
        np.asfortranarray,
        lambda X: np.repeat(X, 2, axis=0)[::2],
        lambda X: np.hstack([X, X])[:, : X.shape[1]],
        lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
        lambda X: X.astype(X.dtype.newbyteorder()),
    ],
    ids=["fortran", "every second row", "left half", "negative strides", "other byte order"],
)
@given(shape=st.sampled_from([(60, 12), (600, 500)]), solver=st.sampled_from(SOLVERS))
@settings(max_examples=5)
def test_e12_memory_layout_changes_neither_result_nor_input(lay_out, shape, solver):
    X, y = make_data(0, *shape)
    other = lay_out(X)
    before = other.tobytes()
    other.flags.writeable = False
    selector = L20Selector(5, solver=make_solver(solver, max_iter=5000))
    assert_same_fit(clone(selector).fit(other, y), selector.fit(X, y))
    assert other.tobytes() == before


@pytest.mark.parametrize("scale", ["none", "zscore", "moderated"])
def test_e12_read_only_memmap(tmp_path, scale):
    X, y = make_data()
    file = tmp_path / "X.npy"
    np.save(file, X)
    before = file.read_bytes()
    mapped = np.load(file, mmap_mode="r")
    selector = L20Selector(5, scale=scale).fit(mapped, y)
    assert_same_fit(selector, L20Selector(5, scale=scale).fit(X, y))
    np.testing.assert_array_equal(selector.transform(mapped), X[:, selector.support_])
    assert file.read_bytes() == before


def unsorted_rows(X):
    X = sp.csr_array(X)
    order = np.concatenate([np.arange(X.indptr[i], X.indptr[i + 1])[::-1] for i in range(X.shape[0])])
    return sp.csr_array((X.data[order], X.indices[order], X.indptr), shape=X.shape)


def doubled_entries(X):
    X = sp.csr_array(X)
    return sp.csr_array((np.repeat(X.data, 2) / 2.0, np.repeat(X.indices, 2), 2 * X.indptr), shape=X.shape)


def doubled_column_entries(X):
    return doubled_entries(np.ascontiguousarray(X.T)).T


def stored_zeros(X):
    columns = np.tile(np.arange(X.shape[1]), X.shape[0])
    return sp.csr_array((X.ravel(), columns, np.arange(0, X.size + 1, X.shape[1])), shape=X.shape)


def wide_indices(X):
    X = sp.csr_array(X)
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


SPARSE_FORMS = [
    sp.csr_array,
    sp.csc_array,
    sp.coo_array,
    sp.lil_array,
    sp.csr_matrix,
    unsorted_rows,
    doubled_entries,
    doubled_column_entries,
    stored_zeros,
    wide_indices,
]


@pytest.mark.parametrize("form", SPARSE_FORMS)
@given(scale=st.sampled_from(["none", "zscore", "moderated"]), solver=st.sampled_from(SOLVERS))
@settings(max_examples=6)
def test_e13_sparse_forms_give_the_same_as_dense(form, scale, solver, rtol):
    X, y = make_data()
    X[np.random.default_rng(1).random(X.shape) < 0.5] = 0.0
    sparse = form(X)
    parts = [name for name in ("data", "indices", "indptr", "row", "col") if hasattr(sparse, name)]
    before = {name: getattr(sparse, name).copy() for name in parts}
    selector = L20Selector(5, scale=scale, solver=make_solver(solver, max_iter=5000))
    dense = clone(selector).fit(X, y)
    selector.fit(sparse, y)
    assert selector.ranking_.tolist() == dense.ranking_.tolist()
    np.testing.assert_allclose(selector.scores_, dense.scores_, rtol=rtol[X.dtype])
    np.testing.assert_allclose(selector.coef_, dense.coef_, rtol=rtol[X.dtype])
    np.testing.assert_allclose(selector.transform(sparse).toarray(), dense.transform(X), rtol=rtol[X.dtype])
    for name in parts:
        np.testing.assert_array_equal(getattr(sparse, name), before[name], err_msg=name)


FRAMES = {
    "nullable": lambda X: X.astype("Float64"),
    "arrow": lambda X: X.astype("float64[pyarrow]"),
    "polars": lambda X: pl.DataFrame({name: X[name].to_numpy(dtype=float, na_value=np.nan) for name in X}, nan_to_null=True),
    "pyarrow table": lambda X: pa.table({name: pa.array(X[name], from_pandas=True) for name in X}),
}


@pytest.mark.parametrize("convert", FRAMES.values(), ids=FRAMES)
def test_e14_other_frames_give_the_same_result_and_names(convert):
    X, y = make_frame()
    selector = L20Selector(5).fit(convert(X), y)
    assert_same_fit(selector, L20Selector(5).fit(X.to_numpy(), y))
    assert selector.feature_names_in_.tolist() == list(X.columns)
    assert selector.get_feature_names_out().tolist() == list(X.columns[selector.support_])
    np.testing.assert_array_equal(selector.transform(convert(X)), X.to_numpy()[:, selector.support_])


@pytest.mark.parametrize("convert", FRAMES.values(), ids=FRAMES)
def test_e14_nulls_of_other_frames_count_as_missing(convert):
    X, y = make_frame()
    X.iloc[[0, 3], 2] = np.nan
    X.iloc[1, 7] = np.nan
    with pytest.raises(ValueError, match=r"X has 3 missing values \(NaN\), first in 'g2' and 'g7'\. Impute them first"):
        L20Selector(3).fit(convert(X), y)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pl.lit("red"), r"'g2'.*Encode categories first, .*OneHotEncoder"),
        (pl.date(2020, 1, 1), r"'g2'.*turn dates into numbers, or drop these columns"),
    ],
    ids=["text", "date"],
)
def test_e14_polars_columns_that_are_not_numbers_are_refused(column, message):
    X, y = make_frame()
    with pytest.raises(ValueError, match=message):
        L20Selector(3).fit(FRAMES["polars"](X).with_columns(column.alias("g2")), y)


def test_e14_integers_and_booleans_with_nulls_are_read_as_numbers():
    X, y = make_frame()
    X = pd.DataFrame({"count": (10 * X["g2"]).round().astype("Int64"), "flag": (X["g5"] > 0).astype("boolean")})
    assert_same_fit(L20Selector(1).fit(X, y), L20Selector(1).fit(X.to_numpy(dtype=float), y))
    X.iloc[4, 1] = pd.NA
    with pytest.raises(ValueError, match=r"X has 1 missing values \(NaN\), first in 'flag'\. Impute"):
        L20Selector(1).fit(X, y)


def test_e14_duplicate_names_are_refused():
    X, y = make_frame()
    X.columns = ["twice", "twice", "twice", *X.columns[3:]]
    with pytest.raises(ValueError, match=r"X has 1 column names more than once: 'twice'. Give every column a unique name"):
        L20Selector(5).fit(X, y)


@pytest.mark.parametrize(
    "names",
    [range(12), pd.MultiIndex.from_product([["a", "b"], list("uvwxyz")])],
    ids=["numbers", "multi-index"],
)
def test_e14_names_that_are_not_strings_are_not_used(names):
    X, y = make_frame()
    X.columns = names
    selector = L20Selector(5).fit(X, y)
    assert not hasattr(selector, "feature_names_in_")
    assert selector.get_feature_names_out().tolist() == [f"x{j}" for j in np.flatnonzero(selector.support_)]
    np.testing.assert_array_equal(selector.transform(X), X.to_numpy()[:, selector.support_])


def test_e14_partly_string_names_are_refused():
    X, y = make_frame()
    X.columns = [0, *X.columns[1:]]
    with pytest.raises(
        TypeError, match=r"Feature names are only supported if all .* X\.columns = X\.columns\.astype\(str\)"
    ):
        L20Selector(3).fit(X, y)


@pytest.mark.parametrize(
    ("make_target", "message"),
    [
        (lambda y: np.where(y == 0, np.nan, y), "Input y contains NaN"),
        (lambda y: np.array(["a" if code else np.nan for code in y], dtype=object), "contains NaN"),
        (lambda y: pd.Series(["a" if code else pd.NA for code in y]), r"20 missing values \(NaN\)\. Drop these samples"),
        (lambda y: pd.Series(["a" if code else pd.NA for code in y], dtype="string"), r"20 missing values \(NaN\)"),
        (lambda y: sp.csr_array(np.eye(3)[y]), r"y is sparse.*y\.toarray\(\)"),
        (lambda y: np.array([["a", "b"]] * len(y)), "several columns that are not numbers"),
        (lambda y: y[:-1], r"inconsistent numbers of samples: \[60, 59\]"),
        (lambda y: y.reshape(-1, 1, 1), "Found array with dim 3"),
        (lambda y: None, "requires y to be passed, but the target y is None"),
    ],
    ids=["NaN", "text with NaN", "series with NA", "strings with NA", "sparse", "two texts", "short", "3-D", "none"],
)
def test_e15_bad_targets_give_the_errors_of_scikit_learn(make_target, message):
    X, y = make_data()
    with pytest.raises(ValueError, match=message):
        L20Selector(3).fit(X, make_target(y))


@pytest.mark.parametrize("labels", [("a", None), (None, "a"), ("a", 1), (1, "a")], ids=str)
def test_e15_missing_and_mixed_labels_are_refused(labels):
    X, y = make_data()
    with pytest.raises(ValueError, match=r"Unknown label type|\by (has|holds|mixes|contains)\b.*label"):
        L20Selector(3).fit(X, np.array([labels[min(code, 1)] for code in np.sort(y)], dtype=object))


def test_e15_column_vector_is_flattened_with_a_warning():
    X, y = make_data()
    with pytest.warns(DataConversionWarning, match="A column-vector y was passed when a 1d array was expected"):
        selector = L20Selector(3).fit(X, y[:, None])
    assert_same_fit(selector, L20Selector(3).fit(X, y))


@pytest.mark.parametrize(
    ("library", "class_name", "conversion", "selector"),
    [
        ("torch", "Tensor", r"X\.cpu\(\)\.numpy\(\)", InformationGain(3)),
        ("torch", "Tensor", r"X\.cpu\(\)\.numpy\(\)", SVMRFE(3)),
        ("cupy", "ndarray", r"cupy\.asnumpy\(X\)", CFS(3)),
        ("jax", "Array", r"numpy\.asarray\(X\)", L20Selector(3)),
    ],
)
def test_e27_arrays_on_a_device_are_refused(library, class_name, conversion, selector, monkeypatch):
    def refuse_conversion(self, *args, **kwargs):
        raise AssertionError("converted silently")

    foreign = type(class_name, (), {"__array__": refuse_conversion, "shape": (60, 12), "dtype": np.dtype(float)})
    module = types.ModuleType(library)
    module.generic = module.float0 = type("generic", (), {})  # of which array-api-compat asks, too
    setattr(module, class_name, foreign)
    monkeypatch.setitem(sys.modules, library, module)
    X, y = make_data()
    message = rf"X is a {library} array, which this selector does not support\. Convert it first, .* {conversion}"
    with pytest.raises(TypeError, match=message):
        selector.fit(foreign(), y)
    selector.fit(X, y)
    with pytest.raises(TypeError, match=message):
        selector.transform(foreign())


def test_e27_dask_arrays_are_refused_where_they_are_not_taken():
    X, y = make_data()
    message = r"X is a dask array, .* Convert it first, .* X\.compute\(\)"
    lazy = da.from_array(X, chunks=(20, 12))
    with pytest.raises(TypeError, match=message):
        FisherScore(3).fit(lazy, y)
    with pytest.raises(TypeError, match=message):
        FisherScore(3).fit(X, y).transform(lazy)


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """The same matrix in several kinds of files, opened."""
    folder, (X, _) = tmp_path_factory.mktemp("stored"), make_data()
    np.save(folder / "x.npy", X)
    in_zarr = zarr.create_array(folder / "x.zarr", shape=X.shape, chunks=(20, 12), dtype=X.dtype)
    in_zarr[:] = X
    for kind in ("csr", "csc"):
        anndata.AnnData(sp.csr_array(X).asformat(kind)).write_h5ad(folder / f"{kind}.h5ad")
    with h5py.File(folder / "x.h5", "w") as file:
        in_hdf5 = file.create_dataset("X", data=X)
        backed = [anndata.read_h5ad(folder / f"{kind}.h5ad", backed="r").X for kind in ("csr", "csc")]
        yield [in_zarr, in_hdf5, *backed, open_large(folder / "x.npy")]


OTHERS = [method() for method in discover().values() if method is not L20Selector]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("selector", OTHERS, ids=lambda selector: type(selector).__name__)
def test_e27_stored_matrices_are_refused_where_they_are_not_taken(selector, stored):
    X, y = make_data()
    fitted = clone(selector).set_params(n_features_to_select=2).fit(X, y)
    message = r"X is a (stored|dask) array, which this selector does not support.*(to_memory|compute)"
    for there in stored:
        for method, arguments in ((clone(selector).fit, (y,)), (fitted.transform, ())):
            with pytest.raises(TypeError, match=message):
                method(there, *arguments)
    with pytest.raises(TypeError, match=message):
        StabilitySelector(clone(selector)).fit(stored[0], y)


def test_e27_stored_matrices_are_refused_by_what_predicts_for_l20selectorcv(stored):
    X, y = make_data()
    model = L20SelectorCV(3, max_features=3, cv=3, estimator=KNeighborsClassifier()).fit(X, y)
    for there in stored:
        with pytest.raises(TypeError, match=r"X is a (stored|dask) array, which .* does not support.*(to_memory|compute)"):
            model.predict(there)


def dense(X):
    X = X.compute() if isinstance(X, da.Array) else X
    return X.toarray() if sp.issparse(X) else X


@pytest.mark.parametrize(
    "model", [L20Selector(4), L20Classifier(4), L20Regressor(4)], ids=lambda model: type(model).__name__
)
def test_e27_stored_matrices_are_taken_by_the_others(model, stored, tmp_path):
    X, y = make_data()
    expected = clone(model).fit(X, y)
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    for there in (*stored, mapped, da.from_array(X, chunks=(20, 12))):
        found = clone(model).fit(there, y)
        np.testing.assert_array_equal(found.ranking_, expected.ranking_)
        np.testing.assert_array_equal(dense(found.transform(there)), expected.transform(X))
        if hasattr(model, "predict"):
            np.testing.assert_allclose(found.predict(there), expected.predict(X), rtol=1e-9)
            assert found.score(there, y) == pytest.approx(expected.score(X, y), rel=1e-9)
        frame = found.selection_frame(there)
        assert frame["could_replace"].tolist() == expected.selection_frame(X)["could_replace"].tolist()
        np.testing.assert_array_equal(substitutes(there, [2]).substitute, substitutes(X, [2]).substitute)
        with pytest.raises(ValueError, match=r"X has 12 features, but .* is expecting 11"):
            clone(model).fit(X[:, 1:], y).selection_frame(there)


def test_e27_stored_matrices_are_taken_by_stability_selection_and_evaluation(stored):
    X, y = make_data()
    stability, folds = StabilitySelector(L20Selector(3), n_resamples=4, random_state=0), summarise(y).folds(n_repeats=1)
    expected, curve = clone(stability).fit(X, y), predictions_by_k(L20Selector(), X, y, [2, 4], folds)
    for there in stored:
        found = clone(stability).fit(there, y)
        np.testing.assert_array_equal(found.orders_, expected.orders_)
        np.testing.assert_array_equal(dense(found.transform(there)), expected.transform(X))
        by_k = predictions_by_k(L20Selector(), there, y, [2, 4], folds)
        labels, expected_labels = (each.first(METRICS["accuracy"]).labels for each in (by_k, curve))
        np.testing.assert_array_equal(labels, expected_labels)


def test_masked_values_are_not_used(tmp_path):
    X, y = make_data()
    masked = np.ma.masked_where(X > 2.0, X)
    n_masked = int((X > 2.0).sum())
    message = rf"has {n_masked} masked values\. Fill them in first, for example with X\.filled\(0\.0\)"
    for selector in (L20Selector(3), FisherScore(3), L20SelectorCV()):
        with pytest.raises(ValueError, match=message):
            selector.fit(masked, y)
    model = L20Classifier(3).fit(masked.filled(0.0), y)
    for method in (model.transform, model.predict, model.inverse_transform, model.selection_frame):
        with pytest.raises(ValueError, match=message):
            method(masked)
    some = np.ma.masked_array(y, mask=np.arange(60) == 7)
    with pytest.raises(ValueError, match=r"y has 1 masked values"):
        L20Selector(3).fit(X, some)
    with pytest.raises(ValueError, match=r"sample_weight has 1 masked values"):
        L20Selector(3).fit(X, y, sample_weight=some)
    none = np.ma.masked_array(X, mask=np.zeros(X.shape, dtype=bool))
    assert_same_fit(L20Selector(3).fit(none, np.ma.masked_array(y)), L20Selector(3).fit(X, y))


def test_e27_dask_targets_are_refused():
    X, y = make_data()
    with pytest.raises(TypeError, match=r"y is a dask array.*y\.compute\(\)"):
        L20Selector(3).fit(X, da.from_array(y, chunks=20))
