"""select_genes in a workflow: counts, batches, Dask and lazy objects, cross-validation, markers in scanpy's layout."""

from __future__ import annotations

import re

import anndata
import dask.array
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from test_anndata import KINDS, MARKERS, N_CELLS, N_GENES, make_cells, make_counts

from l20fs import L20Selector, L20SelectorCV
from l20fs.anndata import get_df, matrix, select_genes

pytestmark = pytest.mark.filterwarnings(r"ignore:\d+ of \d+ types have no marker:UserWarning")


def with_counts(kind, dtype=np.float32):
    adata = make_cells()
    adata.X = KINDS[kind](make_counts()[0].astype(dtype))
    return adata


def with_batches(seed=0, kind="csr", dtype=np.float64):
    """Three types in unequal shares of two batches, and gene 1, which tells the batches apart and nothing else."""
    adata = make_cells(seed, "dense", dtype)
    types = adata.obs["type"].to_numpy()
    rng = np.random.default_rng(seed)
    batch = rng.random(N_CELLS) < np.where(types == "NK", 0.9, np.where(types == "B cell", 0.1, 0.3))
    adata.obs["batch"] = np.where(batch, "late", "early")
    X = adata.X.copy()
    X[:, 1] = rng.random(N_CELLS) + 20.0 * batch
    X[:, 4] += 3.0 * batch  # a batch effect in another gene
    adata.X = KINDS[kind](X.astype(dtype))
    return adata


def within_batches(adata):
    """Return X without the means of the batches, the slow way."""
    X = np.array(adata.X.toarray() if sp.issparse(adata.X) else adata.X, dtype=np.float64)
    for batch in adata.obs["batch"].unique():
        cells = (adata.obs["batch"] == batch).to_numpy()
        X[cells] -= X[cells].mean(axis=0)
    X[:, 11] = 0.0  # a constant gene; what rounding leaves of it would count
    return X


def as_dask(X, chunks):
    """Return X in blocks, which are sparse if X is."""
    if not sp.issparse(X):
        return dask.array.from_array(X, chunks=chunks)
    lines = dask.array.from_array(X.toarray(), chunks=chunks)
    return lines.map_blocks(type(X), dtype=X.dtype, meta=type(X)((0, 0), dtype=X.dtype))


# Counts


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
@pytest.mark.parametrize("kind", [*KINDS, "dask", "backed", "backed, in blocks"])
def test_counts_are_normalised_for_the_selection_only(tmp_path, monkeypatch, kind, dtype):
    adata = with_counts(kind if kind in KINDS else "csr", dtype)
    counts = make_counts()[0].astype(np.float64)
    totals = counts.sum(axis=1, keepdims=True)
    expected = make_cells()
    expected.X = np.log1p(counts * np.median(totals) / totals).astype(np.float32)
    select_genes(expected, "type", n_genes=5)
    if kind == "dask":
        adata.X = as_dask(adata.X, (40, -1))
    elif kind.startswith("backed"):
        adata.write_h5ad(tmp_path / "a.h5ad")
        adata = anndata.read_h5ad(tmp_path / "a.h5ad", backed="r")
        monkeypatch.setattr(matrix, "MANY", 0 if "blocks" in kind else 4)
    before = adata.X
    select_genes(adata, "type", n_genes=5, normalize=True)
    assert adata.var["l20fs"].equals(expected.var["l20fs"])
    np.testing.assert_array_equal(adata.var["l20fs_rank"], expected.var["l20fs_rank"])
    np.testing.assert_allclose(adata.varm["l20fs"], expected.varm["l20fs"], atol=1e-5)  # float32
    assert adata.uns["l20fs"]["params"]["target_sum"] == np.median(totals)
    if kind in KINDS:
        assert adata.X is before
        np.testing.assert_array_equal(adata.X.toarray() if sp.issparse(adata.X) else adata.X, counts)
    if kind.startswith("backed"):
        adata.file.close()


def test_empty_cells_stay_empty_and_the_mask_does_not_change_the_totals():
    adata = with_counts("csr")
    X = adata.X.toarray()
    X[7] = 0.0
    adata.X = sp.csr_matrix(X)
    totals = X.sum(axis=1, keepdims=True)
    median = np.median(totals[totals > 0])
    expected = make_cells()
    expected.X = np.log1p(X * median / np.where(totals > 0, totals, 1.0))
    mask = np.arange(N_GENES) % 5 != 2
    for each, options in ((adata, {"normalize": True}), (expected, {})):
        select_genes(each, "type", n_genes=4, mask_var=mask, **options)
    assert adata.var["l20fs"].equals(expected.var["l20fs"])


# Dask and lazy objects


@pytest.mark.parametrize("kind", ["csr", "csc", "dense"])
@pytest.mark.parametrize("chunks", [(40, -1), (-1, 10)], ids=["cells", "genes"])
@pytest.mark.parametrize("mask", [None, np.arange(N_GENES) % 5 != 2], ids=["all", "masked"])
def test_a_dask_array_is_never_computed_as_a_whole(monkeypatch, kind, chunks, mask):
    adata, expected = make_cells(kind=kind), make_cells(kind=kind)
    adata.layers["lazy"] = as_dask(adata.X, chunks)
    select_genes(expected, "type", n_genes=3, mask_var=mask)
    compute = dask.array.Array.compute

    def checked(self, *args, **kwargs):
        assert self.shape != adata.shape, "computed as a whole"
        return compute(self, *args, **kwargs)

    monkeypatch.setattr(dask.array.Array, "compute", checked)
    monkeypatch.setattr(dask.array.Array, "__array__", None)
    select_genes(adata, "type", n_genes=3, layer="lazy", mask_var=mask)
    np.testing.assert_array_equal(adata.var["l20fs_rank"], expected.var["l20fs_rank"])
    np.testing.assert_allclose(adata.varm["l20fs"], expected.varm["l20fs"], atol=1e-9)
    pd.testing.assert_frame_equal(get_df(adata), get_df(expected), check_exact=False, rtol=1e-7)


def test_raw_counts_in_a_dask_array_give_a_warning():
    adata = with_counts("csr")
    adata.X = as_dask(adata.X, (40, -1))
    with pytest.warns(UserWarning, match=r"adata\.X looks like raw counts"):
        select_genes(adata, "type", n_genes=3)


@pytest.mark.parametrize("kind", ["csr", "dense"])
def test_a_lazy_object_gets_the_result(tmp_path, kind):
    pytest.importorskip("xarray")
    from anndata.experimental import read_lazy

    expected = with_batches(kind=kind)
    expected.var["varies"] = np.arange(N_GENES) > 2
    expected.write_h5ad(tmp_path / "cells.h5ad")
    lazy = read_lazy(tmp_path / "cells.h5ad")
    options = {"n_genes": 3, "batch_key": "batch", "mask_var": "varies"}
    select_genes(lazy, "type", **options)
    select_genes(expected, "type", **options)
    assert lazy.var["l20fs"].tolist() == expected.var["l20fs"].tolist()
    assert get_df(lazy)["gene"].tolist() == get_df(expected)["gene"].tolist()
    assert isinstance(lazy.X, dask.array.Array)


# Batches


@pytest.mark.parametrize("kind", [*KINDS, "dask", "dask of arrays", "backed, in blocks"])
def test_types_are_compared_within_batches(tmp_path, monkeypatch, kind):
    adata = with_batches(kind=kind if kind in KINDS else "dense" if "arrays" in kind else "csr")
    select_genes(adata, "type", n_genes=4, key_added="before")
    assert adata.var["before"].iloc[1], "the gene of the batch wins where batches do not count"
    expected = L20Selector(4).fit(within_batches(adata), adata.obs["type"].astype(str))
    monkeypatch.setattr("l20fs.design.large.BLOCK_BYTES", 3000)  # several blocks
    if kind.startswith("dask"):
        adata.X = as_dask(adata.X, (40, -1))
    elif kind.startswith("backed"):
        adata.write_h5ad(tmp_path / "a.h5ad")
        adata = anndata.read_h5ad(tmp_path / "a.h5ad", backed="r")
        monkeypatch.setattr(matrix, "MANY", 0)
    select_genes(adata, "type", n_genes=4, batch_key="batch")
    np.testing.assert_array_equal(adata.var["l20fs"], expected.support_)
    np.testing.assert_array_equal(adata.var["l20fs_rank"], expected.ranking_)
    np.testing.assert_allclose(adata.varm["l20fs"], expected.coef_.T, atol=1e-8)
    assert adata.var["l20fs"].iloc[MARKERS].all()
    assert not adata.var["l20fs"].iloc[1]
    assert adata.uns["l20fs"]["params"]["batch_key"] == "batch"
    if kind.startswith("backed"):
        adata.file.close()


def test_a_gene_that_is_constant_within_batches_is_never_selected():
    adata = with_batches(kind="dense")
    adata.X[:, 2] = np.where(adata.obs["batch"] == "late", 0.1, 0.3)
    with pytest.warns(UserWarning, match="but only 20 of 24 features vary"):
        select_genes(adata, "type", n_genes=N_GENES, batch_key="batch")
    assert np.flatnonzero(~adata.var["l20fs"]).tolist() == [0, 2, 5, 11]


def test_a_gene_belongs_to_the_type_it_is_highest_in_within_batches():
    adata = with_batches(kind="dense")
    select_genes(adata, "type", n_genes=8, batch_key="batch", include=["gene 4"])
    found = adata.var.query("l20fs")["l20fs_class"]
    means = pd.DataFrame(within_batches(adata), columns=adata.var_names).groupby(adata.obs["type"].astype(str).to_numpy())
    assert found.astype(str).to_dict() == means.mean().idxmax()[found.index].to_dict()
    table = get_df(adata)
    assert (table["separation"] > 0).all()


def test_batches_of_one_type_are_named():
    adata = with_batches()
    adata.obs["batch"] = np.where(adata.obs["type"] == "NK", "c", adata.obs["batch"])
    with pytest.warns(UserWarning, match=r"1 of 3 batches have cells of one type only.*: 'c'\."):
        select_genes(adata, "type", n_genes=3, batch_key="batch")


# Cross-validation


@pytest.mark.parametrize("rule", ["auto", "best"])
@pytest.mark.parametrize("groups", [None, "donor"])
def test_the_number_of_genes_is_that_of_cross_validation(tmp_path, rule, groups):
    adata = make_cells()
    adata.obs["donor"] = np.arange(N_CELLS) % 4
    donors = adata.obs["donor"] if groups else None
    search = L20SelectorCV(rule, max_features=8)
    search.fit(adata.X, adata.obs["type"].astype(str), groups=donors)
    select_genes(adata, "type", n_genes=rule, max_features=8, groups=groups, callback=lambda progress: progress.n_paths)
    np.testing.assert_array_equal(adata.var["l20fs"], search.support_)
    np.testing.assert_array_equal(adata.var["l20fs_rank"], search.ranking_)
    adata.write_h5ad(tmp_path / "a.h5ad")
    found = anndata.read_h5ad(tmp_path / "a.h5ad").uns["l20fs"]
    scores = found["cross_validation"]
    np.testing.assert_array_equal(scores["mean_test_score"], search.cv_results_["mean_test_score"])
    assert scores["n_genes"].tolist() == list(range(1, 9))
    assert (scores["score"], scores["corrected_score"]) == (search.best_score_, search.corrected_score_)
    assert tuple(scores["corrected_interval"]) == search.corrected_interval_
    assert scores["n_splits"] == (16 if groups else 20)
    assert found["params"]["n_genes"] == rule
    assert found["params"].get("groups") == groups
    np.testing.assert_array_equal(adata.varm["l20fs"][search.support_].shape, (search.n_features_, 3))


# Markers


def test_types_without_a_marker_are_named():
    adata = make_cells()
    message = "2 of 3 types have no marker, a gene that is highest in them, among 1 gene: 'B cell', 'CD4+/CD8+'. A larger"
    with pytest.warns(UserWarning, match=re.escape(message)):
        select_genes(adata, "type", n_genes=1, include=["gene 20"])
    assert adata.var["l20fs_class"].dropna().tolist() == ["NK"]


@pytest.mark.parametrize("kind", ["csr", "csc", "dense"])
@pytest.mark.parametrize("is_counts", [False, True])
def test_markers_follow_from_the_means(kind, is_counts):
    adata = with_counts(kind, np.float64) if is_counts else make_cells(kind=kind)
    select_genes(adata, "type", n_genes=6, allow_counts=is_counts)
    X = adata.X.toarray() if sp.issparse(adata.X) else adata.X
    records, back = adata.uns["l20fs"], (lambda mean: mean) if is_counts else np.expm1
    table = get_df(adata)
    assert table["gene"].tolist() == adata.var.query("l20fs").sort_values("l20fs_rank").index.tolist()
    assert table["rank"].tolist() == [1, 2, 3, 4, 5, 6]
    lists = {name: records["names"][name].tolist() for name in records["names"].dtype.names}
    assert list(lists) == list(records["classes"]) == ["B cell", "CD4+/CD8+", "NK"]
    for number, name in enumerate(lists):
        cells = (adata.obs["type"] == name).to_numpy()
        own = table[table["class"] == name].sort_values("separation", ascending=False)
        assert lists[name][: len(own)] == own["gene"].tolist()
        assert len(set(lists[name])) == len(lists[name]) == table["class"].value_counts().max()
        heights = dict(
            zip(adata.var_names, (X[cells].mean(axis=0) - X[~cells].mean(axis=0)) / (X.std(axis=0) + 1e-300), strict=True)
        )
        rest = table[table["class"] != name]["gene"].tolist()
        assert lists[name][len(own) :] == sorted(rest, key=heights.get, reverse=True)[: len(lists[name]) - len(own)]
        for place, gene in enumerate(lists[name]):
            values = X[:, adata.var_names.get_loc(gene)]
            others = max(values[adata.obs["type"] == other].mean() for other in lists if other != name)
            distance = (values[cells].mean() - others) / values.std()
            change = np.log2(back(values[cells].mean()) / back(values[~cells].mean()))
            np.testing.assert_allclose(records["scores"][name][place], distance)
            np.testing.assert_allclose(records["logfoldchanges"][name][place], change, rtol=1e-6)  # the pseudo-count
            assert (distance > 0) == (gene in own["gene"].tolist())
            if distance > 0:
                row = own.set_index("gene").loc[gene]
                assert row["weight"] == adata.varm["l20fs"][adata.var_names.get_loc(gene), number]
                np.testing.assert_allclose([row["separation"], row["logfoldchange"]], [distance, change], rtol=1e-6)
    assert np.isnan(records["pvals"]["NK"]).all()


def test_the_table_survives_a_file(tmp_path):
    adata = make_cells()
    select_genes(adata, "type", n_genes=7, key_added="panel")
    adata.write_h5ad(tmp_path / "a.h5ad")
    again = anndata.read_h5ad(tmp_path / "a.h5ad")
    pd.testing.assert_frame_equal(get_df(again, "panel"), get_df(adata, key="panel"))
    for field in ("names", "scores", "logfoldchanges"):
        assert again.uns["panel"][field].tolist() == adata.uns["panel"][field].tolist()


def test_a_table_that_is_not_there_is_refused():
    adata = make_cells()
    adata.uns["other"] = {}
    select_genes(adata, "type", n_genes=3, key_added="panel")
    with pytest.raises(ValueError, match=r"no result of select_genes under key='l20fs'\. It has 'panel'\."):
        get_df(adata)


# scanpy


def test_scanpy_reads_the_result(tmp_path):
    sc = pytest.importorskip("scanpy")
    adata = make_cells()
    select_genes(adata, "type", n_genes=6)
    adata.write_h5ad(tmp_path / "a.h5ad")
    for each in (adata, anndata.read_h5ad(tmp_path / "a.h5ad")):
        table = sc.get.rank_genes_groups_df(each, None, key="l20fs")
        own = table[table["scores"] > 0].set_index("names")["group"].astype(str)
        assert own.to_dict() == get_df(each).set_index("gene")["class"].to_dict()
        for plot in ("dotplot", "matrixplot", "heatmap", "stacked_violin"):
            getattr(sc.pl, f"rank_genes_groups_{plot}")(each, key="l20fs", n_genes=2, show=False, dendrogram=False)


def test_fold_changes_and_normalisation_are_those_of_scanpy():
    sc = pytest.importorskip("scanpy")
    adata, expected = with_counts("csr"), with_counts("csr")
    select_genes(adata, "type", n_genes=6, normalize=True)
    sc.pp.normalize_total(expected)
    sc.pp.log1p(expected)
    sc.tl.rank_genes_groups(expected, "type", method="t-test")
    select_genes(expected, "type", n_genes=6)
    np.testing.assert_array_equal(adata.var["l20fs_rank"], expected.var["l20fs_rank"])
    np.testing.assert_allclose(adata.varm["l20fs"], expected.varm["l20fs"], atol=1e-6)  # float32
    of_scanpy = sc.get.rank_genes_groups_df(expected, None).set_index(["group", "names"])["logfoldchanges"]
    for _, row in get_df(adata).iterrows():
        np.testing.assert_allclose(row["logfoldchange"], of_scanpy[row["class"], row["gene"]], rtol=1e-4)
