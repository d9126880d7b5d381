"""Files larger than memory: opened as Dask arrays by their metadata, and refused by name where those lead elsewhere."""

from __future__ import annotations

import json
import subprocess
import sys

import anndata
import dask.array as da
import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import zarr
from platforms import needs_posix
from sklearn import config_context

from l20fs import L20Selector, open_large

pytestmark = [pytest.mark.filterwarnings(f"ignore:.*{word}") for word in ("zarr v2", "Consolidated metadata")]


def planted():
    rng = np.random.default_rng(0)
    y = rng.permutation(np.arange(60) % 3)
    X = rng.poisson(1.0, (60, 40)).astype(np.float32)
    X[:, :4] += 2.0 * (y[:, None] == np.arange(4) % 3)
    return X, y


X, Y = planted()


def stored_h5(file, **options):
    with h5py.File(file, "w") as opened:
        opened.create_dataset("X", data=X, **options)


def cells(values):
    adata = anndata.AnnData(values)
    adata.layers["twice"] = 2 * values
    return adata


WRITTEN = {
    "x.npy": lambda file: np.save(file, X),
    "turned.npy": lambda file: np.save(file, np.asfortranarray(X)),
    "integers.npy": lambda file: np.save(file, X.astype(np.int16)),
    "x.h5": stored_h5,
    "rows.h5": lambda file: stored_h5(file, chunks=(7, 40), compression="gzip", shuffle=True),
    "columns.h5": lambda file: stored_h5(file, chunks=(60, 7), compression="lzf"),
    "x.zarr": lambda file: zarr.create_array(file, data=X, chunks=(20, 10)),
    "shards.zarr": lambda file: zarr.create_array(file, data=X, chunks=(5, 10), shards=(20, 40)),
    "version2.zarr": lambda file: zarr.create_array(file, data=X, chunks=(20, 10), zarr_format=2),
    "csr.h5ad": lambda file: cells(sp.csr_matrix(X)).write_h5ad(file),
    "csc.h5ad": lambda file: cells(sp.csc_matrix(X)).write_h5ad(file),
    "dense.h5ad": lambda file: cells(X).write_h5ad(file),
    "csr.zarr": lambda file: cells(sp.csr_matrix(X)).write_zarr(file),
}


def in_memory(there):
    values = there.compute()
    return values.toarray() if sp.issparse(values) else values


@pytest.mark.parametrize("name", WRITTEN)
def test_a_file_is_a_dask_array_of_several_blocks(name, tmp_path):
    WRITTEN[name](tmp_path / name)
    with config_context(working_memory=0.02):  # blocks of about a kilobyte
        there = open_large(tmp_path / name)
    assert isinstance(there, da.Array)
    assert there.npartitions > 1
    np.testing.assert_array_equal(in_memory(there), X)
    np.testing.assert_array_equal(L20Selector(4).fit(there, Y).ranking_, L20Selector(4).fit(X, Y).ranking_)
    assert open_large(tmp_path / name).npartitions == 1


def test_a_layer_a_backed_object_and_open_elements(tmp_path):
    WRITTEN["csr.h5ad"](tmp_path / "x.h5ad")
    np.testing.assert_array_equal(in_memory(open_large(tmp_path / "x.h5ad", key="layers/twice")), 2 * X)
    expected = L20Selector(4).fit(X, Y).ranking_
    backed = anndata.read_h5ad(tmp_path / "x.h5ad", backed="r")
    stored = zarr.create_array(tmp_path / "x.zarr", data=X, chunks=(20, 10))
    stored_h5(tmp_path / "x.h5")
    with h5py.File(tmp_path / "x.h5", "r+") as file:
        for there in (backed.X, stored, file["X"]):
            np.testing.assert_array_equal(in_memory(open_large(there)), X)
            np.testing.assert_array_equal(L20Selector(4).fit(there, Y).ranking_, expected)
    backed.file.close()


def test_parquet_has_names(tmp_path):
    frame = pd.DataFrame(X, columns=[f"g{i}" for i in range(40)])
    frame.assign(type=Y.astype(str)).to_parquet(tmp_path / "x.parquet")
    there = open_large(tmp_path / "x.parquet")
    found = L20Selector(4).fit(there.drop(columns="type"), there["type"].compute())
    assert found.get_feature_names_out().tolist() == L20Selector(4).fit(frame, Y).get_feature_names_out().tolist()
    with pytest.raises(ValueError, match=r"X must hold numbers only.*'type'"):
        L20Selector(4).fit(there, Y)


# ------------------------------------------------------------------------------------------------------------- refusals


def linked(file):
    with h5py.File(file, "w") as opened:
        opened["there"] = X
        opened["X"] = h5py.SoftLink("/there")


def linked_outside(file):
    with h5py.File(file, "w") as opened:
        opened["X"] = h5py.ExternalLink("other.h5", "X")


def external(file):
    (file.parent / "values").write_bytes(X.tobytes())
    with h5py.File(file, "w") as opened:
        opened.create_dataset("X", X.shape, "f4", external=[(str(file.parent / "values"), 0, h5py.h5f.UNLIMITED)])


def virtual(file):
    layout = h5py.VirtualLayout(X.shape, dtype="f4")
    layout[:] = h5py.VirtualSource("missing.h5", "X", shape=X.shape)
    with h5py.File(file, "w") as opened:
        opened.create_virtual_dataset("X", layout)


def texts(file):
    with h5py.File(file, "w") as opened:
        opened["X"] = [["a", "b"], ["c", "d"]]


def unknown_filter(file):
    with h5py.File(file, "w") as opened:
        properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        properties.set_chunk((60, 40))
        properties.set_filter(32999, h5py.h5z.FLAG_OPTIONAL)
        h5py.h5d.create(opened.id, b"X", h5py.h5t.NATIVE_FLOAT, h5py.h5s.create_simple(X.shape), properties)


def sparse_with(member):
    """A sparse matrix of which a member is a link to another file."""

    def write(file):
        WRITTEN["csr.h5ad"](file)
        with h5py.File(file, "r+") as opened:
            del opened["X"][member]
            opened["X"][member] = h5py.ExternalLink("other.h5", member)

    return write


def cut_off(file):
    WRITTEN["csr.h5ad"](file)
    with h5py.File(file, "r+") as opened:
        indptr = opened["X/indptr"][:-1]
        del opened["X/indptr"]
        opened["X/indptr"] = indptr


def edited(change):
    """A zarr array whose metadata were changed."""

    def write(file):
        zarr.create_array(file, data=X, chunks=(20, 10))
        metadata = json.loads((file / "zarr.json").read_text())
        change(metadata)
        (file / "zarr.json").write_text(json.dumps(metadata))

    return write


def second_format(**metadata):
    def write(file):
        zarr.create_array(file, data=X, chunks=(20, 10), zarr_format=2)
        known = json.loads((file / ".zarray").read_text())
        (file / ".zarray").write_text(json.dumps(known | metadata))

    return write


def linked_chunk(file):
    zarr.create_array(file, data=X, chunks=(20, 10))
    (file.parent / "secret").write_bytes(b"values")
    chunk = next(path for path in (file / "c").rglob("*") if path.is_file())
    chunk.unlink()
    chunk.symlink_to(file.parent / "secret")


PICKLED = np.array([[{}, 1], [2, 3]], dtype=object)
REFUSED = {
    "link.h5": (linked, "'X' is a link to another place, which is not followed"),
    "outside.h5": (linked_outside, "'X' is a link to another place"),
    "external.h5": (external, "'X' has its values in other files, which are not read"),
    "virtual.h5": (virtual, "'X' has its values in other files"),
    "texts.h5": (texts, "'X' holds object values"),
    "filter.h5": (unknown_filter, r"'X' has the filter 32999 \(.*\), which is unknown"),
    "data.h5ad": (sparse_with("data"), "'data' is a link to another place"),
    "cut.h5ad": (cut_off, "'X' is damaged: its indptr and indices do not fit its shape"),
    "damaged.h5": (lambda file: file.write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(90)), "is damaged"),
    "codec.zarr": (edited(lambda found: found["codecs"].append({"name": "pickle"})), "the codec 'pickle', which is unknown"),
    "transformed.zarr": (edited(lambda found: found.update(storage_transformers=[{}])), "has storage transformers"),
    "metadata.zarr": (edited(lambda found: found.update(codecs=[{}])), "the metadata 'zarr.json' cannot be read"),
    "objects.zarr": (second_format(filters=[{"id": "pickle"}], dtype="|O"), "the codec 'pickle', which is unknown"),
    "pickled.npy": (lambda file: np.save(file, PICKLED, allow_pickle=True), "is not an .npy file of numbers: .* objects"),
    "complex.npy": (lambda file: np.save(file, X + 1j), "holds complex64 values"),
    "line.npy": (lambda file: np.save(file, X[0]), "has 1 axes"),
    "other.bin": (lambda file: file.write_bytes(b"values"), "is not a file that is read in blocks"),
    "no_x.zarr": (lambda file: zarr.create_group(file).create_array("Y", data=X), "has no matrix 'X'. It has 'Y'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_and_named(name, tmp_path):
    write, message = REFUSED[name]
    write(tmp_path / name)
    with pytest.raises(ValueError, match=f"^{name}: .*{message}"):
        open_large(tmp_path / name)


@needs_posix
def test_a_link_in_a_store_is_refused(tmp_path):
    linked_chunk(tmp_path / "x.zarr")
    with pytest.raises(ValueError, match=r"^x\.zarr: 'c/.*' is a link, which is not followed"):
        open_large(tmp_path / "x.zarr")


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        open_large(tmp_path / "x.npy")


def test_without_dask_the_error_names_the_extra(tmp_path):
    np.save(tmp_path / "x.npy", X)
    code = f"import sys; sys.modules['dask'] = None; import l20fs; l20fs.open_large({str(tmp_path / 'x.npy')!r})"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stderr
    assert "ModuleNotFoundError: open_large() needs dask: pip install 'l20fs[dask]'" in said
