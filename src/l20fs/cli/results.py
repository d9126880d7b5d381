"""Results of ``l20fs select``: what a run depends on, what it keeps, and its files."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from typing import Any

import click
import pandas as pd

from l20fs.cli.select_atlas import atlas_tables
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
from l20fs.storage.files import Writer
from l20fs.storage.result_folder import RUN, ResultFolder, versions
from l20fs.text import counted

#: Folders in the output folder: the resamples, the passes over a file that is read in blocks, and the folds.
RESAMPLES, PASSES, FOLDS = "stability", "passes", "folds"


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
        "versions": versions("scipy", "scikit-learn"),
    }


def check_same_run(output: ResultFolder, run: dict[str, Any]) -> None:
    """Raise an error if a finished run of other data or options is resumed."""
    if not (output.path / RUN).exists():
        return
    stored = output.record
    differing = [key for key in run if stored.get(key) != json.loads(json.dumps(run[key]))] if stored else [RUN]
    if differing:
        raise click.UsageError(
            f"--resume: {output.path} holds the results of another run (other {', '.join(differing)}). Use --force to "
            "replace them, or another folder."
        )


def describe_kept(output: ResultFolder, n_resamples: int | None) -> str:
    """Say what an interrupted run left to be resumed; empty if that is nothing."""
    numbers = {name: len(output.kept(name)) for name in (PASSES, FOLDS, RESAMPLES)}
    kept = [counted(numbers[name], noun) for name, noun in ((PASSES, "part of the file"), (FOLDS, "fold")) if numbers[name]]
    kept += [f"{numbers[RESAMPLES]} of {n_resamples} resamples"] if numbers[RESAMPLES] else []
    return f"{', '.join(kept)} kept in {output.path}{os.sep}" if kept else ""


def write_results(output: ResultFolder, findings: Findings, content: Content) -> list[str]:
    """Write the result files together and return their names."""
    writers: dict[str, Writer] = {"selection.tsv": text_writer(selection_tsv(findings, content))}
    if findings.path is not None:
        writers["path.npz"] = findings.path.write
    writers["cv.tsv"] = frame_writer(pd.DataFrame(cv_table(findings)))
    if findings.stability is not None:
        writers["stability.tsv"] = frame_writer(findings.stability.selection_frame())
    if findings.atlas is not None:
        writers |= atlas_tables(findings.atlas)
    panel = make_panel(findings)
    if panel is not None:
        writers["panel.json"] = text_writer(panel.to_json())
        content = replace(content, panel=numbers_for_page(panel, content))
    writers["report.html"] = text_writer(render(content))
    return output.write(writers, findings.provenance)


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
