"""Folder of the results of one command: whose it is, what may be written into it, and how.

>>> import tempfile
>>> place = tempfile.TemporaryDirectory()
>>> folder = ResultFolder(Path(place.name), "predict")
>>> with folder.claim():
...     folder.write({"predictions.tsv": lambda stream: stream.write(b"sample\\n")}, {"input": "new.csv"})
['predictions.tsv', 'run.json']
>>> ResultFolder(Path(place.name), "select").check()
Traceback (most recent call last):
    ...
l20fs.storage.result_folder.TakenFolderError: ... holds results of `l20fs predict` ... Name another folder.
>>> place.cleanup()
"""

from __future__ import annotations

import json
import os
import platform
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

from l20fs.storage.files import Staged, Writer, check_writable, claimed, stage, sweep, write_atomically
from l20fs.storage.regular_files import kind_of, read_regular
from l20fs.storage.swap import digest_of, is_plain_name, recover, recover_claimed, swap

#: What the results were made from and the SHA-256 of each of them; it is the last file that is put in place.
RUN = "run.json"

#: Whose run has no results yet. It goes when the run ends.
MARKER = ".run.json"

#: Largest run.json: it names all files and classes.
MOST_BYTES = 2**26


#: Files of :class:`~l20fs.storage.keyed_store.KeyedStore` in folders of data sets: their names end with a hash.
CELLS = f"*/*-{'[0-9a-f]' * 32}.json"


class Layout(NamedTuple):
    """Files of a command: names or patterns of its results, those by which it is known, folders of what a run keeps."""

    files: tuple[str, ...]
    known_by: tuple[str, ...]
    kept: Mapping[str, str] = {}
    is_repeatable: bool = False
    accumulates: bool = False


def _each(*stems: str) -> tuple[str, ...]:
    """Return the names of tables, figures and texts in all their formats."""
    return tuple(f"{stem}.{ending}" for stem in stems for ending in ("csv", "md", "tex", "html", "svg", "png"))


#: Of each command; the names in ``kept`` are those of folders, with a pattern of the files in them.
LAYOUTS = {
    "select": Layout(
        ("selection.tsv", "path.npz", "cv.tsv", "stability.tsv", "panel.json", "report.html", RUN),
        ("selection.tsv", "panel.json"),
        {"stability": "resample-*.json", "passes": "pass-*.npz", "folds": "fold-*.npz"},
    ),
    "compare": Layout(
        ("rows.csv", *_each("comparison", "stability", "time", "curves-*", "summary"), "report.html", RUN),
        ("comparison.csv",),
        {"cells": CELLS},
        is_repeatable=True,
    ),
    "validate": Layout(
        ("validation.tsv", "predictions.tsv", "validation.json", "validation.html", RUN), ("validation.json",)
    ),
    "predict": Layout(("predictions.tsv", RUN), ("predictions.tsv",)),
    "reproduce": Layout(
        (
            *("rows.csv", "traces.csv", "index.html", RUN),
            *_each("summary", "datasets", "time", "repeats", "convergence", "accuracy-*", "curves-*", "lambda-*"),
            *_each("initialisation-*", "solvers-*", "readings-*", "ranks-*"),
        ),
        ("traces.csv", "index.html"),
        {"cells": CELLS},
        is_repeatable=True,
        accumulates=True,
    ),
}


def versions(*packages: str) -> dict[str, str]:
    """Return the versions that a result depends on: of Python, of this package and NumPy, and of others."""
    from importlib.metadata import version  # half of the time of importing this module

    return {"python": platform.python_version(), **{name: version(name) for name in ("l20fs", "numpy", *packages)}}


class TakenFolderError(Exception):
    """Folder that holds something which must not be replaced."""


class ResultFolder:
    """Output folder of a command.

    It belongs to one command. The folder itself may be a link; everything in it must be real: no link is followed, and only
    regular files are replaced. All files of a run are put in place together, see :mod:`l20fs.storage.swap`, and ``run.json``
    has their SHA-256.

    Parameters
    ----------
    path : Path
    command : {"select", "compare", "validate", "predict", "reproduce"}
    """

    def __init__(self, path: Path, command: str) -> None:
        self.path, self.command, self.layout = path, command, LAYOUTS[command]
        self._is_claimed = False

    # --------------------------------------------------------------------------------------------------- what is there

    @property
    def record(self) -> dict[str, Any]:
        """The content of run.json; empty if there is none, or if it is damaged."""
        return _read_object(self.path / RUN)

    @property
    def recorded(self) -> dict[str, str]:
        """The SHA-256 of each result by name, as run.json has them."""
        files = self.record.get("files")
        return {name: str(files[name]) for name in files if is_plain_name(name)} if isinstance(files, dict) else {}

    def changed(self) -> list[str]:
        """Return the results that are no more as their run wrote them."""
        return [
            name for name, digest in self.recorded.items() if self._exists(name) and digest_of(self.path / name) != digest
        ]

    def missing(self) -> list[str]:
        """Return the results of the run that are gone; run.json if there is no list of them."""
        recorded = self.recorded
        return [name for name in recorded if not self._exists(name)] if recorded else [RUN]

    def present(self) -> list[str]:
        """Return the files with names of results of this command."""
        names = _names(self.path)
        return [name for pattern in self.layout.files for name in names if fnmatchcase(name, pattern)]

    def kept(self, folder: str | None = None) -> list[Path]:
        """Return what runs of this command have kept to be resumed, in one of its folders or in all."""
        return _kept(self.path, {folder: self.layout.kept[folder]} if folder else self.layout.kept)

    def _exists(self, name: str) -> bool:
        return os.path.lexists(self.path / name)

    # ------------------------------------------------------------------------------------------------------- what is allowed

    def check(self, *, force: bool = False, resume: bool = False, data: str | None = None) -> None:
        """Raise an error if this command must not or cannot write into the folder; called before any work is done.

        Parameters
        ----------
        force : bool
            Whether results of an earlier run, and other files of their names, may be replaced.
        resume : bool
            Whether an earlier run is resumed.
        data : str, optional
            Hash of the data of a command that may be repeated: results of other data are not replaced.
        """
        check_writable(self.path)
        if not self.path.is_dir():
            return
        if not self._is_claimed:
            with claimed(self.path):  # no other run is in it
                recover_claimed(self.path)
        self._refuse_irregular()
        for name in self.layout.kept:
            if self._exists(name):
                check_writable(self.path / name)
        owner = owner_of(self.path)
        if owner not in (None, self.command) and not (self.layout.is_repeatable and owner == "cells"):
            raise TakenFolderError(f"-o {self.path}: holds {_described(self.path, owner)}. Name another folder.")
        if not force:
            self._refuse_present(resume=resume, data=data)

    def _refuse_present(self, *, resume: bool, data: str | None) -> None:
        present, recorded = self.present(), self.recorded
        if not resume and not self.layout.is_repeatable:
            if present:
                raise TakenFolderError(
                    f"-o {self.path}: holds results already ({', '.join(present)}). Use --force to replace them."
                )
            if self.kept():
                raise TakenFolderError(
                    f"-o {self.path}: holds a run that was not finished. Use --resume to go on, or --force to begin anew."
                )
        foreign = self.changed()
        if self.layout.is_repeatable and (recorded or owner_of(self.path) is None):
            foreign += [name for name in present if name not in recorded and name != RUN]
        if foreign:
            raise TakenFolderError(
                f"-o {self.path}: changed after the run, or not written by `l20fs {self.command}`: {', '.join(foreign)}. "
                "Use --force to replace this, or name another folder."
            )
        before = {_data_of(self.record), _data_of(_read_object(self.path / MARKER))} - {None}
        if data is not None and before and data not in before:
            raise TakenFolderError(
                f"-o {self.path}: holds a run of `l20fs {self.command}` on other data. Use --force to replace its "
                "results, or name another folder."
            )

    def _refuse_irregular(self) -> None:
        """Raise an error for links, pipes and the like in the places of our files and folders."""
        for name in (*self.present(), MARKER):
            self._refuse(self.path / name, stat.S_ISREG, "a regular file")
        for name in self.layout.kept:
            self._refuse(self.path / name, stat.S_ISDIR, "a folder")
            for place in _tree(self.path / name):
                self._refuse(place, lambda mode: stat.S_ISREG(mode) or stat.S_ISDIR(mode), "a regular file")
        for place in self.kept():
            self._refuse(place, stat.S_ISREG, "a regular file")

    def _refuse(self, place: Path, is_right: Callable[[int], bool], wanted: str) -> None:
        try:
            mode = os.lstat(place).st_mode
        except OSError:
            return
        if not is_right(mode):
            raise TakenFolderError(
                f"-o {self.path}: {place} is {kind_of(mode)}, where {wanted} of the results belongs. Remove it, or name "
                "another folder."
            )

    # ------------------------------------------------------------------------------------------------------------ a run

    @contextmanager
    def claim(self, *, force: bool = False, resume: bool = False, data: str | None = None) -> Iterator[None]:
        """Lock the folder for a run, finish or sweep what a killed one has left, and mark it until the run has ended."""
        with claimed(self.path), self._claiming():
            recover_claimed(self.path)
            self.check(force=force, resume=resume, data=data)
            self._sweep()
            if command_of(self.path) is None:
                marker = json.dumps({"command": self.command, "data": data}).encode()
                write_atomically(self.path / MARKER, lambda stream: stream.write(marker))
            try:
                yield
            except BaseException:
                if not self.kept():
                    self._unmark()
                raise
            self._unmark()

    @contextmanager
    def _claiming(self) -> Iterator[None]:
        self._is_claimed = True
        try:
            yield
        finally:
            self._is_claimed = False

    def _unmark(self) -> None:
        (self.path / MARKER).unlink(missing_ok=True)

    def _sweep(self) -> None:
        sweep(self.path)
        for name in self.layout.kept:
            for place in _tree(self.path / name):
                if place.is_dir():
                    sweep(place)

    def forget(self, *folders: str) -> None:
        """Remove what was kept in some folders, and the folders if nothing else is in them."""
        for folder in folders:
            for file in self.kept(folder):
                file.unlink(missing_ok=True)
            with suppress(OSError):  # not there, or with something else in it
                (self.path / folder).rmdir()

    def write(self, writers: Mapping[str, Writer], run: Mapping[str, Any]) -> list[str]:
        """Write all results together with run.json, remove those of the earlier run, and return the names."""
        staged: list[Staged] = []
        earlier = self._earlier()
        try:
            for name, write in writers.items():
                staged.append(stage(self.path / name, write))
            files = {each.file.name: each.sha256 for each in staged}
            if self.layout.accumulates:
                files = {name: digest for name, digest in earlier.items() if self._exists(name)} | files
            staged.append(self._stage_record({"command": self.command, **run, "files": files}))
        except BaseException:
            for each in staged:
                each.drop()
            raise
        swap(self.path, staged, [] if self.layout.accumulates else self._stale({*files, RUN}, earlier))
        return [each.file.name for each in staged]

    def write_again(self, name: str, write: Writer) -> None:
        """Replace one result of a finished run, and its SHA-256 in run.json."""
        with claimed(self.path):
            recover_claimed(self.path)
            sweep(self.path)
            staged, record = [stage(self.path / name, write)], self.record
            if self.recorded.get(name, staged[0].sha256) != staged[0].sha256:
                record["files"][name] = staged[0].sha256
                staged.append(self._stage_record(record))
            swap(self.path, staged)

    def _stage_record(self, record: dict[str, Any]) -> Staged:
        text = (json.dumps(record, indent=2, ensure_ascii=False) + "\n").encode()
        return stage(self.path / RUN, lambda stream: stream.write(text))

    def _earlier(self) -> dict[str, str]:
        """Return the SHA-256 of the results of earlier runs; a version that wrote no list of them wrote all there are."""
        if self.recorded or owner_of(self.path) is None:
            return self.recorded
        return {name: digest_of(self.path / name) for name in self.present() if name != RUN}

    def _stale(self, new: set[str], earlier: Mapping[str, str]) -> list[str]:
        """Return the results of the earlier run that the new one does not have."""
        own = {name for name in self.layout.files if "*" not in name}
        left = [name for name in {*earlier, *own} - new if self._exists(name)]
        return sorted(name for name in left if name in own or digest_of(self.path / name) == earlier[name])


def command_of(folder: Path) -> str | None:
    """Return the command whose results a folder holds; None if it holds none."""
    command = _read_object(folder / RUN).get("command")
    if isinstance(command, str) and command in LAYOUTS:
        return command
    known = (name for name, layout in LAYOUTS.items() if any(os.path.lexists(folder / file) for file in layout.known_by))
    return next(known, None)


def owner_of(folder: Path) -> str | None:
    """Return the command whose results, or whose unfinished run, a folder holds; None if it holds neither.

    ``"cells"`` stands for a run of `compare` or `reproduce` of which only the cells are there.
    """
    command = command_of(folder)
    if command is not None:
        return command
    command = _read_object(folder / MARKER).get("command")
    if isinstance(command, str) and command in LAYOUTS and _kept(folder, LAYOUTS[command].kept):
        return command
    if _kept(folder, LAYOUTS["select"].kept):
        return "select"
    return "cells" if _kept(folder, LAYOUTS["compare"].kept) else None


def describe_change(folder: Path, name: str) -> str | None:
    """Return what is wrong with a result that is to be read: it is not the one of this run; None if nothing is.

    The exchange of files that a killed run began is finished before.
    """
    recover(folder)
    digest = ResultFolder(folder, "select").recorded.get(name)
    if digest is None or not (folder / name).exists() or digest_of(folder / name) == digest:
        return None
    return (
        f"{folder / name} is not the file that its run wrote (run.json has another SHA-256): it was edited, or belongs to "
        "another run."
    )


def _read_object(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(read_regular(file, MOST_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _data_of(record: dict[str, Any]) -> str | None:
    found = record.get("data")
    return found if isinstance(found, str) else None


def _names(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _tree(folder: Path) -> Iterator[Path]:
    """Yield a folder of what is kept and everything in it; no link below it is followed."""
    yield folder
    for path, folders, files in os.walk(folder):
        yield from (Path(path) / name for name in (*folders, *files))


def _kept(folder: Path, patterns: Mapping[str, str]) -> list[Path]:
    return [file for name, pattern in patterns.items() for file in sorted((folder / name).glob(pattern))]


def _described(folder: Path, owner: str) -> str:
    """Describe the results or the unfinished run of a command in a folder."""
    if owner == "cells":
        return "an unfinished run of `l20fs compare` or `l20fs reproduce`"
    found = [name for name in LAYOUTS[owner].known_by if os.path.lexists(folder / name)]
    return f"results of `l20fs {owner}` ({', '.join(found)})" if found else f"an unfinished run of `l20fs {owner}`"
