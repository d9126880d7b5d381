"""Catalogue of the paper's data sets, with content digests that identify them in any file format."""

from __future__ import annotations

import hashlib
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

import numpy as np

from l20fs.data.containers import LabelledArrays
from l20fs.data.readers import DataError
from l20fs.typing import Array

#: exact: the paper's values. substitute: another matrix of the same study. unverified: the paper's shape and classes, but no
#: digest is known. built-in: part of the package. own: not in the catalogue.
Status = Literal["exact", "substitute", "unverified", "built-in", "own"]


@dataclass(frozen=True)
class CatalogueEntry:
    """Entry of the catalogue: one data set of the paper.

    Attributes
    ----------
    name, title : str
        Short name, and title of the data set.
    reference : str
        Publication of the data.
    n_samples, n_features : int
        Shape of the known copy.
    class_names : tuple of str
        Classes of the known copy.
    class_sizes : tuple of int
        Number of samples of each class.
    paper_shape : tuple of int
        Numbers of samples and features in the paper.
    scale : str
        Scale of the values, in words.
    source : str
        Source of the data, in words.
    sha256 : str
        Digest of values and classes, see :func:`~l20fs.data.catalogue.content_digest`.
    differs : str
        Difference between the known copy and the paper's; empty if there is none.
    log10 : bool
        Whether the stored values are loaded as decimal logarithms.

    Examples
    --------
    >>> paper_sets()["brain"].class_sizes
    (10, 10, 10, 4, 8)
    """

    name: str
    title: str
    reference: str
    n_samples: int
    n_features: int
    class_names: tuple[str, ...]
    class_sizes: tuple[int, ...]
    paper_shape: tuple[int, int]
    scale: str
    source: str
    sha256: str
    differs: str = ""
    log10: bool = False

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of samples and features of the known copy."""
        return self.n_samples, self.n_features

    @property
    def exact(self) -> bool:
        """Whether the known copy has the paper's values."""
        return not self.differs


@cache
def paper_sets() -> dict[str, CatalogueEntry]:
    """Return the data sets of the paper by name.

    Returns
    -------
    dict of str to CatalogueEntry
        The catalogue.

    Examples
    --------
    >>> lung = paper_sets()["lung"]
    >>> lung.shape, lung.paper_shape, lung.exact
    ((203, 1543), (203, 3312), False)
    """
    content = tomllib.loads(files("l20fs.data").joinpath("catalogue.toml").read_text(encoding="utf-8"))
    return {name: _entry(name, facts) for name, facts in content.items()}


def _entry(name: str, facts: dict[str, Any]) -> CatalogueEntry:
    facts = {key: tuple(value) if isinstance(value, list) else value for key, value in facts.items()}
    return CatalogueEntry(name=name, **{"paper_shape": (facts["n_samples"], facts["n_features"]), **facts})


def content_digest(X: Array, codes: Array) -> str:
    """Return the SHA-256 of values and classes, independent of the file format.

    Hashed are the values as little-endian float32, sample by sample, then the classes as little-endian int64, counted from
    0 in the order of the catalogue.

    Examples
    --------
    >>> content_digest(np.eye(2), np.array([0, 1]))[:8]
    '4921afb8'
    """
    digest = hashlib.sha256(as_float32(X).tobytes())
    digest.update(np.asarray(codes).astype("<i8").tobytes())
    return digest.hexdigest()


def as_float32(X: Array) -> Array:
    """Return the values as little-endian float32, the precision of the catalogue; too large ones become infinite."""
    with np.errstate(over="ignore"):
        return np.asarray(X).astype("<f4", order="C")


def class_codes(labels: Array, entry: CatalogueEntry | None = None) -> tuple[Array, list[Any]]:
    """Return the class of every sample, counted from 0, and the labels in this order.

    Class names of the catalogue keep its order; numbers, also as text, are sorted by value, and other text
    alphabetically.

    Examples
    --------
    >>> class_codes(np.array(["10", "9", "10"]))
    (array([1, 0, 1]), ['9', '10'])
    """
    values, ranks = np.unique(labels, return_inverse=True)
    ranks = ranks.reshape(-1)
    order = np.arange(len(values))
    if values.dtype.kind == "U":
        if entry is not None and set(values.tolist()) == set(entry.class_names):
            order = np.array([values.tolist().index(name) for name in entry.class_names])
        elif (numbers := _as_numbers(values)) is not None:
            order = np.argsort(numbers, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return place[ranks].astype(np.int64), values[order].tolist()


def _as_numbers(texts: Array) -> Array | None:
    try:
        return texts.astype(np.float64)
    except ValueError:
        return None


def recognise(found: LabelledArrays) -> CatalogueEntry | None:
    """Return the entry of the catalogue with exactly these values and classes, if any."""
    for entry in paper_sets().values():
        if found.X.shape == entry.shape and content_digest(found.X, class_codes(found.y, entry)[0]) == entry.sha256:
            return entry
    return None


def judge(found: LabelledArrays, entry: CatalogueEntry, where: str) -> Status:
    """Compare data with an entry of the catalogue; raise an error that names both if they do not match."""
    known = recognise(found)
    if known is entry:
        return "exact" if entry.exact else "substitute"
    sizes = np.bincount(class_codes(found.y, entry)[0])
    same_classes = sorted(sizes) == sorted(entry.class_sizes)
    if not entry.exact and found.X.shape == entry.paper_shape and same_classes:
        return "unverified"
    way_out = "A set of your own needs another name."
    if known is not None:
        raise DataError(f"{where}: these are the values of {known.name!r}, not of {entry.name!r}. Use its name.")
    if found.X.shape != entry.shape:
        expected = _by(entry.shape) + ("" if entry.exact else f" (in the paper {_by(entry.paper_shape)})")
        raise DataError(f"{where}: {_by(found.X.shape)} values, but {entry.name!r} has {expected}. {way_out}")
    if not same_classes:
        stated = f"{sizes.tolist()} samples, but {entry.name!r} has {list(entry.class_sizes)}"
        raise DataError(f"{where}: the classes have {stated}. {way_out}")
    digest = content_digest(found.X, class_codes(found.y, entry)[0])
    raise DataError(
        f"{where}: the shape of {entry.name!r}, but other values, or samples in another order: content sha256 "
        f"{digest[:12]}..., expected {entry.sha256[:12]}... {way_out}"
    )


def _by(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape))
