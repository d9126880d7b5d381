"""Discretisation of features, and entropies and mutual information of discrete variables in bits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from l20fs.inputs.validation import check_choice, check_number
from l20fs.typing import Array

BINNINGS = ("width", "quantile", "sigma3", "floor", "mdlp")

# Number of values per block of features: small enough for the cache of one core.
_BLOCK = 1 << 16
# Contingency tables with more cells per sample are mostly empty: sorting is then cheaper than counting, in bounded memory.
_CELLS_PER_SAMPLE = 8
# Rounding error of sums of entropies of a few bits.
_ZERO_BITS = 1e-14


class Binned(NamedTuple):
    """Discretised features.

    ``codes`` has shape (n_samples, n_features): the bin of each sample, counted from 0 in every feature. ``n_states`` has
    shape (n_features,): the largest code plus 1; some bins may be empty.
    """

    codes: Array
    n_states: Array


def check_binning(binning: Any, n_bins: Any, tau: Any) -> None:
    """Raise an error for invalid parameters of :func:`discretise`."""
    check_choice("binning", binning, BINNINGS)
    check_number("n_bins", n_bins, minimum=2, strict=False, whole=True)
    check_number("tau", tau, minimum=0, strict=False)


def discretise(
    X: Array, binning: str = "width", *, n_bins: int = 10, tau: float = 1.0, labels: Array | None = None
) -> Binned:
    """Discretise every feature.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        Finite numbers.
    binning : {"width", "quantile", "sigma3", "floor", "mdlp"}, default="width"
        ``"width"``: ``n_bins`` bins of equal width. ``"quantile"``: ``n_bins`` bins with equal numbers of samples, equal
        values in the same bin. ``"sigma3"``: three bins, below, between and above mean -/+ ``tau`` standard deviations.
        ``"floor"``: values rounded down to integers. ``"mdlp"``: supervised binning by the minimum description length
        principle of Fayyad and Irani, which may leave a feature uncut.
    n_bins : int, default=10
        Number of bins of ``"width"`` and ``"quantile"``.
    tau : float, default=1.0
        Half width of the middle bin of ``"sigma3"`` in standard deviations.
    labels : array of shape (n_samples,), default=None
        Class codes from 0, required by ``"mdlp"``.

    Returns
    -------
    Binned
        Bin of every sample in every feature.

    Examples
    --------
    >>> discretise(np.array([[0.0], [1.0], [9.0], [10.0]]), "width", n_bins=5).codes.ravel()
    array([0, 0, 4, 4], dtype=int32)
    >>> discretise(np.array([[0.0], [1.0], [9.0], [10.0]]), "quantile", n_bins=4).codes.ravel()
    array([0, 1, 2, 3], dtype=int32)
    """
    check_binning(binning, n_bins, tau)
    if binning == "width":
        codes = _equal_width(X, n_bins)
    elif binning == "quantile":
        codes = _equal_frequency(X, n_bins)
    elif binning == "sigma3":
        codes = _three_states(X, tau)
    elif binning == "floor":
        codes = _floor(X)
    elif labels is None:
        raise ValueError("binning='mdlp' cuts where the classes change. Give labels, or another binning.")
    else:
        codes = _mdlp(X, labels)
    return bin_codes(codes)


def bin_codes(codes: Array) -> Binned:
    """Return features that are already coded by integers from 0 as :class:`Binned`.

    Examples
    --------
    >>> bin_codes(np.array([[0, 3], [1, 0]])).n_states
    array([2, 4])
    """
    # Column-major, since counting goes feature by feature.
    codes = np.asarray(codes, dtype=np.int32, order="F")
    return Binned(codes, codes.max(axis=0).astype(np.intp) + 1)


def _in_safe_range(X: Array) -> Array:
    """Scale features whose squares would overflow or underflow by powers of two, which does not change their bins."""
    exponents = np.frexp(np.maximum(X.max(axis=0), -X.min(axis=0)))[1]
    return np.ldexp(X, -exponents) if np.abs(exponents).max() > 400 else X


def _equal_width(X: Array, n_bins: int) -> Array:
    X = _in_safe_range(X)
    low, high = X.min(axis=0), X.max(axis=0)
    width = np.where(high > low, high - low, 1.0)
    # Multiplication before division keeps values on the edge of a bin exact.
    position = X - low
    position *= n_bins
    position /= width
    return np.minimum(position, n_bins - 1).astype(np.int32)


def _equal_frequency(X: Array, n_bins: int) -> Array:
    n_samples = len(X)
    order = np.argsort(X, axis=0, kind="stable")
    ordered = np.take_along_axis(X, order, axis=0)
    place = np.arange(n_samples)[:, None]
    begins = np.ones(X.shape, dtype=bool)
    begins[1:] = ordered[1:] > ordered[:-1]
    # Equal values share the number of values below them.
    n_below = np.maximum.accumulate(np.where(begins, place, 0), axis=0)
    codes = np.empty(X.shape, dtype=np.int32)
    np.put_along_axis(codes, order, (n_below * n_bins // n_samples).astype(np.int32), axis=0)
    return codes


def _three_states(X: Array, tau: float) -> Array:
    X = _in_safe_range(X)
    mean, spread = X.mean(axis=0), X.std(axis=0, ddof=1)
    return (X >= mean - tau * spread).astype(np.int32) + (X > mean + tau * spread)


def _floor(X: Array) -> Array:
    floored = np.floor(X)
    with np.errstate(over="ignore"):
        floored -= floored.min(axis=0)
    is_wide = floored.max(axis=0) >= len(X)
    # A feature with more bins than samples keeps those that occur, with the same information.
    for feature in np.flatnonzero(is_wide):
        floored[:, feature] = np.unique(np.floor(X[:, feature]), return_inverse=True)[1]
    return floored.astype(np.int32)


def _mdlp(X: Array, labels: Array) -> Array:
    n_samples, n_features = X.shape
    codes = np.zeros((n_features, n_samples), dtype=np.int32)
    indicators = np.eye(labels.max() + 1, dtype=np.int32)
    for block in blocks(n_features, n_samples * len(indicators)):
        order = np.argsort(X[:, block].T, axis=1, kind="stable")
        ordered = np.take_along_axis(X[:, block].T, order, axis=1)
        ordered_labels = labels[order]
        # Most features have no cut: the first cut is tried for all at once, further cuts feature by feature.
        is_cut = _best_cuts(ordered, indicators[ordered_labels]) > 0
        for row in np.flatnonzero(is_cut):
            cuts = _all_cuts(ordered[row], indicators[ordered_labels[row]])
            codes[block.start + row, order[row]] = np.searchsorted(cuts, np.arange(n_samples), side="right")
    return codes.T


def _all_cuts(values: Array, indicators: Array) -> list[int]:
    """Return the positions of all cuts of one sorted feature, in ascending order."""
    cuts: list[int] = []
    open_parts = [(0, len(values))]
    while open_parts:
        begin, end = open_parts.pop()
        cut = begin + int(_best_cuts(values[None, begin:end], indicators[None, begin:end])[0])
        if cut > begin:
            cuts.append(cut)
            open_parts += [(begin, cut), (cut, end)]
    return sorted(cuts)


def _best_cuts(values: Array, indicators: Array) -> Array:
    r"""Return the number of samples before the best cut of every sorted feature; 0 if no cut is accepted.

    A cut is accepted if its gain exceeds

    .. math:: [\log_2(n - 1) + \log_2(3^m - 2) - (m H - m_1 H_1 - m_2 H_2)] / n,

    where n, m and H are the number of samples, the number of classes and the entropy of the whole; indices denote the two
    parts.

    Parameters
    ----------
    values : array of shape (n_features, n_samples)
        Values of each feature, ascending.
    indicators : array of shape (n_features, n_samples, n_classes)
        One-hot classes in the same order.

    Returns
    -------
    array of shape (n_features,)
        Number of samples before the best cut.
    """
    n_samples = values.shape[1]
    if n_samples < 2:
        return np.zeros(len(values), dtype=np.intp)
    log = log_table(n_samples)
    left = np.cumsum(indicators, axis=1)
    total = left[:, -1]
    left = left[:, :-1]
    right = total[:, None] - left
    sizes = np.arange(1, n_samples)
    # n times the entropy of each part.
    left_bits, right_bits = log[sizes] - log[left].sum(axis=2), log[n_samples - sizes] - log[right].sum(axis=2)
    total_bits = log[n_samples] - log[total].sum(axis=1)
    bits = np.where(values[:, 1:] > values[:, :-1], left_bits + right_bits, np.inf)
    # Ties up to rounding errors go to the lowest cut.
    cut = np.argmax(bits <= bits.min(axis=1)[:, None] + _ZERO_BITS * n_samples, axis=1)
    row = np.arange(len(values))
    n_classes, n_left, n_right = (np.count_nonzero(part, axis=1) for part in (total, left[row, cut], right[row, cut]))
    saved = n_classes * total_bits / n_samples - n_left * left_bits[row, cut] / sizes[cut]
    saved -= n_right * right_bits[row, cut] / (n_samples - sizes[cut])
    # log2(3^m - 2) without the overflow of 3^m.
    needed = np.log2(n_samples - 1) + n_classes * np.log2(3.0) + np.log1p(-2.0 * 3.0**-n_classes) / np.log(2.0) - saved
    return np.where(total_bits - bits[row, cut] > needed, cut + 1, 0)


def log_table(n: int) -> Array:
    """Return ``i log2(i)`` for i from 0 to ``n``, a table for entropies of counts.

    Examples
    --------
    >>> log_table(4)
    array([0.       , 0.       , 2.       , 4.7548875, 8.       ])
    """
    counts = np.arange(n + 1, dtype=np.float64)
    return counts * np.log2(np.maximum(counts, 1.0))


def blocks(n_features: int, size: int) -> Iterator[slice]:
    """Split the features into slices of bounded memory, for ``size`` numbers per feature."""
    step = max(1, _BLOCK // max(1, size))
    return (slice(begin, min(begin + step, n_features)) for begin in range(0, n_features, step))


def contingency_tables(binned: Binned, other: Array) -> Array:
    """Return the contingency table of every feature with another variable.

    Returns
    -------
    array of shape (n_features, n_states, n_other)
        Counts; ``n_states`` is the largest number of bins of a feature.

    Examples
    --------
    >>> contingency_tables(bin_codes(np.array([[0], [1], [1]])), np.array([0, 0, 1]))
    array([[[1, 0],
            [1, 1]]])
    """
    n_features, n_states, n_other = binned.codes.shape[1], int(binned.n_states.max()), int(other.max()) + 1
    counts = _count_cells(binned.codes.T, n_states, other, n_other)
    return counts.reshape(n_features, n_states, n_other)


def _count_cells(codes: Array, n_states: int, other: Array, n_other: int) -> Array:
    """Return the contingency tables of all rows of ``codes``, flattened to (n_rows, n_states * n_other)."""
    n_cells = n_states * n_other
    cells = codes * np.intp(n_other)
    cells += other
    cells += (np.arange(len(codes)) * n_cells)[:, None]
    return np.bincount(cells.ravel(), minlength=len(codes) * n_cells).reshape(len(codes), n_cells)


def entropies(binned: Binned) -> Array:
    """Return the entropy of every feature in bits.

    Examples
    --------
    >>> entropies(bin_codes(np.array([[0, 0], [1, 0]])))
    array([1., 0.])
    """
    return joint_entropies(binned, np.zeros(len(binned.codes), dtype=np.intp))


def joint_entropies(binned: Binned, other: Array) -> Array:
    """Return the joint entropy in bits of every feature and another variable, given by its codes from 0."""
    codes, n_other = binned.codes.T, int(other.max()) + 1
    n_features, n_samples = codes.shape
    log = log_table(n_samples)
    spread = np.empty(n_features)
    for block in blocks(
        n_features, max(n_samples, min(int(binned.n_states.max()) * n_other, _CELLS_PER_SAMPLE * n_samples))
    ):
        n_states = int(binned.n_states[block].max())
        if n_states * n_other <= _CELLS_PER_SAMPLE * n_samples:
            spread[block] = log[_count_cells(codes[block], n_states, other, n_other)].sum(axis=1)
        else:
            spread[block] = _sum_over_runs(np.sort(codes[block] * np.intp(n_other) + other, axis=1), log)
    return np.maximum(np.log2(n_samples) - spread / n_samples, 0.0)


def _sum_over_runs(ordered: Array, log: Array) -> Array:
    """Sum ``log[length]`` over the runs of equal values in every ascending row."""
    begins = np.ones(ordered.shape, dtype=bool)
    begins[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    starts = np.flatnonzero(begins)
    lengths = np.diff(starts, append=ordered.size)
    first_run = np.concatenate([[0], np.cumsum(begins.sum(axis=1))[:-1]])
    return np.add.reduceat(log[lengths], first_run)


def mutual_information(binned: Binned, other: Array, *, own: Array | None = None) -> Array:
    """Return the mutual information ``I(x; z) = H(x) + H(z) - H(x, z)`` of every feature with another variable, in bits.

    Parameters
    ----------
    binned : Binned
        Discretised features x.
    other : array of shape (n_samples,)
        Codes of z from 0, for example of the classes or of a feature.
    own : array of shape (n_features,), default=None
        Entropies of the features, if they are known.

    Returns
    -------
    array of shape (n_features,)
        Mutual information; 0 if it is within rounding error.

    Examples
    --------
    >>> mutual_information(bin_codes(np.array([[0, 0], [0, 1], [1, 0], [1, 1]])), np.array([0, 0, 1, 1]))
    array([1., 0.])
    """
    own = entropies(binned) if own is None else own
    information = own + entropies(bin_codes(other[:, None]))[0] - joint_entropies(binned, other)
    return np.where(information > _ZERO_BITS, information, 0.0)


def symmetrical_uncertainty(binned: Binned, other: Array, *, own: Array | None = None) -> Array:
    """Return the symmetrical uncertainty ``2 I(x; z) / (H(x) + H(z))`` of every feature with another variable.

    It is 0 for independent variables, 1 if each determines the other, and 0 if both are constant.

    Examples
    --------
    >>> symmetrical_uncertainty(bin_codes(np.array([[0, 0], [0, 1], [1, 0], [1, 1]])), np.array([0, 0, 1, 1]))
    array([1., 0.])
    """
    own = entropies(binned) if own is None else own
    both = own + entropies(bin_codes(other[:, None]))[0]
    shared = 2.0 * mutual_information(binned, other, own=own)
    return np.divide(shared, both, out=np.zeros_like(both), where=both > 0.0)
