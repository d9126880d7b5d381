"""Small whole files of every kind that is read, our own included, and how each is read."""

from __future__ import annotations

import gzip
import io
import json
import shutil
import warnings
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anndata
import files
import h5py
import numpy as np
import pandas as pd
import scipy.sparse as sp
import zarr
from panel_samples import fitted

from l20fs import Panel, SolutionPath, open_large
from l20fs.prediction.panel_file import content_hash
from l20fs.tables import DataError, MissingPackageError, UnknownColumnError, read_table

#: Memory that reading may take, by estimate.
CAP = 2**28

#: What a table that cannot be read may raise, and what our own files may.
REFUSALS = (DataError, UnknownColumnError, MissingPackageError)
Read = Callable[[Path], Any]


@dataclass(frozen=True)
class Target:
    """Folder of files to damage, and how they are read.

    Attributes
    ----------
    name : str
    read : callable
        Reads the files in a folder.
    allowed : tuple of exception types
        What it may raise.
    seal : callable
        Corrects the checksum of damaged content, so that what it guards is reached as well.
    """

    name: str
    read: Read
    allowed: tuple[type[Exception], ...] = REFUSALS
    seal: Callable[[bytes], bytes] = bytes


def make_targets(folder: Path) -> list[Target]:
    """Write the files of all targets, one folder each, and return the targets."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [*_tables(folder), *_stores(folder), *_own_files(folder)]


def _table(name: str, options: dict[str, Any]) -> Read:
    """Return a function that reads a table from a folder, with the file of labels in the same folder."""

    def read(folder: Path) -> Any:
        beside = {"labels": folder / options["labels"]} if "labels" in options else {}
        return read_table(folder / name, **options | beside, max_memory=CAP)

    return read


def _tables(folder: Path) -> list[Target]:
    made = files.contents(_new(folder / "made"))
    made["three.gct"] = (files.gct(3), made["three.gct.gz"][1])
    made["plain.parquet"] = (files.with_labels().to_parquet(compression=None, use_dictionary=False), made["a.parquet"][1])
    made["a.xlsx"], made["turned.xlsx"] = (
        (_without_times(made[name][0]), made[name][1]) for name in ("a.xlsx", "turned.xlsx")
    )
    made["labels.xlsx"] = (made["plain.csv"][0], {"labels": "sheet.xlsx", "target": "type"})
    made["labels.parquet"] = (made["plain.csv"][0], {"labels": "sheet.parquet", "target": "type"})
    made["old.h5ad"] = (_old_h5ad(folder / "made" / "old.h5ad"), {"target": "type"})
    sheet = pd.read_csv(io.StringIO(files.LABEL_FILE))
    others = {
        "labels.csv": files.LABEL_FILE.encode(),
        "plain.txt": "\n".join(files.LABELS).encode(),
        "sheet.xlsx": _without_times(files.written(sheet.to_excel, index=False)),
        "sheet.parquet": sheet.to_parquet(),
    }
    targets = []
    for name, (content, options) in made.items():
        place = _new(folder / name)
        (place / name).write_bytes(content)
        if "labels" in options:
            (place / options["labels"]).write_bytes(others[options["labels"]])
        if name == "matrix.mtx":
            (place / "features.tsv").write_text("".join(f"ENSG{j}\t{gene}\tGene\n" for j, gene in enumerate(files.GENES)))
            (place / "barcodes.tsv.gz").write_bytes(gzip.compress("\n".join(files.SAMPLES).encode(), mtime=0))
        targets.append(Target(name, _table(name, options)))
    return targets


def _stores(folder: Path) -> list[Target]:
    """Make zarr stores of both versions, and matrices that are read in blocks."""
    targets = []
    for version in (2, 3):
        name = f"v{version}.zarr"
        place, anndata.settings.zarr_write_format = _new(folder / name) / name, version
        _anndata(sp.csr_array(files.X) if version == 3 else files.X).write_zarr(place)
        targets.append(Target(name, _table(name, {"target": "type"})))
    anndata.settings.reset("zarr_write_format")
    zarr.save_array(_new(folder / "array.zarr") / "array.zarr", files.X, zarr_format=3)
    (folder / "array.zarr" / "plain.txt").write_text("\n".join(files.LABELS))
    targets.append(Target("array.zarr", _table("array.zarr", {"labels": "plain.txt"})))
    for name in ("a.npy", "a.h5ad", "dense.h5ad", "v2.zarr", "v3.zarr"):
        _new(folder / f"blocks {name}").rmdir()
        shutil.copytree(folder / name, folder / f"blocks {name}")
        (folder / f"blocks {name}" / "plain.txt").unlink(missing_ok=True)
        targets.append(Target(f"blocks {name}", lambda place, name=name: _blocks(place / name), (ValueError, *REFUSALS)))
    return targets


def _blocks(file: Path) -> Any:
    """Open a matrix larger than memory."""
    return open_large(file)


def _own_files(folder: Path) -> list[Target]:
    panel, model, _, _ = fitted()
    (_new(folder / "panel.json") / "panel.json").write_text(panel.to_json())
    model.path_.save(_new(folder / "path.npz") / "path.npz")
    return [
        Target("panel.json", lambda place: Panel.load(place / "panel.json"), (ValueError,), _sealed_panel),
        Target("path.npz", lambda place: SolutionPath.load(place / "path.npz"), (ValueError,)),
    ]


def _sealed_panel(content: bytes) -> bytes:
    """Return a damaged panel with the right hash, if it is JSON still."""
    try:
        stored = json.loads(content)
        del stored["sha256"]
        return json.dumps(stored | {"sha256": content_hash(stored)}).encode()
    except (ValueError, TypeError, KeyError, RecursionError):
        return content


def _anndata(matrix: Any) -> anndata.AnnData:
    obs = pd.DataFrame({"type": pd.Categorical(files.LABELS), "donor": files.DONORS}, index=files.SAMPLES)
    return anndata.AnnData(matrix, obs=obs, var=pd.DataFrame(index=files.GENES))


def _old_h5ad(file: Path) -> bytes:
    """Return an h5ad file as anndata before 0.7 wrote it: tables as compound arrays, a sparse X without an encoding."""
    with h5py.File(file, "w") as stored:
        X = sp.csr_matrix(files.X)
        group = stored.create_group("X")
        group.attrs["h5sparse_format"], group.attrs["h5sparse_shape"] = "csr", X.shape
        for name in ("data", "indices", "indptr"):
            group[name] = getattr(X, name)
        obs = list(
            zip(map(str.encode, files.SAMPLES), np.unique(files.LABELS, return_inverse=True)[1].tolist(), strict=True)
        )
        stored["obs"] = np.array(obs, dtype=[("index", "S4"), ("type", "i1")])
        stored["var"] = np.array([(gene.encode(),) for gene in files.GENES], dtype=[("index", "S5")])
        stored["uns/type_categories"] = np.array([label.encode() for label in sorted(set(files.LABELS))])
    return file.read_bytes()


def _without_times(content: bytes) -> bytes:
    """Return a workbook without the times of its writing, so that the same seed gives the same damage."""
    stream = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as found, zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as plain:
        for name in found.namelist():
            if not name.startswith("docProps"):
                plain.writestr(zipfile.ZipInfo(name), found.read(name), zipfile.ZIP_DEFLATED)
    return stream.getvalue()


def _new(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder
