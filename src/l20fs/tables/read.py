"""From a file to samples: format, cells or matrix, labels, targets, gaps."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

from l20fs.tables import formats, memory
from l20fs.tables.errors import first_line
from l20fs.tables.labels import labelled, labelled_samples, say_groups
from l20fs.tables.names import PATIENT, numbered_names, refuse_broken, say_dates, say_metadata
from l20fs.tables.preparation import prepared
from l20fs.tables.settings import input_settings
from l20fs.tables.shape import chosen, contents_of
from l20fs.tables.table import Contents, Reading, Samples, Table
from l20fs.tables.targets import (
    covariates_of,
    labels_of,
    leave_out_unlabelled,
    say_leaks,
    say_spelling,
    say_twice,
    targets_of,
)
from l20fs.text import by_number, counted, listed, quoted
from l20fs.typing import Task


def read_table(
    file: str | Path,
    target: str | None = None,
    *,
    labels: str | Path | None = None,
    groups: str | None = None,
    adjust_for: Sequence[str] = (),
    ignore: Sequence[str] = (),
    task: Task = "auto",
    need_labels: bool = True,
    needed: Collection[str] | None = None,
    substitutes: Collection[str] = (),
    max_memory: int | None = None,
    **settings: Any,
) -> Samples:
    """Read samples with labels, or with numbers to predict, from a file of any supported format.

    Supported are CSV, TSV and other separators, GCT, ARFF and svmlight, which may be gzipped, Excel, Parquet, h5ad, zarr,
    .npy, .npz and .mat, and 10x Genomics: a folder, its ``matrix.mtx``, or a ``.h5`` file.

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
        Columns of covariates, such as batch or age, beside ``target``. Numbers with a fraction are numbers, everything else
        is labels; a name followed by ``:number``, such as ``age:number``, says that whole numbers are numbers.
    ignore : sequence of str, default=()
        Names or patterns (``*``, ``?``) of columns that are left out, besides those of text.
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
    max_memory : int, optional
        Number of bytes that reading may take; None: what is free. The matrix of an h5ad, zarr or npy file that needs more
        stays in its file, as :func:`l20fs.open_large` opens it; other files are refused.
    **settings : object
        Keys of the section ``input``, such as ``samples_in="columns"`` or ``decimal=","``; ``docs/files.md`` has them all.

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
    >>> table.notes[0][:48]
    "tumours.csv: 1 feature name looks like a date ('"
    """
    if task not in get_args(Task):
        raise ValueError(f"task={task!r} is unknown. Use {quoted(get_args(Task), 'or')}.")
    reading = Reading(
        Path(file),
        input_settings(settings),
        target,
        None if labels is None else Path(labels),
        groups,
        tuple(adjust_for),
        tuple(ignore),
        task,
        need_labels,
        None if needed is None else frozenset([*needed, *substitutes]),
        frozenset(substitutes),
        max_memory,
    )
    try:
        return _read(reading)
    except MemoryError as error:
        raise reading.error(f"needs more memory than there is ({first_line(error)}). Use a larger machine.") from error


def _read(reading: Reading) -> Samples:
    """Read what is asked for: format, cells or matrix, labels, targets, gaps."""
    found = formats.detect(reading)
    formats.say_name(found, reading)
    _refuse_settings(found, reading)
    rows = None
    if reading.labels is not None:
        rows = formats.label_rows(replace(reading, file=reading.labels, verbatim=True))
        reading = replace(reading, labelled=labelled_samples(rows))
    if found.name == "ARFF" and reading.lacks_labels:
        reading = replace(reading, target=formats.arff_target(reading))
    held = found.read(reading)
    contents = contents_of(held, reading) if isinstance(held, Table) else chosen(held, reading)
    if rows is not None:
        contents = labelled(contents, rows, reading)
    return _samples(_with_unique_samples(contents, reading), found, reading)


def _refuse_settings(found: formats.Format, reading: Reading) -> None:
    """Raise an error for settings that do not apply to a format, before anything large is read."""
    for key, known in (("layer", ("h5ad", "zarr")), ("sheet", ("Excel",))):
        value = getattr(reading.input, key)
        if value is not None and found.name not in known:
            raise reading.error(f"input.{key}={value!r} is for {known[0]} files; this is {found.name}. Leave it out.")
    if reading.input.samples_in == "columns" and found.samples == "rows":
        raise reading.error(f"{found.name} files have their samples in rows. Leave input.samples_in out.")


def _with_unique_samples(contents: Contents, reading: Reading) -> Contents:
    """Return the contents with unique names of samples."""
    names = contents.samples or []
    unique = numbered_names(names)
    if unique == names:
        return contents
    repeated = list(dict.fromkeys(name for name, new in zip(names, unique, strict=True) if name != new))
    what = f"{counted(len(repeated), 'sample name')} {by_number(len(repeated), 'occurs', 'occur')} more than once"
    reading.say(f"{what} ({listed(repeated)}); they are numbered. If they stand for one patient each, say --groups")
    return replace(contents, samples=unique)


def _samples(contents: Contents, found: formats.Format, reading: Reading) -> Samples:
    """Return samples with targets, groups and covariates, after all checks."""
    what = repr(contents.target) if contents.target else "number" if reading.task == "regression" else "label"
    contents = leave_out_unlabelled(contents, what, reading)
    contents, X, unprepared, shares = prepared(contents, reading)
    y = targets_of(contents, what, reading)
    in_groups = None if reading.groups is None else contents.about.get(reading.groups)
    groups = None if in_groups is None else labels_of(in_groups, repr(reading.groups), contents, reading)
    covariates = covariates_of(contents, reading)
    for names, thing in (
        (contents.features, "feature"),
        (contents.samples or (), "sample"),
        (() if y.dtype.kind == "f" else y.tolist(), "class"),
        (() if groups is None else groups.tolist(), "group"),
        ((contents.target, *contents.others), "column"),
    ):
        refuse_broken(names, thing, reading)
    say_spelling(y, groups, reading)
    say_dates(contents.features, reading)
    if reading.needed is None:
        say_metadata(X, contents.features, reading)
        say_leaks(X, y, contents, reading)
        say_twice(X, contents, reading)
        if groups is None:
            patients = [j for j, name in enumerate(contents.features) if PATIENT.fullmatch(name)]
            say_groups({contents.features[j]: X[:, j].tolist() for j in patients if not memory.is_large(X)}, reading)
    return Samples(
        X=X,
        y=y,
        feature_names=contents.features,
        sha256=_sha256(reading),
        sample_names=contents.samples,
        groups=groups,
        adjust_for=covariates,
        target_name=contents.target,
        notes=tuple(reading.notes),
        format=found.name,
        title=reading.name,
        others=contents.others,
        unprepared=unprepared,
        missing=shares,
    )


def _sha256(reading: Reading) -> str:
    """Return the digest of the files that were read."""
    is_tenx = reading.file.is_dir() and not any((reading.file / name).is_file() for name in formats.ZARR_METADATA)
    is_matrix = reading.name.removesuffix(".gz").endswith(".mtx")
    files = list(formats.tenx_files(reading.file).values()) if is_tenx or is_matrix else memory.files_of(reading.file)
    return memory.sha256_of([*files, *([] if reading.labels is None else [reading.labels])])
