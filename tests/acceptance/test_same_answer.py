"""One problem in every container that X may come in: the same features in the same order, and the same losses.

What is compared with is the fit to an ndarray, whose truth test_minimum.py holds. Neither workers nor scikit-learn's working
memory change a selection, and no fit writes into X.
"""

from __future__ import annotations

from functools import cache, partial

import numpy as np
import pytest
import scipy.sparse as sp
from acceptance import doors
from sklearn import config_context
from sklearn.model_selection import StratifiedKFold

LIMIT = 8
MODEL = {"ridge": 0.5, "scale": "moderated", "class_weight": None, "fit_intercept": True, "loss": "squared"}
OPTIONS = MODEL | {"limit": LIMIT, "task": "classification", "ranking": "entry"}
SHAPES = {"wide": (60, 150), "tall": (400, 24), "large": (300, 1500)}


@cache
def problem(shape):
    """Three classes; columns of unlike spread, most with some or many zeros; in the wide one a column is far from zero."""
    n, d = SHAPES[shape]
    random = np.random.default_rng(n)
    y = random.permutation(np.arange(n) % 3)
    X = random.standard_normal((n, d)) + 5.0 * random.random(d)
    X[:, :6] += 3.0 * (y[:, None] == np.arange(6) % 3)
    X[:, 2:][random.random((n, d - 2)) < np.where(np.arange(d - 2) % 2, 0.3, 0.9)] = 0.0
    X[:, 0] += 300.0 * (shape == "wide")
    X = X[:, random.permutation(d)] * np.geomspace(0.5, 2.0, d)
    X.flags.writeable = False
    return X, y


def fit(X, y, solver):
    """Return the order of the features on the path and the losses of its stages."""
    fitted = doors.fit(X, y, LIMIT, solver=solver, **OPTIONS)
    path = doors.path(fitted)
    return fitted.order[: path.sizes[-1]].tolist(), path.losses


@cache
def expected(shape, solver):
    return fit(*problem(shape), solver)


def dask_array(X, axis, blocks=np.asarray):
    chunks = tuple(-(-length // 5) if axis == i else length for i, length in enumerate(X.shape))
    return pytest.importorskip("dask.array").from_array(X, chunks=chunks).map_blocks(blocks)


def stored(X, file, open_file=doors.large):
    if file.suffix == ".npy":
        np.save(file, X)
    elif file.suffix == ".h5":
        with pytest.importorskip("h5py").File(file, "w") as opened:
            opened.create_dataset("X", data=X, chunks=(20, X.shape[1]), compression="gzip")
    elif file.suffix == ".zarr":
        pytest.importorskip("zarr").create_array(file, data=X, chunks=(20, 10))
    elif file.suffix == ".h5ad":
        pytest.importorskip("anndata").AnnData(sp.csr_matrix(X)).write_h5ad(file)
    return open_file(file)


IN_MEMORY = {
    "Fortran order": lambda X, _: np.asfortranarray(X),
    "view": lambda X, _: np.pad(np.repeat(X, 2, axis=0), ((0, 0), (2, 1)))[::2, 2:-1],
    "float32": lambda X, _: X.astype(np.float32),
    "read-only memory map": lambda X, folder: stored(X, folder / "X.npy", partial(np.load, mmap_mode="r")),
    "CSR": lambda X, _: sp.csr_array(X),
    "CSC": lambda X, _: sp.csc_array(X),
    "pandas": lambda X, _: pytest.importorskip("pandas").DataFrame(X).add_prefix("g"),
    "polars": lambda X, _: pytest.importorskip("polars").DataFrame(X),
    "array API": lambda X, _: pytest.importorskip("array_api_strict").asarray(X, copy=True),
    "torch": lambda X, _: pytest.importorskip("torch").tensor(X),
}
LAZY = {
    "Dask by rows": lambda X, _: dask_array(X, 0),
    "Dask by columns": lambda X, _: dask_array(X, 1),
    "Dask, sparse blocks of rows": lambda X, _: dask_array(X, 0, sp.csr_matrix),
    "Dask, sparse blocks of columns": lambda X, _: dask_array(X, 1, sp.csc_matrix),
    "npy file": lambda X, folder: stored(X, folder / "X.npy"),
    "HDF5 file": lambda X, folder: stored(X, folder / "X.h5"),
    "zarr folder": lambda X, folder: stored(X, folder / "X.zarr"),
    "h5ad file": lambda X, folder: stored(X, folder / "X.h5ad"),
}


def contents(X):
    return [part.tobytes() for part in ((X.data, X.indices, X.indptr) if sp.issparse(X) else (np.asarray(X),))]


@pytest.mark.parametrize("shape", ["wide", "tall"])
@pytest.mark.parametrize("container", IN_MEMORY | LAZY)
def test_a_container_changes_neither_features_nor_losses(container, shape, tmp_path):
    X, y = problem(shape)
    there = (IN_MEMORY | LAZY)[container](X, tmp_path)
    before = contents(there) if container in IN_MEMORY else None
    for solver in ("forward", "swap", "ahiht", "hiht"):
        order, losses = fit(there, y, solver)
        assert order == expected(shape, solver)[0]
        # In float32 X itself is rounded, by about 1e-7 of each value.
        np.testing.assert_allclose(losses, expected(shape, solver)[1], rtol=1e-4 if container == "float32" else 1e-7)
    assert before is None or contents(there) == before


def selection_by_search(X, y, **options):
    search = doors.search(
        X, y, 3, selector=doors.selector(LIMIT, **OPTIONS), ridges=[0.5, 2.0], limit=LIMIT, sizes=[1, 3, LIMIT],
        cv=StratifiedKFold(3, shuffle=True, random_state=0), scoring="accuracy", task="classification", **options,
    )  # fmt: skip
    scores = {key: values.round(10).tolist() for key, values in search.fold_scores.items()}
    folds = [search.fold_support(fold, k, ridge).tolist() for fold in range(3) for ridge, k in scores]
    return search.ridge, search.final.support().tolist(), folds, scores


def selection_by_halves(X, y, **options):
    stability = doors.stability(X, y, doors.selector(4, **OPTIONS), n_resamples=4, fraction=0.5, random_state=0, **options)
    return stability.frequencies_.round(10).tolist(), stability.support_.tolist()


@pytest.mark.parametrize("shape", ["wide", "tall"])
@pytest.mark.parametrize("select", [selection_by_search, selection_by_halves])
def test_folds_and_halves_are_the_same_in_every_container(select, shape, tmp_path):
    X, y = problem(shape)
    known = select(X, y)
    for container in ("CSR", "Dask by rows", "Dask, sparse blocks of columns", "npy file", "zarr folder", "h5ad file"):
        assert select((IN_MEMORY | LAZY)[container](X, tmp_path), y) == known, container


@pytest.mark.parametrize("select", [selection_by_search, selection_by_halves])
def test_workers_do_not_change_folds_and_halves(select):
    X, y = problem("wide")
    assert select(X, y, n_jobs=2) == select(X, y, n_jobs=1)


@pytest.mark.parametrize("as_container", [np.asarray, sp.csr_array])
def test_working_memory_changes_neither_paths_nor_folds(as_container):
    there, y = as_container(problem("large")[0]), problem("large")[1]  # 3.4 MiB
    (order, losses), folds = fit(there, y, "forward"), selection_by_search(there, y)
    with config_context(working_memory=1):
        again = fit(there, y, "forward")
        assert (again[0], selection_by_search(there, y)) == (order, folds)
    np.testing.assert_allclose(again[1], losses, rtol=1e-10)
