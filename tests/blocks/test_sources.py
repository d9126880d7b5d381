"""Sources of blocks: files, memory maps, stored arrays."""

from __future__ import annotations

import json

import h5py
import numpy as np
import pytest
import scipy.sparse as sp
import zarr

from l20fs.blocks import as_blocks, open_large
from l20fs.blocks.passes import extents


def make_matrix(seed=0, shape=(30, 8), density=0.4):
    rng = np.random.default_rng(seed)
    return rng.standard_normal(shape) * (rng.random(shape) < density)


def whole(blocks):
    """Put the blocks back together."""
    parts = blocks.each(
        lambda block: block.toarray() if sp.issparse(block) else np.array(block), [()] * len(extents(blocks))
    )
    return np.concatenate(parts, axis=blocks.axis)


def sparse_file(file, X, index=np.int32, kind="csr", **changes):
    """Write a sparse matrix as anndata does, with indices of any width; ``changes`` replaces arrays."""
    with h5py.File(file, "w") as stored:
        group = stored.create_group("X")
        group.attrs.update({"encoding-type": f"{kind}_matrix", "encoding-version": "0.1.0", "shape": X.shape})
        parts = {"data": X.data, "indices": X.indices.astype(index), "indptr": X.indptr}
        for name, values in (parts | changes).items():
            group[name] = values
    return file


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


def test_a_pass_that_fails_or_is_left_stops(tmp_path):
    def fail(block):
        raise ZeroDivisionError

    blocks = as_blocks(make_matrix())
    with pytest.raises(ZeroDivisionError):
        blocks.total(fail, [()])


def test_stores_that_would_be_unpickled_are_refused(tmp_path):
    zarr.create_array(tmp_path / "x.zarr", data=np.eye(3), zarr_format=2)
    metadata = json.loads((tmp_path / "x.zarr" / ".zarray").read_text())
    (tmp_path / "x.zarr" / ".zarray").write_text(json.dumps(metadata | {"filters": [{"id": "pickle"}]}))
    with pytest.raises(ValueError, match=r"x\.zarr: '' has the codec 'pickle', which is not read: unknown codecs may run"):
        open_large(tmp_path / "x.zarr")
    zarr.create_array(tmp_path / "y.zarr", data=np.eye(3), attributes={"name": "pickle"})
    assert open_large(tmp_path / "y.zarr").shape == (3, 3)
