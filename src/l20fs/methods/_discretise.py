"""Discretisation of features, and entropies and mutual information of discrete variables in bits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import numpy as np

from l20fs.inputs.devices import Place, namespace_of
from l20fs.methods._columns import Columns
from l20fs.typing import Array

BINNINGS = ("width", "quantile", "sigma3", "floor", "mdlp")

# Number of values per block of features: small enough for the cache of one core.
_BLOCK = 1 << 16
# Contingency tables with more cells per sample are mostly empty: sorting is then cheaper than counting, in bounded memory.
_CELLS_PER_SAMPLE = 8
# The same on a device: large enough for few calls, small compared with its memory.
_BLOCK_THERE = 1 << 25
# On a device cells are counted by one product per bin; with more bins sorting is faster.
_BINS_THERE = 64
# Rounding error of sums of entropies of a few bits.
_ZERO_BITS = 1e-14


class Binned(NamedTuple):
    """Discretised features.

    ``codes`` has shape (n_samples, n_features): the bin of each sample, counted from 0 in every feature; they are where X
    is. ``n_states`` has shape (n_features,): the largest code plus 1; some bins may be empty.
    """

    codes: Any
    n_states: Array


def discretise(X: Any, binning: str = "width", *, n_bins: int = 10, tau: float = 1.0, labels: Array | None = None) -> Binned:
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
    columns = Columns(X)
    if binning == "mdlp":
        if labels is None:
            raise ValueError("binning='mdlp' cuts where the classes change. Give labels, or another binning.")
        if not columns.place.is_host:
            raise TypeError(
                "binning='mdlp' cuts one feature after the other, which needs X in memory. Use another binning, or convert "
                "X to an array of NumPy."
            )
        return bin_codes(_mdlp(X, labels))
    place_in = {
        "width": lambda part: _equal_width(part, n_bins),
        "quantile": lambda part: _equal_frequency(part, n_bins),
        "sigma3": lambda part: _three_states(part, tau),
        "floor": _floor,
    }[binning]
    return bin_codes(columns.joined([_packed(place_in(part)) for _, part in columns.parts()], axis=1))


def _packed(codes: Any) -> Any:
    """Return codes on a device in one byte each, if they fit."""
    xp = namespace_of(codes)
    return codes if xp is np or int(xp.max(codes)) > 255 else xp.astype(codes, xp.uint8)


def bin_codes(codes: Any) -> Binned:
    """Return features that are already coded by integers from 0 as :class:`Binned`.

    Examples
    --------
    >>> bin_codes(np.array([[0, 3], [1, 0]])).n_states
    array([2, 4])
    """
    place = Place(codes)
    if not place.is_host:
        return Binned(codes, place.fetch(place.xp.max(codes, axis=0)).astype(np.intp) + 1)
    # Column-major, since counting goes feature by feature.
    codes = np.asarray(codes, dtype=np.int32, order="F")
    return Binned(codes, codes.max(axis=0).astype(np.intp) + 1)


def _in_safe_range(X: Any) -> Any:
    """Scale features whose squares would overflow or underflow by powers of two, which does not change their bins."""
    if namespace_of(X) is not np:  # where such features are refused
        return X
    exponents = np.frexp(np.maximum(X.max(axis=0), -X.min(axis=0)))[1]
    return np.ldexp(X, -exponents) if np.abs(exponents).max() > 400 else X


def _whole(values: Any, n_bits: Literal[8, 32] = 32) -> Any:
    """Return an array as whole numbers, rounded towards zero."""
    xp = namespace_of(values)
    dtype = xp.int8 if n_bits == 8 else xp.int32
    return values.astype(dtype) if xp is np else xp.astype(values, dtype)


def _equal_width(X: Any, n_bins: int) -> Any:
    X, xp = _in_safe_range(X), namespace_of(X)
    low, high = xp.min(X, axis=0), xp.max(X, axis=0)
    width = xp.where(high > low, high - low, xp.ones_like(low))
    # Multiplication before division keeps values on the edge of a bin exact.
    position = X - low
    position *= n_bins
    position /= width
    return _whole(xp.clip(position, None, float(n_bins - 1)))


def _equal_frequency(X: Any, n_bins: int) -> Any:
    n_samples, n_features = X.shape
    place = Place(X)
    xp, positions = place.xp, place.send(np.arange(n_samples))[:, None]
    order = xp.argsort(X, axis=0, stable=True)
    ordered = np.take_along_axis(X, order, axis=0) if place.is_host else xp.sort(X, axis=0)
    begins = xp.concat([xp.ones_like(ordered[:1, :], dtype=xp.bool), ordered[1:, :] > ordered[:-1, :]], axis=0)
    # Equal values share the number of values below them.
    n_below = _running_maximum(xp.where(begins, positions, xp.zeros_like(positions)))
    bins = _whole(n_below * n_bins // n_samples)
    if place.is_host:
        codes = np.empty(X.shape, dtype=np.int32)
        np.put_along_axis(codes, order, bins, axis=0)
        return codes
    source = xp.argsort(order, axis=0) * n_features + place.send(np.arange(n_features))
    return xp.reshape(xp.take(xp.reshape(bins, (-1,)), xp.reshape(source, (-1,))), X.shape)


def _running_maximum(values: Any) -> Any:
    """Return the largest value so far down every column; the standard has no such operation, hence the doubled steps.

    Examples
    --------
    >>> _running_maximum(np.array([[1], [3], [2]])).ravel()
    array([1, 3, 3])
    """
    xp, step = namespace_of(values), 1
    if xp is np:
        return np.maximum.accumulate(values, axis=0)
    while step < values.shape[0]:
        values = xp.concat([values[:step, :], xp.maximum(values[step:, :], values[:-step, :])], axis=0)
        step *= 2
    return values


def _three_states(X: Any, tau: float) -> Any:
    X, xp = _in_safe_range(X), namespace_of(X)
    mean, spread = xp.mean(X, axis=0), xp.std(X, axis=0, correction=1)
    return _whole(X >= mean - tau * spread, 8) + _whole(X > mean + tau * spread, 8)


def _floor(X: Any) -> Any:
    place = Place(X)
    xp = place.xp
    floored = xp.floor(X)
    with np.errstate(over="ignore"):
        floored = floored - xp.min(floored, axis=0)
    is_wide = place.fetch(xp.max(floored, axis=0)) >= X.shape[0]
    # A feature with more bins than samples keeps those that occur, with the same information.
    for feature in np.flatnonzero(is_wide).tolist():
        own = xp.unique_inverse(xp.floor(X[:, feature])).inverse_indices
        floored[:, feature] = own if place.is_host else xp.astype(own, floored.dtype)
    return _whole(floored)


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


def blocks(n_features: int, size: int, *, is_host: bool = True) -> Iterator[slice]:
    """Split the features into slices of bounded memory, for ``size`` numbers per feature."""
    step = max(1, (_BLOCK if is_host else _BLOCK_THERE) // max(1, size))
    return (slice(begin, min(begin + step, n_features)) for begin in range(0, n_features, step))


def contingency_tables(binned: Binned, other: Array) -> Any:
    """Return the contingency table of every feature with another variable, whose codes are on the host.

    Returns
    -------
    array of shape (n_features, n_states, n_other)
        Counts, where the features are; ``n_states`` is the largest number of bins of a feature.

    Examples
    --------
    >>> contingency_tables(bin_codes(np.array([[0], [1], [1]])), np.array([0, 0, 1]))
    array([[[1, 0],
            [1, 1]]])
    """
    n_features, n_states, n_other = binned.codes.shape[1], int(binned.n_states.max()), int(other.max()) + 1
    place = Place(binned.codes)
    if not place.is_host:
        return _count_there(binned.codes, n_states, place.send(np.eye(n_other)[other]))
    counts = _count_cells(binned.codes.T, n_states, other, n_other)
    return counts.reshape(n_features, n_states, n_other)


def _count_there(codes: Any, n_states: int, one_hot: Any) -> Any:
    """Return the contingency tables as products: indicators of each bin with those of the other variable."""
    xp = namespace_of(codes)
    return xp.stack([xp.astype(codes == state, one_hot.dtype).T @ one_hot for state in range(n_states)], axis=1)


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
    return joint_entropies(binned, np.zeros(binned.codes.shape[0], dtype=np.intp))


def joint_entropies(binned: Binned, other: Array) -> Array:
    """Return the joint entropy in bits of every feature and another variable, given by its codes from 0 on the host."""
    place, n_other = Place(binned.codes), int(other.max()) + 1
    n_samples, n_features = binned.codes.shape
    log, spread = log_table(n_samples), np.empty(n_features)
    most = min(int(binned.n_states.max()) * n_other, _CELLS_PER_SAMPLE * n_samples)
    for block in blocks(n_features, max(n_samples, most), is_host=place.is_host):
        codes, n_states = binned.codes[:, block], int(binned.n_states[block].max())
        is_filled = n_states * n_other <= _CELLS_PER_SAMPLE * n_samples
        if not place.is_host:
            spread[block] = _logs_there(codes, n_states, other, n_other, is_filled=is_filled and n_states <= _BINS_THERE)
        elif is_filled:
            spread[block] = log[_count_cells(codes.T, n_states, other, n_other)].sum(axis=1)
        else:
            spread[block] = _sum_over_runs(np.sort(codes.T * np.intp(n_other) + other, axis=1), log)
    return np.maximum(np.log2(n_samples) - spread / n_samples, 0.0)


def _logs_there(codes: Any, n_states: int, other: Array, n_other: int, *, is_filled: bool) -> Array:
    """Return the sums of ``n log2(n)`` over the cells of the contingency tables, on a device: by counting or by sorting."""
    place, n_samples = Place(codes), len(other)
    xp = place.xp
    if is_filled:  # counts up to 2**24 are exact in float32
        dtype = np.float32 if n_samples < 1 << 24 else np.float64
        counts = _count_there(codes, n_states, place.send(np.eye(n_other, dtype=dtype)[other]))
    else:
        cells = xp.sort(xp.astype(codes, xp.int64) * n_other + xp.astype(place.send(other), xp.int64)[:, None], axis=0)
        is_new = cells[1:, :] != cells[:-1, :]
        edge, positions = xp.ones_like(is_new[:1, :]), place.send(np.arange(n_samples))[:, None]
        begins, ends = xp.concat([edge, is_new], axis=0), xp.concat([is_new, edge], axis=0)
        lengths = positions - _running_maximum(xp.where(begins, positions, xp.zeros_like(positions))) + 1
        counts = xp.where(ends, lengths, xp.zeros_like(lengths)).T[:, :, None]
    counts = xp.astype(counts, xp.float64)
    logs = xp.log2(xp.maximum(counts, xp.ones_like(counts)))
    return place.fetch(xp.sum(counts * logs, axis=(1, 2)))


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
