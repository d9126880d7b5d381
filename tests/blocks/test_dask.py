"""Dask arrays: in threads, on a cluster of processes, and what happens to a fit when workers die."""

from __future__ import annotations

import logging
import os
import time

import array_api_strict
import dask
import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
import zarr
from blocked import make_counts
from joblib import parallel_config
from sklearn.base import clone

from l20fs import L20Classifier, L20Selector, L20SelectorCV, StabilitySelector
from l20fs.blocks import as_blocks
from l20fs.methods import FisherScore

distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module", autouse=True)
def threads():
    """Two threads unless a test says otherwise."""
    with dask.config.set(scheduler="threads", num_workers=2):
        yield


@pytest.fixture
def cluster():
    """Two processes of one thread each; a worker that dies is started again."""
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "60s", "distributed.worker.memory.terminate": False}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, memory_limit="1GiB", dashboard_address=":0", silence_logs=logging.CRITICAL
        ) as cluster,
        distributed.Client(
            cluster
        ) as client,  # not dask.config.set(scheduler=client): a nanny sends settings to new workers
    ):
        yield client


def pids(client):
    return list(client.run(os.getpid).values())


# Without a cluster


@pytest.mark.parametrize("solver", ["ahiht", "forward"])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(("shape", "chunks"), [((60, 20), (7, 20)), ((20, 60), (20, 9)), ((20, 60), (20, 60))])
def test_the_fit_is_that_of_the_array(shape, chunks, sparse, solver):
    X, y = make_counts(3, *shape)
    lazy = da.from_array(X, chunks=chunks)
    lazy = lazy.map_blocks(sp.csr_matrix) if sparse else lazy
    expected = L20Selector(5, solver=solver).fit(X, y)
    found = L20Selector(5, solver=solver).fit(lazy, da.from_array(y, chunks=9))
    np.testing.assert_array_equal(found.path_.indices, expected.path_.indices)
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-9)
    reduced = found.transform(lazy)
    assert isinstance(reduced, da.Array)  # nothing is computed yet
    reduced = reduced.compute()
    np.testing.assert_array_equal(reduced.toarray() if sparse else reduced, expected.transform(X))


def test_the_bits_do_not_depend_on_where_the_blocks_are():
    X, y = make_counts(3, 90, 20)
    lazy = da.from_array(X, chunks=(8, 20))
    dask_path = L20Selector(5, solver="ahiht").fit(lazy, y).path_
    blocks = as_blocks(X)
    blocks.edges = np.append(np.arange(0, 90, 8), 90)
    path = L20Selector(5, solver="ahiht").fit(blocks, y).path_
    for name, value in vars(path).items():
        np.testing.assert_array_equal(getattr(dask_path, name), value, err_msg=name)


def test_chunks_that_are_empty():
    X, y = make_counts(3, 30, 8)
    lazy = da.concatenate([da.from_array(X[:0], chunks=(1, 8)), da.from_array(X, chunks=(10, 8))])
    np.testing.assert_array_equal(L20Selector(3).fit(lazy, y).ranking_, L20Selector(3).fit(X, y).ranking_)


def test_d4_chunks_that_are_not_known_or_cut_both_axes():
    X, y = make_counts(3, 60, 20)
    lazy = da.from_array(X, chunks=(20, 20))
    unknown = lazy[lazy[:, 0] > -1.0]
    with pytest.raises(ValueError, match=r"chunks of unknown size\. Call X\.compute_chunk_sizes\(\) first"):
        L20Selector(3).fit(unknown, y)
    L20Selector(3).fit(unknown.compute_chunk_sizes(), y)
    for turned, axes in ((X, "{0: 'auto', 1: -1}"), (X[:10], "{1: 'auto', 0: -1}")):
        both = da.from_array(turned, chunks=(5, 5))
        with pytest.raises(ValueError, match="split along both axes") as caught:
            L20Selector(3).fit(both, y[: len(turned)])
        call = str(caught.value).rpartition(": X.")[2].rstrip(".")
        assert call == f"rechunk({axes})"
        L20Selector(3).fit(eval(f"both.{call}", {"both": both}), y[: len(turned)])  # what the message says works


def test_e27_what_is_not_taken_is_refused():
    X, y = make_counts(3, 60, 20)
    lazy = da.from_array(X, chunks=(20, 20))
    for other in (FisherScore(3), StabilitySelector(FisherScore(3))):
        with pytest.raises(TypeError, match=r"X is a dask array.*X\.compute\(\)"):
            other.fit(lazy, y)
    with pytest.raises(ValueError, match="X has 3 axes"):
        L20Selector(3).fit(da.zeros((4, 4, 4)), y)
    with pytest.raises(ValueError, match="X must hold numbers only"):
        L20Selector(3).fit(lazy.astype(str), y)


def test_missing_values_are_found():
    X, y = make_counts(3, 60, 20)
    X[41, 3] = np.nan
    lazy = da.from_array(X, chunks=(20, 20))
    with pytest.raises(ValueError, match=r"X has 1 missing values \(NaN\), first in 'column 3'\. Fill them in") as caught:
        L20Selector(3).fit(lazy, y)
    filled = eval(str(caught.value).rpartition(" with ")[2].rstrip("."), {"X": lazy, "numpy": np})
    np.testing.assert_array_equal(L20Selector(3).fit(filled, y).ranking_, L20Selector(3).fit(np.nan_to_num(X), y).ranking_)


KINDS_OF_BLOCKS = [sp.coo_matrix, sp.coo_array, sp.bsr_matrix, sp.dia_matrix, sp.lil_array, sp.dok_matrix, np.matrix]


@pytest.mark.filterwarnings("ignore:the matrix subclass")
@pytest.mark.parametrize("solver", ["ahiht", "forward"])
@pytest.mark.parametrize(("shape", "chunks"), [((60, 20), (7, 20)), ((20, 60), (20, 9))])
@pytest.mark.parametrize("kind", KINDS_OF_BLOCKS, ids=lambda kind: kind.__name__)
def test_blocks_of_any_kind(kind, shape, chunks, solver):
    X, y = make_counts(3, *shape)
    lazy = da.from_array(X, chunks=chunks).map_blocks(kind)
    expected, found = (L20Classifier(5, solver=solver).fit(there, y) for there in (X, lazy))
    np.testing.assert_array_equal(found.ranking_, expected.ranking_)
    np.testing.assert_array_equal(found.predict(lazy), expected.predict(X))
    reduced = found.transform(lazy)
    assert isinstance(reduced, da.Array)
    reduced = reduced.compute()
    assert type(reduced) is np.ndarray or sp.issparse(reduced)
    np.testing.assert_array_equal(reduced.toarray() if sp.issparse(reduced) else reduced, expected.transform(X))


def test_masked_values_are_not_used():
    X, y = make_counts(3, 60, 20)
    lazy = da.from_array(X, chunks=(20, 20))
    masked = da.ma.masked_greater(lazy, 2.5)
    with pytest.raises(ValueError, match=r"X has masked values\. Fill them in first") as caught:
        L20Selector(3).fit(masked, y)
    with pytest.raises(ValueError, match="X has masked values"):
        L20Selector(3).fit(lazy, y).transform(masked).compute()
    filled = eval(str(caught.value).rpartition(" with ")[2].rstrip("."), {"X": masked, "numpy": np})
    expected = L20Selector(3).fit(np.where(X > 2.5, 0.0, X), y)
    np.testing.assert_array_equal(L20Selector(3).fit(filled, y).ranking_, expected.ranking_)
    unmasked = L20Selector(3).fit(da.ma.masked_greater(lazy, 1e9), y)
    np.testing.assert_array_equal(unmasked.ranking_, L20Selector(3).fit(X, y).ranking_)


def test_blocks_of_other_libraries_are_refused():
    X, y = make_counts(3, 60, 20)
    lazy = da.from_array(X, chunks=(20, 20)).map_blocks(array_api_strict.asarray, meta=X[:0])
    with pytest.raises(
        TypeError, match=r"X has blocks of the type array_api_strict\..*\. Turn them into NumPy arrays or SciPy"
    ):
        L20Selector(3).fit(lazy, y)


LIES = {
    "complex": (lambda block: block + 1j, r"\(20, 20\), has values of the type complex128, but float64 was declared"),
    "object": (lambda block: block.astype(object), "has values of the type object, but float64 was declared"),
    "text": (lambda block: block.astype(str), "has values of the type <U32, but float64 was declared"),
    "one axis": (lambda block: block[:, 0], r"has the shape \(20,\), but \(20, 20\) was declared"),
    "one sparse axis": (lambda block: sp.coo_array(block[:, 0]), r"has the shape \(20,\), but \(20, 20\)"),
    "three axes": (lambda block: block[:, :, None], r"has the shape \(20, 20, 1\), but \(20, 20\)"),
    "empty": (lambda block: block[:0], r"has the shape \(0, 20\), but \(20, 20\)"),
    "narrow": (lambda block: block[:, :19], r"has the shape \(20, 19\), but \(20, 20\)"),
    "wide": (lambda block: np.hstack([block, block]), r"has the shape \(20, 40\), but \(20, 20\)"),
    "short": (lambda block: sp.csr_matrix(block[:10]), r"has the shape \(10, 20\), but \(20, 20\)"),
    "long": (lambda block: np.vstack([block, block]), r"has the shape \(40, 20\), but \(20, 20\)"),
    "broken": (lambda block: broken_csr(block), "is not a valid CSR matrix: it has indices from 0 to 99"),
}


def broken_csr(block):
    """A matrix with a column that is not there: compiled code would read memory of others."""
    found = sp.csr_matrix(block)
    found.indices[-1] = 99
    return found


def lying(X, lie, dtype=float):
    """A Dask array of three blocks, the second of which is not what the array says."""
    blocks = [X[:20], lie(X[20:40]), X[40:]]
    return da.concatenate([da.from_delayed(dask.delayed(block), (20, 20), dtype=dtype) for block in blocks])


def check_lies(names):
    X, y = make_counts(3, 60, 20)
    for name in names:
        lie, message = LIES[name]
        with pytest.raises(ValueError, match=f"^The block of samples 20 to 39 of X.* {message}"):
            L20Selector(3).fit(lying(X, lie), y)


@pytest.mark.parametrize("name", LIES)
def test_blocks_that_are_not_what_was_declared(name):
    check_lies([name])


def test_blocks_of_other_real_numbers():
    X, y = make_counts(3, 60, 20)
    expected = L20Selector(3).fit(X, y).ranking_
    for kind in (lambda block: block.astype(np.longdouble), sp.csc_array):
        np.testing.assert_array_equal(L20Selector(3).fit(lying(X, kind), y).ranking_, expected)
    with pytest.raises(ValueError, match="has values of the type float64, but int64 was declared"):
        L20Selector(3).fit(lying(X, np.copy, dtype=int), y)  # they would be cut off


def test_what_is_no_matrix_is_refused():
    X, y = make_counts(3, 60, 20)
    model = L20Classifier(3).fit(X, y)
    line = da.from_array(X[:, 0], chunks=20)
    for method in (model.transform, model.predict, model.to_frame):
        with pytest.raises(ValueError, match=r"X has the shape \(60,\)\. Give a matrix of two axes"):
            method(line)


def test_the_limit_holds_where_there_is_no_cluster(caplog):
    X, y = make_counts(3, 60, 20)
    with caplog.at_level("INFO", "l20fs"):
        L20Selector(3, max_memory="128M").fit(da.from_array(X, chunks=(20, 20)), y)
    assert "of 128.0 MiB available" in caplog.text


# On a cluster


def times_out(block):
    raise TimeoutError("the file server does not answer")


def slow(block, seconds=0.02):
    time.sleep(seconds)
    return block


def test_cluster(cluster, tmp_path):
    """One cluster, several questions: to start one takes longer than to ask."""
    _same_fit()
    _joblib_on_the_cluster(cluster)
    _larger_than_the_workers(tmp_path)
    _a_loader_fails()
    check_lies(["complex", "narrow"])
    _blocks_that_the_user_holds(cluster)


def _same_fit():
    rng = np.random.default_rng(0)
    for shape, chunks in (((400, 2500), (100, 2500)), ((100, 2500), (100, 400))):
        X = rng.standard_normal(shape)
        y = np.argmax(X[:, :4] + rng.standard_normal((len(X), 4)), axis=1)
        for solver in ("ahiht", "forward"):
            expected, found = (
                L20Selector(30, solver=solver).fit(there, y) for there in (X, da.from_array(X, chunks=chunks))
            )
            np.testing.assert_array_equal(found.path_.indices, expected.path_.indices)


def _joblib_on_the_cluster(client):
    X, y = make_counts(3, 60, 20)
    for estimator in (L20SelectorCV(cv=3), StabilitySelector(L20Selector(3), n_resamples=4, random_state=0)):
        expected = clone(estimator).fit(X, y)
        with parallel_config("dask", client=client), distributed.get_task_stream(client) as stream:
            found = estimator.fit(X, y)
        assert any("batch_of" in str(task["key"]) for task in stream.data)  # not here, one after the other
        np.testing.assert_array_equal(found.ranking_, expected.ranking_)
        np.testing.assert_allclose(found.scores_, expected.scores_, rtol=1e-10)


def _larger_than_the_workers(tmp_path):
    """D3 in the small: nothing is held, and every pass reads the file again; benchmarks/scale.py has the large one."""
    X, y = make_counts(3, 200, 30)
    zarr.create_array(tmp_path / "x.zarr", shape=X.shape, chunks=(20, 30), dtype=X.dtype)[:] = X
    big = da.from_zarr(str(tmp_path / "x.zarr"))
    blocks = as_blocks(big)
    assert len(blocks.edges) == 11
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("l20fs.blocks.dask.SHARE_FOR_X", 0.0)
        np.testing.assert_array_equal(L20Selector(4).fit(big, y).ranking_, L20Selector(4).fit(X, y).ranking_)


def _a_loader_fails():
    """An error of the task itself is passed on, even if it is one that waiting for the task may raise."""
    X, y = make_counts(3, 60, 20)
    with pytest.raises(TimeoutError, match="the file server does not answer"):
        L20Selector(3).fit(da.from_array(X, chunks=(20, 20)).map_blocks(times_out, meta=X[:0]), y)


def _blocks_that_the_user_holds(client):
    """What was persisted before is used as it is, and is still there after a fit that failed."""
    X, y = make_counts(3, 60, 20)
    held = da.from_array(X, chunks=(20, 20)).persist()
    before = client.who_has(held)
    np.testing.assert_array_equal(L20Selector(3).fit(held, y).ranking_, L20Selector(3).fit(X, y).ranking_)
    with pytest.raises(TimeoutError, match="the file server does not answer"):
        L20Selector(3).fit(held.map_blocks(times_out, meta=X[:0]), y)
    assert client.who_has(held).keys() == before.keys()
    np.testing.assert_array_equal(held.compute(), X)


def wide_problem():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((80, 2100))
    y = np.argmax(X[:, :3] + rng.standard_normal((80, 3)), axis=1)
    return X, y, da.from_array(X, chunks=(80, 200)).map_blocks(slow, meta=X[:0])
