"""Folder of data sets: finding, loading and importing them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from l20fs.data.builtin import load_srbct
from l20fs.data.catalogue import Status, as_float32, class_codes, content_digest, judge, paper_sets
from l20fs.data.containers import LabelledArrays, read_labelled, read_npz
from l20fs.data.readers import DataError
from l20fs.storage.files import check_writable, write_atomically
from l20fs.typing import Array

ENVIRONMENT = "L20FS_DATA_DIR"

#: Valid names of data sets: never a path, and unique on case-insensitive file systems.
NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


class MissingDataError(DataError):
    """Missing data set; the message names its source."""


@dataclass(frozen=True, eq=False)
class LabelledSet:
    """Data set with labels and names.

    Attributes
    ----------
    name : str
        Name of the data set.
    X : ndarray of shape (n_samples, n_features)
        Values, float64.
    y : ndarray of shape (n_samples,)
        Indices into ``class_names``, int64.
    class_names, feature_names : list of str
        Names of the classes and of the features.
    status : {"exact", "substitute", "unverified", "built-in", "own"}
        Relation to the paper's data set of this name.
    origin : str
        Path of the file, or ``"built-in"``.
    sha256 : str
        Digest of the stored content, see :func:`~l20fs.data.catalogue.content_digest`.

    Examples
    --------
    >>> tumours = load_dataset("srbct", "a folder that does not exist")
    >>> tumours.y[:5], tumours.class_names[0]
    (array([0, 0, 0, 0, 0]), 'EWS')
    """

    name: str
    X: Array
    y: Array
    class_names: list[str]
    feature_names: list[str]
    status: Status
    origin: str
    sha256: str


def find_data_dir(option: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder of data sets: ``option``, else ``$L20FS_DATA_DIR``, else ``~/.cache/l20fs``.

    The folder need not exist. Without a home folder it is ``l20fs-data`` in the current folder.

    Parameters
    ----------
    option : path, optional
        Folder to use.

    Returns
    -------
    Path
        The folder.

    Examples
    --------
    >>> find_data_dir("sets").name
    'sets'
    """
    if option is not None:
        return Path(option)
    if stated := os.environ.get(ENVIRONMENT):
        return Path(stated)
    try:
        return Path.home() / ".cache" / "l20fs"
    except RuntimeError:  # of a user whom the system does not know
        return Path("l20fs-data")


def check_name(name: str) -> str:
    """Return a valid name of a data set, or raise an error."""
    if not NAME.fullmatch(name):
        shown = repr(name if len(name) <= 64 else name[:61] + "...")
        raise DataError(
            f"{shown} is no name for a data set. Use 1 to 64 of a-z, 0-9, - and _, and begin with a letter or digit."
        )
    return name


def find_file(name: str, folder: Path) -> Path | None:
    """Return the file of a data set, if it is in the folder or in its subfolder ``paper``."""
    places = (folder / f"{check_name(name)}.npz", folder / "paper" / f"{name}.npz")
    return next((file for file in places if file.is_file()), None)


def known_names(folder: Path) -> list[str]:
    """Return the names of the catalogue, followed by those of the other data sets in the folder."""
    files = [file for place in (folder, folder / "paper") for file in place.glob("*.npz") if file.is_file()]
    own = {file.stem for file in files if NAME.fullmatch(file.stem)}
    return [*paper_sets(), *sorted(own - set(paper_sets()))]


def load_dataset(name: str, data_dir: str | os.PathLike[str] | None = None) -> LabelledSet:
    """Load a data set by name: one of the paper's, verified against the catalogue, or an imported one.

    ``srbct`` needs no file: without one, the built-in set is returned on the paper's scale. The substitute for ``lung`` is
    stored on its linear scale, as published, and loaded as log10, since every other set holds logarithms or ratios; the
    paper's own ``lung``, if it was imported instead, is loaded unchanged.

    Parameters
    ----------
    name : str
        Name of the data set.
    data_dir : path, optional
        Folder of data sets, see :func:`find_data_dir`.

    Returns
    -------
    LabelledSet
        The data set.

    Raises
    ------
    MissingDataError
        If there is no such file; the message names the source of the data.
    DataError
        If the file is damaged, or its values differ from the catalogue.

    Examples
    --------
    >>> tumours = load_dataset("srbct", "a folder that does not exist")
    >>> tumours.X.shape, tumours.class_names, tumours.status
    ((63, 2308), ['EWS', 'RMS', 'NB', 'BL'], 'built-in')
    """
    folder = find_data_dir(data_dir)
    file = find_file(name, folder)
    if file is not None:
        return _as_set(name, read_npz(file), str(file))
    if name == "srbct":
        return _built_in_srbct()
    entry = paper_sets().get(name)
    if entry is None:
        raise MissingDataError(
            f"{name!r} is neither in the catalogue ({', '.join(paper_sets())}) nor in {folder}. "
            f"Bring it there: l20fs data import FILE --as {name}"
        )
    raise MissingDataError(
        f"{name!r} is not in {folder}. To be had: {entry.source}. Then: l20fs data import FILE --as {name}"
    )


def import_dataset(
    file: str | os.PathLike[str], name: str, data_dir: str | os.PathLike[str] | None = None, *, target: str | None = None
) -> LabelledSet:
    """Validate a data set and copy it into the folder of data sets, atomically.

    Under a name of the catalogue only the values of the catalogue are accepted or, where it knows a substitute only, data
    with the paper's shape. An existing file is not overwritten.

    Parameters
    ----------
    file : path
        ``.mat`` (X and Y, fea and gnd, or data and label), ``.npz`` (the same names), ``.csv`` or ``.tsv`` (``.gz`` too).
    name : str
        A name of the catalogue, such as ``"brain"``, or any other name for your own data.
    data_dir : path, optional
        Folder of data sets, see :func:`find_data_dir`.
    target : str, optional
        Column with the labels, for tables.

    Returns
    -------
    LabelledSet
        The data set as :func:`load_dataset` returns it.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = Path(folder.name) / "own.csv"
    >>> _ = file.write_text("type,TP53\\na,1\\na,2\\nb,3\\nb,4\\n")
    >>> import_dataset(file, "own", folder.name, target="type").class_names
    ['a', 'b']
    >>> load_dataset("own", folder.name).X.shape
    (4, 1)
    >>> folder.cleanup()
    """
    check_name(name)
    source, folder = Path(file), find_data_dir(data_dir)
    if not os.path.lexists(folder / f"{name}.npz"):
        check_writable(folder, "data_dir")
    found = read_labelled(source, target)
    place = folder / f"{name}.npz"
    result = _as_set(name, found, str(place), shown=source.name)
    if os.path.lexists(place):
        if not _holds(place, result):
            raise DataError(f"{place} is there already and holds something else. Move it away, or use another name.")
        return result
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(place, _writer(found, result))
    return result


def _as_set(name: str, found: LabelledArrays, origin: str, shown: str | None = None) -> LabelledSet:
    """Verify values against the catalogue, if it has the name, and return them on the scale for methods."""
    entry = paper_sets().get(name)
    status: Status = "own" if entry is None else judge(found, entry, shown or origin)
    codes, labels = class_codes(found.y, entry)
    known = entry if status in ("exact", "substitute") else None
    X = as_float32(found.X) if known else found.X
    values = X.astype(np.float64)
    return LabelledSet(
        name=name,
        X=np.log10(values) if known and known.log10 else values,
        y=codes,
        class_names=list(known.class_names) if known else found.class_names or [str(label) for label in labels],
        feature_names=found.feature_names or [f"feature{j + 1}" for j in range(X.shape[1])],
        status=status,
        origin=origin,
        sha256=content_digest(X, codes),
    )


def _built_in_srbct() -> LabelledSet:
    entry = paper_sets()["srbct"]
    tumours = load_srbct(scale="paper")
    codes, _ = class_codes(tumours.target, entry)
    digest = content_digest(tumours.data, codes)
    names = list(entry.class_names)
    return LabelledSet("srbct", tumours.data, codes, names, tumours.feature_names, "built-in", "built-in", digest)


def _holds(file: Path, wanted: LabelledSet) -> bool:
    """Return whether a file already has the values and classes that would be written."""
    try:
        stored = _as_set(wanted.name, read_npz(file), str(file))
    except (DataError, OSError):
        return False
    return (
        stored.class_names == wanted.class_names
        and np.array_equal(stored.y, wanted.y)
        and np.array_equal(stored.X, wanted.X)
    )


def _writer(found: LabelledArrays, result: LabelledSet) -> Callable[[BinaryIO], object]:
    """Return a function that writes a data set: in float32 if the catalogue knows it, else in full precision."""
    content = {
        "X": as_float32(found.X) if result.status in ("exact", "substitute") else found.X,
        "y": result.y,
        "class_names": np.array(result.class_names),
    }
    if found.feature_names is not None:
        content["feature_names"] = np.array(found.feature_names)
    return lambda stream: np.savez_compressed(stream, **content)  # type: ignore[arg-type]
