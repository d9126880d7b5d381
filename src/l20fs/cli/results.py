"""Output folder of ``l20fs select``: locked, written together, run.json last."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, BinaryIO

import click
import pandas as pd

from l20fs.cli.folder import check_writable
from l20fs.cli.options import SelectOptions
from l20fs.cli.select_content import selection_tsv
from l20fs.cli.select_findings import Findings
from l20fs.cli.select_panel import make_panel
from l20fs.data.readers import Samples
from l20fs.evaluation.target_summary import Classes, summarise
from l20fs.prediction.panel import Panel
from l20fs.report.content import Content
from l20fs.report.delimited import frame_writer
from l20fs.report.formats import text_writer
from l20fs.report.measures import PanelNumbers
from l20fs.report.page import render
from l20fs.storage.files import write_together
from l20fs.storage.regular_files import MOST_BYTES, LargeFileError, NotAFileError, read_regular
from l20fs.text import counted

#: In the order in which they are put in place; run.json marks a complete run.
RESULT_FILES = (
    "selection.tsv",
    "path.npz",
    "cv.tsv",
    "stability.tsv",
    "panel.json",
    "report.json",
    "report.html",
    "run.json",
)
#: Folders in the output folder: the resamples, the passes over a file that is read in blocks, and the folds.
RESAMPLES, PASSES, FOLDS = "stability", "passes", "folds"
#: Files of a run that is not finished, by folder.
UNFINISHED = {RESAMPLES: "resample-*.json", PASSES: "pass-*.npz", FOLDS: "fold-*.npz"}

PACKAGES = ("l20fs", "numpy", "scipy", "scikit-learn")


def describe_run(samples: Samples, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return everything a run depends on, without times, so that a rerun gives the same bytes."""
    targets = summarise(samples.y)
    about = (
        {"classes": dict(zip(targets.names, targets.sizes, strict=True))}
        if isinstance(targets, Classes)
        else {
            "target": {"minimum": float(samples.y.min()), "maximum": float(samples.y.max()), "mean": float(samples.y.mean())}
        }
    )
    return {
        "arguments": arguments,
        "input": {
            "sha256": samples.sha256,
            "n_samples": samples.X.shape[0],
            "n_features": samples.X.shape[1],
            **about,
            "choices": samples.choices,
            "missing": {
                "values": round(sum(samples.missing.values()) * samples.X.shape[0]),
                "features": len(samples.missing),
            },
        },
        "versions": {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}},
    }


def check_output(folder: Path | None, *, force: bool, resume: bool) -> None:
    """Raise an error for an invalid output folder before any work is done."""
    if folder is None:
        return
    check_writable(folder)
    present = [name for name in RESULT_FILES if (folder / name).exists()]
    if force or resume:
        return
    if present:
        raise click.UsageError(f"-o {folder}: holds results already ({', '.join(present)}). Use --force to replace them.")
    if any(any((folder / name).glob(pattern)) for name, pattern in UNFINISHED.items()):
        raise click.UsageError(
            f"-o {folder}: holds a run that was not finished. Use --resume to go on, or --force to begin anew."
        )


def check_same_run(folder: Path, run: dict[str, Any]) -> None:
    """Raise an error if a finished run of other data or options is resumed."""
    try:
        stored = json.loads(read_regular(folder / "run.json", MOST_BYTES))
        differing = [key for key in run if stored[key] != json.loads(json.dumps(run[key]))]
    except FileNotFoundError:
        return
    except (ValueError, KeyError, TypeError, NotAFileError, LargeFileError):
        differing = ["run.json"]
    if differing:
        raise click.UsageError(
            f"--resume: {folder} holds the results of another run (other {', '.join(differing)}). Use --force to replace "
            "them, or another folder."
        )


def is_finished(folder: Path, options: SelectOptions) -> bool:
    """Return whether a folder holds all files of a run that every method and target has."""
    optional = {"path.npz", "panel.json", *(() if options.stability else ["stability.tsv"])}
    return all((folder / name).is_file() for name in RESULT_FILES if name not in optional)


def describe_kept(folder: Path, n_resamples: int | None) -> str:
    """Say what an interrupted run left to be resumed; empty if that is nothing."""
    numbers = {name: len(list((folder / name).glob(pattern))) for name, pattern in UNFINISHED.items()}
    kept = [counted(numbers[name], noun) for name, noun in ((PASSES, "part of the file"), (FOLDS, "fold")) if numbers[name]]
    kept += [f"{numbers[RESAMPLES]} of {n_resamples} resamples"] if numbers[RESAMPLES] else []
    return f"{', '.join(kept)} kept in {folder}{os.sep}" if kept else ""


def clear_leftovers(folder: Path, *, resamples: bool) -> None:
    """Remove incomplete files of a killed run, and its resamples and folds unless they are to be used."""
    patterns = [f".{name}.*.part" for name in RESULT_FILES]
    patterns += [f"{name}/.{pattern.partition('.')[0]}.part" for name, pattern in UNFINISHED.items()]
    patterns += [f"{RESAMPLES}/{UNFINISHED[RESAMPLES]}"] if resamples else []
    for pattern in patterns:
        for file in folder.glob(pattern):
            file.unlink(missing_ok=True)
    if resamples:
        clear_checkpoints(folder)


def clear_checkpoints(folder: Path) -> None:
    """Remove the stored passes and folds, which are of no use after the fits."""
    for name in (PASSES, FOLDS):
        for file in (folder / name).glob(UNFINISHED[name]):
            file.unlink(missing_ok=True)
        with suppress(OSError):  # not there, or with something else in it
            (folder / name).rmdir()


def write_results(folder: Path, findings: Findings, content: Content) -> list[str]:
    """Write the result files atomically and return their names."""
    writers: dict[str, Callable[[BinaryIO], object]] = {"selection.tsv": text_writer(selection_tsv(findings, content))}
    if findings.path is not None:
        writers["path.npz"] = findings.path.write
    writers["cv.tsv"] = frame_writer(pd.DataFrame(cv_table(findings)))
    if findings.stability is not None:
        writers["stability.tsv"] = frame_writer(findings.stability.selection_frame())
    panel = make_panel(findings)
    if panel is not None:
        writers["panel.json"] = text_writer(panel.to_json())
        content = replace(content, panel=numbers_for_page(panel, content))
    writers["report.json"] = text_writer(content.to_json() + "\n")
    writers["report.html"] = text_writer(render(content))
    writers["run.json"] = text_writer(json.dumps(findings.provenance, indent=2, ensure_ascii=False) + "\n")
    write_together({folder / name: write for name, write in writers.items()})
    for name in set(RESULT_FILES) - writers.keys():
        (folder / name).unlink(missing_ok=True)  # of the run that was replaced
    return list(writers)


def numbers_for_page(panel: Panel, content: Content) -> PanelNumbers | None:
    """Return the numbers of a panel with which the page predicts; None if they select groups of features."""
    n = min(panel.k_max, content.k_max)
    rules = panel.rules[:n]
    is_the_same = panel.features[:n] == content.features[:n] and (panel.classes or []) == content.classes
    if panel.ends[:n] != list(range(1, n + 1)) or not is_the_same:
        return None
    return PanelNumbers(
        weights=[rule.weights for rule in rules],
        intercept=[rule.intercept for rule in rules],
        slope=[rule.slope for rule in rules if panel.classes],
        doubt=[rule.doubt for rule in rules if panel.classes],
        minimum=panel.columns.minimum[:n],
        maximum=panel.columns.maximum[:n],
        transform=panel.transform,
    )


def cv_table(findings: Findings) -> dict[str, list[Any]]:
    """Return the scores by number of features: the name of the metric, and columns that begin with the name of a judge."""
    if findings.predictions is None:
        return {"n_features": [], "metric": []}
    sizes = findings.predictions.sizes
    columns: dict[str, list[Any]] = {"n_features": sizes, "metric": [findings.metric.name] * len(sizes)}
    for judge, curve in findings.curves.items():
        for name, values in curve._asdict().items():
            columns[judge if name == "value" else f"{judge}_{name}"] = values.tolist()
    return columns
