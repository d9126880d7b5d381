"""select_genes: the result of L20Selector in the fields of an AnnData object, and nothing half-written."""

from __future__ import annotations

import hashlib
import re
import sys
import tomllib
from pathlib import Path

import anndata
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import SOLVERS

from l20fs import AHIHT, Constraints, L20Selector, L20SelectorCV, __version__
from l20fs.anndata import select_genes

ROOT = Path(__file__).parents[1]
N_CELLS, N_GENES, MARKERS = 90, 24, [3, 8, 20]
KINDS = {
    "csr": sp.csr_matrix,
    "csc": sp.csc_matrix,
    "csr array": sp.csr_array,
    "csc array": sp.csc_array,
    "dense": np.asarray,
}
FIELDS = ["l20fs", "l20fs_rank", "l20fs_score", "l20fs_class"]
pytestmark = pytest.mark.filterwarnings(r"ignore:\d+ of \d+ types have no marker:UserWarning")


def make_counts(seed=0, n_cells=N_CELLS, n_genes=N_GENES, rate=0.4):
    """Counts of three types, each with a marker gene of its own; three genes are never seen or always."""
    rng = np.random.default_rng(seed)
    types = rng.permutation(np.arange(n_cells) % 3)
    rates = np.full((n_cells, n_genes), rate)
    rates[:, MARKERS] += 10.0 * rate * np.eye(3)[types]
    counts = rng.poisson(rates)
    counts[:, [0, 5]], counts[:, 11] = 0, 1
    return counts, np.array(["B cell", "CD4+/CD8+", "NK"])[types]


def make_cells(seed=0, kind="csr", dtype=np.float64, **sizes):
    counts, types = make_counts(seed, **sizes)
    return anndata.AnnData(
        KINDS[kind](np.log1p(2.5 * counts).astype(dtype)),
        obs=pd.DataFrame(
            {"type": pd.Categorical(types), "depth": 1.0 * counts.sum(axis=1)}, index=names("cell", counts.shape[0])
        ),
        var=pd.DataFrame({"length": np.arange(counts.shape[1])}, index=names("gene", counts.shape[1])),
    )


def names(what, number):
    return [f"{what} {i}" for i in range(number)]


def contents(adata):
    """Everything that select_genes could change, as text, in which NaN equals NaN."""
    X = adata.X[:] if adata.isbacked else adata.X
    return {
        "X": None if X is None else listed(X),
        "obs": adata.obs.to_csv(),
        "var": adata.var.to_csv(),
        **{f"varm {key}": listed(value) for key, value in adata.varm.items()},
        **{f"layer {key}": listed(value) for key, value in adata.layers.items()},
        **{f"uns {key}": str(value) for key, value in adata.uns.items()},
        "is_view": adata.is_view,
    }


def listed(values):
    return str((values.toarray() if sp.issparse(values) else np.asarray(values)).tolist())


def assert_same_result(adata, expected, key="l20fs"):
    fields = [key, f"{key}_rank", f"{key}_score", f"{key}_class"]
    pd.testing.assert_frame_equal(adata.var[fields], expected.var[fields])
    np.testing.assert_array_equal(adata.varm[key], expected.varm[key])
    assert list(adata.uns[key]["classes"]) == list(expected.uns[key]["classes"])
    np.testing.assert_array_equal(adata.uns[key]["intercept"], expected.uns[key]["intercept"])


# What is written


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=4)
@given(seed=st.integers(0, 2**32 - 1), n_genes=st.integers(1, 20))
def test_the_result_is_that_of_l20selector(kind, dtype, seed, n_genes):
    adata = make_cells(seed, kind, dtype)
    selector = L20Selector(n_genes).fit(adata.X, adata.obs["type"].astype(str))
    before = contents(adata)
    assert select_genes(adata, "type", n_genes=n_genes) is None
    assert adata.var["l20fs"].dtype == bool
    np.testing.assert_array_equal(adata.var["l20fs"], selector.support_)
    np.testing.assert_array_equal(adata.var["l20fs_rank"], selector.ranking_)
    np.testing.assert_array_equal(adata.var["l20fs_score"], selector.scores_)
    np.testing.assert_array_equal(adata.varm["l20fs"], selector.coef_.T)
    np.testing.assert_array_equal(adata.uns["l20fs"]["intercept"], selector.intercept_)
    assert list(adata.uns["l20fs"]["classes"]) == ["B cell", "CD4+/CD8+", "NK"]
    adata.var = adata.var.drop(columns=FIELDS)
    del adata.varm["l20fs"], adata.uns["l20fs"]
    assert contents(adata) == before


@settings(max_examples=5)
@given(seed=st.integers(0, 2**32 - 1))
def test_every_container_gives_the_same_genes(seed):
    selected = []
    for kind in KINDS:
        adata = make_cells(seed, kind)
        select_genes(adata, "type", n_genes=3)
        selected.append(adata.var["l20fs"].tolist())
    assert np.flatnonzero(selected[0]).tolist() == MARKERS
    assert all(mask == selected[0] for mask in selected)


@pytest.mark.parametrize("solver", SOLVERS)
def test_parameters_reach_the_selector(solver):
    adata = make_cells()
    params = {"solver": solver, "ridge": 0.5, "scale": "none", "class_weight": {"NK": 5.0}}
    selector = L20Selector(4, **params).fit(adata.X, adata.obs["type"].astype(str))
    select_genes(adata, "type", 4, selector=L20Selector(**params))
    np.testing.assert_array_equal(adata.varm["l20fs"], selector.coef_.T)
    np.testing.assert_array_equal(adata.var["l20fs_rank"], selector.ranking_)
    described = adata.uns["l20fs"]["params"]
    assert {name: described[name] for name in params if name != "class_weight"} == {
        name: value for name, value in params.items() if name != "class_weight"
    }
    assert described["class_weight"].tolist() == [1.0, 1.0, 5.0]
    assert (described["groupby"], described["n_genes"]) == ("type", 4)
    assert adata.uns["l20fs"]["version"] == __version__


def test_n_genes_may_be_a_share_or_the_answer_of_a_lambda():
    adata = make_cells()
    select_genes(adata, "type", n_genes=0.25)
    assert adata.var["l20fs"].sum() == 6
    select_genes(adata, "type", n_genes=None, selector=L20Selector(solver=AHIHT(alpha_min=1.0)))
    selector = L20Selector(None, solver=AHIHT(alpha_min=1.0)).fit(adata.X, adata.obs["type"].astype(str))
    np.testing.assert_array_equal(adata.var["l20fs"], selector.support_)
    assert 0 < adata.var["l20fs"].sum() < N_GENES
    assert "n_genes" not in adata.uns["l20fs"]["params"]


def test_genes_that_do_not_vary_are_ranked_last_and_never_selected():
    adata = make_cells()
    with pytest.warns(UserWarning, match="only 21 of 24 features vary"):
        select_genes(adata, "type", n_genes=23)
    assert np.flatnonzero(np.isneginf(adata.var["l20fs_score"])).tolist() == [0, 5, 11]
    assert not adata.var["l20fs"].iloc[[0, 5, 11]].any()
    assert sorted(adata.var["l20fs_rank"].iloc[[0, 5, 11]]) == [22, 23, 24]


def test_a_copy_has_the_result_and_the_original_has_not():
    adata, expected = make_cells(), make_cells()
    before = contents(adata)
    other = select_genes(adata, "type", n_genes=3, copy=True)
    assert contents(adata) == before
    select_genes(expected, "type", n_genes=3)
    assert contents(other) == contents(expected)


# Which matrix, which genes, which cells


@pytest.mark.parametrize("kind", KINDS)
def test_a_layer_is_read_instead_of_x(kind):
    adata, expected = make_cells(kind="dense"), make_cells(seed=1, kind=kind)
    adata.layers["lognorm"] = expected.X
    adata.obs["type"] = expected.obs["type"]
    select_genes(adata, "type", n_genes=5, layer="lognorm")
    select_genes(expected, "type", n_genes=5)
    assert_same_result(adata, expected)
    assert adata.uns["l20fs"]["params"]["layer"] == "lognorm"
    assert "layer" not in expected.uns["l20fs"]["params"]


@pytest.mark.parametrize("kind", ["csr", "csc", "dense"])
@pytest.mark.parametrize("how", ["name", "array", "list", "series", "nullable"])
def test_mask_var_restricts_the_candidates(kind, how):
    adata = make_cells(kind=kind)
    mask = np.arange(N_GENES) % 4 != 0  # without the markers 8 and 20
    adata.var["highly_variable"] = mask
    given_as = {"name": "highly_variable", "array": mask, "list": mask.tolist(), "series": adata.var["highly_variable"]}
    given_as["nullable"] = adata.var["highly_variable"].astype("boolean")
    select_genes(adata, "type", n_genes=5, mask_var=given_as[how])
    selector = L20Selector(5).fit(adata.X[:, mask], adata.obs["type"].astype(str))
    np.testing.assert_array_equal(adata.var["l20fs"][mask], selector.support_)
    np.testing.assert_array_equal(adata.var["l20fs_rank"][mask], selector.ranking_)
    np.testing.assert_array_equal(adata.var["l20fs_score"][mask], selector.scores_)
    np.testing.assert_array_equal(adata.varm["l20fs"][mask], selector.coef_.T)
    assert adata.var[["l20fs_rank", "l20fs_score"]][~mask].isna().all(axis=None)
    assert not adata.var["l20fs"][~mask].any()
    assert not adata.varm["l20fs"][~mask].any()
    assert adata.uns["l20fs"]["params"].get("mask_var") == ("highly_variable" if how == "name" else None)


def test_a_view_gets_the_result_and_its_parent_does_not():
    adata = make_cells()
    adata.layers["other"] = adata.X.copy()
    before = contents(adata)
    view = adata[5:80, 2:]
    expected = view.copy()
    select_genes(view, "type", n_genes=3)
    select_genes(expected, "type", n_genes=3)
    assert_same_result(view, expected)
    assert not view.is_view
    assert contents(adata) == before
    by_layer = adata[5:80, 2:]
    select_genes(by_layer, "type", n_genes=3, layer="other")
    assert_same_result(by_layer, expected)


@pytest.mark.parametrize("kind", ["csr", "csc", "dense"])
def test_a_backed_file_is_read_and_not_written(tmp_path, kind):
    expected = make_cells(kind=kind)
    file = tmp_path / "cells.h5ad"
    expected.write_h5ad(file)
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    backed = anndata.read_h5ad(file, backed="r")
    select_genes(expected, "type", n_genes=3)
    select_genes(backed, "type", n_genes=3)
    assert_same_result(backed, expected)
    assert backed.isbacked
    backed.write_h5ad(tmp_path / "other.h5ad")
    backed.file.close()
    assert hashlib.sha256(file.read_bytes()).hexdigest() == digest
    assert_same_result(anndata.read_h5ad(tmp_path / "other.h5ad"), expected)


@pytest.mark.parametrize("kind", ["csr", "csc", "dense"])
def test_raw_counts_in_a_file_give_a_warning_also_outside_the_mask(tmp_path, kind):
    counts, types = make_counts()
    cells = anndata.AnnData(
        KINDS[kind](counts.astype(np.float32)), obs=pd.DataFrame({"type": types}, index=names("cell", N_CELLS))
    )
    cells.write_h5ad(tmp_path / "cells.h5ad")
    backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    with pytest.warns(UserWarning, match=r"adata\.X looks like raw counts"):
        select_genes(backed, "type", n_genes=2, mask_var=(counts.max(axis=0) <= 2))
    backed.file.close()


@pytest.mark.parametrize("how", ["copy", "view"])
def test_what_a_file_backs_and_cannot_be_written_to_is_refused_at_once(tmp_path, how):
    make_cells().write_h5ad(tmp_path / "cells.h5ad")
    backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    with pytest.raises(ValueError, match=re.escape("adata.to_memory()")):
        select_genes(backed[:50] if how == "view" else backed, "type", copy=how == "copy")
    select_genes(backed[:50].to_memory(), "type", n_genes=3)
    backed.file.close()


# Labels


@pytest.mark.parametrize(
    "relabel",
    [
        lambda types: types.astype(str),
        lambda types: types.astype("string"),
        lambda types: types.cat.add_categories(["unused", "before"]).cat.reorder_categories(
            ["unused", "NK", "before", "CD4+/CD8+", "B cell"]
        ),
    ],
)
def test_text_and_categories_are_labels_and_unused_ones_do_not_count(relabel):
    adata, expected = make_cells(), make_cells()
    adata.obs["type"] = relabel(adata.obs["type"])
    select_genes(adata, "type", n_genes=3)
    select_genes(expected, "type", n_genes=3)
    assert_same_result(adata, expected)


@pytest.mark.parametrize("values", [[False, True], [3, 10], [0.25, 1.75]])
def test_other_labels_count_as_text(values):
    adata = make_cells()
    codes = (adata.obs["type"] == "NK").to_numpy().astype(int)
    adata.obs["is_nk"] = np.array(values)[codes] if values[0] is False else pd.Categorical(np.array(values)[codes])
    select_genes(adata, "is_nk", n_genes=1, selector=L20Selector(class_weight={values[1]: 2.0}))
    selector = L20Selector(1, class_weight={str(values[1]): 2.0}).fit(adata.X, np.array(values)[codes].astype(str))
    np.testing.assert_array_equal(adata.varm["l20fs"], selector.coef_.T)
    assert list(adata.uns["l20fs"]["classes"]) == sorted(map(str, values))
    assert adata.var["l20fs"].to_numpy().nonzero()[0].tolist() == MARKERS[2:]


# Files


def test_the_result_survives_a_file(tmp_path):
    adata = make_cells()
    params = {
        "class_weight": {"CD4+/CD8+": 2.0},
        "ridge": np.float32(2.0),
        "max_features_to_select": np.int64(7),
        "solver": AHIHT(random_state=np.random.RandomState(0), rate=0.8),
    }
    select_genes(adata, "type", n_genes=np.int64(3), mask_var=np.arange(N_GENES) > 2, selector=L20Selector(**params))
    adata.write_h5ad(tmp_path / "cells.h5ad")
    again = anndata.read_h5ad(tmp_path / "cells.h5ad")
    assert_same_result(again, adata)
    described = again.uns["l20fs"]["params"]
    assert {"solver__random_state", "layer", "mask_var"}.isdisjoint(described)
    assert (described["solver"], described["solver__rate"]) == ("ahiht", 0.8)
    assert described["class_weight"].tolist() == [1.0, 2.0, 1.0]
    assert (described["ridge"], described["max_features_to_select"], described["n_genes"]) == (2.0, 7, 3)
    assert described.keys() == adata.uns["l20fs"]["params"].keys()
    select_genes(again, "type", n_genes=2)  # it is known as our own
    assert again.var["l20fs"].sum() == 2


# Keys


def test_another_call_replaces_the_result_and_another_key_keeps_it():
    adata, expected = make_cells(), make_cells()
    select_genes(adata, "type", n_genes=9, mask_var=np.arange(N_GENES) > 2)
    select_genes(adata, "type", n_genes=3)
    select_genes(adata, "type", n_genes=5, key_added="five")
    select_genes(expected, "type", n_genes=3)
    assert_same_result(adata, expected)
    assert adata.var["five"].sum() == 5
    assert set(adata.var) == {"length", *FIELDS, "five", "five_rank", "five_score", "five_class"}


@pytest.mark.parametrize(
    "place", ["l20fs", "l20fs_rank", "l20fs_score", "l20fs_class", "varm", "uns", "uns text", "uns of others"]
)
def test_what_others_wrote_is_not_overwritten(place):
    adata = make_cells()
    if place.startswith("uns"):
        adata.uns["l20fs"] = {"uns": {}, "uns text": "mine", "uns of others": {"written_by": "another"}}[place]
    elif place == "varm":
        adata.varm["l20fs"] = np.zeros((N_GENES, 2))
    else:
        adata.var[place] = 1
    before = contents(adata)
    with pytest.raises(ValueError, match=r"^adata\.\w+\['l20fs\w*'\] exists .* Use another key_added"):
        select_genes(adata, "type")
    assert contents(adata) == before
    select_genes(adata, "type", n_genes=3, key_added="other")


# Counts


@pytest.mark.parametrize(("kind", "dtype"), [("csr", np.float32), ("csc array", np.int32), ("dense", np.uint16)])
def test_raw_counts_give_a_warning(kind, dtype):
    adata = make_cells()
    counts = make_counts()[0].astype(dtype)
    adata.layers["counts"] = KINDS[kind](counts)
    select_genes(adata, "type", n_genes=3)
    with pytest.warns(UserWarning, match="looks like raw counts"):
        expected = select_genes(adata, "type", n_genes=3, layer="counts", copy=True)
    np.testing.assert_array_equal(
        expected.var["l20fs_rank"], L20Selector(3).fit(adata.layers["counts"], adata.obs["type"].astype(str)).ranking_
    )
    message = rf"adata\.layers\['counts'\] looks like raw counts \(whole numbers from 0 to {counts.max():g}\).*log1p=True"
    with pytest.warns(UserWarning, match=message):
        select_genes(adata, "type", layer="counts", n_genes=3)
    assert_same_result(adata, expected)


# Refusals: each names what is wrong and the way out, and nothing has changed


def with_obs(values):
    return lambda adata: adata.obs.__setitem__("group", values)


def with_value(value):
    def change(adata):
        adata.X[4, MARKERS[0]] = value
        adata.X[6, MARKERS[1]] = value

    return change


def with_names(adata):
    adata.var_names = ["same", "same", "other", "other", *adata.var_names[4:]]


def with_duplicate_columns(adata):
    adata.obs = pd.concat([adata.obs, adata.obs], axis=1)


def nothing(adata):
    pass


REFUSALS = {
    "unknown column": (nothing, {"groupby": "typ"}, "groupby='typ' is not a column of adata.obs. Did you mean 'type'?"),
    "twice": (
        with_duplicate_columns,
        {},
        "adata.obs['type'] is ambiguous: 2 columns have this name. Rename or drop all but one.",
    ),
    "missing labels": (
        with_obs(pd.Categorical([None, None] + ["a", "b"] * 44)),
        {"groupby": "group"},
        "adata.obs['group'] has 2 missing labels (NaN) in 90 cells. Label these cells, or leave them out: "
        "adata = adata[adata.obs['group'].notna()].copy().",
    ),
    "continuous": (
        nothing,
        {"groupby": "depth"},
        "adata.obs['depth'] holds float64 values, not labels. If they name groups, use adata.obs['depth'] = "
        "adata.obs['depth'].astype('category'); if they are measurements, bin them with pandas.cut.",
    ),
    "barcodes": (
        with_obs(names("cell", 90)),
        {"groupby": "group"},
        "adata.obs['group'] has 90 different labels in 90 cells. Use groups with two or more cells on average.",
    ),
    "unknown layer": (
        lambda adata: adata.layers.update({"counts": adata.X, "scaled": adata.X}),
        {"layer": "lognorm"},
        "layer='lognorm' is not in adata.layers, which has 'counts', 'scaled'. Use one of them, or None for adata.X.",
    ),
    "unknown mask": (
        nothing,
        {"mask_var": "lenght"},
        "mask_var='lenght' is not a column of adata.var. Did you mean 'length'?",
    ),
    "mask of numbers": (
        nothing,
        {"mask_var": "length"},
        "adata.var['length'] holds int64 values that are not all True or False.",
    ),
    "empty mask": (
        nothing,
        {"mask_var": np.zeros(24, dtype=bool)},
        "mask_var is False for all 24 genes. Give at least one gene that may be selected.",
    ),
    "duplicate genes": (
        with_names,
        {},
        "adata.var_names has 2 names more than once: 'same', 'other'. Use adata.var_names_make_unique().",
    ),
    "missing values": (with_value(np.nan), {}, "X has 2 missing values (NaN), first in 'gene 3' and 'gene 8'. Impute them"),
    "slash": (
        nothing,
        {"key_added": "a/b"},
        "key_added='a/b' is not valid. Use a name without '/', which an h5ad file can hold.",
    ),
    "parameter": (nothing, {"layers": 3}, "select_genes() has no parameter 'layers'. The closest name is 'layer'."),
    "of scanpy": (nothing, {"use_raw": False}, "select_genes() has no parameter 'use_raw'. Use layer=..., or adata.raw"),
    "no selector": (nothing, {"selector": "swap"}, "selector='swap' is no L20Selector or L20SelectorCV."),
    "rule": (
        nothing,
        {"n_genes": "1sd"},
        "n_features_to_select='1sd' is not valid. Use a whole number from 1",
    ),
    "idle groups": (
        nothing,
        {"donor_key": "type"},
        "donor_key is for cross-validation, and n_genes=50 has none. Use n_genes='auto'.",
    ),
    "batches of one type": (
        nothing,
        {"batch_key": "type"},
        "Each of the 3 batches has cells of one type only: types cannot",
    ),
    "scaled, to be normalised": (
        lambda adata: setattr(adata, "X", adata.X.toarray() - 1.0),
        {"log1p": True},
        "adata.X has negative values, and log1p=True is for counts. Name a layer with counts, or leave it out.",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_a_refusal_says_why_and_leaves_everything_as_it_was(case):
    change, arguments, message = REFUSALS[case]
    adata = make_cells(kind="csr")
    adata.varm["pca"] = np.ones((N_GENES, 2))
    change(adata)
    before = contents(adata)
    with pytest.raises((ValueError, TypeError), match=re.escape(message)):
        select_genes(adata, **{"groupby": "type", **arguments})
    assert contents(adata) == before


def test_other_objects_are_refused():
    with pytest.raises(
        TypeError, match=r"adata is a ndarray, not an AnnData object\. For arrays and frames use L20Selector"
    ):
        select_genes(np.zeros((3, 3)), "type")


def test_without_anndata_the_extra_is_named(monkeypatch):
    adata = make_cells()
    monkeypatch.setitem(sys.modules, "anndata", None)
    with pytest.raises(ModuleNotFoundError, match=re.escape("pip install 'l20fs[h5ad]'")):
        select_genes(adata, "type")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert "anndata>=0.12" in extras["h5ad"]


@pytest.mark.parametrize("view", [False, True])
def test_an_interrupted_call_leaves_everything_as_it_was(view):
    adata = make_cells()
    select_genes(adata, "type", n_genes=2)
    adata = adata[:80] if view else adata
    before = contents(adata)

    def interrupt(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        select_genes(adata, "type", n_genes="best", selector=L20SelectorCV(scoring=interrupt))
    assert contents(adata) == before


# Memory


# The page


def test_genes_can_be_included_excluded_and_priced_by_name(tmp_path):
    adata = make_cells()
    select_genes(adata, "type", n_genes=5)
    best, second = adata.var_names[np.argsort(adata.var["l20fs_rank"])][:2]
    varying = adata.var[np.isfinite(adata.var["l20fs_score"])]
    last = varying["l20fs_rank"].idxmax()
    select_genes(
        adata,
        "type",
        n_genes=5,
        selector=L20Selector(constraints=Constraints(include=[last], exclude=[best], costs={second: 1e6})),
    )
    assert adata.var.loc[last, "l20fs"]
    assert not adata.var.loc[best, "l20fs"]
    assert not adata.var.loc[second, "l20fs"]
    adata.write_h5ad(tmp_path / "a.h5ad")
    params = anndata.read_h5ad(tmp_path / "a.h5ad").uns["l20fs"]["params"]
    assert params["include"].tolist() == [last]
    assert params["exclude"].tolist() == [best]
    with pytest.raises(ValueError, match="include names 'nonsense', which X does not have"):
        select_genes(adata, "type", selector=L20Selector(constraints=Constraints(include=["nonsense"])))
    with pytest.warns(UserWarning, match="1 of the included features are constant, first 'gene 11'"):
        select_genes(adata, "type", n_genes=5, selector=L20Selector(constraints=Constraints(include=["gene 11"])))


@pytest.mark.parametrize(
    ("wishes", "message"),
    [
        (
            Constraints(include=[1, 4, "gene 0"]),
            "2 of the included genes are outside mask_var: 'gene 0', 'gene 4'. Add them",
        ),
        (Constraints(costs={"gene 4": 0}), "1 of the included genes are outside mask_var: 'gene 4'"),
        (
            Constraints(costs=1.0 * (np.arange(N_GENES) > 0)),
            "1 of the included genes are outside mask_var: 'gene 0'",
        ),
        (
            Constraints(costs=np.ones(18)),
            "costs has 18 entries for 24 features. Give one per feature",
        ),
        (Constraints(groups=["a"] * 18), "groups has 18 entries for 24 features"),
        (Constraints(exclude=[True] * 18), "exclude has 18 entries for 24 features"),
        (Constraints(include=[24]), "include has the index 24, which is outside 0 to 23"),
        (Constraints(costs=3.0), "costs=3.0 is not a list"),
    ],
    ids=str,
)
def test_what_does_not_fit_the_genes_or_the_mask_is_refused(wishes, message):
    adata = make_cells()
    before = contents(adata)
    with pytest.raises(ValueError, match=re.escape(message)):
        select_genes(adata, "type", n_genes=4, mask_var=np.arange(N_GENES) % 4 > 0, selector=L20Selector(constraints=wishes))
    assert contents(adata) == before


def test_two_markers_for_every_type_by_names_and_with_a_mask():
    adata = make_cells(n_genes=60)
    log = adata.X.toarray()
    types = adata.obs["type"].to_numpy().astype(str)
    owner = np.argmax([log[types == label].mean(axis=0) for label in np.unique(types)], axis=0)
    adata.var["candidate"] = np.arange(60) % 7 > 0
    constraints = Constraints(min_per_class=2, exclusive=[["gene 3", "gene 8"]])
    select_genes(adata, "type", n_genes=8, mask_var="candidate", selector=L20Selector(constraints=constraints))
    chosen = adata.var["l20fs"].to_numpy()
    assert np.bincount(owner[chosen], minlength=3).min() >= 2
    assert not chosen[[3, 8]].all()
    assert adata.var["candidate"][chosen].all()
    assert adata.uns["l20fs"]["params"]["constraints"].startswith("at least 2 features of each class, at most one of")
