"""HDF5 files and zarr stores as anndata, h5py and zarr write them; what they lack is told."""

from __future__ import annotations

import os
import re
import shutil

import anndata
import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import zarr
from platforms import needs_posix

from l20fs.data.readers import DataError, read_table
from l20fs.data.readers.hdf5_layout import PER_CHUNK, DataSet, LayoutError, data_sets
from l20fs.data.readers.zarr_layout import check_store

# What anndata and zarr say when they write stores.
pytestmark = [pytest.mark.filterwarnings(f"ignore:.*{word}") for word in ("zarr v2", "Consolidated metadata")]

N_CELLS, N_GENES = 40, 12
LABELS = ["u", "v"] * (N_CELLS // 2)

#: Columns with the labels, as anndata can write them.
COLUMNS = {
    "categorical": pd.Categorical(LABELS),
    "texts": np.array(LABELS, dtype=object),
    "nullable": pd.array([label == "u" for label in LABELS], dtype="boolean"),
    "whole": pd.array([int(label == "u") for label in LABELS], dtype="Int64"),
    "strings": pd.array(LABELS, dtype="string"),
}


@pytest.fixture
def X():
    values = np.random.default_rng(0).poisson(1.0, size=(N_CELLS, N_GENES)).astype(np.float32)
    values[:, 0] += np.arange(N_CELLS) % 2
    return values


def make(X, **columns):
    obs = pd.DataFrame(columns or COLUMNS, index=[f"cell {i}" for i in range(N_CELLS)])
    return anndata.AnnData(X, obs=obs, var=pd.DataFrame(index=[f"gene é {i}" for i in range(N_GENES)]))


def write(cells, file, kind="zarr 3"):
    """Write a file or a store of some kind."""
    shards = {"auto_shard_zarr_v3": kind == "shards"} if hasattr(anndata.settings, "auto_shard_zarr_v3") else {}
    zarr_format = 2 if kind == "zarr 2" else 3
    with anndata.settings.override(allow_write_nullable_strings=True, zarr_write_format=zarr_format, **shards):
        if kind.startswith(("zarr", "shards")):
            cells.write_zarr(file)
        else:
            cells.write_h5ad(file, compression=None if kind == "h5ad" else kind)


@pytest.mark.parametrize("kind", ["h5ad", "gzip", "lzf", "zarr 2", "zarr 3", "shards"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, sp.csc_matrix])
def test_what_anndata_writes_is_read(tmp_path, X, kind, form):
    file = tmp_path / "x"
    write(make(form(X)), file, kind)
    for column in COLUMNS if form is np.asarray else ["categorical"]:
        table = read_table(file, column)
        values = table.X.toarray() if sp.issparse(table.X) else table.X
        np.testing.assert_array_equal(values, X)
        is_odd = table.y == table.y[1]
        assert is_odd.tolist() == [False, True] * (N_CELLS // 2)
        assert table.feature_names[-1] == f"gene é {N_GENES - 1}"
        assert not table.notes


@pytest.mark.parametrize(
    "codecs",
    [
        {"compressors": zarr.codecs.GzipCodec()},
        {"compressors": zarr.codecs.BloscCodec()},
        {"compressors": zarr.codecs.ZstdCodec(checksum=True)},
        {"compressors": None},
        {"shards": (20, N_GENES), "chunks": (5, N_GENES)},
        {
            "filters": [zarr.codecs.TransposeCodec(order=(1, 0))],
            "compressors": [zarr.codecs.ZstdCodec(), zarr.codecs.Crc32cCodec()],
        },
    ],
)
def test_codecs_of_zarr(tmp_path, X, codecs, monkeypatch):
    zarr.create_array(tmp_path / "x.zarr", data=X, **{"chunks": (10, N_GENES), **codecs})
    (tmp_path / "labels.txt").write_text("\n".join(LABELS))
    table = read_table(tmp_path / "x.zarr", labels=tmp_path / "labels.txt", max_memory=2**20)
    np.testing.assert_array_equal(table.X, X)
    assert not table.notes
    (array,) = check_store(tmp_path / "x.zarr").arrays.values()
    array.check_chunks(0)  # all chunks are looked at, and none is larger than it should be


def test_a_chunk_that_states_more_texts_than_it_has_is_refused(tmp_path, X):
    """The library would allocate memory for all of them."""
    import numcodecs

    write(make(X), tmp_path / "x.zarr")
    [chunk] = (tmp_path / "x.zarr" / "var" / "_index").rglob("c/0")
    name = chunk.parents[1].relative_to(tmp_path / "x.zarr").as_posix()  # a part of the index, where texts may be missing
    texts = numcodecs.Zstd().decode(chunk.read_bytes())
    chunk.write_bytes(numcodecs.Zstd().encode(b"\xff\xff\xff\x0f" + texts[4:]))
    with pytest.raises(DataError, match=f"'{name}' states 268435455 texts, and a chunk has"):
        read_table(tmp_path / "x.zarr", "categorical")


def test_all_zeros_may_be_left_out_by_zarr_and_are_told(tmp_path, X):
    cells = make(X, type=pd.Categorical(LABELS), batch=pd.Categorical(["one"] * N_CELLS))
    cells.X[:] = 0.0
    write(cells, tmp_path / "x.zarr")
    table = read_table(tmp_path / "x.zarr", "type", groups="batch")
    assert (
        "x.zarr: 'X': 1 of 1 chunks are not there and count as the fill value, in 40 rows of the matrix all of them (zarr "
        "leaves out chunks of this value, but a store that was not copied whole looks the same)."
    ) in table.notes
    assert set(table.groups) == {"one"}
    with pytest.raises(DataError, match="and --strict forbids to guess"):
        read_table(tmp_path / "x.zarr", "type", strict=True)


def test_chunks_of_hdf5_that_were_never_written_are_told(tmp_path, X):
    write(make(sp.csr_matrix(X)), tmp_path / "x.h5ad", "h5ad")
    with h5py.File(tmp_path / "x.h5ad", "r+") as stored:
        n_values = stored["X/data"].size
        del stored["X/data"]
        stored["X"].create_dataset("data", (n_values,), dtype="f4", chunks=(n_values // 2 + 1,))[:1] = 1.0
    said = "'X/data': 1 of 2 chunks are not there and count as the fill value"
    assert f"x.h5ad: {said}." in read_table(tmp_path / "x.h5ad", "texts").notes
    with h5py.File(tmp_path / "x.h5ad", "r+") as stored:
        del stored["obs/categorical/codes"]
        stored["obs/categorical"].create_dataset("codes", (N_CELLS,), dtype="i1")
    with pytest.raises(
        DataError, match="'obs/categorical/codes': 1 of 1 chunks were never written, so that names or labels"
    ):
        read_table(tmp_path / "x.h5ad", "categorical")


def chunks_of(folder):
    """Files of the chunks of an array, in the order of their places."""
    files = [file for file in folder.rglob("*") if file.is_file() and file.name not in ("zarr.json", ".zarray", ".zattrs")]
    return sorted(files, key=lambda file: [int(number) for number in re.findall(r"\d+", str(file.relative_to(folder)))])


def write_cut(X, folder, zarr_format=3):
    """Write an AnnData store with a sparse matrix in chunks of 20."""
    write(make(sp.csr_matrix(X)), folder, f"zarr {zarr_format}")
    group = zarr.open_group(folder, mode="r+", use_consolidated=False)["X"]
    for part in ("data", "indices", "indptr"):
        values = group[part][:]
        del group[part]
        group.create_array(part, data=values, chunks=(20,))


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("part", ["indices", "indptr", "data"])
def test_chunks_of_a_sparse_matrix_that_zarr_cannot_have_left_out(tmp_path, X, zarr_format, part):
    write_cut(X, tmp_path / "x.zarr", zarr_format)
    whole = read_table(tmp_path / "x.zarr", "texts")
    assert not whole.notes
    files = chunks_of(tmp_path / "x.zarr" / "X" / part)
    files[-1 if part == "indptr" else 1].unlink()
    said = rf"1 of {len(files)} chunks of 'X/{part}' are lost: zarr leaves out chunks of zeros only"
    if part == "data":  # zeros that are stored are odd, but possible
        said = f"'X/data': 1 of {len(files)} chunks are not there and count as the fill value (zarr leaves out"
        assert said in str(read_table(tmp_path / "x.zarr", "texts").notes)
        return
    with pytest.raises(DataError, match=f"x.zarr: {said}"):
        read_table(tmp_path / "x.zarr", "texts")


def test_a_chunk_of_indices_may_be_zeros(tmp_path, X):
    """Of cells with one gene each, the first one."""
    X[:20] = 0.0
    X[:20, 0] = 1.0
    write_cut(X, tmp_path / "x.zarr")
    table = read_table(tmp_path / "x.zarr", "texts")
    assert "'X/indices': 1 of" in str(table.notes)
    np.testing.assert_array_equal(table.X.toarray(), X)


@needs_posix
def test_links_inside_of_a_store_are_followed_and_hashed(tmp_path, X):
    write(make(X), tmp_path / "x.zarr")
    digest = read_table(tmp_path / "x.zarr", "texts").sha256
    index = tmp_path / "x.zarr" / "var" / "_index"
    shutil.move(index, tmp_path / "x.zarr" / "names")
    index.symlink_to(os.path.join("..", "names"))
    assert read_table(tmp_path / "x.zarr", "texts").feature_names[0] == "gene é 0"
    names = tmp_path / "x.zarr" / "names" / "zarr.json"
    names.write_text(names.read_text() + "\n")
    assert read_table(tmp_path / "x.zarr", "texts").sha256 != digest
    shutil.move(tmp_path / "x.zarr" / "names", tmp_path / "names")
    (tmp_path / "x.zarr" / "names").symlink_to(tmp_path / "names")
    with pytest.raises(DataError, match="'names' is a link that leads out of the store"):
        read_table(tmp_path / "x.zarr", "texts")


def test_texts_are_counted_before_they_are_read(tmp_path):
    texts = ["é" * n for n in range(100)]
    with h5py.File(tmp_path / "x.h5", "w") as stored:
        for place, options in enumerate(({}, {"chunks": (7,)}, {"compression": "gzip"}, {"compression": "lzf"})):
            stored.create_dataset(f"x{place}", data=texts, dtype=h5py.string_dtype(), **options)
        n_bytes = 2 * sum(range(100))
        for data_set in data_sets(stored):
            least = 8 * 100 + 100 * 100 + 2 * n_bytes
            assert least <= data_set.memory(10**6) <= least + 20_000 + PER_CHUNK * data_set.n_chunks


def test_a_circle_of_hard_links_ends(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as stored:
        group = stored.create_group("a/b")
        group["up"] = stored["a"]
        group["x"] = np.eye(2)
        assert [data_set.name for data_set in data_sets(stored)] in (["a/b/x"], ["a/b/up/b/x"])
        for _ in range(30):
            group = group.create_group("down")
        with pytest.raises(LayoutError, match="has too many elements, or too many levels"):
            data_sets(stored)
        assert DataSet(stored["a/b/x"]).n_missing == 0


def test_tables_of_older_files(tmp_path, X):
    """Before anndata 0.8, categories are in a group of the table; before 0.7, the table is one data set."""
    write(make(X), tmp_path / "x.h5ad", "h5ad")
    with h5py.File(tmp_path / "x.h5ad", "r+") as stored:
        obs = stored["obs"]
        obs.attrs["encoding-version"] = "0.1.0"
        categories = obs.create_dataset("__categories/old", data=["u", "v"], dtype=h5py.string_dtype())
        obs.create_dataset("old", data=np.array([0, 1] * (N_CELLS // 2), dtype="i1")).attrs["categories"] = categories.ref
    assert read_table(tmp_path / "x.h5ad", "old").y.tolist() == LABELS
    with h5py.File(tmp_path / "x.h5ad", "r+") as stored:
        del stored["obs"]
        stored["obs"] = np.zeros(N_CELLS, dtype=[("index", "S8"), ("type", "i1")])
    with pytest.raises(DataError, match="'obs' is a table of anndata before 0"):
        read_table(tmp_path / "x.h5ad", "type")


def test_an_attribute_with_many_texts_is_not_read(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as stored:
        stored["X"] = np.eye(3)
        stored["X"].attrs["encoding-type"] = ["array"] * 100
        with pytest.raises(LayoutError, match="the attribute 'encoding-type' of 'X' has more than one value"):
            data_sets(stored)
