"""The folder with data sets: where it is, what is in it, and how a set gets in."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from l20fs.data.builtin import load_srbct
from l20fs.data.catalogue import Status, as_float32, class_codes, content_digest, judge, paper_sets
from l20fs.data.containers import LabelledArrays, read_labelled, read_npz
from l20fs.data.readers import DataError
from l20fs.storage.files import write_atomically
from l20fs.typing import Array

ENVIRONMENT = "L20FS_DATA_DIR"

#: Where caches are kept: the variable that says so, and the place below the home otherwise.
CACHES = {"win32": ("LOCALAPPDATA", "AppData/Local"), "darwin": ("", "Library/Caches")}

#: What a set may be called: never a path, and the same file on systems that ignore upper and lower case.
NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


class MissingDataError(DataError):
    """A data set that is not in the folder; the message says where it can be had."""


@dataclass(frozen=True, eq=False)
class LabelledSet:
    """A data set by name, ready for use.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features)
        float64.
    y : ndarray of shape (n_samples,)
        Positions in ``class_names``, int64.
    class_names, feature_names : list of str
    status : {"exact", "substitute", "unverified", "built-in", "own"}
        What it is to the paper's set of this name.
    origin : str
        The file, or ``"built-in"``.
    sha256 : str
        Of the stored content, see :func:`~l20fs.data.catalogue.content_digest`.
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
    """Return the folder with data sets: ``option``, else ``$L20FS_DATA_DIR``, else the platform's folder for caches.

    The folder need not exist. Without a home it is ``l20fs-data`` in the current folder.

    Examples
    --------
    >>> find_data_dir("sets").name
    'sets'
    """
    if option is not None:
        return Path(option)
    if stated := os.environ.get(ENVIRONMENT):
        return Path(stated)
    variable, below_home = CACHES.get(sys.platform, ("XDG_CACHE_HOME", ".cache"))
    caches = Path(os.environ.get(variable, ""))
    if caches.is_absolute():  # a relative one is to be ignored, says the XDG specification
        return caches / "l20fs"
    home = Path(os.path.expanduser("~"))
    # Where there is no home, "~" stays as it is; where HOME is empty, it becomes the root.
    return home / below_home / "l20fs" if len(home.parts) > 1 else Path("l20fs-data")


def check_name(name: str) -> str:
    """Return a name under which a set can be kept, or refuse it: a name is never a path."""
    if not NAME.fullmatch(name):
        shown = repr(name if len(name) <= 64 else name[:61] + "...")
        raise DataError(
            f"{shown} is no name for a data set. Use 1 to 64 of a-z, 0-9, - and _, and begin with a letter or digit."
        )
    return name


def find_file(name: str, folder: Path) -> Path | None:
    """Return the file of a set, if it is in the folder or in its subfolder ``paper``."""
    places = (folder / f"{check_name(name)}.npz", folder / "paper" / f"{name}.npz")
    return next((file for file in places if file.is_file()), None)


def known_names(folder: Path) -> list[str]:
    """Return the names of the catalogue, then those of all other sets in the folder."""
    files = [file for place in (folder, folder / "paper") for file in place.glob("*.npz") if file.is_file()]
    own = {file.stem for file in files if NAME.fullmatch(file.stem)}
    return [*paper_sets(), *sorted(own - set(paper_sets()))]


def load_dataset(name: str, data_dir: str | os.PathLike[str] | None = None) -> LabelledSet:
    """Load a data set by name: one of the paper's, checked against the catalogue, or one that was imported.

    ``srbct`` needs no file: without one, the built-in set is taken on the paper's scale. The substitute for ``lung`` is
    kept on its linear scale, as it is published, and loaded as log10, since every other set is a logarithm or a ratio; the
    paper's own ``lung``, if it was imported instead, is loaded as it is.

    Parameters
    ----------
    name : str
    data_dir : path, optional
        See :func:`find_data_dir`.

    Raises
    ------
    MissingDataError
        If there is no such file; the message says where it can be had.
    DataError
        If the file is damaged, or holds other values than the catalogue says.

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
    """Bring a data set into the folder: checked, and written whole or not at all.

    Under a name of the catalogue only what the catalogue knows is accepted, or what has the paper's shape where the
    catalogue has a substitute only. A file that is there already is left as it is.

    Parameters
    ----------
    file : path
        ``.mat`` (X and Y, fea and gnd, or data and label), ``.npz`` (the same names), ``.csv`` or ``.tsv`` (``.gz`` too).
    name : str
        ``brain``, for one, or any other name for a set of your own.
    data_dir : path, optional
        See :func:`find_data_dir`.
    target : str, optional
        The column with the labels, for tables.

    Returns
    -------
    LabelledSet
        As :func:`load_dataset` gives it from now on.
    """
    check_name(name)
    source, folder = Path(file), find_data_dir(data_dir)
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
    """Check values against the catalogue, where it has the name, and return them as methods are to see them."""
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
    """Say whether a file has the values and classes that would be written."""
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
    """Return what writes a set: of what the catalogue knows the values that are hashed, of any other set all digits."""
    content = {
        "X": as_float32(found.X) if result.status in ("exact", "substitute") else found.X,
        "y": result.y,
        "class_names": np.array(result.class_names),
    }
    if found.feature_names is not None:
        content["feature_names"] = np.array(found.feature_names)
    return lambda stream: np.savez_compressed(stream, **content)  # type: ignore[arg-type]
