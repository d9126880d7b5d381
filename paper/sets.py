"""Data sets of the paper: a catalogue with digests of their values, and a reader of .npz and .mat files."""

from __future__ import annotations

import hashlib
import tomllib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.io import loadmat

from l20fs.compare.runner import Dataset
from l20fs.data import load_srbct
from l20fs.typing import Array

CATALOGUE = Path(__file__).with_name("catalogue.toml")


class DataSetError(ValueError):
    """A data set that is missing, or has other values than the catalogue knows."""


@dataclass(frozen=True)
class Entry:
    """Entry of the catalogue.

    ``sha256`` is the digest of values and classes (:func:`digest_of`). ``differs`` says how the known copy differs from the
    paper's, whose shape is ``paper_shape``; it is empty if there is no difference. Values with ``log10`` are stored on a
    linear scale and loaded as decimal logarithms.
    """

    name: str
    title: str
    reference: str
    n_samples: int
    n_features: int
    class_names: list[str]
    class_sizes: list[int]
    scale: str
    source: str
    sha256: str
    paper_shape: list[int] | None = None
    differs: str = ""
    log10: bool = False


def catalogue() -> dict[str, Entry]:
    """Return the data sets of the paper by name."""
    content = tomllib.loads(CATALOGUE.read_text(encoding="utf-8"))
    return {name: Entry(name, **facts) for name, facts in content.items()}


def digest_of(X: Array, codes: Array) -> str:
    """Return the SHA-256 of values and classes, whatever the file format.

    Hashed are the values as little-endian float32, sample by sample, then the classes as little-endian int64, counted from
    0 in the order of the catalogue.

    Examples
    --------
    >>> digest_of(np.eye(2), np.array([0, 1]))[:8]
    '4921afb8'
    """
    digest = hashlib.sha256(np.asarray(X).astype("<f4", order="C").tobytes())
    digest.update(np.asarray(codes).astype("<i8").tobytes())
    return digest.hexdigest()


def load_set(name: str, folder: Path) -> Dataset:
    """Load a data set of the paper from ``name.npz`` (X and y) or ``name.mat`` (X and Y), verified by its digest.

    ``srbct`` needs no file: without one it is the built-in set on the paper's scale.
    """
    entry = catalogue()[name]
    file = next((place for ending in ("npz", "mat") if (place := folder / f"{name}.{ending}").is_file()), None)
    if file is None and name == "srbct":
        tumours = load_srbct(scale="paper")
        return Dataset(name, tumours.data, np.array([entry.class_names.index(label) for label in tumours.target]))
    if file is None:
        raise DataSetError(f"{name}: no {name}.npz or {name}.mat in {folder}. To be had: {entry.source}.")
    X, codes = _read(file)
    found = digest_of(X, codes)
    if found != entry.sha256:
        raise DataSetError(
            f"{file.name}: {len(X)} x {X.shape[1]} values with the digest {found[:12]}, but {name!r} has "
            f"{entry.n_samples} x {entry.n_features} and {entry.sha256[:12]}. Take the file from {entry.source}."
        )
    values = X.astype(np.float32).astype(np.float64)
    return Dataset(name, np.log10(values) if entry.log10 else values, codes)


def _read(file: Path) -> tuple[Array, Array]:
    """Return values, and classes counted from 0."""
    if file.suffix == ".npz":
        with np.load(file, allow_pickle=False) as stored:
            X, y = stored["X"], stored["y"]
    else:
        stored = loadmat(file, variable_names=["X", "Y"])
        X, y = stored["X"], stored["Y"]
    return X, np.unique(y.reshape(-1), return_inverse=True)[1].astype(np.int64)
