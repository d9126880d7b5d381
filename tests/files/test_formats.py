"""One table of samples in every kind of file: the same values, names, labels and groups."""

from __future__ import annotations

import gzip
import hashlib
import warnings

import anndata
import files
import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from files import DONORS, FRAME, GENES, LABELS, NUMBERED, SAMPLES, X
from scipy.io import savemat

from l20fs.tables import DataError, UnknownColumnError, read_table

CODES = [str(code) for code in np.unique(LABELS, return_inverse=True)[1]]
NAMES = ["a.csv", "a.tsv.gz", "quoted.csv", "plain.csv", "turned.csv", "turned.tsv", "two.gct", "three.gct.gz", "a.arff"]
NAMES += ["a.svm", "a.npz", "a.npy", "sparse.npz", "a.mat", "packed.mat", "a.parquet", "turned.parquet", "a.xlsx"]
NAMES += ["turned.xlsx", "a.h5ad", "dense.h5ad", "matrix.mtx"]


@pytest.fixture(scope="module")
def laid(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    return folder, files.lay_out(folder)


def values(samples):
    return samples.X.toarray() if sp.issparse(samples.X) else samples.X


@pytest.mark.parametrize("name", NAMES)
def test_every_format_gives_the_same_table(name, laid):
    folder, options = laid[0], dict(laid[1][name])
    found = read_table(folder / name, options.pop("target", None), **options)
    np.testing.assert_allclose(values(found), X, rtol=1e-6 if name == "dense.h5ad" else 1e-12)
    is_coded = name in ("a.svm", "a.mat", "packed.mat")
    expected = [str(int(code) + 1) for code in CODES] if name.endswith("mat") else CODES if is_coded else LABELS
    assert found.y.tolist() == expected
    unnamed = name in ("a.svm", "a.npy", "sparse.npz", "a.mat", "packed.mat")
    assert found.feature_names == (NUMBERED if unnamed else GENES)
    assert found.sample_names == (None if unnamed or name == "a.arff" else SAMPLES)
    assert found.groups is None or found.groups.tolist() == DONORS
    content = (folder / name).read_bytes()
    if "labels" not in options and name != "matrix.mtx":
        assert found.sha256 == hashlib.sha256(content).hexdigest()
    assert sp.issparse(found.X) == (name in ("a.svm", "sparse.npz", "a.h5ad", "matrix.mtx"))
    assert found.X.dtype == (np.float32 if name == "dense.h5ad" else np.float64)


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_zarr_stores_of_both_versions(version, is_sparse, tmp_path):
    pytest.importorskip("zarr")
    obs = pd.DataFrame({"type": pd.Categorical(LABELS), "donor": DONORS}, index=SAMPLES)
    adata = anndata.AnnData(sp.csr_array(X) if is_sparse else X, obs=obs, var=pd.DataFrame(index=GENES))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with anndata.settings.override(zarr_write_format=version):
            adata.write_zarr(tmp_path / "a.zarr")
    found = read_table(tmp_path / "a.zarr", "type", groups="donor")
    np.testing.assert_array_equal(values(found), X)
    assert (found.y.tolist(), found.groups.tolist(), found.sample_names) == (LABELS, DONORS, SAMPLES)


@pytest.mark.parametrize("version", [2, 3])
def test_h5_files_of_10x(version, tmp_path):
    counts = sp.csc_array(np.round(5 * X.T))
    with h5py.File(tmp_path / "filtered.h5", "w") as stored:
        group = stored.create_group("matrix" if version == 3 else "GRCh38")
        for name in ("data", "indices", "indptr"):
            group[name] = getattr(counts, name).astype(np.int32)
        group["shape"], group["barcodes"] = counts.shape, np.array(SAMPLES, dtype="S")
        where = group.create_group("features") if version == 3 else group
        where["name" if version == 3 else "gene_names"] = np.array(["A", "B", "A", "C", "D"], dtype="S")
        where["id" if version == 3 else "genes"] = np.array([f"E{j}" for j in range(5)], dtype="S")
    (tmp_path / "labels.csv").write_text(files.LABEL_FILE)
    found = read_table(tmp_path / "filtered.h5", "type", labels=tmp_path / "labels.csv")
    np.testing.assert_array_equal(found.X.toarray(), np.round(5 * X))
    assert found.feature_names == ["A (E0)", "B", "A (E2)", "C", "D"]
    with pytest.raises(UnknownColumnError, match="no labels"):
        read_table(tmp_path / "filtered.h5")


def old_h5ad(file):
    """Write an h5ad file as anndata before 0.7 did, as the one of scanpy's pbmc68k_reduced: records, categories in uns."""
    with h5py.File(file, "w") as stored:
        sparse = sp.csr_matrix(X)
        group = stored.create_group("X")
        group.attrs["h5sparse_format"], group.attrs["h5sparse_shape"] = "csr", sparse.shape
        for name in ("data", "indices", "indptr"):
            group[name] = getattr(sparse, name)
        codes = np.unique(LABELS, return_inverse=True)[1]
        obs = [(name.encode(), int(code), 1.5) for name, code in zip(SAMPLES, codes, strict=True)]
        stored["obs"] = np.array(obs, dtype=[("index", "S4"), ("type", "i1"), ("n_genes", "f4")])
        stored["var"] = np.array([(gene.encode(),) for gene in GENES], dtype=[("index", "S5")])
        stored["uns/type_categories"] = np.array([label.encode() for label in sorted(set(LABELS))])


def test_an_h5ad_file_of_records(tmp_path):
    old_h5ad(tmp_path / "old.h5ad")
    found = read_table(tmp_path / "old.h5ad", "type")
    np.testing.assert_array_equal(found.X.toarray(), X)
    assert (found.y.tolist(), found.feature_names, found.sample_names) == (LABELS, GENES, SAMPLES)


def test_columns_and_layers_of_an_h5ad_file(tmp_path):
    obs = pd.DataFrame({"type": pd.Categorical(LABELS), "age": [31.5, np.nan, 4, 5, 6, 7, 8, 9]}, index=SAMPLES)
    obs["flag"] = pd.array([True, None, *[False] * 6], dtype="boolean")
    adata = anndata.AnnData(X, obs=obs, var=pd.DataFrame(index=GENES), layers={"raw": 2 * X})
    adata.write_h5ad(tmp_path / "a.h5ad")
    found = read_table(tmp_path / "a.h5ad", "type", layer="raw")
    np.testing.assert_array_equal(found.X, 2 * X)
    ages = read_table(tmp_path / "a.h5ad", "age", task="regression")
    assert ages.y.tolist() == [31.5, 4, 5, 6, 7, 8, 9]
    assert any("no 'age'" in note and "'s1'" in note for note in ages.notes)
    assert read_table(tmp_path / "a.h5ad", "flag").y.tolist() == ["True", *["False"] * 6]
    for options, words in (
        ({"target": "typ"}, "Did you mean 'type'"),
        ({"target": "type", "layer": "rw"}, "'raw'"),
        ({}, "'type'"),
    ):
        with pytest.raises(UnknownColumnError, match=words):
            read_table(tmp_path / "a.h5ad", **options)


def test_arrays_with_samples_in_columns_and_labels_as_texts(tmp_path):
    cells = np.empty((8, 1), dtype=object)
    cells[:, 0] = LABELS
    savemat(tmp_path / "a.mat", {"fea": sp.csc_matrix(X), "gnd": cells})
    found = read_table(tmp_path / "a.mat")
    np.testing.assert_array_equal(found.X.toarray(), X)
    assert (found.y.tolist(), found.target_name) == (LABELS, "gnd")
    np.savez(tmp_path / "a.npz", data=X.T, labels=CODES, feature_names=GENES, class_names=["x", "y", "z"])
    found = read_table(tmp_path / "a.npz")
    np.testing.assert_array_equal(found.X, X)
    assert found.feature_names == GENES
    assert "as many labels as columns" in found.notes[0]


def test_10x_folders_packed_or_not_and_with_a_prefix(laid, tmp_path):
    folder = laid[0]
    (tmp_path / "GSM1_matrix.mtx.gz").write_bytes(gzip.compress((folder / "matrix.mtx").read_bytes()))
    (tmp_path / "GSM1_features.tsv.gz").write_bytes(gzip.compress((folder / "features.tsv").read_bytes()))
    found = read_table(tmp_path / "GSM1_matrix.mtx.gz", "type", labels=plain(folder))
    np.testing.assert_array_equal(found.X.toarray(), X)
    assert found.sample_names is None
    assert read_table(folder, "type", labels=folder / "labels.csv").sample_names == SAMPLES


def plain(folder):
    """Return a file with a label in each line, below a header."""
    (folder / "named.txt").write_text("type\n" + "\n".join(LABELS) + "\n")
    return folder / "named.txt"


def test_parquet_of_whole_numbers_truths_texts_and_an_index(tmp_path):
    frame = FRAME.assign(n=np.arange(8), flag=[True, False] * 4, text=["1,5"] * 8, type=LABELS, site=["a", "b"] * 4)
    frame.rename_axis("sample").to_parquet(tmp_path / "a.parquet")
    found = read_table(tmp_path / "a.parquet", "type")
    assert found.feature_names == [*GENES, "n", "flag", "text"]
    np.testing.assert_array_equal(found.X[:, 5:7], np.column_stack([np.arange(8), [1, 0] * 4]))
    assert found.X[:, 7].tolist() == [1.5] * 8
    assert (found.sample_names, found.others) == (SAMPLES, ["site", "sample"])
    FRAME.astype(np.float32).assign(type=LABELS).to_parquet(tmp_path / "short.parquet")
    assert read_table(tmp_path / "short.parquet", "type").X.dtype == np.float32


def test_a_matrix_that_does_not_fit_stays_in_its_file(laid):
    folder = laid[0]
    random = np.random.default_rng(0).standard_normal((8, 400_000))
    np.save(folder / "large.npy", random)
    found = read_table(folder / "large.npy", labels=folder / "plain.txt", max_memory=64 * 2**20)
    assert not isinstance(found.X, np.ndarray)
    assert (tuple(found.X.shape), found.y.tolist()) == (random.shape, LABELS)
    with pytest.raises(DataError, match=r"needs (about|more than) .* of memory"):
        read_table(folder / "a.csv", "type", max_memory=100)
