"""Dask arrays: the answers of the same array in memory, whatever the blocks are, and whatever happens to the workers."""

from __future__ import annotations

import logging
import os
import signal
import tempfile
import time
import warnings

import dask
import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from blocked import cut, make_counts
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from l20fs import AHIHT, HIHT, L20Classifier, L20Regressor, L20Selector, L20SelectorCV, StabilitySelector
from l20fs.inspection import certify
from l20fs.methods import FisherScore

distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module", autouse=True)
def threads():
    """Two threads unless a test says otherwise."""
    with dask.config.set(scheduler="threads", num_workers=2):
        yield


def in_both(X, n_rows, n_columns):
    return da.from_array(X, chunks=(-(-X.shape[0] // n_rows), -(-X.shape[1] // n_columns)))


#: Ways to cut a table; of sparse blocks along the features CSC, as anndata has them.
CUTS = {f"{n} by {kind}": (axis, n) for n in (1, 3, 16) for axis, kind in enumerate(("samples", "features"))}
SOLVERS = {"forward": "forward", "swap": "swap", "hiht": HIHT(tol=1e-4), "ahiht": AHIHT()}
WIDE, TALL = make_counts(3, 60, 150), make_counts(4, 200, 24)


def fitted(estimator, X, y, **samples):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return clone(estimator).fit(X, y, **samples)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("cuts", CUTS)
def test_rows_and_losses_are_those_of_the_table(cuts, solver):
    axis, n = CUTS[cuts]
    for X, y in (WIDE, TALL):
        for dtype, tolerance in ((np.float64, 1e-12), (np.float32, 1e-6)):
            given = X.astype(dtype)
            model = L20Selector(8, solver=SOLVERS[solver])
            expected = fitted(model, given.astype(float), y)  # products of blocks are in float64
            for there in (given, sp.csr_array(given)):
                found = fitted(model, cut(there, axis, n), y)
                np.testing.assert_array_equal(found.path_.indices, expected.path_.indices)
                np.testing.assert_allclose(found.path_.losses, expected.path_.losses, rtol=tolerance)


@pytest.mark.parametrize("cuts", ["1 by samples", "3 by samples", "16 by samples", "3 by features", "16 by features"])
@pytest.mark.parametrize("as_stored", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(
    "estimator",
    [
        L20SelectorCV(cv=3, sizes=range(1, 7)),
        StabilitySelector(L20Selector(4), n_resamples=4, random_state=0),
        StabilitySelector(L20Selector(4, solver="ahiht"), n_resamples=4, random_state=0),
    ],
    ids=["search", "stability", "stability of AHIHT"],
)
def test_folds_and_halves_are_those_of_the_table(estimator, as_stored, cuts):
    X, y = WIDE
    expected, found = fitted(estimator, X, y), fitted(estimator, cut(as_stored(X), *CUTS[cuts]), y)
    np.testing.assert_array_equal(found.ranking_, expected.ranking_)
    np.testing.assert_allclose(found.scores_, expected.scores_, rtol=1e-10)


def test_blocks_along_both_axes_weights_covariates_and_bounds():
    X, y = WIDE
    rng = np.random.default_rng(0)
    samples = {"sample_weight": rng.integers(0, 3, 60).astype(float), "adjust_for": rng.standard_normal((60, 2))}
    for there in (in_both(X, 4, 5), in_both(X, 4, 5).map_blocks(sp.csr_matrix), cut(X, 0, 4)):
        for ridge in (0.0, 0.5):
            model = L20Selector(5, ridge=ridge)
            expected, found = fitted(model, X, y, **samples), fitted(model, there, y, **samples)
            np.testing.assert_array_equal(found.path_.indices, expected.path_.indices)
            np.testing.assert_allclose(found.path_.losses, expected.path_.losses, rtol=1e-11)
        plain = fitted(L20Selector(5), X, y)
        assert certify(plain, there, y).lower_bound == pytest.approx(certify(plain, X, y).lower_bound, rel=1e-4)


def test_a_column_far_from_zero_keeps_its_digits():
    X, y = WIDE
    X = X.copy()
    X[:, ::7] += 1e6
    expected = L20Selector(8).fit(X, y).path_.indices
    for axis in (0, 1):
        np.testing.assert_array_equal(L20Selector(8).fit(cut(X, axis, 5), y).path_.indices, expected)


def test_models_predict_and_transform_by_their_columns():
    X, y = TALL
    there = cut(X, 0, 5)
    for model, targets in ((L20Classifier(4), y), (L20Regressor(4), X[:, 3] + y)):
        expected, found = fitted(model, X, targets), fitted(model, there, da.from_array(targets, chunks=50))
        np.testing.assert_allclose(found.predict(there), expected.predict(X), rtol=1e-9)
        reduced = found.transform(there)
        assert isinstance(reduced, da.Array), "nothing is computed yet"
        np.testing.assert_array_equal(reduced.compute(), expected.transform(X))
        assert found.to_frame(there)["correlated_features"].tolist() == expected.to_frame(X)["correlated_features"].tolist()


def counted(X, n_blocks):
    """Return a Dask array, and a list that grows whenever its first block is read."""
    read = []

    def look(block, block_info=None):
        if block_info and block_info[0]["chunk-location"] == (0, 0):
            read.append(1)
        return block

    return cut(X, 0, n_blocks).map_blocks(look, dtype=X.dtype, meta=np.empty((0, 0))), read


@pytest.mark.parametrize(("k", "ridge", "most"), [(20, 2.0, 8), (50, 2.0, 12), (20, 0.1, 30), (50, 0.1, 45)])
def test_passes_of_a_search(k, ridge, most):
    """At most k / 8 + 6 at a strong ridge, and k / 2 + 20 at a weak one; folds take the passes of the fit."""
    rng = np.random.default_rng(0)
    y = np.arange(120) % 4
    X = rng.standard_normal((120, 3000)) + (rng.random((120, 3000)) < 0.1) * y[:, None]
    for estimator in (
        L20Selector(k, ridge=ridge),
        L20SelectorCV(k, sizes=[k], selector=L20Selector(ridge=ridge)),
    ):
        there, read = counted(X, 3)
        with dask.config.set(scheduler="synchronous"):
            estimator.fit(there, y)
        assert len(read) <= most


def test_more_columns_than_working_memory_holds():
    from sklearn import config_context

    X, y = TALL
    expected = L20SelectorCV(cv=3, sizes=range(1, 7)).fit(X, y)
    with config_context(working_memory=0.001):
        found = L20SelectorCV(cv=3, sizes=range(1, 7)).fit(cut(X, 0, 4), y)
    np.testing.assert_array_equal(found.ranking_, expected.ranking_)
    np.testing.assert_allclose(found.scores_, expected.scores_, rtol=1e-10)


# ------------------------------------------------------------------------------------------------------------- refusals


def broken_csr(block):
    """A matrix with a column that is not there: compiled code would read memory of others."""
    found = sp.csr_matrix(block)
    found.indices[-1] = 99
    return found


def lying(X, lie):
    """A Dask array of three blocks, the second of which is not what the array says."""
    blocks = [X[:20], lie(X[20:40]), X[40:]]
    return da.concatenate([da.from_delayed(dask.delayed(block), (20, 24), dtype=float) for block in blocks])


SMALL = TALL[0][:60], TALL[1][:60]
REFUSED = {
    "complex": (
        lambda X: lying(X, lambda block: block + 1j),
        r"The block X\[20:40, 0:24\] has values of the type complex128",
    ),
    "object": (lambda X: lying(X, lambda block: block.astype(object)), "has values of the type object, but float64"),
    "one axis": (lambda X: lying(X, lambda block: block[:, 0]), r"has the shape \(20,\), but \(20, 24\) was declared"),
    "narrow": (lambda X: lying(X, lambda block: block[:, :23]), r"has the shape \(20, 23\), but \(20, 24\)"),
    "short": (lambda X: lying(X, lambda block: sp.csr_matrix(block[:10])), r"has the shape \(10, 24\)"),
    "broken": (lambda X: lying(X, broken_csr), "is not a valid CSR matrix: it has indices from 0 to 99"),
    "masked": (lambda X: da.ma.masked_greater(cut(X, 0, 3), 2.5), r"X has masked values\. Fill them in first"),
    "missing": (lambda X: cut(np.where(X == X[41, 3], np.nan, X), 0, 3), r"missing values \(NaN\).*Fill them in"),
    "infinite": (lambda X: cut(sp.csr_array(np.where(X == X.max(), np.inf, X)), 0, 3), "1 infinite value"),
    "unknown chunks": (lambda X: cut(X, 0, 3)[cut(X, 0, 3)[:, 0] > -1.0], r"Call X\.compute_chunk_sizes\(\) first"),
    "three axes": (lambda X: da.zeros((60, 4, 4)), "X has 3 axes"),
    "text": (lambda X: cut(X, 0, 3).astype(str), "X must hold numbers only"),
    "another length": (lambda X: cut(X[:40], 0, 3), "X has 40 samples, but y has 60"),
    "constant": (lambda X: da.zeros((60, 4), chunks=(20, 4)), "All 4 features of X are constant"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name):
    X, y = SMALL
    make, message = REFUSED[name]
    with pytest.raises(ValueError, match=message):
        L20Selector(3).fit(make(X), y)


def test_what_needs_x_in_memory_says_so():
    X, y = SMALL
    for other in (FisherScore(3), StabilitySelector(FisherScore(3))):
        with pytest.raises(TypeError, match=r"X is a dask array.*X\.compute\(\)"):
            other.fit(cut(X, 0, 3), y)
    with pytest.raises(ValueError, match=r"loss='l21' is not available for X in blocks\. Load X into memory"):
        L20Selector(3, loss="l21").fit(cut(X, 0, 3), y)


# ------------------------------------------------------------------------------------------------------- on a cluster


@pytest.fixture
def cluster():
    """Two processes of one thread each; a worker that dies is started again."""
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "60s", "distributed.worker.memory.terminate": False}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, memory_limit="1GiB", dashboard_address=":0", silence_logs=logging.CRITICAL
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def times_out(block):
    raise TimeoutError("the file server does not answer")


def wide_problem():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((80, 2100))
    y = np.argmax(X[:, :3] + rng.standard_normal((80, 3)), axis=1)
    return X, y


def dies_in_the_middle(block, folder, n_workers):
    """Return a block; the first workers that compute one after some passes are killed instead."""
    tempfile.NamedTemporaryFile(dir=folder, delete=False).close()
    if len(os.listdir(folder)) > 12:
        for number in range(n_workers):
            try:
                os.close(os.open(f"{folder}/killed-{number}", os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                continue
            os.kill(os.getpid(), signal.SIGKILL)
    return block


def kill(client, n_workers, folder):
    """Kill workers in the middle of a fit, and see the same rows."""
    X, y = wide_problem()
    while len(client.nthreads()) < 2:  # one may have been killed before
        time.sleep(0.1)
    lazy = da.from_array(X, chunks=(20, 2100))
    lazy = lazy.map_blocks(dies_in_the_middle, folder=str(folder), n_workers=n_workers, meta=X[:0])
    found = L20Selector(12, solver="ahiht").fit(lazy, y)
    assert len(list(folder.glob("killed-*"))) == n_workers
    np.testing.assert_array_equal(found.path_.indices, L20Selector(12, solver="ahiht").fit(X, y).path_.indices)


def test_a_cluster(cluster, tmp_path_factory):
    """One cluster, several questions: to start one takes longer than to ask."""
    X, y = TALL
    for there in (cut(X, 0, 4), in_both(X, 3, 2).map_blocks(sp.csr_matrix)):
        np.testing.assert_array_equal(L20Selector(5).fit(there, y).ranking_, L20Selector(5).fit(X, y).ranking_)
    found = L20SelectorCV(cv=3, sizes=range(1, 7)).fit(cut(X, 0, 4), y)
    np.testing.assert_array_equal(found.ranking_, L20SelectorCV(cv=3, sizes=range(1, 7)).fit(X, y).ranking_)
    with pytest.raises(TimeoutError, match="the file server does not answer"):
        L20Selector(3).fit(cut(X, 0, 4).map_blocks(times_out, meta=X[:0]), y)
    for n_workers in (1, 2):
        kill(cluster, n_workers, tmp_path_factory.mktemp("killed"))
