"""Arrays and Parquet files that inflate, or state sizes that they do not have."""

from __future__ import annotations

import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy.io import savemat

from attacks import HELD, attack

MIB = 2**20
LABELS = np.arange(20, dtype=np.uint8) % 2


def npy(kind: Any, shape: tuple[int, ...], content: bytes = b"") -> bytes:
    """Return an array that states a type and a shape."""
    head = f"{{'descr': {kind!r}, 'fortran_order': False, 'shape': {shape!r}, }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + content


def npz(folder: Path, method: int = zipfile.ZIP_DEFLATED, **entries: bytes) -> list[str]:
    with zipfile.ZipFile(folder / "a.npz", "w", method) as archive:
        for name, content in ({"y": npy("|u1", (20,), LABELS.tobytes())} | entries).items():
            archive.writestr(f"{name}.npy", content)
    return ["select", str(folder / "a.npz")]


SMALL = npy("<f8", (20, 2), np.arange(40.0).tobytes())


@attack(HELD, cap=64 * MIB)
def zeros_compressed_by_bzip2(folder: Path) -> list[str]:
    return npz(folder, zipfile.ZIP_BZIP2, X=npy("<f8", (20, 10_000), bytes(1_600_000)))


@attack(HELD, cap=64 * MIB)
def zeros_compressed_by_lzma(folder: Path) -> list[str]:
    return npz(folder, zipfile.ZIP_LZMA, X=npy("<f8", (20, 10_000), bytes(1_600_000)))


@attack(HELD, cap=64 * MIB)
def bytes_that_become_numbers(folder: Path) -> list[str]:
    return npz(folder, X=npy("|u1", (20, 500_000), bytes(10_000_000)))


@attack(HELD, cap=64 * MIB)
def a_shape_that_lies(folder: Path) -> list[str]:
    return npz(folder, X=npy("<f8", (10**6, 10**6), b"abc"))


@attack(HELD, cap=64 * MIB)
def labels_of_no_width(folder: Path) -> list[str]:
    return npz(folder, X=SMALL, y=npy("<U0", (10**9,)))


@attack(HELD, cap=64 * MIB)
def names_of_no_width(folder: Path) -> list[str]:
    return npz(folder, X=SMALL, feature_names=npy("<U0", (10**15,)))


@attack(HELD, cap=64 * MIB)
def values_of_no_width(folder: Path) -> list[str]:
    return npz(folder, X=npy("|V0", (10**15, 5)))


@attack(HELD, cap=64 * MIB)
def objects(folder: Path) -> list[str]:
    return npz(folder, X=npy("|O", (20, 5), b"cposix\nsystem\n"))


@attack(HELD, cap=64 * MIB)
def records(folder: Path) -> list[str]:
    return npz(folder, X=npy([("a", "<f8"), ("b", "<U1000000")], (1000, 1000), b"abc"))


@attack(HELD, cap=64 * MIB)
def an_entry_that_is_no_array(folder: Path) -> list[str]:
    return npz(folder, X=b"hello")


@attack(HELD, cap=64 * MIB)
def sparse_with_a_trillion_columns(folder: Path) -> list[str]:
    parts = {
        "indices": np.zeros(20, np.int32),
        "indptr": np.arange(21),
        "shape": np.array([20, 10**12]),
        "data": np.ones(20),
    }
    np.savez(folder / "a.npz", format=b"csr", **parts)
    (folder / "labels.txt").write_text("u\nv\n" * 10)
    return ["select", str(folder / "a.npz"), "--labels", str(folder / "labels.txt")]


@attack(HELD, cap=64 * MIB)
def labels_as_wide_as_one_of_them(folder: Path) -> list[str]:
    return npz(folder, X=npy("<f8", (2000, 1), bytes(16_000)), y=npy("<U5000", (2000,), bytes(40_000_000)))


@attack(HELD, cap=64 * MIB)
def arrays_that_fit_one_by_one(folder: Path) -> list[str]:
    names = {
        "feature_names": npy("<U500", (5000,), bytes(10_000_000)),
        "sample_names": npy("<U5000", (500,), bytes(10_000_000)),
    }
    return npz(folder, X=npy("|i1", (500, 5000), bytes(2_500_000)), y=npy("|u1", (500,), bytes(500)), **names)


@attack(r"", code=0, cap=128 * MIB)
def honest_arrays_below_the_cap(folder: Path) -> list[str]:
    X = np.random.default_rng(0).standard_normal((50, 90_000)).astype(np.float32)
    X[:, 0] += 3 * (np.arange(50) % 2)
    np.savez(folder / "a.npz", X=X, y=np.arange(50) % 2, feature_names=[f"g{j}" for j in range(90_000)])
    return ["select", str(folder / "a.npz")]


def matlab(folder: Path, **variables: Any) -> list[str]:
    savemat(folder / "a.mat", {"X": np.ones((20, 3)), "Y": LABELS} | variables, do_compression=True)
    return ["select", str(folder / "a.mat")]


@attack(HELD, cap=64 * MIB)
def matlab_labels_that_inflate(folder: Path) -> list[str]:
    return matlab(folder, Y=np.zeros((20, 300_000)))


@attack(HELD, cap=64 * MIB)
def matlab_characters_that_inflate(folder: Path) -> list[str]:
    return matlab(folder, Y=np.array(["a" * 200_000] * 20))


@attack(HELD, cap=64 * MIB)
def matlab_dimensions_that_lie(folder: Path) -> list[str]:
    command = matlab(folder)
    content = (folder / "a.mat").read_bytes()
    _, size = struct.unpack("<II", content[128:136])
    matrix = zlib.decompress(content[136 : 136 + size]) + bytes(50_000_000)
    packed = zlib.compress(matrix, 1)
    (folder / "a.mat").write_bytes(content[:128] + struct.pack("<II", 15, len(packed)) + packed + content[136 + size :])
    return command


def parquet(folder: Path, **columns: Any) -> list[str]:
    n_rows = len(next(iter(columns.values())))
    pq.write_table(pa.table({"type": pa.array(["u", "v"] * (n_rows // 2))} | columns), folder / "a.parquet")
    return ["select", str(folder / "a.parquet"), "--target", "type"]


@attack(HELD, cap=32 * MIB)
def a_table_of_zeros(folder: Path) -> list[str]:
    return parquet(folder, **{f"g{j}": np.zeros(100_000) for j in range(20)})


@attack(HELD, cap=64 * MIB)
def a_long_text_of_a_dictionary(folder: Path) -> list[str]:
    codes = pa.array(np.zeros(100_000, np.int32))
    return parquet(folder, a=pa.DictionaryArray.from_arrays(codes, pa.array(["a" * 1_000_000])))


@attack(r"no feature columns besides the target but text", cap=64 * MIB)
def lists_of_millions(folder: Path) -> list[str]:
    starts = pa.array(np.arange(101) * 200_000, pa.int32())
    return parquet(folder, a=pa.ListArray.from_arrays(starts, pa.array(np.zeros(20_000_000, np.int8))))


@attack(HELD, cap=64 * MIB)
def one_long_label_of_a_table(folder: Path) -> list[str]:
    return parquet(folder, type=pa.array(["a" * 20_000_000, *"uv" * 10]), a=np.arange(21.0))


@attack(HELD, cap=64 * MIB)
def the_same_long_label_for_all(folder: Path) -> list[str]:
    labels = pa.DictionaryArray.from_arrays(pa.array(np.zeros(400_000, np.int32)), pa.array(["a" * 500_000]))
    return parquet(folder, type=labels, a=np.zeros(400_000))
