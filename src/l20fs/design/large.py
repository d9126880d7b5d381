"""Files larger than memory as Dask arrays, after a look at their metadata: nothing leads to another place or runs code."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import get_config

from l20fs.inputs.devices import is_stored
from l20fs.text import listed
from l20fs.typing import Array

#: Bytes of a block, about 100 ms of work; of less working memory a sixteenth.
BLOCK_BYTES, SHARE_OF_BLOCK = 1 << 26, 1 / 16

#: Filters of HDF5 by number (deflate, shuffle, checksum, szip, n-bit, scale and offset, LZF), and codecs of zarr, that are
#: known and run nothing; others may be loaded as code.
FILTERS = (1, 2, 3, 4, 5, 6, 32000)
CODECS = (
    *("bytes", "endian", "transpose", "sharding_indexed", "blosc", "zstd", "gzip", "zlib", "lz4", "bz2", "lzma", "crc32c"),
    *("shuffle", "delta", "bitround", "fixedscaleoffset", "quantize", "packbits", "crc32", "adler32", "fletcher32"),
)


#: Chunks of a matrix in a file, at most: listing more takes longer than reading them should.
MOST_CHUNKS = 10**6


class LargeFileError(ValueError):
    """File that is not opened, for a reason that the message gives."""


def open_large(source: Any, *, key: str = "X") -> Any:
    """Open a matrix in a file as a Dask array, without reading its values.

    The metadata are walked first: links, values in other files, virtual data sets, objects and unknown codecs are refused by
    name. Blocks take about 64 MB, or a sixteenth of scikit-learn's working memory if that is less
    (``sklearn.config_context(working_memory=256)``), and whole chunks of the file.

    Parameters
    ----------
    source : path, zarr.Array, h5py.Dataset or matrix of a backed AnnData object
        ``.npy``; HDF5 and ``.h5ad``; a ``.zarr`` folder with an array or an AnnData store; Parquet. Nothing is unpickled.
    key : str, default="X"
        Which matrix of an HDF5 file or a zarr group, for example ``"layers/counts"``.

    Returns
    -------
    dask.array.Array of shape (n_samples, n_features)
        To be given to ``fit`` as X; sparse if the file is. Parquet files have names: they become a Dask data frame, of which
        columns can be dropped.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> np.save(f"{folder.name}/x.npy", np.eye(6))
    >>> X = open_large(f"{folder.name}/x.npy")
    >>> X.shape, X.dtype
    ((6, 6), dtype('float64'))
    >>> folder.cleanup()
    """
    _require("dask.array", "dask", "open_large()")
    if is_stored(source):
        return _lazy(getattr(source, "group", source), "X")
    path = Path(source)
    try:
        return _open(path, key)
    except LargeFileError as error:
        raise LargeFileError(f"{path.name}: {error}") from error
    except (ImportError, MemoryError, FileNotFoundError, PermissionError, IsADirectoryError):
        raise
    except Exception as error:  # of HDF5, zarr, codecs and anndata, whose errors are of many kinds
        raise LargeFileError(f"{path.name}: is damaged ({str(error)[:200]}). Copy it again.") from error


def _open(path: Path, key: str) -> Any:
    head = b""
    if path.is_dir() and any((path / name).exists() for name in ("zarr.json", ".zarray", ".zgroup")):
        return _open_zarr(path, key)
    if not path.is_dir():
        with open(path, "rb") as stream:
            head = stream.read(8)
    if head.startswith(b"PAR1") or any(path.glob("*.parquet")):
        return _require("dask.dataframe", "dask,io,pandas", "A Parquet file").read_parquet(os.fspath(path))
    if head.startswith(b"\x93NUMPY"):
        return _open_npy(path)
    if head.startswith(b"\x89HDF\r\n\x1a\n"):
        h5py = _require("h5py", "h5ad", "An HDF5 file")
        return _lazy(_hdf5_element(h5py.File(path, "r"), key), key)
    raise LargeFileError("is not a file that is read in blocks. Use .npy, HDF5, .h5ad, a .zarr folder or Parquet.")


def _require(module: str, extra: str, user: str) -> Any:
    try:
        return import_module(module)
    except ModuleNotFoundError:
        name = module.partition(".")[0]
        raise ModuleNotFoundError(f"{user} needs {name}: pip install 'l20fs[{extra}]'.") from None


# ------------------------------------------------------------------------------------------------------------- as Dask


class _Stored:
    """Array in a file, which is opened where a block is read: on any worker."""

    ndim = 2

    def __init__(self, read: Callable[[Any], Array], shape: tuple[int, ...], dtype: Any) -> None:
        self._read, self.shape, self.dtype = read, shape, dtype

    def __getitem__(self, key: Any) -> Array:
        return self._read(key)


def _read_npy(path: str, key: Any) -> Array:
    return np.array(np.load(path, mmap_mode="r", allow_pickle=False)[key])


def _read_hdf5(path: str, mode: str, name: str, key: Any) -> Array:
    import h5py

    with h5py.File(path, mode) as file:
        return np.asarray(file[name][key])


def _open_npy(path: Path) -> Any:
    try:
        mapped = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise LargeFileError(f"is not an .npy file of numbers: {error}") from error
    is_by_columns = mapped.flags.f_contiguous and not mapped.flags.c_contiguous
    stored = _Stored(partial(_read_npy, os.path.abspath(path)), mapped.shape, mapped.dtype)
    return _dask_array(stored, (mapped.shape[0], 1) if is_by_columns else None, "the array")


def _lazy(stored: Any, name: str) -> Any:
    """Return an array or a sparse matrix of HDF5 or zarr as a Dask array, after a check of an HDF5 element."""
    is_hdf5 = _is_hdf5(stored)
    check_stored(stored)
    if hasattr(stored, "keys"):
        return _lazy_sparse(stored, name)
    if not is_hdf5:
        return _dask_array(stored, stored.shards or stored.chunks, name)
    read = partial(_read_hdf5, os.path.abspath(stored.file.filename), stored.file.mode, stored.name)
    return _dask_array(_Stored(read, stored.shape, stored.dtype), stored.chunks, name)


def _lazy_sparse(group: Any, name: str) -> Any:
    kind = str(group.attrs.get("encoding-type", ""))
    if kind not in ("csr_matrix", "csc_matrix"):
        raise LargeFileError(f"{name!r} is a group of {listed(list(group.keys()))}. Name a matrix: key='X', for example.")
    lazily = _require("anndata.experimental", "h5ad", "A sparse matrix").read_elem_lazy
    _refuse_no_numbers(group["data"].dtype, name)
    for part in ("data", "indices", "indptr"):
        _refuse_huge_chunks(group[part].chunks or (1,), group[part].dtype, f"{name}/{part}")
    shape = tuple(int(size) for size in group.attrs["shape"])
    axis = int(kind == "csc_matrix")
    n_stored = group["data"].shape[0]
    if group["indptr"].shape != (shape[axis] + 1,) or group["indices"].shape != (n_stored,):
        raise LargeFileError(f"{name!r} is damaged: its indptr and indices do not fit its shape. Write it again.")
    n_bytes = n_stored * (group["data"].dtype.itemsize + group["indices"].dtype.itemsize)
    length = max(1, math.ceil(shape[axis] * _block_bytes() / max(1, n_bytes)))
    chunks = (min(length, shape[0]), shape[1]) if axis == 0 else (shape[0], min(length, shape[1]))
    return lazily(group, chunks=chunks)


def _dask_array(stored: Any, chunks: tuple[int, ...] | None, name: str) -> Any:
    """Return a stored array as a Dask array in whole chunks of the file: by samples, else by features, else by both."""
    from dask.array import from_array
    from dask.array.core import normalize_chunks

    _refuse_no_numbers(stored.dtype, name)
    if len(stored.shape) != 2:
        raise LargeFileError(f"{name!r} has {len(stored.shape)} axes. Name a matrix of samples and features.")
    limit, chunks = _block_bytes(), chunks or (1, stored.shape[1])
    _refuse_huge_chunks(chunks, stored.dtype, name)
    n_chunks = math.prod(-(-size // length) for size, length in zip(stored.shape, chunks, strict=True))
    if n_chunks > MOST_CHUNKS:
        raise LargeFileError(f"{name!r} has {n_chunks} chunks, more than are read. Write it with larger ones.")
    strips = [chunks[axis] * stored.shape[1 - axis] * stored.dtype.itemsize for axis in (0, 1)]
    cut: tuple[Any, Any] = ("auto", -1) if strips[0] <= max(limit, strips[1]) else (-1, "auto")
    cut = ("auto", "auto") if min(strips) > limit and min(stored.shape) > 1 else cut
    sizes = normalize_chunks(cut, stored.shape, limit, stored.dtype, previous_chunks=chunks)
    return from_array(stored, chunks=sizes, name=False)


def _block_bytes() -> int:
    return int(min(BLOCK_BYTES, SHARE_OF_BLOCK * get_config()["working_memory"] * 2**20))


def _refuse_huge_chunks(chunks: tuple[int, ...], dtype: Any, name: str) -> None:
    """Raise an error for chunks of a file each of which takes more than the working memory: a chunk is read as a whole."""
    n_bytes = math.prod(chunks) * np.dtype(dtype).itemsize
    if n_bytes > get_config()["working_memory"] * 2**20:
        raise LargeFileError(
            f"{name!r} has chunks of {n_bytes / 2**30:.1f} GiB, more than scikit-learn's working memory. Write it with "
            "smaller ones, or raise sklearn.config_context(working_memory=)."
        )


def _refuse_no_numbers(dtype: Any, name: str) -> None:
    if np.dtype(dtype).kind not in "biuf":
        raise LargeFileError(f"{name!r} holds {dtype} values. Give a matrix of real numbers.")


# ------------------------------------------------------------------------------------------------------------ metadata


def check_stored(stored: Any) -> None:
    """Raise an error for an HDF5 element that leads elsewhere; a zarr store is checked before it is opened."""
    if _is_hdf5(stored):
        _check_hdf5(stored)


def _is_hdf5(element: Any) -> bool:
    return type(element).__module__.partition(".")[0] == "h5py"


def _hdf5_element(file: Any, key: str) -> Any:
    """Return an element of an open HDF5 file, which only hard links lead to."""
    element = file
    for name in key.split("/"):
        if not hasattr(element, "keys") or name not in element:
            raise LargeFileError(f"has no matrix {key!r}. It has {listed(list(file))}.")
        if type(element.get(name, getlink=True)).__name__ != "HardLink":
            raise LargeFileError(f"{key!r} is a link to another place, which is not followed. Copy the values to it.")
        element = element[name]
    return element


def _check_hdf5(element: Any) -> None:
    """Raise an error for an element whose values are elsewhere, or need an unknown filter."""
    if hasattr(element, "keys"):
        for name in element:
            _check_hdf5(_hdf5_element(element, name))
        return
    name = element.name.strip("/")
    if element.external or element.is_virtual:
        raise LargeFileError(f"{name!r} has its values in other files, which are not read. Copy them into this one.")
    properties = element.id.get_create_plist()
    for number, _, _, title in (properties.get_filter(place) for place in range(properties.get_nfilters())):
        if number not in FILTERS:
            raise LargeFileError(f"{name!r} has the filter {number} ({title.decode()}), which is unknown. Use gzip or LZF.")


def _open_zarr(path: Path, key: str) -> Any:
    zarr = _require("zarr", "zarr", "A .zarr store")
    root = path.resolve()
    _check_store(root)
    stored = zarr.open(root, mode="r", use_consolidated=False)  # copies of metadata at the root were not checked
    if hasattr(stored, "keys"):
        if key not in stored:
            raise LargeFileError(f"has no matrix {key!r}. It has {listed(list(stored.keys()))}.")
        stored = stored[key]
    return _lazy(stored, key)


def _check_store(root: Path) -> None:
    """Raise an error for links and special files below a folder, and for codecs of arrays that are not known."""
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            file = Path(folder, name)
            where = file.relative_to(root).as_posix()
            if file.is_symlink():
                raise LargeFileError(f"{where!r} is a link, which is not followed. Copy what it leads to.")
            if not (file.is_file() or file.is_dir()):
                raise LargeFileError(f"{where!r} is no regular file. Remove it.")
            if name in ("zarr.json", ".zarray"):
                _check_metadata(file, where)


def _check_metadata(file: Path, where: str) -> None:
    try:
        found = json.loads(file.read_bytes())
        codecs = list(_codecs(found))
    except (ValueError, AttributeError, KeyError, TypeError, RecursionError) as error:
        raise LargeFileError(f"the metadata {where!r} cannot be read ({error}). Copy them again.") from None
    if found.get("storage_transformers"):
        raise LargeFileError(f"{where!r} has storage transformers, which are not read. Write the store without them.")
    unknown = [name for name in codecs if name.removeprefix("numcodecs.") not in (*CODECS, "vlen-utf8", "vlen-bytes")]
    if unknown:
        raise LargeFileError(
            f"{where!r} has the codec {unknown[0]!r}, which is unknown and may run code. Use blosc or zstd."
        )


def _codecs(metadata: dict[str, Any]) -> Iterator[str]:
    """Yield the names of all codecs of an array of either format, those within shards among them."""
    for codec in (metadata.get("compressor"), *(metadata.get("filters") or [])):
        if codec is not None:
            yield str(codec["id"])
    for codec in metadata.get("codecs") or []:
        name, options = (codec, {}) if isinstance(codec, str) else (codec["name"], codec.get("configuration") or {})
        yield str(name)
        yield from _codecs(options)
        yield from _codecs({"codecs": options.get("index_codecs")})
