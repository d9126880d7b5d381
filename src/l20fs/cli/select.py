"""``l20fs select``: the features that tell the classes of a table apart."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any, get_args

import click
import numpy as np
import pandas as pd
from rich.console import Console
from rich.progress import Progress
from rich.table import Table as RichTable

from l20fs import L20Selector
from l20fs.cli.output import as_tsv, note, plain, show, stated_warnings
from l20fs.data import load_srbct
from l20fs.data.readers import DataError, Table, read_table
from l20fs.design import Scale
from l20fs.evaluation import accuracy_by_k
from l20fs.files import write_together
from l20fs.path import Ranking
from l20fs.selector import RIDGE_FOR_LABELS, Solver

#: What L20Selector does unless told otherwise: the command line has no defaults of its own.
DEFAULTS = L20Selector().get_params() | {"ridge": RIDGE_FOR_LABELS}
DEFAULT_K = DEFAULTS["n_features_to_select"]
PANEL_SIZES = (5, 10, 20, 50, 100)
MOST_ROWS_SHOWN = 20
MOST_PANEL = 50
RESULT_FILES = ("selection.tsv", "path.npz", "cv.tsv", "run.json")


class NothingSelectedError(Exception):
    """The chosen lambda leaves no feature."""


@click.command()
@click.argument("data")
@click.option("--target", help="Column with the class labels (not needed for srbct).")
@click.option("-k", "n_features", type=click.IntRange(min=1), help=f"Features to select.  [default: {DEFAULT_K}]")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Folder for the result files.")
@click.option(
    "--method",
    type=click.Choice(get_args(Solver)),
    default=DEFAULTS["solver"],
    show_default=True,
    help="How the path is walked: feature by feature (forward, sbr, swap), or by the paper's gradient steps (ahiht, hiht).",
)
@click.option("--alpha", type=click.FloatRange(min=0, min_open=True), help="Stop the path at this lambda.")
@click.option(
    "--ridge",
    type=click.FloatRange(min=0),
    default=DEFAULTS["ridge"],
    show_default=True,
    help="Strength of the ridge term, relative to the mean squared norm of a centred feature.",
)
@click.option(
    "--scale",
    type=click.Choice(get_args(Scale)),
    default=DEFAULTS["scale"],
    show_default=True,
    help="Take the features as they are, or give each the deviation 1 before they compete.",
)
@click.option(
    "--class-weight",
    type=click.Choice(["balanced", "none"]),
    default=DEFAULTS["class_weight"] or "none",
    show_default=True,
    help="Let a rare class count as much as a common one, or each sample as much as any other.",
)
@click.option(
    "--ranking",
    type=click.Choice(get_args(Ranking)),
    default=DEFAULTS["ranking"],
    show_default=True,
    help="Order the features by how early they came to stay, or by the norm of their weights.",
)
@click.option(
    "--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True, help="Seed of the cross-validation folds."
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON instead of tables.")
@click.option("--force", is_flag=True, help="Replace the results in the output folder.")
def select(data: str, target: str | None, output: Path | None, as_json: bool, force: bool, **options: Any) -> None:
    """Select features from DATA: a CSV or TSV file with one sample per row (.gz too), or `srbct`.

    \b
    Examples:
      l20fs select srbct
      l20fs select tumours.tsv --target type -k 30 -o results
    """
    check_output(output, force)
    table = load(data, target)
    options["n_features"] = options["n_features"] or min(DEFAULT_K, table.X.shape[1])
    ks = panel_sizes(options["n_features"], table)
    selector = fit(table, ks, options)
    n_varying = int(np.isfinite(selector.scores_).sum())
    ks = sorted({min(k, n_varying) for k in ks})
    accuracies = cross_validate(selector, table, ks, seed=options["seed"])
    summary = summarise(selector, table, ks, accuracies, {"data": data, "target": target, **dict(sorted(options.items()))})
    if output is not None:
        write_results(output, selector, summary)
    if as_json:
        show(json.dumps(summary, indent=2) + "\n")
    else:
        console = Console()
        with console.capture() as capture:
            print_tables(console, selector, summary)
        show(capture.get())
    if output is not None:
        note(f"Results are in {output}{os.sep}: {', '.join(RESULT_FILES)}")
    else:
        note("Nothing was written; add -o DIR to keep the results.")


def load(data: str, target: str | None) -> Table:
    """Load the built-in set or a file."""
    if data == "srbct" and target is not None:
        raise click.UsageError("--target: the built-in srbct has its own labels. Leave the option out.")
    if data == "srbct":
        tumours = load_srbct()
        digest = hashlib.sha256(tumours.data.tobytes()).hexdigest()
        return Table(tumours.data, tumours.target, tumours.feature_names, digest)
    file = Path(data)
    if not file.is_file():
        raise click.UsageError(f"{data!r} is neither a file nor a built-in data set (srbct).")
    if target is None:
        raise click.UsageError("--target is missing: name the column that holds the class labels.")
    return read_table(file, target)


def fit(table: Table, ks: list[int], options: dict[str, Any]) -> L20Selector:
    """Fit the selector on all samples; the path runs as far as in the folds, so that both rank alike."""
    n_samples, n_features = table.X.shape
    k = options["n_features"]
    if k > n_features:
        raise DataError(f"-k {k}: the data have {n_features} features only. Use a smaller k.")
    note(f"{n_samples} samples, {n_features} features, {len(np.unique(table.y))} classes")
    selector = L20Selector(
        k,
        solver=options["method"],
        alpha=options["alpha"],
        ridge=options["ridge"],
        scale=options["scale"],
        class_weight=None if options["class_weight"] == "none" else options["class_weight"],
        ranking=options["ranking"],
        max_features=max(ks),
    )
    frame = pd.DataFrame(table.X, columns=table.feature_names, copy=False)
    with stated_warnings():
        selector.fit(frame, table.y)
    if not selector.support_.any():
        raise NothingSelectedError(f"No feature is selected at --alpha {options['alpha']:g}. Use a smaller one.")
    return selector


def panel_sizes(k: int, table: Table) -> list[int]:
    """Return the numbers of features at which accuracy is shown."""
    limit = min(table.X.shape[1], max(k, MOST_PANEL))
    return sorted({k, *(size for size in PANEL_SIZES if size <= limit)})


def cross_validate(selector: L20Selector, table: Table, ks: list[int], seed: int) -> dict[str, np.ndarray] | None:
    """Estimate accuracy with the selection inside each fold; None if a class has one sample only."""
    labels, counts = np.unique(table.y, return_counts=True)
    rarest = counts.argmin()
    n_splits = min(5, int(counts[rarest]))
    if n_splits < 2:
        note(f"No cross-validation: class {str(labels[rarest])!r} has one sample, so it cannot be in both parts of a split.")
        return None
    if n_splits < 5:
        note(f"{n_splits} folds instead of 5: class {str(labels[rarest])!r} has {n_splits} samples only.")
    console = Console(stderr=True)
    with stated_warnings(), Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("Cross-validation", total=n_splits)
        return accuracy_by_k(
            selector,
            table.X,
            table.y,
            ks,
            n_splits=n_splits,
            random_state=seed,
            on_fold=lambda: progress.advance(task),
        )


def summarise(
    selector: L20Selector,
    table: Table,
    ks: list[int],
    accuracies: dict[str, np.ndarray] | None,
    arguments: dict[str, Any],
) -> dict[str, Any]:
    """Collect what a run was and found; without times, so that a rerun gives the same bytes."""
    labels, counts = np.unique(table.y, return_counts=True)
    frame = selector.selection_frame()
    packages = ("l20fs", "numpy", "scipy", "scikit-learn")
    return {
        "arguments": arguments,
        "input": {
            "sha256": table.sha256,
            "n_samples": table.X.shape[0],
            "n_features": table.X.shape[1],
            "classes": {str(label): int(count) for label, count in zip(labels, counts, strict=True)},
        },
        "selected": frame["feature"].tolist(),
        "strongest": frame["strongest"].tolist(),
        "scores": frame["score"].tolist(),
        "accuracy": [
            {
                "n_features": k,
                **{name: float(scores[:, column].mean()) for name, scores in (accuracies or {}).items()},
            }
            for column, k in enumerate(ks)
        ]
        if accuracies
        else None,
        "protocol": f"{len(next(iter(accuracies.values())))}-fold stratified cross-validation, selection inside each fold"
        if accuracies
        else None,
        "versions": {"python": platform.python_version(), **{name: version(name) for name in packages}},
    }


def check_output(folder: Path | None, force: bool) -> None:
    """Refuse a bad output folder before any work is done."""
    if folder is None:
        return
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"-o {folder}: this is a file. Name a folder.")
    present = [name for name in RESULT_FILES if (folder / name).exists()]
    if present and not force:
        raise click.UsageError(f"-o {folder}: holds results already ({', '.join(present)}). Use --force to replace them.")


def write_results(folder: Path, selector: L20Selector, summary: dict[str, Any]) -> None:
    """Write the result files, each whole or not at all; run.json comes last and marks a complete run."""
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(summary, indent=2) + "\n"
    accuracy = pd.DataFrame(summary["accuracy"] or [], columns=["n_features", "KNN-5", "logistic"])
    write_together(
        {
            folder / "selection.tsv": as_tsv(selector.selection_frame()),
            folder / "path.npz": selector.path_.write,
            folder / "cv.tsv": as_tsv(accuracy),
            folder / "run.json": lambda stream: stream.write(text.encode()),
        }
    )


def print_tables(console: Console, selector: L20Selector, summary: dict[str, Any]) -> None:
    """Print the selected features and the accuracy at a few k."""
    frame = selector.selection_frame()
    shown = frame.head(MOST_ROWS_SHOWN)
    features = RichTable(title=f"{len(frame)} features that tell {len(summary['input']['classes'])} classes apart")
    features.add_column("rank", justify="right")
    features.add_column("feature")
    features.add_column("weight", justify="right")
    features.add_column("strongest class")
    features.add_column("sign")
    for _, row in shown.iterrows():
        weight = f"{row['norm']:.4g}" if row["norm"] else f"0 ({row['rule']})"
        strongest = row["strongest"] or "-"
        sign = ("+" if row[f"coef_{strongest}"] > 0 else "-") if row["strongest"] else ""
        features.add_row(str(row["rank"]), plain(row["feature"]), weight, plain(strongest), sign)
    console.print(features)
    if len(frame) > len(shown):
        console.print(f"... and {len(frame) - len(shown)} more (all of them in selection.tsv with -o DIR)")
    if summary["accuracy"] is None:
        return
    majority = max(summary["input"]["classes"].values()) / summary["input"]["n_samples"]
    accuracy = RichTable(title=f"Accuracy: {summary['protocol']}", caption=f"Always the largest class: {majority:.1%}")
    accuracy.add_column("features", justify="right")
    names = [name for name in summary["accuracy"][0] if name != "n_features"]
    for name in names:
        accuracy.add_column(name, justify="right")
    for entry in summary["accuracy"]:
        accuracy.add_row(str(entry["n_features"]), *(f"{entry[name]:.1%}" for name in names))
    console.print(accuracy)
