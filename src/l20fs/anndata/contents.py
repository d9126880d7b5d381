"""Contents of an AnnData object that a selection reads: the stored matrix, labels of cells, genes that may be selected."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from l20fs.design.large import LargeFileError, check_stored
from l20fs.inputs.devices import is_dask, is_stored
from l20fs.inputs.validation import refuse_foreign_array
from l20fs.text import did_you_mean, listed
from l20fs.typing import Array

if TYPE_CHECKING:
    from anndata import AnnData

#: Mark in ``.uns`` of results of an earlier call, which may be overwritten.
WRITTEN_BY = "l20fs.anndata.select_genes"

#: Endings of the columns of ``.var`` that are written beside the one of the key itself.
VAR_ENDINGS = ("_rank", "_score", "_class")


def refuse_other_objects(adata: Any, copy: bool) -> None:
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


def is_own_result(entry: Any) -> bool:
    """Return whether an entry of ``.uns`` was written by select_genes."""
    return isinstance(entry, Mapping) and entry.get("written_by") == WRITTEN_BY


def refuse_taken_key(adata: AnnData, key: str) -> None:
    """Raise an error for a key that is taken by something else, or that an h5ad file cannot hold."""
    if not isinstance(key, str) or not key or "/" in key:
        raise ValueError(f"key_added={key!r} is not valid. Use a name without '/', which an h5ad file can hold.")
    if is_own_result(adata.uns.get(key)):
        return
    places = [("var", key), *(("var", f"{key}{ending}") for ending in VAR_ENDINGS), ("varm", key), ("uns", key)]
    taken = [f"adata.{room}[{name!r}]" for room, name in places if name in list(getattr(adata, room))]
    if taken:
        raise ValueError(f"{taken[0]} exists and was not written by select_genes. Use another key_added, or delete it.")


def stored_matrix(adata: AnnData, layer: str | None) -> tuple[str, Any]:
    """Return the name of the matrix for messages, and the matrix as it is stored."""
    layers = listed([name for name in adata.layers if name is not None], "none")  # from anndata 0.13 on, None names adata.X
    if layer is not None and layer not in adata.layers:
        raise ValueError(
            f"layer={layer!r} is not in adata.layers, which has {layers}. Use one of them, or None for adata.X."
        )
    place, stored = ("adata.X", adata.X) if layer is None else (f"adata.layers[{layer!r}]", adata.layers[layer])
    if stored is None:
        raise ValueError(f"adata.X is None. Name a layer instead; adata.layers has {layers}.")
    if not (is_dask(stored) or is_stored(stored)):
        refuse_foreign_array(stored, place)
    try:
        check_stored(getattr(stored, "group", stored))
    except LargeFileError as error:
        raise ValueError(f"{place}: {error}") from error
    if stored.dtype.kind not in "biuf":
        raise ValueError(f"{place} holds {stored.dtype} values. Give a matrix of numbers, for example of float32.")
    return place, stored


def labels_of(adata: AnnData, groupby: str) -> Array:
    """Return the label of each cell as text, or raise an error if the column does not hold labels."""
    place, labels = _checked_column(adata, "groupby", groupby, "labels")
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


def groups_of(adata: AnnData, parameter: str, name: str | None) -> Array | None:
    """Return the batch or donor of each cell as text, None without a column; whole numbers name them as well."""
    if name is None:
        return None
    place, values = _checked_column(adata, parameter, name, "entries")
    if values.dtype.kind in "fcmM":
        raise ValueError(
            f"{place} holds {values.dtype} values, not names. Use a column of text, categories or whole numbers."
        )
    return np.asarray(values.astype(str), dtype=object)


def _checked_column(adata: AnnData, parameter: str, name: str, noun: str) -> tuple[str, Any]:
    """Return the name of a column of ``.obs`` for messages, and the column, which has no missing values."""
    place, values = _column(adata, "obs", parameter, name)
    n_missing = int(values.isna().sum())
    if n_missing:
        raise ValueError(
            f"{place} has {n_missing} missing {noun} (NaN) in {adata.n_obs} cells. Label these cells, or leave them out: "
            f"adata = adata[{place}.notna()].copy()."
        )
    return place, values


def candidates_of(adata: AnnData, mask_var: Any) -> Array:
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
    return place, in_memory(frame[[name]])[name]


def in_memory(frame: Any) -> Any:
    """Return a frame of a lazy AnnData object as a DataFrame; a DataFrame is returned as it is."""
    return frame.to_memory() if hasattr(frame, "to_memory") else frame
