"""Results of ``l20fs select``: what a run depends on, and its files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from l20fs.cli.folder import versions, write_results
from l20fs.cli.select_atlas import atlas_tables
from l20fs.cli.select_content import build_content, selection_tsv
from l20fs.cli.select_findings import Findings
from l20fs.cli.select_panel import make_panel
from l20fs.data.readers import Samples
from l20fs.evaluation.target_summary import Classes, summarise
from l20fs.files import Writable
from l20fs.prediction.panel import Panel
from l20fs.report.content import Content
from l20fs.report.delimited import write_frame
from l20fs.report.measures import PanelNumbers
from l20fs.report.page import render


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


def write_selection(folder: Path, findings: Findings) -> list[str]:
    """Write the result files together and return their names."""
    content = build_content(findings)
    files: dict[str, Writable] = {"selection.tsv": selection_tsv(findings, content)}
    files["cv.tsv"] = write_frame(pd.DataFrame(cv_table(findings)))
    if findings.stability is not None:
        files["stability.tsv"] = write_frame(findings.stability.to_frame())
    if findings.atlas is not None:
        files |= atlas_tables(findings)
    panel = make_panel(findings)
    if panel is not None:
        files["panel.json"] = panel.to_json()
        content = replace(content, panel=numbers_for_page(panel, content))
    files["report.html"] = render(content)
    return write_results(folder, "select", files, findings.provenance)


def numbers_for_page(panel: Panel, content: Content) -> PanelNumbers | None:
    """Return the numbers of a panel with which the page predicts; None if they select groups of features."""
    n = min(panel.k_max, content.k_max)
    rules = panel.rules[:n]
    is_the_same = panel.features[:n] == content.features[:n] and list(map(str, panel.classes or [])) == content.classes
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
