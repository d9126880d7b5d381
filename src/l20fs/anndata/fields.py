"""Fields of an AnnData object that hold a selection, and the table of them."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any

import numpy as np

from l20fs import L20Selector, L20SelectorCV, __version__
from l20fs.anndata.contents import WRITTEN_BY, in_memory, is_own_result
from l20fs.anndata.markers import Markers
from l20fs.text import listed
from l20fs.typing import Array

if TYPE_CHECKING:
    import pandas as pd
    from anndata import AnnData


def get_df(adata: AnnData, key: str = "l20fs") -> pd.DataFrame:
    """Return a table of the genes that ``select_genes`` selected, best first.

    Parameters
    ----------
    adata : AnnData
        Object with results of :func:`select_genes`.
    key : str, default="l20fs"
        Its ``key_added``.

    Returns
    -------
    DataFrame
        One row per selected gene: ``gene``, ``rank`` (1 is best), ``class`` (in which its mean is highest), ``score`` (of
        the selection, larger is better), ``separation`` (from the class with the next highest mean, in deviations of the
        gene), ``logfoldchange`` (binary, of the class against all other cells) and ``weight`` (of the gene for its class).

    Examples
    --------
    >>> import anndata, numpy as np, pandas as pd
    >>> from l20fs.anndata import get_df, select_genes
    >>> types = np.repeat(["B", "T"], 5)
    >>> X = np.random.default_rng(0).exponential(size=(10, 3)) + 3.0 * np.array([types == "B", types == "T", types == "?"]).T
    >>> adata = anndata.AnnData(X, obs=pd.DataFrame({"type": types}, index=[f"cell {i}" for i in range(10)]))
    >>> adata.var_names = ["CD79A", "CD3D", "GAPDH"]
    >>> select_genes(adata, "type", n_genes=2)
    >>> get_df(adata)[["gene", "rank", "class"]].sort_values("gene")["class"].tolist()
    ['T', 'B']
    """
    result = adata.uns.get(key)
    if not is_own_result(result):
        own = [name for name, entry in adata.uns.items() if is_own_result(entry)]
        raise ValueError(f"adata.uns has no result of select_genes under key={key!r}. It has {listed(own, 'none')}.")
    var = in_memory(adata.var)
    chosen = var[var[key].to_numpy(dtype=bool)].sort_values(f"{key}_rank", kind="stable")
    classes, places = list(result["classes"]), var.index.get_indexer(chosen.index)
    owners = chosen[f"{key}_class"].astype(str).tolist()

    def of_owner(field: str) -> list[float]:
        values = {name: dict(zip(result["names"][name], result[field][name], strict=True)) for name in set(owners)}
        return [float(values[owner][gene]) for gene, owner in zip(chosen.index, owners, strict=True)]

    return type(var)(
        {
            "gene": chosen.index.to_numpy(),
            "rank": chosen[f"{key}_rank"].to_numpy().astype(np.int64),
            "class": owners,
            "score": chosen[f"{key}_score"].to_numpy(),
            "separation": of_owner("scores"),
            "logfoldchange": of_owner("logfoldchanges"),
            "weight": np.asarray(adata.varm[key])[places, [classes.index(owner) for owner in owners]],
        }
    )


def write(
    adata: AnnData, key: str, selector: L20Selector, candidates: Array, markers: Markers, description: dict[str, Any]
) -> None:
    """Write the results into ``adata``."""
    import pandas as pd

    owners = np.full(len(candidates), -1)
    owners[adata.var_names.get_indexer(markers.names)] = markers.owners
    columns = {
        key: _for_all_genes(selector.support_, candidates, False),
        f"{key}_rank": _for_all_genes(selector.ranking_.astype(np.float64), candidates, np.nan),
        f"{key}_score": _for_all_genes(selector.scores_, candidates, np.nan),
        f"{key}_class": pd.Categorical.from_codes(owners, [str(name) for name in markers.classes]),
    }
    weights = _for_all_genes(selector.coef_.T, candidates, 0.0)
    adata.var = in_memory(adata.var).assign(**columns)  # first: it turns a view into an actual object without a warning
    adata.varm[key] = weights
    adata.uns[key] = description


def _for_all_genes(values: Array, candidates: Array, other: Any) -> Array:
    """Return an array over all genes with the values of the candidates, and ``other`` elsewhere."""
    spread = np.full((len(candidates), *values.shape[1:]), other, dtype=values.dtype)
    spread[candidates] = values
    return spread


def describe(
    selector: L20Selector, params: dict[str, Any], markers: Markers, search: L20SelectorCV | None = None
) -> dict[str, Any]:
    """Return the content of ``.uns``, restricted to what an h5ad file can hold: no None before anndata 0.12."""
    params = {**params, "ridge": selector.ridge_, "scale": selector.scale_}
    # What scanpy looks for beside the groups.
    params |= {"reference": "rest", "method": "l20fs", "use_raw": False}
    if isinstance(selector.class_weight, dict):
        params["class_weight"] = np.array([selector.class_weight.get(label, 1.0) for label in selector.classes_])
    can_be_written = str | numbers.Real | np.bool_ | np.ndarray
    description: dict[str, Any] = {
        "written_by": WRITTEN_BY,
        "version": __version__,
        "params": {name: value for name, value in params.items() if isinstance(value, can_be_written)},
        "classes": markers.classes,
        "intercept": selector.intercept_,
        **markers.table(),
    }
    if search is not None:
        description["cross_validation"] = _scores(search)
    return description


def _scores(search: L20SelectorCV) -> dict[str, Any]:
    """Return the scores of all numbers of genes, and those of the choice."""
    results = search.cv_results_
    return {
        "n_genes": results["n_features_to_select"],
        "mean_test_score": results["mean_test_score"],
        "standard_error": results["standard_error"],
        "n_splits": search.n_splits_,
        "score": search.best_score_,
        "corrected_score": search.corrected_score_,
        "corrected_interval": np.array(search.corrected_interval_),
    }
