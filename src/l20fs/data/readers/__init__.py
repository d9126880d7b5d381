"""Readers of tables of samples: values, labels and names.

The format of a file is detected by its content, and by its name only where the content is ambiguous. Nothing is ever
unpickled.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np

from l20fs.data.readers import detect
from l20fs.data.readers.arff import read_arff
from l20fs.data.readers.arrays import NPY_MEMORY, map_npy, read_arrays
from l20fs.data.readers.digest import Digest, read_file
from l20fs.data.readers.excel import read_excel
from l20fs.data.readers.file_guard import files_below
from l20fs.data.readers.finite import settle_missing
from l20fs.data.readers.frames import TURN_HINT, looks_turned, take_row_numbers
from l20fs.data.readers.gct import read_gct
from l20fs.data.readers.h5ad import read_h5ad
from l20fs.data.readers.labels import add_labels, samples_in_labels
from l20fs.data.readers.limits import MEMORY_PER_BYTE, not_enough_memory, stays_in_file, unpack_gzip
from l20fs.data.readers.metadata import note_on_metadata
from l20fs.data.readers.names import no_feature, note_on_dates, refuse_broken
from l20fs.data.readers.parquet import read_parquet
from l20fs.data.readers.preparation import prepare
from l20fs.data.readers.repeated import number_features, settle_features, settle_samples
from l20fs.data.readers.selection import choose_features
from l20fs.data.readers.svmlight import read_svmlight
from l20fs.data.readers.table import (
    Contents,
    DataError,
    MissingPackageError,
    Request,
    Samples,
    SamplesIn,
    UnknownColumnError,
)
from l20fs.data.readers.targets import (
    labels_of,
    leave_out_unlabelled,
    note_on_numbers,
    note_on_spelling,
    nuisances_of,
    targets_of,
)
from l20fs.data.readers.tenx import read_tenx, tenx_files
from l20fs.data.readers.text import read_text
from l20fs.data.readers.zarr_store import read_zarr
from l20fs.inputs.devices import is_dask
from l20fs.text import quoted
from l20fs.typing import Decimal, Duplicates, Join, Missing, Task

__all__ = ["DataError", "MissingPackageError", "Samples", "UnknownColumnError", "read_table"]

#: Readers of content in memory, and readers of files that may be too large to load as a whole.
OF_CONTENT: dict[detect.Kind, Callable[[bytes, Request], Contents]] = {
    detect.TEXT: read_text,
    detect.GCT: read_gct,
    detect.ARFF: read_arff,
    detect.SVMLIGHT: read_svmlight,
    detect.EXCEL: read_excel,
    detect.NPY: read_arrays,
    detect.NPZ: read_arrays,
    detect.MAT: read_arrays,
}
OF_FILE: dict[detect.Kind, Callable[[Request], Contents]] = {
    detect.TENX: read_tenx,
    detect.PARQUET: read_parquet,
    detect.H5AD: read_h5ad,
    detect.ZARR: read_zarr,
}


def read_table(
    file: Path,
    target: str | None = None,
    *,
    labels: Path | None = None,
    groups: str | None = None,
    adjust_for: Sequence[str] = (),
    samples_in: SamplesIn | None = None,
    layer: str | None = None,
    sheet: str | None = None,
    max_memory: int | None = None,
    in_blocks: bool = False,
    in_use: int = 0,
    task: Task = "auto",
    need_labels: bool = True,
    needed: Collection[str] | None = None,
    substitutes: Collection[str] = (),
    labels_sheet: str | None = None,
    encoding: str | None = None,
    decimal: Decimal | None = None,
    skip_rows: int | None = None,
    na: Sequence[str] = (),
    ignore: Sequence[str] = (),
    features: Sequence[str] | None = None,
    duplicates: Duplicates | None = None,
    missing: Missing | None = None,
    join: Join | None = None,
    strict: bool = False,
) -> Samples:
    """Read samples with labels, or with numbers to predict, from a file of any supported format.

    Supported are CSV, TSV, GCT, ARFF, svmlight and 10x, which may be gzipped, and Excel, .npy, .npz, .mat, Parquet, h5ad
    and zarr. A 10x matrix is given by its folder or its file ``matrix.mtx``.

    Parameters
    ----------
    file : path
        File or folder to read.
    target : str, optional
        Column with the labels or numbers: of the table, of ``obs`` in an h5ad file, or of the file ``labels``; the variable
        in a file of arrays; the row, if samples are in columns. Not needed where a format has a convention: ``y`` in .npz,
        ``Y`` or ``gnd`` in .mat, the last nominal attribute of ARFF (for a regression the last numeric one), svmlight.
    labels : path, optional
        CSV, TSV, Excel or Parquet file with the labels: sample names in a column, in any order, or one label per line in
        the order of the samples.
    groups : str, optional
        Column of groups of samples that belong together, such as donors, beside ``target``.
    adjust_for : sequence of str, default=()
        Columns of nuisances, such as batch or age, beside ``target``. Numbers with a fraction are numbers, everything else
        is labels; a name followed by ``:number``, such as ``age:number``, says that whole numbers are numbers.
    samples_in : {"rows", "columns"}, optional
        Whether a sample is a row or a column. None: a row, unless the names of the target or of the samples in ``labels``
        show otherwise. GCT and 10x always have samples in columns.
    layer : str, optional
        Layer of an h5ad file or a zarr store to read instead of ``X``.
    sheet : str, optional
        Sheet of a workbook to read instead of the first one that has the target, or looks like a table.
    max_memory : int, optional
        Maximum number of bytes for reading, by estimate; None: the free memory.
    in_blocks : bool, default=False
        Whether the matrix of an h5ad, zarr or npy file that needs more memory may stay in the file, as a
        Dask array.
    in_use : int, default=0
        Number of bytes of ``max_memory`` that are in use already and not available to blocks.
    task : {"auto", "classification", "regression"}, default="auto"
        ``"regression"``: the targets are numbers. ``"classification"``: they are labels. ``"auto"``: they are labels as
        well, but many different numbers are refused.
    need_labels : bool, default=True
        Whether a file without labels is refused. If not, no labels are read unless ``target`` or ``labels`` says where.
    needed : collection of str, optional
        Names of the features to read, at least one of which must be there. All other columns, also of text, are left out;
        values may be missing (NaN), and labels may be of any kind.
    substitutes : collection of str, default=()
        Names of features that can replace those that are needed; they are read as well.
    labels_sheet : str, optional
        Sheet of ``labels``, if that is a workbook, instead of the first one that fits.
    encoding : str, optional
        Encoding of texts; None: detected.
    decimal : {".", ","}, optional
        Decimal mark; None: detected.
    skip_rows : int, optional
        Number of lines above the header; None: detected.
    na : sequence of str, default=()
        Texts that stand for a missing value, besides the usual ones.
    ignore : sequence of str, default=()
        Names or patterns (``*``, ``?``) of columns that are left out, besides those of text.
    features : sequence of str, optional
        Names or patterns of the features to read; None: all.
    duplicates : {"refuse", "mean", "first", "number"}, optional
        What happens to features of the same name; None: they are numbered.
    missing : {"refuse", "drop", "median", "knn"}, optional
        What happens to missing values; None: they are replaced by medians. ``"drop"`` leaves out their features. ``X`` has
        no gaps; cross-validation starts from ``Samples.X_before`` and fits ``Samples.preprocess`` in every fold.
    join : {"exact", "inner", "near"}, optional
        How samples are matched to ``labels``: all of both must match, those in both are used, or also names match that
        differ only in case, blanks, punctuation and endings. None: those that match, unless they are less than half.
    strict : bool, default=False
        Whether to raise an error instead of guessing anything that is not said.

    Returns
    -------
    Samples
        Values, labels and names.

    Raises
    ------
    DataError
        If the file is damaged, unsafe, too large or unusable; the message says what to change.
    UnknownColumnError
        If a requested column, sheet, layer or variable does not exist.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "tumours.csv"
    >>> _ = file.write_text("type,TP53,1-Mar\\nwild,1,2\\nwild,3,4\\nmutant,5,6\\nmutant,7,8\\n")
    >>> table = read_table(file, "type")
    >>> table.X.shape, table.y.tolist(), table.feature_names
    ((4, 2), ['wild', 'wild', 'mutant', 'mutant'], ['TP53', '1-Mar'])
    >>> table.notes[0][:32]
    '1 feature name looks like a date'
    """
    options = locals()  # exactly the parameters: each of them is a field of Request
    names = {"needed": None if needed is None else frozenset([*needed, *substitutes]), "substitutes": frozenset(substitutes)}
    request = Request(**options | {"file": Path(file), "labels": labels and Path(labels)} | names)
    try:
        return _read(request)
    except MemoryError as error:
        raise not_enough_memory(error, request) from error


def _read(request: Request) -> Samples:
    """Read what a request asks for."""
    detect.refuse_unsafe(request.file)
    kind = detect.detect(request)
    _refuse_options(kind, request)
    is_mapped = kind == detect.NPY and stays_in_file(NPY_MEMORY * request.file.stat().st_size, request)
    content = None if kind in OF_FILE or is_mapped else read_file(request, MEMORY_PER_BYTE if kind.is_text else 1)
    digest = Digest(_files(kind, request) if content is None else content, request)
    if request.labels is not None:
        request = replace(request, labelled_samples=samples_in_labels(request))
    if content is not None:
        unpacked = [_unpacked(content, kind, request)]
        del content  # its reader may be done with it before the end
        contents = OF_CONTENT[kind](unpacked.pop(), request)
    else:
        contents = map_npy(request) if is_mapped else OF_FILE[kind](request)
    if request.labels is not None:
        contents = add_labels(contents, request)
    contents = replace(contents, notes=(*detect.note_on_name(kind, request), *contents.notes))
    return replace(_table(contents, kind, request), sha256=digest.result())


def _refuse_options(kind: detect.Kind, request: Request) -> None:
    """Raise an error for options that do not apply to this format, before anything large is read."""
    if request.samples_in not in (None, "rows", "columns"):
        raise ValueError(f"samples_in={request.samples_in!r}: samples are in 'rows' or in 'columns'.")
    if request.task not in get_args(Task):
        raise ValueError(f"task={request.task!r} is unknown. Use {quoted(get_args(Task), 'or')}.")
    for option, value, where in (
        ("layer", request.layer, (detect.H5AD, detect.ZARR)),
        ("sheet", request.sheet, (detect.EXCEL,)),
    ):
        if value is not None and kind not in where:
            raise DataError(
                f"{request.name}: {option} {value!r} is for {where[0].name} files; this is {kind.name}. Leave it out."
            )
    if request.samples_in == "columns" and not kind.can_turn:
        raise DataError(f"{request.name}: {kind.name} files have their samples in rows. Leave samples_in out.")
    if kind == detect.TENX and request.expects_labels:
        raise UnknownColumnError(f"{request.name}: a 10x matrix has no labels. Give a file with them (--labels FILE).")


def _unpacked(content: bytes, kind: detect.Kind, request: Request) -> bytes:
    if content[:2] != detect.GZIP:
        return content
    return unpack_gzip(content, request, MEMORY_PER_BYTE if kind.is_text else 1)


def _table(contents: Contents, kind: detect.Kind, request: Request) -> Samples:
    """Validate the contents and return them as samples, without the hash."""
    contents = replace(contents, X=_as_floats(contents.X), feature_names=number_features(contents.feature_names, request))
    if request.needed is None and kind.has_columns and not contents.is_turned:
        contents = take_row_numbers(contents, request)
    contents = choose_features(contents, request)
    if request.needed is not None:
        contents = _only_features(contents, request)
    n_samples, n_features = contents.X.shape
    may_be_turned = kind.can_turn and request.samples_in is None and not contents.is_turned
    turn_hint = f" {TURN_HINT}" if may_be_turned and looks_turned(n_samples, n_features) else ""
    contents = settle_samples(settle_features(contents, request), request, turn_hint)
    what = repr(contents.target_name) if contents.target_name else "number" if request.task == "regression" else "label"
    contents, n_missing = settle_missing(leave_out_unlabelled(contents, what, request), request)
    y = contents.y
    targets = np.full(contents.X.shape[0], "") if y is None else targets_of(y, what, contents, request, turn_hint)
    in_groups = contents.beside.get(request.groups or "")
    groups = None if in_groups is None else labels_of(in_groups, repr(request.groups), contents, request)
    nuisances = nuisances_of(contents, request)
    prepared = prepare(contents, n_missing, request)
    for names, thing in (
        (contents.feature_names, "feature"),
        (contents.sample_names or (), "sample"),
        (() if targets.dtype.kind == "f" else targets.tolist(), "class"),
        (() if groups is None else groups.tolist(), "group"),
        ((contents.target_name, *contents.others), "column"),
        (nuisances, "column"),
    ):
        refuse_broken(names, thing, request)
    return Samples(
        X=prepared.X,
        y=targets,
        feature_names=contents.feature_names,
        sha256="",
        sample_names=contents.sample_names,
        groups=groups,
        adjust_for=nuisances,
        target_name=contents.target_name,
        notes=(
            *contents.notes,
            *request.log.notes,
            *note_on_numbers(targets, what, request),
            *note_on_spelling(targets, groups, request),
            *note_on_dates(contents.feature_names),
            *note_on_metadata(contents.X, contents.feature_names, request),
        ),
        format=contents.format or kind.name,
        title=request.name,
        others=contents.others,
        choices=request.log.choices,
        unprepared=prepared.unprepared,
        missing=prepared.missing,
    )


def _only_features(contents: Contents, request: Request) -> Contents:
    """Return the contents with the requested features only, or raise an error if there is none."""
    assert request.needed is not None
    kept = [place for place, name in enumerate(contents.feature_names) if request.needs(name)]
    others = [*contents.others, *(name for name in contents.feature_names if not request.needs(name))]
    if not kept:
        are_in_rows = not contents.is_turned and not request.needed.isdisjoint(contents.sample_names or [])
        raise no_feature(others, request, TURN_HINT if are_in_rows else "")
    if len(kept) == len(contents.feature_names) and not is_dask(contents.X):
        return replace(contents, others=others)
    names = [contents.feature_names[place] for place in kept]
    X = contents.X[:, kept]
    return replace(contents, X=X.compute() if is_dask(X) else X, feature_names=names, others=others)


def _as_floats(X: Any) -> Any:
    if X.dtype in (np.float32, np.float64):
        return X
    return X.astype(np.float64)


def _files(kind: detect.Kind, request: Request) -> list[Path]:
    """Return the files of a table that a library opens."""
    if kind == detect.ZARR:
        return files_below(request.file)
    return tenx_files(request.file) if kind == detect.TENX else [request.file]
