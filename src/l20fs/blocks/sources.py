"""Files as sources of blocks: ``.npy`` memory maps, zarr arrays, dense and sparse matrices of h5ad files."""

from __future__ import annotations

import logging
import math
import mmap
import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial, wraps
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from l20fs.blocks import trials
from l20fs.blocks.file_guard import file_guard_of
from l20fs.blocks.hdf5_layout import FileLayout, LayoutError, data_sets, is_hdf5
from l20fs.blocks.memory import format_bytes, memory_limit
from l20fs.blocks.passes import FileBlocks
from l20fs.blocks.zarr_layout import check_store, describe_missing, open_store, refuse_lost_chunks
from l20fs.inputs.sparse_structure import refuse_broken_sparse
from l20fs.typing import Array

logger = logging.getLogger("l20fs")

#: Largest block in bytes; larger ones are no faster.
LARGEST_BLOCK = 2**26

#: A block takes at most this fraction (1 / 32) of the memory limit: two are held at a time, and work makes copies.
SHARE_OF_BLOCK = 32

#: Share of the memory limit (1 / 8) for a chunk that is decompressed.
SHARE_OF_CHUNK = 8

#: Share of the memory limit for the values that a fit keeps beside the blocks.
SHARE_KEPT = 0.5


class DamagedFileError(ValueError):
    """Damaged part of a file."""


def _telling_damage(opening: Callable[..., FileBlocks]) -> Callable[..., FileBlocks]:
    """Decorate a function that opens a file: errors of HDF5, zarr and codecs, also in a block, name the file."""

    @wraps(opening)
    def opened(file: str | os.PathLike[str], **options: Any) -> FileBlocks:
        def whole(call: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
            try:
                return call(*arguments, **named)
            except (ValueError, MemoryError, ImportError):
                raise
            except Exception as error:  # of many kinds
                if getattr(error, "errno", None) is not None:  # of the system, not of a library
                    raise
                said = (str(error).splitlines() or [type(error).__name__])[0][:200]
                raise DamagedFileError(f"{os.fspath(file)} is damaged ({said}). Copy it again.") from error

        blocks: FileBlocks = whole(opening, file, **options)
        return replace(blocks, load=partial(whole, blocks.load))

    return opened


@_telling_damage
def open_large(file: str | os.PathLike[str], *, key: str = "X", max_memory: Any = None) -> FileBlocks:
    """Open a matrix in a file without reading it.

    Parameters
    ----------
    file : path
        ``.npy``; ``.zarr``, an array or an AnnData store; ``.h5ad`` or ``.h5``. Nothing is unpickled.
    key : str
        Which matrix of an AnnData file, for example ``"layers/counts"``.
    max_memory : int, str or None
        Memory limit of a fit, in bytes or as ``"4G"``; None: half of the memory of this machine, container or job.

    Returns
    -------
    FileBlocks
        A matrix with ``shape`` and ``dtype``, to be given to ``L20Selector.fit`` as X.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> np.save(f"{folder.name}/x.npy", np.eye(6))
    >>> X = open_large(f"{folder.name}/x.npy", max_memory="1G")
    >>> X.shape, X.dtype
    ((6, 6), dtype('float64'))
    >>> del X; folder.cleanup()
    """
    path, memory = Path(file), memory_limit(max_memory)
    try:
        stored, layout = _open(path)
        if hasattr(stored, "keys") and "shape" not in stored.attrs:
            if key not in stored:
                raise ValueError(
                    f"{path.name} has no matrix {key!r}. It has {', '.join(map(repr, list(stored.keys())[:5]))}."
                )
            arrays = layout.below(key)
            stored = stored[key]
        else:
            arrays = [] if layout is None else layout.below("")
        for array in arrays:
            array.check_chunks(memory // SHARE_OF_CHUNK)
        _tell_missing(arrays, path.name)
        refuse_lost_chunks(arrays, stored)
        return stored_blocks(stored, memory)
    except LayoutError as error:
        raise LayoutError(f"{path.name}: {error}") from error


def _tell_missing(arrays: list[Any], name: str) -> None:
    missing = describe_missing(arrays)
    if missing:
        logger.warning("%s: %s.", name, missing)


def check_whole(stored: Any) -> None:
    """Warn of missing chunks of a zarr array or sparse matrix in a folder, or raise an error where they are lost."""
    matrix = getattr(stored, "group", stored)
    root = getattr(getattr(matrix, "store", None), "root", None)  # of a folder; others are not listed
    if not isinstance(root, Path):
        return
    try:
        arrays = check_store(root / matrix.path).below("")
    except LayoutError:  # of a kind that is not read from a name; zarr itself has opened it
        return
    _tell_missing(arrays, root.name)
    refuse_lost_chunks(arrays, matrix)


def _suffix_of(path: Path) -> str:
    """Return the suffix of the format of a file: by its content, else by its name."""
    if path.is_dir():
        return ".zarr"
    try:
        with open(path, "rb") as stream:
            head = stream.read(8)
    except FileNotFoundError:
        head = b""
    return ".npy" if head.startswith(b"\x93NUMPY") else ".h5ad" if head == b"\x89HDF\r\n\x1a\n" else path.suffix.lower()


def _open(path: Path) -> tuple[Any, Any]:
    """Open a file, and return its layout as well if it has one."""
    suffix = _suffix_of(path)
    if suffix == ".npy":
        try:
            mapped = np.load(path, mmap_mode="r", allow_pickle=False)
        except (ValueError, EOFError) as error:
            raise ValueError(f"{path.name} is not an .npy file of numbers: {error}") from error
        if not isinstance(mapped, np.memmap):
            raise ValueError(f"{path.name} is an archive of arrays. Save the matrix alone, with numpy.save.")
        return mapped, None
    if suffix == ".zarr":
        layout = check_store(path)
        try:
            return open_store(layout), layout
        except ModuleNotFoundError:
            raise ModuleNotFoundError("A .zarr store needs zarr: pip install 'l20fs[zarr]'.") from None
    if suffix in (".h5ad", ".h5", ".hdf5"):
        try:
            import h5py
        except ModuleNotFoundError:
            raise ModuleNotFoundError("An .h5ad file needs h5py: pip install 'l20fs[h5ad]'.") from None
        trials.finish_trial(trials.start_trial(path), path)
        file = h5py.File(path, "r")
        return file, FileLayout(file)
    raise ValueError(f"{path.name} has a format that cannot be read in blocks. Use .npy, .zarr or .h5ad.")


def stored_blocks(stored: Any, memory: int) -> FileBlocks:
    """Split an array or a group of a zarr or HDF5 file, or the backed matrix of an AnnData object."""
    group = getattr(stored, "group", stored)
    check_stored(group)
    if not hasattr(group, "keys"):
        return array_blocks(stored, memory)
    kind = str(group.attrs.get("encoding-type", group.attrs.get("h5sparse_format", "")))
    if not kind.startswith(("csr", "csc")):
        raise ValueError(f"The group {getattr(group, 'name', '')!r} holds no sparse matrix. Name a matrix, for example 'X'.")
    return sparse_blocks(group, kind[:3], memory)


def check_stored(stored: Any) -> None:
    """Raise an error for a matrix of an HDF5 file whose values are in other files; others have been checked."""
    if is_hdf5(stored):
        data_sets(stored)


def refuse_no_numbers(dtype: np.dtype[Any]) -> None:
    """Raise an error for values that are no real numbers."""
    if dtype.kind not in "biuf":
        raise ValueError(f"X holds {dtype} values. Give a matrix of real numbers.")


def _refuse_large(needed: int, what: str, memory: int) -> None:
    if needed > memory:
        raise LayoutError(
            f"needs about {format_bytes(needed)} of memory for {what}, but {format_bytes(memory)} are allowed. Allow more, "
            "or write it in smaller chunks."
        )


def array_blocks(X: Any, memory: int) -> FileBlocks:
    """Split a dense array along the axis that varies slowest in the file."""
    shape, dtype = tuple(int(size) for size in X.shape), np.dtype(X.dtype)
    if len(shape) != 2:
        raise ValueError(f"X has the shape {shape}. Give a matrix of two axes, samples and features.")
    refuse_no_numbers(dtype)
    chunks = getattr(X, "chunks", None)
    most = _block_bytes(memory)
    axis = _cut_axis(X, shape, chunks, most // dtype.itemsize)
    line = shape[1 - axis] * dtype.itemsize
    step = max(1, most // max(1, line))
    if not isinstance(X, np.ndarray):
        _refuse_large(
            3 * max(line, min(line * step, most)) + 2 * dtype.itemsize * math.prod(chunks or ()), "a block", memory
        )
        _refuse_large(8 * (shape[axis] // step), "the edges of its blocks", memory)
    if chunks and step < chunks[axis]:
        logger.warning(
            "X is stored in chunks of %d x %d; a row of chunks is larger than a block of %s, so that every chunk is read %d "
            "times per pass. Use smaller chunks or a larger max_memory for speed.",
            *chunks,
            format_bytes(most),
            -(-chunks[axis] // step),
        )
    elif chunks:  # whole chunks, since a part of one would be read more than once
        step = step // chunks[axis] * chunks[axis]
    edges = np.append(np.arange(0, shape[axis], step), shape[axis])
    mapped = _mapping(X)

    def load(span: slice) -> Array:
        block = np.array(X[span] if axis == 0 else X[:, span])
        if mapped is not None:  # pages that were read count as memory of this process until they are returned
            mapped.madvise(mmap.MADV_DONTNEED)
        return block

    blocks = FileBlocks((shape[0], shape[1]), dtype, axis, edges, False, load, _budget(memory), _kind_of(X))
    return replace(blocks, guard=file_guard_of(X))


def _kind_of(X: Any) -> str:
    kinds = {"memmap": "a .npy file", "ndarray": "memory", "Array": "a zarr array", "Dataset": "an HDF5 array"}
    return kinds.get(type(X).__name__, type(X).__name__)


def _cut_axis(X: Any, shape: tuple[int, ...], chunks: Any, most: int) -> int:
    """Return the axis to split: the slow one in the file, or the one on which whole chunks fit into ``most`` values."""
    if chunks:
        of_rows, of_columns = chunks[0] * shape[1], chunks[1] * shape[0]
        return int(of_columns < of_rows and (of_rows > most or chunks[0] >= shape[0]))
    flags = getattr(X, "flags", None)
    return int(flags is not None and flags.f_contiguous and not flags.c_contiguous)


def _mapping(X: Any) -> mmap.mmap | None:
    """Return the memory map behind an array; None if its pages cannot be dropped and read again from the file."""
    if not hasattr(mmap, "MADV_DONTNEED") or not isinstance(X, np.memmap) or X.mode == "c":
        return None
    base: Any = X
    while isinstance(base, np.ndarray):
        base = base.base
    return base if isinstance(base, mmap.mmap) else None


def sparse_blocks(group: Any, kind: str, memory: int) -> FileBlocks:
    """Split a sparse matrix of an AnnData file: CSR along the samples, CSC along the features."""
    shape = tuple(int(size) for size in group.attrs["shape" if "shape" in group.attrs else "h5sparse_shape"])
    axis = 0 if kind == "csr" else 1
    refuse_no_numbers(np.dtype(group["data"].dtype))
    where = f"The {kind.upper()} matrix of shape {shape}{_file_of(group)}"
    if group["indptr"].shape != (shape[axis] + 1,):
        raise ValueError(f"{where} is damaged: its indptr does not fit. Write it again.")
    of_chunks = sum(math.prod(group[name].chunks or (0,)) for name in ("data", "indices", "indptr"))
    _refuse_large(16 * (math.prod(group["indptr"].shape) + of_chunks), "a block", memory)
    indptr, data, indices = np.asarray(group["indptr"][:], dtype=np.int64), group["data"], group["indices"]
    is_whole = indptr[0] == 0 and indptr[-1] <= min(data.shape[0], indices.shape[0])
    if not is_whole or np.any(np.diff(indptr) < 0):
        raise ValueError(f"{where} is damaged: its indptr does not fit. Write it again.")
    _refuse_large(32 * int(np.diff(indptr).max(initial=0)), "one row or column", memory)
    # SciPy has no float16, and uses the type of the indices for the row pointers, which are larger.
    dtype = np.result_type(data.dtype, np.float32) if data.dtype == np.float16 else np.dtype(data.dtype)
    index = np.result_type(indices.dtype, np.int32)
    n_stored = max(1, _block_bytes(memory) // (dtype.itemsize + np.dtype(indices.dtype).itemsize))
    edges = _even_edges(indptr, n_stored)
    make = sp.csr_array if axis == 0 else sp.csc_array

    checked: set[tuple[int, int]] = set()

    def load(span: slice) -> Any:
        stored = slice(int(indptr[span.start]), int(indptr[span.stop]))
        size = span.stop - span.start
        # SciPy gives both index arrays the wider type of the two, which would double the work on them.
        starts = (indptr[span.start : span.stop + 1] - stored.start).astype(index)
        values, places = data[stored].astype(dtype, copy=False), indices[stored].astype(index, copy=False)
        try:
            block = make((values, places, starts), shape=(size, shape[1]) if axis == 0 else (shape[0], size))
            if (span.start, span.stop) not in checked:  # an index out of bounds would read memory outside the block
                block.check_format(full_check=True)
                checked.add((span.start, span.stop))
        except ValueError as error:
            lines = f"{'samples' if axis == 0 else 'features'} {span.start} to {span.stop - 1}"
            raise DamagedFileError(f"{where} is damaged in {lines}: {error}. Write it again.") from error
        return block

    blocks = FileBlocks((shape[0], shape[1]), dtype, axis, edges, True, load, _budget(memory), f"a {kind.upper()} file")
    return replace(blocks, guard=file_guard_of(group))


def memory_blocks(X: Any, memory: int) -> FileBlocks:
    """Split a SciPy sparse matrix in memory: CSC along the features, any other along the samples.

    Examples
    --------
    >>> blocks = memory_blocks(sp.csr_array(np.eye(3)), 2**30)
    >>> blocks.axis, blocks.edges.tolist(), blocks.is_sparse
    (0, [0, 3], True)
    """
    refuse_no_numbers(X.dtype)
    refuse_broken_sparse(X, "X")
    X = X if X.format in ("csr", "csc") else X.tocsr()
    axis = int(X.format == "csc")
    edges = _even_edges(X.indptr, max(1, _block_bytes(memory) // (X.dtype.itemsize + X.indices.dtype.itemsize)))

    def load(span: slice) -> Any:
        return X[span] if axis == 0 else X[:, span]

    return FileBlocks(X.shape, X.dtype, axis, edges, True, load, _budget(memory), "memory")


def _file_of(group: Any) -> str:
    """Return the name of the file of an HDF5 group, for messages."""
    file = getattr(getattr(group, "file", None), "filename", None)
    return f" in {Path(file).name}" if file else ""


def recut(blocks: FileBlocks, memory: int) -> FileBlocks:
    """Return the same matrix for another memory limit, in smaller blocks if necessary."""
    n_parts = -(-_block_bytes(int(blocks.budget / SHARE_KEPT)) // _block_bytes(memory))
    edges = blocks.edges
    if n_parts > 1:
        steps = np.linspace(0.0, 1.0, n_parts, endpoint=False)
        edges = np.unique(np.append((edges[:-1, None] + np.diff(edges)[:, None] * steps).astype(edges.dtype), edges[-1]))
    return replace(blocks, edges=edges, budget=_budget(memory))


def recut_dense(blocks: FileBlocks, memory: int) -> FileBlocks:
    """Return the same matrix in blocks that fit into memory also if each is made dense."""
    n_values = _block_bytes(memory) // blocks.dtype.itemsize
    step = max(1, n_values // max(1, blocks.shape[1 - blocks.axis]))
    starts = [np.arange(start, stop, step) for start, stop in zip(blocks.edges[:-1], blocks.edges[1:], strict=True)]
    return replace(blocks, edges=np.append(np.concatenate(starts), blocks.edges[-1]))


def _even_edges(indptr: Array, n_stored: int) -> Array:
    """Return edges of blocks of at most ``n_stored`` stored values, or of one row or column."""
    edges = [0]
    while edges[-1] < len(indptr) - 1:
        reached = int(np.searchsorted(indptr, indptr[edges[-1]] + n_stored, side="right")) - 1
        edges.append(max(edges[-1] + 1, reached))
    return np.array(edges)


def _block_bytes(memory: int) -> int:
    return min(memory // SHARE_OF_BLOCK, LARGEST_BLOCK)


def _budget(memory: int) -> int:
    return int(SHARE_KEPT * memory)
