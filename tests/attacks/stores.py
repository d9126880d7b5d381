"""HDF5 files (h5ad) and zarr stores that lead elsewhere, run code, or are larger than they look."""

from __future__ import annotations

import json
import os
import pickle
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from attacks import HELD, attack

N_CELLS, N_GENES = 60, 10
CAP = 2**28
SELECT = ["select", "--target", "type", "-k", "3"]
TEXT = h5py.string_dtype()


class Canary:
    """Makes the folder ``canary`` where it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("canary",)


# h5ad


def encode(element: Any, kind: str, version: str = "0.2.0", **more: Any) -> Any:
    element.attrs.update({"encoding-type": kind, "encoding-version": version, **more})
    return element


def write_table(stored: Any, name: str, n_rows: int, columns: list[str]) -> Any:
    order = np.array(columns, dtype=TEXT)
    table = encode(stored.create_group(name), "dataframe", **{"_index": "_index", "column-order": order})
    encode(table.create_dataset("_index", data=[f"{name}{i}" for i in range(n_rows)], dtype=TEXT), "string-array")
    return table


@contextmanager
def h5ad(folder: Path, n_genes: int = N_GENES) -> Iterator[Any]:
    """Write a whole h5ad file, which the attack changes before it is closed."""
    with h5py.File(folder / "cells.h5ad", "w", libver="latest") as stored:
        encode(stored, "anndata", "0.1.0")
        write_table(stored, "var", n_genes, [])
        column = encode(write_table(stored, "obs", N_CELLS, ["type"]).create_group("type"), "categorical", ordered=False)
        encode(column.create_dataset("codes", data=np.arange(N_CELLS, dtype="i1") % 2), "array")
        encode(column.create_dataset("categories", data=["u", "v"], dtype=TEXT), "string-array")
        if n_genes == N_GENES:
            values = np.random.default_rng(0).normal(size=(N_CELLS, n_genes))
            encode(stored.create_dataset("X", data=values), "array")
        yield stored


def renewed(stored: Any, name: str, *args: Any, kind: str = "array", **options: Any) -> Any:
    """Replace a data set."""
    if name in stored:
        del stored[name]
    return encode(stored.create_dataset(name, *args, **options), kind)


def on_h5ad(folder: Path, *options: str) -> list[str]:
    return [*SELECT, str(folder / "cells.h5ad"), *options]


def bomb(n_bytes: int, wbits: int = zlib.MAX_WBITS) -> bytes:
    """Compress zeros, quickly: the same flushed piece again and again."""
    packer = zlib.compressobj(9, wbits=wbits)
    head = packer.compress(bytes(2**20)) + packer.flush(zlib.Z_FULL_FLUSH)
    piece = packer.compress(bytes(2**20)) + packer.flush(zlib.Z_FULL_FLUSH)
    return head + piece * (n_bytes // 2**20) + packer.flush()


@attack(r"error: cells\.h5ad: 'var/_index' has its values in another file")
def names_from_another_file(folder: Path) -> list[str]:
    (folder / "secret").write_text("root:x:0:0\n" * N_GENES)
    with h5ad(folder) as stored:
        files = [(str(folder / "secret"), 0, 11 * N_GENES)]
        renewed(stored, "var/_index", (N_GENES,), dtype="S11", external=files, kind="string-array")
    return on_h5ad(folder)


@attack(r"error: cells\.h5ad: 'X' is a link")
def matrix_by_an_external_link(folder: Path) -> list[str]:
    with h5py.File(folder / "other.h5", "w") as other:
        other["X"] = np.eye(N_CELLS)[:, :N_GENES]
    with h5ad(folder) as stored:
        del stored["X"]
        stored["X"] = h5py.ExternalLink("other.h5", "X")
    return on_h5ad(folder)


@attack(r"error: cells\.h5ad: 'X' is a link")
def matrix_by_a_soft_link_through_an_external_one(folder: Path) -> list[str]:
    with h5py.File(folder / "other.h5", "w") as other:
        other["X"] = np.eye(N_CELLS)[:, :N_GENES]
    with h5ad(folder) as stored:
        del stored["X"]
        stored["uns"] = h5py.ExternalLink("other.h5", "/")
        stored["X"] = h5py.SoftLink("/uns/X")
    return on_h5ad(folder)


@attack(r"error: cells\.h5ad: 'X' has its values in another file")
def virtual_matrix_without_its_source(folder: Path) -> list[str]:
    with h5ad(folder) as stored:
        del stored["X"]
        layout = h5py.VirtualLayout((N_CELLS, N_GENES), dtype="f8")
        layout[:] = h5py.VirtualSource("missing.h5", "X", shape=(N_CELLS, N_GENES))
        encode(stored.create_virtual_dataset("X", layout), "array")
    return on_h5ad(folder)


@attack(r"error: cells\.h5ad: 'obs/type/codes' has its values in another file")
def virtual_codes(folder: Path) -> list[str]:
    with h5ad(folder) as stored:
        del stored["obs/type/codes"]
        layout = h5py.VirtualLayout((N_CELLS,), dtype="i1")
        layout[:] = h5py.VirtualSource("missing.h5", "X", shape=(N_CELLS,))
        encode(stored.create_virtual_dataset("obs/type/codes", layout), "array")
    return on_h5ad(folder)


@attack(r"error: cells\.h5ad: .*'/elsewhere/names'")
def index_that_is_named_by_a_path(folder: Path) -> list[str]:
    with h5py.File(folder / "other.h5", "w") as other:
        other["names"] = np.array([f"secret{i}" for i in range(N_GENES)], dtype=TEXT)
    with h5ad(folder) as stored:
        stored["elsewhere"] = h5py.ExternalLink("other.h5", "/")
        stored["var"].attrs["_index"] = "/elsewhere/names"
    return on_h5ad(folder)


@attack(r"error: cells\.h5ad: 'obs/__categories/type' has its values in another file")
def categories_of_an_old_file(folder: Path) -> list[str]:
    (folder / "secret").write_text("root:x:0:0\nuser:x:1:1\n")
    with h5ad(folder) as stored:
        obs = stored["obs"]
        obs.attrs["encoding-version"] = "0.1.0"
        del obs["type"]
        files = [(str(folder / "secret"), 0, 22)]
        categories = obs.create_group("__categories").create_dataset("type", (2,), dtype="S11", external=files)
        obs.create_dataset("type", data=np.arange(N_CELLS, dtype="i1") % 2).attrs["categories"] = categories.ref
    return on_h5ad(folder)


@attack(r"error: cells\.h5ad: ")
def hard_links_in_a_circle(folder: Path) -> list[str]:
    with h5ad(folder) as stored:
        del stored["X"]
        matrix = encode(stored.create_group("X"), "csr_matrix", "0.1.0", shape=[N_CELLS, N_GENES])
        matrix["data"] = matrix["indices"] = matrix["indptr"] = stored
    return on_h5ad(folder)


@attack(HELD)
def references_as_names(folder: Path) -> list[str]:
    with h5ad(folder) as stored:
        renewed(stored, "var/_index", data=np.array([stored.ref] * N_GENES, dtype=h5py.ref_dtype))
    return on_h5ad(folder)


@attack(r"error: cells\.h5ad: the values are complex128")
def complex_matrix(folder: Path) -> list[str]:
    with h5ad(folder) as stored:
        renewed(stored, "X", data=1j * stored["X"][:])
    return on_h5ad(folder)


@attack(HELD, cap=CAP)
def one_long_name_many_times(folder: Path) -> list[str]:
    n_genes = 50_000
    with h5ad(folder, n_genes) as stored:
        names = renewed(stored, "var/_index", (n_genes,), dtype=TEXT, kind="string-array")
        names[0] = "g" * 100_000
        place = names.id.get_offset()
    with open(folder / "cells.h5ad", "r+b") as raw:  # every name is the same place in the heap
        raw.seek(place)
        entry = raw.read(16)
        raw.seek(place)
        raw.write(entry * n_genes)
    return on_h5ad(folder)


@attack(HELD, cap=2 * CAP)
def huge_chunk_of_a_small_matrix(folder: Path) -> list[str]:
    with h5ad(folder) as stored:
        shape = (N_CELLS, N_GENES)
        renewed(stored, "X", shape, dtype="f8", chunks=(50, 10**7), maxshape=(None, None), compression="gzip")
    return on_h5ad(folder)


@attack(HELD, cap=CAP)
def chunk_that_inflates(folder: Path) -> list[str]:
    with h5ad(folder) as stored:
        shape = (N_CELLS, N_GENES)
        renewed(stored, "X", shape, dtype="f8", chunks=shape, compression="gzip").id.write_direct_chunk((0, 0), bomb(2**31))
    return on_h5ad(folder)


@attack(r"error: cells\.h5ad: not a whole HDF5 file")
def chunk_that_inflates_in_blocks(folder: Path) -> list[str]:
    n_genes, n_at_once = 300_000, 75_000
    with h5ad(folder, n_genes) as stored:
        options: dict[str, Any] = {"dtype": "f8", "chunks": (15, n_at_once), "compression": "gzip"}
        matrix = renewed(stored, "X", (N_CELLS, n_genes), **options)
        zeros, growing = zlib.compress(bytes(8 * 15 * n_at_once), 1), bomb(2**31)
        for row in range(0, N_CELLS, 15):
            for column in range(0, n_genes, n_at_once):
                matrix.id.write_direct_chunk((row, column), growing if (row, column) == (30, n_at_once) else zeros)
    return on_h5ad(folder)


@attack(HELD, cap=CAP)
def chunk_that_is_compressed_twice(folder: Path) -> list[str]:
    with h5ad(folder) as stored:
        del stored["X"]
        properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        properties.set_chunk((N_CELLS, N_GENES))
        properties.set_deflate(9)
        properties.set_filter(h5py.h5z.FILTER_DEFLATE, 0, (9,))
        space = h5py.h5s.create_simple((N_CELLS, N_GENES))
        matrix = h5py.h5d.create(stored.id, b"X", h5py.h5t.IEEE_F64LE, space, properties)
        matrix.write_direct_chunk((0, 0), zlib.compress(bomb(2**31), 9))
        encode(stored["X"], "array")
    return on_h5ad(folder)


@attack(HELD, cap=CAP)
def chunk_that_is_shuffled_after_its_compression(folder: Path) -> list[str]:
    with h5ad(folder) as stored:
        del stored["X"]
        properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        properties.set_chunk((N_CELLS, N_GENES))
        properties.set_deflate(9)
        properties.set_shuffle()
        space = h5py.h5s.create_simple((N_CELLS, N_GENES))
        matrix = h5py.h5d.create(stored.id, b"X", h5py.h5t.IEEE_F64LE, space, properties)
        packed = bomb(2**31)
        packed += bytes(-len(packed) % 8)
        shuffled = np.frombuffer(packed, dtype="u1").reshape(-1, 8).T.tobytes()
        matrix.write_direct_chunk((0, 0), shuffled)
        encode(stored["X"], "array")
    return on_h5ad(folder)


@attack(HELD, cap=CAP)
def more_columns_than_any_machine_holds(folder: Path) -> list[str]:
    with h5ad(folder) as stored:
        renewed(stored, "X", (N_CELLS, 10**12), dtype="f8", chunks=(1, 10**8))
    return on_h5ad(folder)


@attack(r"error: cells\.h5ad: .*chunks", cap=CAP)
def more_chunks_than_anyone_lists(folder: Path) -> list[str]:
    n_genes = 200_000
    with h5ad(folder, n_genes) as stored:
        renewed(stored, "X", (N_CELLS, n_genes), dtype="f8", chunks=(1, 1))
    return on_h5ad(folder)


@attack(HELD, cap=2 * CAP)
def endless_row_pointers(folder: Path) -> list[str]:
    with h5ad(folder) as stored:
        del stored["X"]
        matrix = encode(stored.create_group("X"), "csr_matrix", "0.1.0", shape=[N_CELLS, N_GENES])
        matrix["data"], matrix["indices"] = np.ones(N_CELLS), np.zeros(N_CELLS, dtype="i4")
        matrix.create_dataset("indptr", (10**12,), dtype="i8", chunks=(10**6,))
    return on_h5ad(folder)


@attack(HELD)
def names_never_written(folder: Path) -> list[str]:
    with h5ad(folder) as stored:
        renewed(stored, "var/_index", (N_GENES,), dtype=TEXT, chunks=(5,), kind="string-array")
    return on_h5ad(folder)


@attack(HELD)
def half_a_matrix(folder: Path) -> list[str]:
    with h5ad(folder) as stored:
        renewed(stored, "X", (N_CELLS, N_GENES), dtype="f8", chunks=(30, N_GENES))[:30] = np.ones((30, N_GENES))
    return on_h5ad(folder)


# zarr


def describe(shape: list[int], chunks: list[int], dtype: str = "<f8", **more: Any) -> dict[str, Any]:
    array = {"zarr_format": 2, "shape": shape, "chunks": chunks, "dtype": dtype, "fill_value": 0, "order": "C"}
    return {**array, "filters": None, "compressor": None, **more}


def texts(shape: list[int], **more: Any) -> dict[str, Any]:
    return describe(shape, shape, "|O", fill_value="", filters=[{"id": "vlen-utf8"}], **more)


def packed(names: list[str]) -> bytes:
    """Encode texts as the filter vlen-utf8 does."""
    parts = [struct.pack("<I", len(name)) + name.encode() for name in names]
    return struct.pack("<I", len(names)) + b"".join(parts)


def write_array(place: Path, array: dict[str, Any], chunk: bytes | None, kind: str = "array", key: str = "0") -> None:
    place.mkdir(parents=True, exist_ok=True)
    (place / ".zarray").write_text(json.dumps(array))
    (place / ".zattrs").write_text(json.dumps({"encoding-type": kind, "encoding-version": "0.2.0"}))
    if chunk is not None:
        (place / key).write_bytes(chunk)


def zarr_table(place: Path, n_rows: int, columns: list[str]) -> None:
    place.mkdir(parents=True)
    (place / ".zgroup").write_text('{"zarr_format": 2}')
    table = {"encoding-type": "dataframe", "encoding-version": "0.2.0", "_index": "_index", "column-order": columns}
    (place / ".zattrs").write_text(json.dumps(table))
    names = packed([f"{place.name}{i}" for i in range(n_rows)])
    write_array(place / "_index", texts([n_rows]), names, "string-array")


def cells(folder: Path) -> Path:
    """Write a whole AnnData store in zarr's second format, and return its folder."""
    store = folder / "cells.zarr"
    zarr_table(store / "obs", N_CELLS, ["type"])
    zarr_table(store / "var", N_GENES, [])
    (store / ".zgroup").write_text('{"zarr_format": 2}')
    (store / ".zattrs").write_text('{"encoding-type": "anndata", "encoding-version": "0.1.0"}')
    labels = packed(["u", "v"] * (N_CELLS // 2))
    write_array(store / "obs" / "type", texts([N_CELLS]), labels, "string-array")
    values = np.random.default_rng(0).normal(size=(N_CELLS, N_GENES))
    write_array(store / "X", describe([N_CELLS, N_GENES], [N_CELLS, N_GENES]), values.tobytes(), key="0.0")
    return store


def on_zarr(store: Path, *options: str) -> list[str]:
    return [*SELECT, str(store), *options]


def rename(source: Path, target: Path) -> None:
    """Move an array elsewhere, and leave a link to it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    source.rename(target)
    source.symlink_to(target)


@attack(HELD)
def pickle_behind_a_link(folder: Path) -> list[str]:
    store = cells(folder)
    array = texts([N_GENES], compressor={"id": "pickle", "protocol": 4})
    write_array(store / "var" / "_index", array, pickle.dumps(Canary()), "string-array")
    rename(store / "var" / "_index", folder / "outside")
    return on_zarr(store)


@attack(r"error: cells\.zarr: 'elsewhere/names' .*codec 'pickle'")
def pickle_behind_a_link_inside(folder: Path) -> list[str]:
    store = cells(folder)
    array = texts([N_GENES], compressor={"id": "pickle", "protocol": 4})
    write_array(store / "var" / "_index", array, pickle.dumps(Canary()), "string-array")
    rename(store / "var" / "_index", store / "elsewhere" / "names")
    return on_zarr(store)


@attack(r"error: cells\.zarr: 'X' .*codec 'pickle'")
def pickle_in_consolidated_metadata(folder: Path) -> list[str]:
    store = cells(folder)
    array = describe([N_CELLS, N_GENES], [N_CELLS, N_GENES], filters=[{"id": "pickle"}])
    metadata = {"X/.zarray": array, ".zgroup": {"zarr_format": 2}}
    (store / ".zmetadata").write_text(json.dumps({"zarr_consolidated_format": 1, "metadata": metadata}))
    return on_zarr(store)


@attack(r"error: cells\.zarr: 'X' .*objects")
def objects_in_a_store(folder: Path) -> list[str]:
    store = cells(folder)
    write_array(store / "X", describe([N_CELLS, N_GENES], [N_CELLS, N_GENES], "|O"), None)
    return on_zarr(store)


@attack(HELD)
def pickle_inside_of_a_shard(folder: Path) -> list[str]:
    store = cells(folder)
    inner = {"chunk_shape": [30, N_GENES], "codecs": [{"name": "numcodecs.pickle"}], "index_codecs": []}
    array: dict[str, Any] = {"zarr_format": 3, "node_type": "array", "shape": [N_CELLS, N_GENES], "data_type": "float64"}
    array |= {"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [N_CELLS, N_GENES]}}}
    array |= {"chunk_key_encoding": {"name": "default"}, "fill_value": 0}
    array |= {"codecs": [{"name": "sharding_indexed", "configuration": inner}]}
    (store / "X" / ".zarray").unlink()
    (store / "X" / "zarr.json").write_text(json.dumps(array))
    return on_zarr(store)


@attack(HELD)
def chunk_behind_a_link(folder: Path) -> list[str]:
    store = cells(folder)
    rename(store / "var" / "_index" / "0", folder / "secret")
    return on_zarr(store)


@attack(r"error: cells\.zarr: 'X/0\.0' is (no regular file|a pipe)")
def pipe_in_a_store(folder: Path) -> list[str]:
    store = cells(folder)
    (store / "X" / "0.0").unlink()
    os.mkfifo(store / "X" / "0.0")
    return on_zarr(store)


@attack(r"error: cells\.zarr: .*\.zattrs")
def deep_metadata(folder: Path) -> list[str]:
    store = cells(folder)
    (store / ".zattrs").write_text('{"a":' + "[" * 10**6 + "]" * 10**6 + "}")
    return on_zarr(store)


@attack(r"error: cells\.zarr: .*\.zarray", cap=CAP)
def large_metadata(folder: Path) -> list[str]:
    store = cells(folder)
    with open(store / "X" / ".zarray", "wb") as stream:
        stream.truncate(2**30)
    return on_zarr(store)


def on_array(folder: Path, array: dict[str, Any]) -> list[str]:
    write_array(folder / "array.zarr", array, None)
    (folder / "labels.txt").write_text("u\nv\n" * (N_CELLS // 2))
    return ["select", str(folder / "array.zarr"), "--labels", str(folder / "labels.txt")]


@attack(r"error: array\.zarr: .* has chunks of 44\.7 GiB, more than", cap=2 * CAP)
def store_with_more_columns_than_any_machine_holds(folder: Path) -> list[str]:
    return on_array(folder, describe([N_CELLS, 10**12], [N_CELLS, 10**8]))


@attack(HELD, cap=2 * CAP)
def store_with_more_rows_than_any_machine_holds(folder: Path) -> list[str]:
    return on_array(folder, describe([10**15, 1], [10**8, 1], "|u1"))


@attack(r"error: array\.zarr: .* has 600000000 chunks, more than are read", cap=2 * CAP)
def store_with_more_chunks_than_anyone_lists(folder: Path) -> list[str]:
    return on_array(folder, describe([N_CELLS, 10**7], [1, 1]))


@attack(HELD, cap=CAP)
def chunk_of_a_store_that_inflates(folder: Path) -> list[str]:
    store = cells(folder)
    array = describe([N_CELLS, N_GENES], [N_CELLS, N_GENES], compressor={"id": "gzip", "level": 1})
    write_array(store / "X", array, bomb(2**31, 31), key="0.0")
    return on_zarr(store)


@attack(HELD, cap=CAP)
def chunk_of_a_store_that_is_changed_after_its_compression(folder: Path) -> list[str]:
    store = cells(folder)
    filters = [{"id": "zlib", "level": 1}, {"id": "shuffle", "elementsize": 4}]
    array = describe([N_CELLS, N_GENES], [N_CELLS, N_GENES], filters=filters)
    write_array(store / "X", array, bomb(2**31), key="0.0")
    return on_zarr(store)


@attack(HELD, cap=CAP)
def chunk_that_declares_too_much(folder: Path) -> list[str]:
    store = cells(folder)
    array = describe([N_CELLS, N_GENES], [N_CELLS, N_GENES], compressor={"id": "zstd", "level": 1})
    frame = b"\x28\xb5\x2f\xfd\xa0" + struct.pack("<I", 2**31)  # one segment, of which the size is declared
    write_array(store / "X", array, frame + (2**17 << 3 | 2).to_bytes(3, "little") + b"\0", key="0.0")
    return on_zarr(store)


@attack(HELD, cap=CAP)
def names_of_a_store_that_inflate(folder: Path) -> list[str]:
    store = cells(folder)
    array = texts([N_GENES], compressor={"id": "gzip", "level": 1})
    write_array(store / "var" / "_index", array, bomb(2**31, 31), "string-array")
    return on_zarr(store)


@attack(r"error: cells\.zarr: 'var/_index'.*1 of 1 chunks")
def names_of_a_store_that_are_lost(folder: Path) -> list[str]:
    store = cells(folder)
    (store / "var" / "_index" / "0").unlink()
    return on_zarr(store)


@attack(HELD)
def matrix_of_a_store_that_is_lost(folder: Path) -> list[str]:
    store = cells(folder)
    (store / "X" / "0.0").unlink()
    return on_zarr(store)


@attack(r"error: cells\.zarr: the values are complex")
def complex_matrix_in_a_store(folder: Path) -> list[str]:
    store = cells(folder)
    array = describe([N_CELLS, N_GENES], [N_CELLS, N_GENES], "<c16", fill_value=None)
    write_array(store / "X", array, bytes(16 * N_CELLS * N_GENES), key="0.0")
    return on_zarr(store)
