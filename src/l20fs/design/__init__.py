"""Centred and scaled feature matrices, the only place of the package that touches X.

Arrays are class-major: weights are ``(n_targets, n_rows)`` and residuals ``(n_targets, n_samples)``, the
orientation of scikit-learn's ``coef_``. A thin product with its long side contiguous is up to twice as fast in this
orientation.

A *design* is the centred and scaled feature matrix X~ with a few operations. Support for another array library is one more
design and changes no solver:

=============  ==============================================================  =======================
``pull(R)``    ``R @ X~``, the products of all features with a residual         one pass over X
``pull(R, r)`` ``R @ X~[:, r]``, the products of a few features                 the columns ``r`` only
``pull_among`` the same for repeated calls with the same features               the columns ``r`` once
``push(r, V)`` ``V @ X~[:, r].T``, the predictions of a few features            the columns ``r`` only
``take(r, i)`` ``X~[i, r]`` as a dense array                                    the columns ``r`` only
``column(j)``  one column of X~, in float64                                     this column only
``gram_top()`` an upper bound of the largest eigenvalue of ``X~ X~.T``          once, on demand
=============  ==============================================================  =======================

With sample weights w, ``X~ = D^(1/2) (X - 1 mean') / scale`` with D = diag(w) and the weighted mean, so that ordinary least
squares on X~ is weighted least squares on X, and a sample of weight 2 is equivalent to the sample twice.
Without an intercept the mean is 0.

Centring is the projection onto the complement of one column, D^(1/2) 1. With nuisances N, such as the batch of each sample,
X~ is projected onto the complement of D^(1/2) [1 N] (:class:`~l20fs.design.sample_weights.SampleWeights`).
"""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import scipy.sparse as sp

from l20fs.blocks import Blocks, format_bytes
from l20fs.design.base import Columns, Design, Likely
from l20fs.design.block_parts import SharedBlocks
from l20fs.design.blocked import SMALL_GRAM, BlockDesign, BlockedMatrix
from l20fs.design.column_scale import checked_scale
from l20fs.design.columns import ColumnDesign
from l20fs.design.dense import DenseDesign
from l20fs.design.device import DeviceDesign
from l20fs.design.device_parts import SharedDeviceMatrix
from l20fs.design.gram import GramDesign
from l20fs.design.moments import LEAST_RANGE
from l20fs.design.parts import Part, SharedMatrix, SharedSamples, hold
from l20fs.design.sample_weights import SampleWeights
from l20fs.design.sparse import SparseDesign
from l20fs.design.tiles import BLOCK_ELEMENTS
from l20fs.design.tolerances import (
    Rooms,
    clear_rooms,
    equality_tolerance,
    refuse_extreme_targets,
    refuse_extreme_total,
    refuse_vanishing_values,
    smallest_rooms,
    storage_errors,
)
from l20fs.inputs.devices import is_device_array, working_dtype
from l20fs.typing import Array, Scale

__all__ = [
    "BLOCK_ELEMENTS",
    "BlockDesign",
    "ColumnDesign",
    "Columns",
    "DenseDesign",
    "Design",
    "DeviceDesign",
    "GramDesign",
    "Likely",
    "Part",
    "Rooms",
    "SampleWeights",
    "Scale",
    "SparseDesign",
    "checked_units",
    "clear_rooms",
    "equality_tolerance",
    "hold",
    "make_design",
    "pays_to_share",
    "refuse_extreme_targets",
    "share_samples",
    "smallest_rooms",
    "storage_errors",
]

logger = logging.getLogger("l20fs")

#: Values of a dense array from which on fits to its parts run side by side; a smaller one is copied part by part.
LEAST_SHARED = 1 << 20


def make_design(
    X: Any,
    scale: Scale | Array = "none",
    sample_weight: Any = None,
    *,
    fit_intercept: bool = True,
    nuisances: Array | None = None,
) -> Design:
    """Wrap a dense array or a SciPy sparse matrix; a dense X is copied once, a sparse one stays sparse.

    A dense array of torch or CuPy stays on its device.

    Parameters
    ----------
    X : array, sparse matrix or Blocks of shape (n_samples, n_features)
    scale : {"auto", "moderated", "zscore", "none"} or array of shape (n_features,)
        Rule for the divisor of each feature (:func:`~l20fs.design.column_scale.divisors_of`), or the divisors.
    sample_weight : array of shape (n_samples,), optional
    fit_intercept : bool
        Whether X is centred. If not, its means are 0, deviations are root mean squares, and a feature varies unless it is
        zero.
    nuisances : array of shape (n_samples, n_nuisances), optional
        Columns that are projected out of X, as the constant column is by centring. Deviations are those that are left, and
        a feature that the nuisances explain altogether is constant.

    Examples
    --------
    >>> design = make_design(np.array([[0.0], [3.0]]), sample_weight=[2.0, 1.0])
    >>> design.mean.tolist(), design.column_energy.round(6).tolist()
    ([1.0], [6.0])
    >>> make_design(np.array([[3.0], [3.0]]), fit_intercept=False).column_energy
    array([18.])
    >>> make_design(np.array([[1.0], [3.0], [5.0]]), nuisances=np.array([[0.0], [0.0], [1.0]])).column_energy.round(6)
    array([2.])
    """
    is_array = not (sp.issparse(X) or isinstance(X, Blocks | Part) or is_device_array(X))
    X = np.asarray(X) if is_array else X
    scale, sample_weights = checked_units(X, scale, sample_weight, fit_intercept=fit_intercept, nuisances=nuisances)
    design = design_of(X, scale, sample_weights)
    if not design.summary.n_varying:
        counted = "" if sample_weight is None else f" over the {sample_weights.n_counted} samples with a positive weight"
        are, other = ("constant", "varies") if fit_intercept else ("zero", "is not zero")
        if sample_weights.basis is not None:
            are, other = f"{are}, or explained by adjust_for altogether", f"{other} within what adjust_for leaves"
        raise ValueError(
            f"All {design.n_features} features of X are {are}{counted}, so there is nothing to select. "
            f"Give at least one feature that {other}, by more than {LEAST_RANGE:g}, and check that X has the shape "
            "(n_samples, n_features)."
        )
    refuse_vanishing_values(design)
    return design


def design_of(X: Any, scale: Scale | Array, sample_weights: SampleWeights) -> Design:
    """Return the design for the container of X."""
    if isinstance(X, Blocks):
        return block_design(X, scale, sample_weights)
    if isinstance(X, Part):
        return X.shared.design(X, scale, sample_weights)
    return _kind_of(X)(X, scale, sample_weights)


def pays_to_share(X: Any) -> bool:
    """Return whether fits to parts of X are faster side by side than one by one.

    A product of many vectors with a dense array takes little longer than that with a few, unless X is small; with a sparse
    matrix it takes as long as all of them. In blocks, a pass serves all fits, and on a device there is no room for copies.
    """
    return isinstance(X, Blocks) or is_device_array(X) or (isinstance(X, np.ndarray) and X.size >= LEAST_SHARED)


def share_samples(X: Any) -> Part:
    """Return all samples of an X that several fits share: each takes a part of them, ``samples[rows]``, as its X.

    Examples
    --------
    >>> samples = share_samples(np.array([[0.0], [3.0], [9.0]]))
    >>> make_design(samples[[0, 1]]).mean
    array([1.5])
    """
    if isinstance(X, Blocks):
        shared: SharedSamples = SharedBlocks(X, _choose_design)
    else:
        shared = SharedDeviceMatrix(X) if is_device_array(X) else SharedMatrix(X)
    return Part(shared, np.arange(X.shape[0]))


def checked_units(
    X: Any, scale: Scale | Array, sample_weight: Any, *, fit_intercept: bool = True, nuisances: Array | None = None
) -> tuple[Scale | Array, SampleWeights]:
    """Validate scale and sample weights without reading X."""
    n_samples, n_features = X.shape
    scale = checked_scale(scale, n_features)
    sample_weights = SampleWeights(n_samples, sample_weight, fit_intercept=fit_intercept, nuisances=nuisances)
    if sample_weight is not None:
        refuse_extreme_total(sample_weights.total, working_dtype(X))
    return scale, sample_weights


def _kind_of(X: Any) -> type[DeviceDesign | DenseDesign | SparseDesign]:
    if is_device_array(X):
        return DeviceDesign
    return SparseDesign if sp.issparse(X) else DenseDesign


def block_design(blocks: Blocks, scale: Scale | Array, sample_weights: SampleWeights) -> Design:
    """Measure a matrix in blocks and choose its design."""
    return _choose_design(BlockedMatrix(blocks, scale, sample_weights))


def _choose_design(matrix: BlockedMatrix) -> Design:
    """Choose the design of a measured matrix in blocks, and log the choice."""
    blocks = matrix.blocks
    n_samples, n_features = blocks.shape
    size = f"{n_samples} x {n_features} {blocks.dtype.name}{' sparse' if blocks.is_sparse else ''} from {blocks.name}"
    cut = f"{len(blocks.edges) - 1} blocks of {'columns' if blocks.axis else 'samples'}"
    design: ColumnDesign | GramDesign
    if blocks.has_short_columns:
        design, plan = ColumnDesign(matrix), "E, fewer samples than features"
        cost = (
            f"{format_bytes(8.0 * n_samples)} per target to the blocks and the features above the threshold back, per step"
        )
    elif n_features <= SMALL_GRAM:
        design, plan = GramDesign(matrix), "C, few features"
        cost = f"{format_bytes(8.0 * n_features * n_features)} back once"
    else:
        design, plan = GramDesign(matrix), "D, many features and samples"
        cost = f"{format_bytes(8.0 * n_features)} back for each feature that is used"
    logger.info("%s in %s: plan %s, %s; cache of %s", size, cut, plan, cost, format_bytes(blocks.budget))
    return design
