"""select_genes: a selection of genes by L20Selector, written into an AnnData object."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from l20fs import L20Selector, L20SelectorCV
from l20fs.anndata import contents, fields, matrix
from l20fs.anndata.markers import GroupMeans, Markers
from l20fs.design.large import open_large
from l20fs.inputs.constraints import by_index
from l20fs.inputs.devices import is_stored
from l20fs.inputs.names import NamedColumns
from l20fs.inputs.validation import refuse_non_finite
from l20fs.solvers import make_solver
from l20fs.text import closest_hint, listed
from l20fs.typing import Array

if TYPE_CHECKING:
    from anndata import AnnData

#: Values of ``n_genes`` that cross-validation decides.
RULES = L20SelectorCV.size_rules

#: Parameters of the cross-validation, and those that it has in common with the selector.
OF_SEARCH = ("cv", "scoring", "sizes", "n_jobs")
OF_BOTH = ("alpha", "ridge", "max_features", "callback")


def select_genes(
    adata: AnnData,
    groupby: str,
    *,
    n_genes: int | float | str | None = 50,
    batch_key: str | None = None,
    groups: str | None = None,
    layer: str | None = None,
    mask_var: str | Iterable[bool] | None = None,
    normalize: bool = False,
    allow_counts: bool = False,
    key_added: str = "l20fs",
    copy: bool = False,
    **params: Any,
) -> AnnData | None:
    """Select a few genes that distinguish groups of cells, and write them into the AnnData object.

    A sparse matrix stays sparse and float32 stays float32. ``adata.raw`` is never read, ``adata.X`` and the layers are never
    changed. Everything is computed before anything is written: after an error ``adata`` is unchanged.

    Parameters
    ----------
    adata : AnnData
        Log-normalised expression, cells in rows. A Dask array, as in an object of ``anndata.experimental.read_lazy``, is
        never computed as a whole. From a file opened with ``backed=`` only the requested matrix is loaded, and of that only
        the genes of ``mask_var``; where it takes more than four times scikit-learn's ``working_memory``, it is read in
        blocks (:func:`~l20fs.open_large`).
    groupby : str
        Column of ``adata.obs`` with the label of each cell: categories, text or booleans. Labels are compared as text.
    n_genes : int, float, {"auto", "best"} or None, default=50
        Number of genes to select, or a share of them. ``"best"``: the number with the lowest error in cross-validation;
        ``"auto"``: the smallest number whose error is near it, see :class:`~l20fs.L20SelectorCV`. Others are those of
        ``n_features_to_select`` of :class:`~l20fs.L20Selector`.
    batch_key : str, optional
        Column of ``adata.obs`` with the batch of each cell. The mean of each batch is subtracted from every gene, which is
        the same as an intercept for each batch: types are compared within batches only, and genes that distinguish types
        through the batch are of no use. A sparse matrix is centred a few cells at a time; cross-validation, ``certify``,
        ``loss="l21"`` and ``feature_groups`` need a dense copy.
    groups : str, optional
        Column of ``adata.obs``, such as the donor, of which all cells are on one side of each split of the cross-validation
        for ``n_genes="auto"`` or ``"best"``.
    layer : str, optional
        Layer to read instead of ``adata.X``.
    mask_var : str or array of bool, optional
        Genes that may be selected: a column of ``adata.var``, for example ``"highly_variable"``, or a mask.
    normalize : bool, default=False
        Whether to scale the counts of each cell to the median total of all cells and take log1p, for this selection only, as
        ``sc.pp.normalize_total`` and ``sc.pp.log1p`` do. Raw counts without it (whole numbers from 0, some above 1) give a
        warning.
    allow_counts : bool, default=False
        Whether raw counts are meant as they are, without a warning.
    key_added : str, default="l20fs"
        Key of the results. Results of an earlier call under this key are replaced; anything else is not overwritten.
    copy : bool, default=False
        Whether to write to a copy of ``adata`` and return it.
    **params
        Other parameters of :class:`~l20fs.L20Selector`, and ``cv``, ``scoring``, ``sizes`` and ``n_jobs`` of
        :class:`~l20fs.L20SelectorCV` for a number by cross-validation. A dict of ``class_weight`` has a weight per label.
        ``include``, ``exclude``, ``penalty_factor``, ``feature_groups`` and ``constraints`` take names of genes; indices,
        masks and arrays
        refer to all genes of ``adata``, also with ``mask_var``. A gene outside ``mask_var`` cannot be included, and need not
        be excluded.

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
            Weights of the selected genes in units of the matrix; 0 elsewhere. An array and not a DataFrame, since names of
            cell types such as ``"B/T doublet"`` are not valid column names in an h5ad file.
        ``.uns[key_added]`` : dict
            ``classes`` (the columns of ``.varm``), ``intercept``, ``params`` and ``version``, ``gap`` with ``certify=True``,
            and ``cross_validation`` with the scores where it chose the number, among them ``corrected_score``, which is
            without the optimism of the choice. ``names``, ``scores`` and ``logfoldchanges`` are those that scanpy reads
            (``sc.get.rank_genes_groups_df(adata, None, key="l20fs")`` and ``sc.pl.rank_genes_groups_dotplot``); there are no
            p-values, ``pvals`` are NaN. Of ``ridge`` and ``scale`` it holds what was used. Parameters that an h5ad file
            cannot hold (None, functions) are left out; a ``class_weight`` by label is an array in the order of ``classes``.

    Notes
    -----
    :func:`get_df` has the selected genes as a table. A view becomes an actual AnnData object when the results are written,
    as in scanpy. With a file opened with ``backed="r"`` the results are in memory only: ``adata.write_h5ad(other_file)``
    saves them.

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
    _refuse_odd_arguments(n_genes, groups, params)
    place, stored = contents.stored_matrix(adata, layer)
    labels = contents.labels_of(adata, groupby)
    batches, donors = contents.groups_of(adata, "batch_key", batch_key), contents.groups_of(adata, "groups", groups)
    candidates = contents.candidates_of(adata, mask_var)
    genes = adata.var_names.to_numpy(dtype=object)
    asked = by_index(_make_selector(n_genes, params), genes)
    selector = _restricted(asked, genes, candidates)

    X, target_sum, is_log = _expression(place, stored, candidates, normalize, allow_counts)
    if sp.issparse(X) or isinstance(X, np.ndarray):  # in blocks, the first pass of the selector finds them
        refuse_non_finite(X, genes[candidates], type(selector).__name__)
    centring = None if batches is None else _Batches(X, labels, batches)
    fitted = NamedColumns(X if centring is None else centring.apply(X), genes[candidates])
    search = _search(n_genes, selector, params, fitted, labels, donors) if n_genes in RULES else None
    selector.fit(fitted, labels)
    markers = _markers(X, selector, labels, centring, is_log=is_log)
    markers.warn_of_missing()

    read: dict[str, Any] = {"groupby": groupby, "layer": layer, "mask_var": mask_var if isinstance(mask_var, str) else None}
    read |= {"batch_key": batch_key, "groups": groups, "normalize": normalize, "target_sum": target_sum}
    description = fields.describe(selector, read | _params(asked, genes) | {"n_genes": n_genes}, markers, search)
    written = adata.copy() if copy else adata
    fields.write(written, key_added, selector, candidates, markers, description)
    return written if copy else None


def _refuse_odd_arguments(n_genes: Any, groups: str | None, params: dict[str, Any]) -> None:
    """Raise an error for arguments that do not exist, or have no meaning for this number of genes."""
    if "n_features_to_select" in params:
        raise TypeError("n_features_to_select is called n_genes here. Use n_genes.")
    of_selector = set(L20Selector().get_params(deep=False)) - {"n_features_to_select"}
    known = [*inspect.signature(select_genes).parameters, *sorted(of_selector), *OF_SEARCH]
    for name in params:
        if name.split("__")[0] not in known:
            raise TypeError(f"select_genes() has no argument {name!r}. {closest_hint(name, known)}")
    if isinstance(n_genes, str) and n_genes not in RULES:
        raise ValueError(f"n_genes={n_genes!r} is not valid. Use a whole number from 1, a share, 'auto' or 'best'.")
    idle = [name for name in OF_SEARCH if name in params] + (["groups"] if groups is not None else [])
    if idle and n_genes not in RULES:
        raise TypeError(
            f"{idle[0]} is for cross-validation, and n_genes={n_genes!r} has none. Use n_genes='auto' or 'best'."
        )


def _make_selector(n_genes: Any, params: dict[str, Any]) -> L20Selector:
    selector = L20Selector(*([] if n_genes in RULES else [n_genes]))
    selector.set_params(**{name: value for name, value in params.items() if name not in OF_SEARCH})
    if isinstance(selector.class_weight, dict):
        selector.class_weight = {str(label): weight for label, weight in selector.class_weight.items()}
    return selector


def _expression(
    place: str, stored: Any, candidates: Array, normalize: bool, allow_counts: bool
) -> tuple[Any, float | None, bool]:
    """Return the matrix of the candidate genes, the total that counts were scaled to, and whether it holds logarithms."""
    largest = matrix.largest_count(stored)
    stored = open_large(stored) if is_stored(stored) and matrix.is_large(stored) else stored
    if normalize:  # the total of a cell is one of all genes
        stored = matrix.load(stored, np.ones_like(candidates))
    target_sum, change = matrix.normaliser(stored, place) if normalize else (None, None)
    X = matrix.load(stored, candidates)
    if normalize and largest is None:
        _warn(f"{place} does not hold raw counts, since it has fractions; normalize=True takes its logarithm all the same.")
    elif largest is not None and largest > 1.0 and not (normalize or allow_counts):
        _warn(
            f"{place} looks like raw counts (whole numbers from 0 to {largest:g}), which depend on the depth of each cell. "
            "Use normalize=True, name a normalised layer, or pass allow_counts=True if they are meant."
        )
    if change is not None:
        X = matrix.changed(X, change, change.dtype, is_sparse=matrix.is_sparse_matrix(X))
    return X, target_sum, normalize or largest is None


def _warn(text: str) -> None:
    warnings.warn(text, UserWarning, stacklevel=4)


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


def _search(
    n_genes: Any, selector: L20Selector, params: dict[str, Any], X: NamedColumns, labels: Array, donors: Array | None
) -> L20SelectorCV:
    """Choose the number of genes by cross-validation, and set it in the selector."""
    template = L20Selector(**selector.get_params(deep=False))
    template.set_params(callback=None, certify=False)
    search = L20SelectorCV(n_genes, selector=template)
    search.set_params(**{name: params[name] for name in (*OF_SEARCH, *OF_BOTH) if name in params})
    if donors is not None and search.cv is None and len(np.unique(donors)) < 2:
        raise ValueError(f"groups has one entry only, {donors[0]!r}. Cross-validation by groups needs two or more.")
    search.fit(X, labels, groups=donors)
    model = search.model_
    selector.set_params(n_features_to_select=model.n_features_to_select, max_features=model.max_features)
    selector.set_params(ridge=model.ridge, alpha=model.alpha, callback=None)
    return search


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
    if asked.constraints is not None:
        selector.constraints = asked.constraints.placed(np.flatnonzero(candidates))
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


def _params(asked: L20Selector, genes: Array) -> dict[str, Any]:
    """Return the parameters of a selector, with ``include`` and ``exclude`` as names of genes."""
    params = asked.get_params()
    params = {"n_genes": params.pop("n_features_to_select"), **params, "solver": make_solver(asked.solver).name}
    params |= {name: genes[params[name]] for name in ("include", "exclude") if params[name] is not None}
    if asked.constraints is not None:
        params["constraints"] = asked.constraints.sentence()
    return params
