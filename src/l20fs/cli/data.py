"""``l20fs data``: catalogue and folder of data sets."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from l20fs.cli.output import Table, note, show, show_json, show_tables

if TYPE_CHECKING:
    from l20fs.data.store import LabelledSet

#: Descriptions of the states of a set.
MEANING = {
    "exact": "the paper's values",
    "substitute": "a substitute for the paper's matrix",
    "unverified": "the paper's shape and classes; the catalogue knows no values to compare with",
    "built-in": "the set that comes with this package",
    "own": "a set of your own",
    "missing": "not here",
    "bad": "here, but not to be used",
}

data_dir_option = click.option(
    "--data-dir",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder with the data sets.  [default: $L20FS_DATA_DIR, else ~/.cache/l20fs]",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")


class SetName(click.ParamType[str]):
    """Name of a data set."""

    name = "name"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from l20fs.data.readers import DataError
        from l20fs.data.store import check_name

        try:
            return check_name(value)
        except DataError as error:
            self.fail(str(error), param, ctx)


@click.group()
def data() -> None:
    """List, describe and import the data sets of the paper."""


@data.command("list")
@data_dir_option
@json_option
def list_sets(data_dir: Path | None, as_json: bool) -> None:
    """List the data sets of the paper and your own, with their status.

    \b
    Example:
      l20fs data list --data-dir data
    """
    from l20fs.data.store import find_data_dir, known_names

    folder = find_data_dir(data_dir)
    rows = [describe(name, folder) for name in known_names(folder)]
    if as_json:
        show_json(rows)
        return
    table = Table("name")
    counts = {"samples": "n_samples", "features": "n_features", "classes": "n_classes"}
    for label in counts:
        table.add_column(label, justify="right")
    table.add_column("here")
    table.add_column("title")
    for row in rows:
        numbers = ["?" if row[key] is None else str(row[key]) for key in counts.values()]
        table.add_row(row["name"], *numbers, row["status"], row["title"])
    show_tables(table)
    note(f"Folder: {folder}")
    for status in sorted({row["status"] for row in rows}):
        note(f"{status}: {MEANING[status]}")
    if any(row["status"] in ("missing", "bad") for row in rows):
        note("`l20fs data info NAME` says where a set can be had.")


@data.command()
@click.argument("name", type=SetName())
@data_dir_option
@json_option
def info(name: str, data_dir: Path | None, as_json: bool) -> None:
    """Describe the data set NAME: classes, source, and how it differs from the paper's.

    \b
    Example:
      l20fs data info leukemia
    """
    from l20fs.data.catalogue import paper_sets
    from l20fs.data.store import find_data_dir, known_names

    folder = find_data_dir(data_dir)
    if name not in known_names(folder):
        raise click.UsageError(f"{name!r} is neither in the catalogue ({', '.join(paper_sets())}) nor in {folder}.")
    row = describe(name, folder)
    if as_json:
        show_json(row)
        return
    if row["status"] == "missing":
        note(f"Get the file, then: l20fs data import FILE --as {name}")
    lines = {
        "samples": row["n_samples"],
        "features": row["n_features"],
        "classes": ", ".join(f"{label} {size}" for label, size in row["classes"].items()),
        "in the paper": " x ".join(map(str, row["paper_shape"] or [])),
        "differs": row["differs"],
        "scale": row["scale"],
        "reference": row["reference"],
        "to be had": row["source"],
        "sha256": row["sha256"],
        "here": f"{row['status']} ({MEANING[row['status']]})",
        "file": row["file"],
        "problem": row["problem"],
    }
    show(f"{name}: {row['title']}")
    for label, text in lines.items():
        if text:
            wrapped = textwrap.wrap(str(text), width=100, break_long_words=False, break_on_hyphens=False)
            for number, line in enumerate(wrapped):
                show(f"  {'' if number else label + ':':14}{line}")


@data.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--as", "name", type=SetName(), required=True, help="Name of the set, as in `l20fs data list`, or one of your own."
)
@click.option("--target", help="Column with the class labels, for CSV and TSV files.")
@data_dir_option
@json_option
def import_set(file: Path, name: str, target: str | None, data_dir: Path | None, as_json: bool) -> None:
    """Verify FILE (.mat, .npz, .csv, .tsv) against the catalogue and import it.

    \b
    Examples:
      l20fs data import brain.mat --as brain
      l20fs data import tumours.csv --target type --as my-tumours
    """
    from l20fs.data.store import import_dataset

    found = import_dataset(file, name, data_dir, target=target)
    if as_json:
        show_json(facts_of(found))
        return
    n_samples, n_features = found.X.shape
    show(f"{name}: {n_samples} samples, {n_features} features, {len(found.class_names)} classes; {MEANING[found.status]}")
    note(f"It is in {found.origin}")


def describe(name: str, folder: Path) -> dict[str, Any]:
    """Return the catalogue entry and the status of a data set.

    Counts and hash are those of the catalogue where nothing usable is here.
    """
    from l20fs.data.catalogue import paper_sets
    from l20fs.data.readers import DataError
    from l20fs.data.store import MissingDataError, load_dataset

    entry = paper_sets().get(name)
    row: dict[str, Any] = {
        "name": name,
        "title": "a set of your own",
        "n_samples": None,
        "n_features": None,
        "n_classes": None,
        "classes": {},
        "sha256": None,
        **dict.fromkeys(("paper_shape", "exact", "differs", "scale", "reference", "source", "file", "problem")),
    }
    if entry is not None:
        row |= {key: getattr(entry, key) for key in row.keys() - {"n_classes", "classes", "file", "problem"}}
        row["classes"] = dict(zip(entry.class_names, entry.class_sizes, strict=True))
        row["n_classes"] = len(entry.class_names)
        row["paper_shape"] = list(entry.paper_shape)
    try:
        return row | facts_of(load_dataset(name, folder))
    except MissingDataError:
        return row | {"status": "missing"}
    except (DataError, OSError) as error:
        return row | {"status": "bad", "problem": str(error)}


def facts_of(found: LabelledSet) -> dict[str, Any]:
    """Return the facts of an available data set."""
    sizes = [int((found.y == code).sum()) for code in range(len(found.class_names))]
    return {
        "name": found.name,
        "n_samples": found.X.shape[0],
        "n_features": found.X.shape[1],
        "n_classes": len(sizes),
        "classes": dict(zip(found.class_names, sizes, strict=True)),
        "sha256": found.sha256,
        "status": found.status,
        "file": None if found.status == "built-in" else found.origin,
    }
