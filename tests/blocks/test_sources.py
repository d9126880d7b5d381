"""Sources of blocks: files, memory maps, stored arrays."""

from __future__ import annotations

import json
import subprocess
import sys

import anndata
import h5py
import numpy as np
import pytest
import scipy.sparse as sp
import zarr
from platforms import needs_linux

from l20fs.blocks import as_blocks, columns_of, comes_in_blocks, is_blocks, open_large
from l20fs.blocks.passes import extents
from l20fs.blocks.sources import recut_dense

MEMORY = 2**27


def make_matrix(seed=0, shape=(30, 8), density=0.4):
    rng = np.random.default_rng(seed)
    return rng.standard_normal(shape) * (rng.random(shape) < density)


def whole(blocks):
    """Put the blocks back together."""
    parts = blocks.each(
        lambda block: block.toarray() if sp.issparse(block) else np.array(block), [()] * len(extents(blocks))
    )
    return np.concatenate(parts, axis=blocks.axis)


def stores(tmp_path, X):
    np.save(tmp_path / "c.npy", X)
    np.save(tmp_path / "f.npy", np.asfortranarray(X))
    for name, chunks in (("rows", (4, X.shape[1])), ("columns", (X.shape[0], 3)), ("both", (4, 3))):
        zarr.create_array(tmp_path / f"{name}.zarr", shape=X.shape, chunks=chunks, dtype=X.dtype)[:] = X
    for name, kind in (("csr", sp.csr_matrix), ("csc", sp.csc_matrix), ("dense", np.asarray)):
        anndata.AnnData(kind(X), layers={"twice": kind(2 * X)}).write_h5ad(tmp_path / f"{name}.h5ad")
    anndata.AnnData(sp.csr_matrix(X)).write_zarr(tmp_path / "adata.zarr")


FILES = {
    "c.npy": 0, "f.npy": 1, "rows.zarr": 0, "columns.zarr": 1, "both.zarr": 0, "csr.h5ad": 0, "csc.h5ad": 1, "dense.h5ad": 0,
    "adata.zarr": 0,
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")  # of anndata and zarr about each other
def test_files_are_cut_along_the_axis_on_which_they_lie(tmp_path, monkeypatch):
    X = make_matrix()
    stores(tmp_path, X)
    monkeypatch.setattr("l20fs.blocks.sources.LARGEST_BLOCK", 4 * 8 * 8)
    chosen = np.array([0, 3, 7])
    for name, axis in FILES.items():
        blocks = open_large(tmp_path / name)
        assert (blocks.axis, blocks.shape, blocks.dtype) == (axis, X.shape, X.dtype), name
        assert len(blocks.edges) > 2, name
        np.testing.assert_array_equal(whole(blocks), X, err_msg=name)
        picked = blocks.columns(chosen)
        np.testing.assert_array_equal(picked.toarray() if sp.issparse(picked) else picked, X[:, chosen], err_msg=name)
        assert sp.issparse(picked) == blocks.is_sparse
    np.testing.assert_array_equal(whole(open_large(tmp_path / "csr.h5ad", key="layers/twice")), 2 * X)
    assert np.diff(open_large(tmp_path / "both.zarr").edges)[0] % 4 == 0  # whole chunks


def test_sparse_blocks_hold_so_many_values_or_one_line(monkeypatch):
    X = sp.csr_array(make_matrix(shape=(40, 30)))
    file = h5py.File("memory", "w", driver="core", backing_store=False)
    group = file.create_group("X")
    group.attrs.update({"encoding-type": "csr_matrix", "shape": X.shape})
    group["data"], group["indices"], group["indptr"] = X.data, X.indices, X.indptr
    from l20fs.blocks.sources import stored_blocks

    for size in (1, 50, 10**6):
        monkeypatch.setattr("l20fs.blocks.sources.LARGEST_BLOCK", size * (8 + X.indices.itemsize))
        blocks = stored_blocks(group, MEMORY)
        counts = np.diff(X.indptr[blocks.edges])
        assert ((counts <= size) | (np.diff(blocks.edges) == 1)).all()
        np.testing.assert_array_equal(whole(blocks), X.toarray())


def sparse_file(file, X, index=np.int32, kind="csr", **changes):
    """Write a sparse matrix as anndata does, with indices of any width; ``changes`` replaces arrays."""
    with h5py.File(file, "w") as stored:
        group = stored.create_group("X")
        group.attrs.update({"encoding-type": f"{kind}_matrix", "encoding-version": "0.1.0", "shape": X.shape})
        parts = {"data": X.data, "indices": X.indices.astype(index), "indptr": X.indptr}
        for name, values in (parts | changes).items():
            group[name] = values
    return file


@pytest.mark.parametrize("index", [np.uint8, np.int16, np.uint16, np.uint32, np.int64])
@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_array])
def test_indices_of_any_width(tmp_path, index, kind):
    X = kind(make_matrix(shape=(100, 90)))
    file = sparse_file(tmp_path / "x.h5ad", X, index, X.format)
    np.testing.assert_array_equal(whole(open_large(file)), X.toarray())


def test_half_precision_is_widened(tmp_path):
    X = sp.csr_array(make_matrix())
    blocks = open_large(sparse_file(tmp_path / "x.h5ad", X, data=X.data.astype(np.float16)))
    assert blocks.dtype == np.float32
    np.testing.assert_allclose(whole(blocks), X.toarray(), rtol=1e-3)


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("indices", -1, 8),
        ("indices", 0, -1),
        ("indices", 5, 10**9),
        ("indptr", 2, 10**6),
        ("indptr", 0, 1),
        ("indptr", -1, 9999),
    ],
)
def test_sparse_files_that_are_damaged(tmp_path, name, place, value):
    X = sp.csr_array(make_matrix())
    wrong = {"indices": X.indices, "indptr": X.indptr}[name].astype(np.int64)
    wrong[place] = value
    with pytest.raises(ValueError, match=r"The CSR matrix of shape \(30, 8\) in x\.h5ad is damaged.*Write it again"):
        whole(open_large(sparse_file(tmp_path / "x.h5ad", X, **{name: wrong})))
    with pytest.raises(ValueError, match="indptr does not fit"):
        open_large(sparse_file(tmp_path / "x.h5ad", X, indptr=X.indptr[:-3]))


def test_chunks_that_are_large_on_one_axis(tmp_path, monkeypatch, caplog):
    """Whole chunks along the axis where they fit; if they fit on none, parts of them, and it is said."""
    X = make_matrix(shape=(40, 400))
    monkeypatch.setattr("l20fs.blocks.sources.LARGEST_BLOCK", 40 * 20 * 8)
    for name, chunks, axis, step in (("a", (20, 10), 1, 20), ("b", (1, 400), 0, 2), ("c", (20, 200), 0, 2)):
        zarr.create_array(tmp_path / f"{name}.zarr", data=X, chunks=chunks)
        blocks = open_large(tmp_path / f"{name}.zarr")
        assert (blocks.axis, np.diff(blocks.edges).max()) == (axis, step)
        np.testing.assert_array_equal(whole(blocks), X)
    assert [record.message.partition(";")[0] for record in caplog.records] == ["X is stored in chunks of 20 x 200"]
    assert "every chunk is read 10 times per pass" in caplog.text


def test_the_limit_of_the_selector_holds_for_what_was_opened_with_another(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((1000, 20_000), dtype=np.float32))
    blocks = open_large(tmp_path / "x.npy", max_memory="8G")
    assert len(blocks.edges) == 3
    smaller = as_blocks(blocks, "256M")
    assert smaller.budget == 2**27
    assert (np.diff(smaller.edges).max() - 1) * 20_000 * 4 <= 2**23
    assert (smaller.edges[0], smaller.edges[-1]) == (0, 1000)
    larger = as_blocks(smaller, "8G")
    assert larger.budget == 2**32
    assert as_blocks(blocks) is blocks


def test_files_that_cannot_be_opened(tmp_path):
    with open(tmp_path / "archive.npy", "wb") as stream:
        np.savez(stream, X=np.eye(3))
    with pytest.raises(ValueError, match=r"archive\.npy is an archive of arrays"):
        open_large(tmp_path / "archive.npy")
    (tmp_path / "empty.npy").touch()
    with pytest.raises(ValueError, match=r"empty\.npy is not an \.npy file of numbers"):
        open_large(tmp_path / "empty.npy")
    with pytest.raises(ValueError, match=r"^max_memory='1' is not valid"):
        open_large(tmp_path / "empty.npy", max_memory="1")
    np.save(tmp_path / "text.npy", np.array(["a", {}], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match=r"text\.npy is not an \.npy file of numbers"):
        open_large(tmp_path / "text.npy")
    with pytest.raises(ValueError, match=r"x\.csv has a format that cannot be read in blocks.* \.npy, \.zarr or \.h5ad"):
        open_large(tmp_path / "x.csv")
    np.save(tmp_path / "flat.npy", np.zeros(3))
    with pytest.raises(ValueError, match=r"shape \(3,\)"):
        open_large(tmp_path / "flat.npy")
    with h5py.File(tmp_path / "x.h5ad", "w") as file:
        file["obs/n"] = np.zeros(3)
    with pytest.raises(ValueError, match=r"has no matrix 'X'\. It has 'obs'"):
        open_large(tmp_path / "x.h5ad")
    with pytest.raises(ValueError, match="'/obs' holds no sparse matrix"):
        open_large(tmp_path / "x.h5ad", key="obs")


def test_what_comes_in_blocks(tmp_path):
    X = make_matrix()
    stored = zarr.create_array(tmp_path / "x.zarr", shape=X.shape, dtype=X.dtype)
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    large = np.lib.stride_tricks.as_strided(mapped, (2**20, 2**10), (0, 0), subok=True)
    assert comes_in_blocks(stored)
    assert comes_in_blocks(as_blocks(X))
    assert is_blocks(as_blocks(X))
    assert not any(map(is_blocks, (X, mapped, stored, sp.csr_array(X))))
    assert not comes_in_blocks(X)
    assert not comes_in_blocks(mapped)  # so small that it is loaded
    assert comes_in_blocks(large, "1G")
    assert not comes_in_blocks(sp.csr_array(X))
    np.testing.assert_array_equal(columns_of(mapped, np.array([1, 2])), X[:, 1:3])


def test_a_pass_that_fails_or_is_left_stops(tmp_path):
    def fail(block):
        raise ZeroDivisionError

    blocks = as_blocks(make_matrix())
    with pytest.raises(ZeroDivisionError):
        blocks.total(fail, [()])


MEMORY_CODE = """
import resource, sys
import numpy as np
from l20fs import L20Selector
X = np.load(sys.argv[1], mmap_mode="r")
y = np.arange(len(X)) % 3
L20Selector(5, max_memory="128M").fit(np.array(X[:300]), y[:300])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
L20Selector(5, max_memory="128M").fit(X, y)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@needs_linux
def test_memory_stays_within_the_limit(tmp_path):
    """X has twice the memory that the fit may take; the process grows by less than half of that."""
    stored = np.lib.format.open_memmap(tmp_path / "x.npy", mode="w+", dtype=np.float32, shape=(16_000, 4096))
    rng = np.random.default_rng(0)
    part = rng.standard_normal((1000, 4096)).astype(np.float32)
    for start in range(0, len(stored), 1000):
        stored[start : start + 1000] = np.roll(part, start, axis=1)
    stored.flush()
    run = subprocess.run(
        [sys.executable, "-c", MEMORY_CODE, str(tmp_path / "x.npy")], capture_output=True, text=True, check=True
    )
    assert int(run.stdout) * 1024 < 2**26


def test_stores_that_would_be_unpickled_are_refused(tmp_path):
    zarr.create_array(tmp_path / "x.zarr", data=np.eye(3), zarr_format=2)
    metadata = json.loads((tmp_path / "x.zarr" / ".zarray").read_text())
    (tmp_path / "x.zarr" / ".zarray").write_text(json.dumps(metadata | {"filters": [{"id": "pickle"}]}))
    with pytest.raises(ValueError, match=r"x\.zarr: '' has the codec 'pickle', which is not read: unknown codecs may run"):
        open_large(tmp_path / "x.zarr")
    zarr.create_array(tmp_path / "y.zarr", data=np.eye(3), attributes={"name": "pickle"})
    assert open_large(tmp_path / "y.zarr").shape == (3, 3)


@pytest.mark.parametrize("make", [sp.csr_matrix, sp.csc_array, sp.coo_array])
def test_a_sparse_matrix_in_memory_is_split_and_recut_for_dense_blocks(monkeypatch, make):
    monkeypatch.setattr("l20fs.blocks.sources.LARGEST_BLOCK", 400)
    dense = np.random.default_rng(0).random((40, 10)) * (np.arange(400).reshape(40, 10) % 7 == 0)
    blocks = as_blocks(make(dense))
    assert blocks.axis == (1 if make is sp.csc_array else 0)
    parts = recut_dense(blocks, 2**30)
    for each in (blocks, parts):
        stack = np.vstack if each.axis == 0 else np.hstack
        np.testing.assert_array_equal(stack([each.load(span).toarray() for span in extents(each)]), dense)
    assert len(parts.edges) > len(blocks.edges)
    assert max(np.diff(parts.edges)) * 8 * dense.shape[1 - parts.axis] <= 400
