"""select_genes: a selection of genes by L20Selector, written into an AnnData object."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from l20fs import L20Selector, L20SelectorCV
from l20fs.anndata import contents, fields, matrix
from l20fs.anndata.markers import GroupMeans, Markers
from l20fs.design.large import open_large
from l20fs.inputs.constraints import by_index
from l20fs.inputs.devices import is_stored
from l20fs.inputs.names import NamedColumns
from l20fs.inputs.old_names import name_new_parameters
from l20fs.inputs.validation import refuse_non_finite
from l20fs.solvers import make_solver
from l20fs.text import listed
from l20fs.typing import Array

if TYPE_CHECKING:
    from anndata import AnnData


@name_new_parameters
def select_genes(
    adata: AnnData,
    groupby: str,
    n_genes: int | float | str | None = 50,
    *,
    batch_key: str | None = None,
    donor_key: str | None = None,
    layer: str | None = None,
    mask_var: str | Iterable[bool] | None = None,
    log1p: bool = False,
    key_added: str = "l20fs",
    copy: bool = False,
    selector: L20Selector | L20SelectorCV | None = None,
) -> AnnData | None:
    """Select a few genes that distinguish groups of cells, and write them into the AnnData object.

    A sparse matrix stays sparse and float32 stays float32. ``adata.raw`` is never read, ``adata.X`` and the layers are never
    changed. Everything is computed before anything is written: after an error ``adata`` is unchanged.

    Parameters
    ----------
    adata : AnnData
        Log-normalised expression, cells in rows. A Dask array is never computed as a whole. From a file opened with
        ``backed=`` only the requested matrix is loaded, and of that only the genes of ``mask_var``; where it takes more than
        four times scikit-learn's ``working_memory``, it is read in blocks.
    groupby : str
        Column of ``adata.obs`` with the label of each cell: categories, text or booleans. Labels are compared as text.
    n_genes : int, float, {"auto", "best"} or None, default=50
        Number of genes, or a share of them; a word: by cross-validation, see :class:`~l20fs.L20SelectorCV`.
    batch_key : str, optional
        Column of ``adata.obs`` with the batch of each cell, whose mean is subtracted from every gene: types are compared
        within batches only. Cross-validation, ``loss="l21"`` and groups of genes need a dense copy for that.
    donor_key : str, optional
        Column of ``adata.obs``, such as the donor, of which all cells are on one side of each split of a cross-validation.
    layer : str, optional
        Layer to read instead of ``adata.X``.
    mask_var : str or array of bool, optional
        Genes that may be selected: a column of ``adata.var``, for example ``"highly_variable"``, or a mask.
    log1p : bool, default=False
        Whether to scale the counts of each cell to the median total of all cells and take log1p, for this selection only.
        Raw counts without it (whole numbers from 0, some above 1) give a warning.
    key_added : str, default="l20fs"
        Key of the results. Results of an earlier call under this key are replaced; anything else is not overwritten.
    copy : bool, default=False
        Whether to write to a copy of ``adata`` and return it.
    selector : L20Selector, L20SelectorCV or None, default=None
        All other settings; its number of features is ``n_genes``. Genes in ``constraints`` are given by name, or by index
        among all genes of ``adata``; one outside ``mask_var`` cannot be included.

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
        ``.var[key_added + "_class"]`` : category
            Label in which the mean of a selected gene is highest, with ``batch_key`` without the batches; NaN for others.
        ``.varm[key_added]`` : array of shape (n_vars, n_classes)
            Weights of the selected genes in units of the matrix; 0 elsewhere.
        ``.uns[key_added]`` : dict
            ``classes`` (the columns of ``.varm``), ``intercept``, ``params``, ``version``, and ``cross_validation`` with the
            scores where it chose the number. ``names``, ``scores`` and ``logfoldchanges`` are those that scanpy reads
            (``sc.get.rank_genes_groups_df(adata, None, key="l20fs")``); there are no p-values, ``pvals`` are NaN.
            Parameters that an h5ad file cannot hold (None, objects) are left out.

    Notes
    -----
    :func:`get_df` has the selected genes as a table. A view becomes an actual AnnData object when the results are written,
    as in scanpy. With a file opened with ``backed="r"`` the results are in memory only.

    Examples
    --------
    >>> import anndata, pandas as pd
    >>> from l20fs.data import make_planted
    >>> X, y, informative = make_planted(n_samples=200, n_features=50, n_informative=3, n_classes=2, random_state=0)
    >>> cells = [f"cell {i}" for i in range(200)]
    >>> adata = anndata.AnnData(X, obs=pd.DataFrame({"type": [f"type {label}" for label in y]}, index=cells))
    >>> select_genes(adata, "type", n_genes=3)
    >>> bool((adata.var["l20fs"].to_numpy().nonzero()[0] == informative).all())
    True
    >>> adata.var.query("l20fs").sort_values("l20fs_rank")["l20fs_rank"].tolist()
    [1.0, 2.0, 3.0]
    """
    contents.refuse_other_objects(adata, copy)
    contents.refuse_taken_key(adata, key_added)
    place, stored = contents.stored_matrix(adata, layer)
    labels = contents.labels_of(adata, groupby)
    batches, donors = contents.groups_of(adata, "batch_key", batch_key), contents.groups_of(adata, "donor_key", donor_key)
    candidates = contents.candidates_of(adata, mask_var)
    genes = adata.var_names.to_numpy(dtype=object)
    asked, search = _asked(n_genes, selector, donor_key, genes)
    template = _restricted(asked, genes, candidates)

    X, target_sum, is_log = _expression(place, stored, candidates, log1p)
    if sp.issparse(X) or isinstance(X, np.ndarray):  # in blocks, the first pass of the selector finds them
        refuse_non_finite(X, genes[candidates], type(template).__name__)
    centring = None if batches is None else _Batches(X, labels, batches)
    fitted = NamedColumns(X if centring is None else centring.apply(X), genes[candidates])
    if search is not None:
        if donors is not None and search.cv is None and len(np.unique(donors)) < 2:
            raise ValueError(f"donor_key has one entry only, {donors[0]!r}. Cross-validation by donors needs two or more.")
        search.set_params(selector=template).fit(fitted, labels, groups=donors)
        own = search.model_.get_params(deep=False)
        template.set_params(**{name: own[name] for name in ("n_features_to_select", "max_features_to_select", "ridge")})
    template.fit(fitted, labels)
    markers = _markers(X, template, labels, centring, is_log=is_log)
    markers.warn_of_missing()

    read: dict[str, Any] = {"groupby": groupby, "layer": layer, "mask_var": mask_var if isinstance(mask_var, str) else None}
    read |= {"batch_key": batch_key, "donor_key": donor_key, "log1p": log1p, "target_sum": target_sum, "n_genes": n_genes}
    description = fields.describe(template, _params(asked, genes) | read, markers, search)
    written = adata.copy() if copy else adata
    fields.write(written, key_added, template, candidates, markers, description)
    return written if copy else None


def _asked(n_genes: Any, selector: Any, donor_key: str | None, genes: Array) -> tuple[L20Selector, L20SelectorCV | None]:
    """Return the unfitted selector, with genes by index among all, and the search for the number where there is one."""
    if not isinstance(selector, L20Selector | L20SelectorCV | None):
        raise TypeError(f"selector={selector!r} is no L20Selector or L20SelectorCV. Use one of these, or None.")
    search = clone(selector) if isinstance(selector, L20SelectorCV) else None
    own = selector.selector if isinstance(selector, L20SelectorCV) else selector
    asked = L20Selector() if own is None else by_index(clone(own), genes)
    if isinstance(asked.class_weight, dict):
        asked.class_weight = {str(label): weight for label, weight in asked.class_weight.items()}
    if isinstance(n_genes, str):
        search = L20SelectorCV() if search is None else search
    if search is not None:
        search.set_params(n_features_to_select=n_genes)
        return asked, search
    if donor_key is not None:
        raise TypeError(f"donor_key is for cross-validation, and n_genes={n_genes!r} has none. Use n_genes='auto'.")
    return asked.set_params(n_features_to_select=n_genes), None


def _expression(place: str, stored: Any, candidates: Array, log1p: bool) -> tuple[Any, float | None, bool]:
    """Return the matrix of the candidate genes, the total that counts were scaled to, and whether it holds logarithms."""
    largest = matrix.largest_count(stored)
    stored = open_large(stored) if is_stored(stored) and matrix.is_large(stored) else stored
    if log1p:  # the total of a cell is one of all genes
        stored = matrix.load(stored, np.ones_like(candidates))
    target_sum, change = matrix.normaliser(stored, place) if log1p else (None, None)
    X = matrix.load(stored, candidates)
    if log1p and largest is None:
        _warn(f"{place} does not hold raw counts, since it has fractions; log1p=True takes its logarithm all the same.")
    elif largest is not None and largest > 1.0 and not log1p:
        _warn(
            f"{place} looks like raw counts (whole numbers from 0 to {largest:g}), which depend on the depth of each cell. "
            "Use log1p=True, or name a normalised layer."
        )
    if change is not None:
        X = matrix.changed(X, change, change.dtype, is_sparse=matrix.is_sparse_matrix(X))
    return X, target_sum, log1p or largest is None


def _warn(text: str) -> None:
    warnings.warn(text, UserWarning, stacklevel=5)


class _Batches:
    """Batches of the cells, the types in them, and the mean of each gene in each of them."""

    def __init__(self, X: Any, labels: Array, batches: Array) -> None:
        names, of_cells = np.unique(batches.astype(str), return_inverse=True)
        classes, codes = np.unique(labels.astype(str), return_inverse=True)
        #: Number of cells of each class in each batch.
        self.counts = np.zeros((len(classes), len(names)))
        np.add.at(self.counts, (codes, of_cells), 1.0)
        uniform = names[(self.counts > 0.0).sum(axis=0) == 1]
        if len(uniform) == len(names):
            raise ValueError(
                f"Each of the {len(names)} batches has cells of one type only: types cannot be compared within batches. "
                "Leave batch_key out."
            )
        if len(uniform):
            _warn(
                f"{len(uniform)} of {len(names)} batches have cells of one type only, which cannot be compared within the "
                f"batch: {listed(uniform)}."
            )
        self.centre = matrix.batch_centre(X, of_cells, self.counts.sum(axis=0))

    def apply(self, X: Any) -> Any:
        """Return X without the means of the batches."""
        return matrix.centred(X, self.centre)

    def effects(self, genes: Array) -> Array:
        """Return the mean of the batch means over the cells of each class."""
        shares = self.counts / self.counts.sum(axis=1, keepdims=True)
        return np.asarray(shares @ self.centre.means[:, genes])


def _markers(X: Any, selector: L20Selector, labels: Array, batches: _Batches | None, *, is_log: bool) -> Markers:
    """Assign the selected genes, best first, to the classes in which they are highest."""
    chosen = np.flatnonzero(selector.support_)
    classes, codes, sizes = np.unique(labels.astype(str), return_inverse=True, return_counts=True)
    sums = matrix.group_sums(X, codes, len(classes), chosen)
    found = GroupMeans.of(sums[:-1], sums[-1], sizes, None if batches is None else batches.effects(chosen))
    order = np.argsort(selector.ranking_[chosen], kind="stable")
    found = GroupMeans(*(part[..., order] for part in found))
    names = selector.feature_names_in_[chosen[order]]
    return Markers.of(found, names, classes.astype(object), is_log=is_log)


def _restricted(asked: L20Selector, genes: Array, candidates: Array) -> L20Selector:
    """Return the selector for the candidate genes, from one whose constraints refer to all genes by index."""
    selector = clone(asked)
    if asked.constraints is None or candidates.all():
        return selector
    outside = [genes[gene] for gene in asked.constraints.included() if not candidates[gene]]
    if outside:
        raise ValueError(
            f"{len(outside)} of the included genes are outside mask_var: {listed(outside)}. Add them to the mask, or do not "
            "include them."
        )
    return selector.set_params(constraints=asked.constraints.placed(np.flatnonzero(candidates)))


def _has_groups(selector: L20Selector) -> bool:
    return selector.constraints is not None and selector.constraints.groups is not None


def _params(asked: L20Selector, genes: Array) -> dict[str, Any]:
    """Return the parameters of a selector, its constraints as a sentence and names of genes."""
    params = {name: value for name, value in asked.get_params().items() if not name.startswith("constraints__")}
    del params["n_features_to_select"]
    params["solver"] = make_solver(asked.solver).name
    if asked.constraints is not None:
        own = asked.constraints
        params["constraints"] = own.sentence() or None
        params |= {name: genes[getattr(own, name)] for name in ("include", "exclude") if getattr(own, name) is not None}
    return params
