"""Gene selection for AnnData objects."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from l20fs import L20Selector, __version__
from l20fs.blocks import is_stored
from l20fs.inputs.constraints import by_index
from l20fs.inputs.names import NamedColumns
from l20fs.inputs.validation import refuse_foreign_array, refuse_non_finite
from l20fs.solvers import make_solver
from l20fs.text import did_you_mean, listed
from l20fs.typing import Array

if TYPE_CHECKING:
    from anndata import AnnData


#: Mark in ``.uns`` of results of an earlier call, which may be overwritten.
WRITTEN_BY = "l20fs.anndata.select_genes"

#: Number of values per step of the check for raw counts; the first step recognises log-normalised data.
VALUES_AT_ONCE = 1 << 18

#: Number of values (cells times genes) to read at once from a file of which only some genes are needed.
READ_AT_ONCE = 1 << 23


def select_genes(
    adata: AnnData,
    groupby: str,
    *,
    n_genes: int | float | None = 50,
    layer: str | None = None,
    mask_var: str | Iterable[bool] | None = None,
    allow_counts: bool = False,
    key_added: str = "l20fs",
    copy: bool = False,
    **params: Any,
) -> AnnData | None:
    """Select a few genes that distinguish groups of cells, and write them into the AnnData object.

    A sparse matrix stays sparse and float32 stays float32. ``adata.raw`` is never read. Everything is computed before
    anything is written: after an error ``adata`` is unchanged.

    Parameters
    ----------
    adata : AnnData
        Log-normalised expression, cells in rows. From a file opened with ``backed=`` only the requested matrix is loaded,
        and of that only the genes of ``mask_var``. With ``max_memory="4G"``, for example, and without ``mask_var``, it is
        not loaded but read in blocks.
    groupby : str
        Column of ``adata.obs`` with the label of each cell: categories, text or booleans. Labels are compared as text.
    n_genes : int, float or None, default=50
        Number of genes to select: ``n_features_to_select`` of :class:`~l20fs.L20Selector`.
    layer : str, optional
        Layer to read instead of ``adata.X``.
    mask_var : str or array of bool, optional
        Genes that may be selected: a column of ``adata.var``, for example ``"highly_variable"``, or a mask.
    allow_counts : bool, default=False
        Whether to accept raw counts. Otherwise a matrix of integers from 0 is an error, unless it holds zeros and ones only
        (open or closed chromatin).
    key_added : str, default="l20fs"
        Key of the results. Results of an earlier call under this key are replaced; anything else is not overwritten.
    copy : bool, default=False
        Whether to write to a copy of ``adata`` and return it.
    **params
        Other parameters of :class:`~l20fs.L20Selector`. A dict of ``class_weight`` has a weight per label. ``include``,
        ``exclude``, ``penalty_factor`` and ``feature_groups`` take names of genes; indices, masks and arrays refer to all
        genes of ``adata``, also with ``mask_var``. A gene outside ``mask_var`` cannot be included, and need not be excluded.

    Returns
    -------
    AnnData or None
        The copy with ``copy=True``, else None. These fields are written:

        ``.var[key_added]`` : bool
            Whether the gene is selected.
        ``.var[key_added + "_rank"]`` : float
            Rank of the gene, 1 is best; NaN outside ``mask_var``.
        ``.var[key_added + "_score"]`` : float
            Score of the gene, larger is better; ``-inf`` for a constant gene, NaN outside ``mask_var``.
        ``.varm[key_added]`` : array of shape (n_vars, n_classes)
            Weights of the selected genes in units of the matrix; 0 elsewhere. An array and not a DataFrame, since names of
            cell types such as ``"B/T doublet"`` are not valid column names in an h5ad file.
        ``.uns[key_added]`` : dict
            ``classes`` (the columns of ``.varm``), ``intercept``, ``params`` and ``version``, and ``gap`` with
            ``certify=True``. Of ``ridge`` and ``scale`` it holds what was used. Parameters that an h5ad file cannot hold
            (None, functions) are left out; a ``class_weight`` by label is an array in the order of ``classes``.

    Notes
    -----
    A view becomes an actual AnnData object when the results are written, as in scanpy. With a file opened with
    ``backed="r"`` the results are in memory only: ``adata.write_h5ad(other_file)`` saves them.

    Examples
    --------
    >>> import anndata, pandas as pd
    >>> from l20fs.data import make_planted
    >>> X, y, informative = make_planted(n_samples=200, n_features=50, n_informative=3, random_state=0)
    >>> cells = [f"cell {i}" for i in range(200)]
    >>> adata = anndata.AnnData(X, obs=pd.DataFrame({"type": [f"type {label}" for label in y]}, index=cells))
    >>> select_genes(adata, "type", n_genes=3)
    >>> bool((adata.var["l20fs"].to_numpy().nonzero()[0] == informative).all())
    True
    >>> adata.var.query("l20fs").sort_values("l20fs_rank")["l20fs_rank"].tolist()
    [1.0, 2.0, 3.0]
    """
    _refuse_other_objects(adata, copy)
    _refuse_taken_key(adata, key_added)
    place, stored = _stored_matrix(adata, layer)
    labels = _labels(adata, groupby)
    candidates = _candidates(adata, mask_var)
    genes = adata.var_names.to_numpy(dtype=object)
    names = genes[candidates]
    asked = by_index(_make_selector(n_genes, params), genes)
    selector = _restricted(asked, genes, candidates)

    if not allow_counts:
        _refuse_counts(stored, place)
    if is_stored(stored) and candidates.all() and selector.max_memory is not None:
        X = stored  # the selector reads it in blocks and checks that it is finite
    else:
        X = _in_memory(stored, candidates)
        refuse_non_finite(X, names, type(selector).__name__)
    selector.fit(NamedColumns(X, names), labels)

    read = {"groupby": groupby, "layer": layer, "mask_var": mask_var if isinstance(mask_var, str) else None}
    description = _description(selector, read | _params(asked, genes))
    written = adata.copy() if copy else adata
    _write(written, key_added, selector, candidates, description)
    return written if copy else None


def _refuse_other_objects(adata: Any, copy: bool) -> None:
    """Raise an error for anything but an AnnData object, and for one that cannot be written to."""
    try:
        from anndata import AnnData
    except ModuleNotFoundError:
        raise ModuleNotFoundError("select_genes() needs anndata: pip install 'l20fs[h5ad]'.") from None
    if not isinstance(adata, AnnData):
        raise TypeError(f"adata is a {type(adata).__name__}, not an AnnData object. For arrays and frames use L20Selector.")
    if adata.isbacked and (copy or adata.is_view):
        what = "copy=True" if copy else "a view"
        raise ValueError(f"adata is backed by a file, of which {what} cannot be written to. Use adata.to_memory() first.")
    if not adata.var_names.is_unique:
        repeated = adata.var_names[adata.var_names.duplicated()].unique()
        raise ValueError(
            f"adata.var_names has {len(repeated)} names more than once: {listed(repeated)}. "
            "Use adata.var_names_make_unique()."
        )


def _refuse_taken_key(adata: AnnData, key: str) -> None:
    """Raise an error for a key that is taken by something else, or that an h5ad file cannot hold."""
    if not isinstance(key, str) or not key or "/" in key:
        raise ValueError(f"key_added={key!r} is not valid. Use a name without '/', which an h5ad file can hold.")
    before = adata.uns.get(key)
    if isinstance(before, Mapping) and before.get("written_by") == WRITTEN_BY:
        return
    places = [("var", key), ("var", f"{key}_rank"), ("var", f"{key}_score"), ("varm", key), ("uns", key)]
    taken = [f"adata.{room}[{name!r}]" for room, name in places if name in getattr(adata, room)]
    if taken:
        raise ValueError(f"{taken[0]} exists and was not written by select_genes. Use another key_added, or delete it.")


def _stored_matrix(adata: AnnData, layer: str | None) -> tuple[str, Any]:
    """Return the name of the matrix for messages, and the matrix as it is stored."""
    if layer is not None and layer not in adata.layers:
        raise ValueError(
            f"layer={layer!r} is not in adata.layers, which has {listed(adata.layers, 'none')}. Use one of them, or None "
            "for adata.X."
        )
    place, stored = ("adata.X", adata.X) if layer is None else (f"adata.layers[{layer!r}]", adata.layers[layer])
    if stored is None:
        raise ValueError(f"adata.X is None. Name a layer instead; adata.layers has {listed(adata.layers, 'none')}.")
    refuse_foreign_array(stored, place)
    if stored.dtype.kind not in "biuf":
        raise ValueError(f"{place} holds {stored.dtype} values. Give a matrix of numbers, for example of float32.")
    return place, stored


def _in_memory(stored: Any, candidates: Array) -> Any:
    """Load the columns of the candidate genes; from a file, a few cells at a time."""
    if sp.issparse(stored) or isinstance(stored, np.ndarray):
        X = stored if sp.issparse(stored) else np.asarray(stored)
        return X if candidates.all() else X[:, candidates]
    if candidates.all():
        return stored.to_memory() if hasattr(stored, "to_memory") else np.asarray(stored)
    if getattr(stored, "format", None) == "csc":
        return stored[:, candidates]
    n_cells = max(1, READ_AT_ONCE // len(candidates))
    parts = [stored[start : start + n_cells][:, candidates] for start in range(0, stored.shape[0], n_cells)]
    return sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.concatenate(parts)


def _labels(adata: AnnData, groupby: str) -> Array:
    """Return the label of each cell as text, or raise an error if the column does not hold labels."""
    place, labels = _column(adata, "obs", "groupby", groupby)
    n_missing = int(labels.isna().sum())
    if n_missing:
        raise ValueError(
            f"{place} has {n_missing} missing labels (NaN) in {adata.n_obs} cells. Label these cells, or leave them out: "
            f"adata = adata[{place}.notna()].copy()."
        )
    if labels.dtype.kind in "iufcmM":
        raise ValueError(
            f"{place} holds {labels.dtype} values, not labels. If they name groups, use {place} = "
            f"{place}.astype('category'); if they are measurements, bin them with pandas.cut."
        )
    n_classes = labels.nunique()
    if n_classes > max(2, adata.n_obs // 2):
        raise ValueError(
            f"{place} has {n_classes} different labels in {adata.n_obs} cells. Use groups with two or more cells on average."
        )
    return np.asarray(labels.astype(str), dtype=object)


def _candidates(adata: AnnData, mask_var: Any) -> Array:
    """Return a mask of the genes that may be selected."""
    if mask_var is None:
        return np.ones(adata.n_vars, dtype=bool)
    place, values = _column(adata, "var", "mask_var", mask_var) if isinstance(mask_var, str) else ("mask_var", mask_var)
    mask = np.asarray(values)
    if mask.shape != (adata.n_vars,):
        raise ValueError(f"{place} has shape {mask.shape} for {adata.n_vars} genes. Give True or False for each gene.")
    if mask.dtype != bool and not all(isinstance(value, bool | np.bool_) for value in mask):
        raise ValueError(
            f"{place} holds {mask.dtype} values that are not all True or False. Fill in missing values, and use "
            ".astype(bool)."
        )
    if not mask.any():
        raise ValueError(f"{place} is False for all {adata.n_vars} genes. Give at least one gene that may be selected.")
    return mask.astype(bool)


def _column(adata: AnnData, room: str, parameter: str, name: str) -> tuple[str, Any]:
    """Return the name of a column of ``.obs`` or ``.var`` for messages, and the column."""
    frame = getattr(adata, room)
    place = f"adata.{room}[{name!r}]"
    names = frame.columns.tolist()
    if name not in names:
        hint = did_you_mean(name, names, empty="none")
        raise ValueError(f"{parameter}={name!r} is not a column of adata.{room}. {hint}")
    if names.count(name) > 1:
        raise ValueError(f"{place} is ambiguous: {names.count(name)} columns have this name. Rename or drop all but one.")
    return place, frame[name]


def _refuse_counts(stored: Any, place: str) -> None:
    """Raise an error if the matrix holds raw counts: integers from 0, some of them above 1."""
    largest = 0.0
    for values in _pieces(stored):
        if not (np.all(values >= 0) and np.all(values == np.floor(values))):
            return
        largest = max(largest, float(values.max(initial=0)))
    if largest > 1.0:
        raise ValueError(
            f"{place} holds raw counts (whole numbers from 0 to {largest:g}), which depend on the depth of each cell. "
            "Use sc.pp.normalize_total(adata) and sc.pp.log1p(adata), name a normalised layer, or pass allow_counts=True."
        )


def _pieces(stored: Any) -> Iterator[Array]:
    """Yield the stored values in small pieces."""
    values = stored
    if sp.issparse(stored):
        values = stored.data
    elif hasattr(stored, "group"):  # sparse, in a file
        values = stored.group["data"]
    step = max(1, VALUES_AT_ONCE // max(1, values[:1].size))
    return (np.asarray(values[start : start + step]) for start in range(0, len(values), step))


def _make_selector(n_genes: Any, params: dict[str, Any]) -> L20Selector:
    if "n_features_to_select" in params:
        raise TypeError("n_features_to_select is called n_genes here. Use n_genes.")
    selector = L20Selector(n_genes).set_params(**params)
    if isinstance(selector.class_weight, dict):
        selector.class_weight = {str(label): weight for label, weight in selector.class_weight.items()}
    return selector


def _restricted(asked: L20Selector, genes: Array, candidates: Array) -> L20Selector:
    """Return the selector for the candidate genes, from one whose parameters refer to all genes by index."""
    selector = L20Selector(**asked.get_params(deep=False))  # no clone: a callback must stay the same object
    if candidates.all():
        return selector
    place = {int(gene): position for position, gene in enumerate(np.flatnonzero(candidates))}
    if asked.include is not None:
        selector.include = _places(genes, place, asked.include)
    if asked.exclude is not None:
        selector.exclude = [place[gene] for gene in asked.exclude if gene in place]
    if asked.feature_groups is not None:
        selector.feature_groups = asked.feature_groups[candidates]
    if asked.penalty_factor is not None:
        _places(genes, place, np.flatnonzero(asked.penalty_factor == 0.0).tolist())
        selector.penalty_factor = asked.penalty_factor[candidates]
    return selector


def _places(genes: Array, place: dict[int, int], included: list[int]) -> list[int]:
    """Return the positions of the included genes among the candidates."""
    outside = [genes[gene] for gene in included if gene not in place]
    if outside:
        raise ValueError(
            f"{len(outside)} of the included genes are outside mask_var: {listed(outside)}. Add them to the mask, or leave "
            "them out."
        )
    return [place[gene] for gene in included]


def _write(adata: AnnData, key: str, selector: L20Selector, candidates: Array, description: dict[str, Any]) -> None:
    """Write the results into ``adata``."""
    columns = {
        key: _for_all_genes(selector.support_, candidates, False),
        f"{key}_rank": _for_all_genes(selector.ranking_.astype(np.float64), candidates, np.nan),
        f"{key}_score": _for_all_genes(selector.scores_, candidates, np.nan),
    }
    weights = _for_all_genes(selector.coef_.T, candidates, 0.0)
    adata.var = adata.var.assign(**columns)  # first: this turns a view into an actual object without a warning
    adata.varm[key] = weights
    adata.uns[key] = description


def _for_all_genes(values: Array, candidates: Array, other: Any) -> Array:
    """Return an array over all genes with the values of the candidates, and ``other`` elsewhere."""
    spread = np.full((len(candidates), *values.shape[1:]), other, dtype=values.dtype)
    spread[candidates] = values
    return spread


def _params(asked: L20Selector, genes: Array) -> dict[str, Any]:
    """Return the parameters of a selector, with ``include`` and ``exclude`` as names of genes."""
    params = asked.get_params()
    params = {"n_genes": params.pop("n_features_to_select"), **params, "solver": make_solver(asked.solver).name}
    params |= {name: genes[params[name]] for name in ("include", "exclude") if params[name] is not None}
    return params


def _description(selector: L20Selector, params: dict[str, Any]) -> dict[str, Any]:
    """Return the content of ``.uns``, restricted to what an h5ad file can hold: no None before anndata 0.12."""
    params = {**params, "ridge": selector.ridge_, "scale": selector.scale_}
    if isinstance(selector.class_weight, dict):
        params["class_weight"] = np.array([selector.class_weight.get(label, 1.0) for label in selector.classes_])
    can_be_written = str | numbers.Real | np.bool_ | np.ndarray
    description: dict[str, Any] = {
        "written_by": WRITTEN_BY,
        "version": __version__,
        "params": {name: value for name, value in params.items() if isinstance(value, can_be_written)},
        "classes": np.array(selector.target_names(), dtype=object),
        "intercept": selector.intercept_,
    }
    if selector.certify:
        description["gap"] = selector.certificate_.gap
    return description
