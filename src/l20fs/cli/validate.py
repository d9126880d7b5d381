"""``l20fs validate``: evaluation of a panel on labelled samples."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from l20fs.cli import options
from l20fs.cli.options import SectionedCommand, add_options
from l20fs.cli.predict import load_panel, number, predict_file, predictions_frame
from l20fs.cli.results import check_folder, write_results
from l20fs.cli.terminal import noted_warnings, show, show_files
from l20fs.text import folded, listed

if TYPE_CHECKING:
    from l20fs import Panel
    from l20fs.evaluation.validation import Validation
    from l20fs.prediction.new_samples import NewSamples
    from l20fs.tables import Samples
    from l20fs.tables.settings import Settings

#: The files of the results, the page last.
FILES = ("validation.tsv", "predictions.tsv", "validation.html")


@click.command(cls=SectionedCommand, context_settings={"max_content_width": 100})
@click.argument("panel", type=click.Path(path_type=Path, exists=True))
@click.argument("data")
@add_options(
    options.target,
    options.labels,
    options.groups,
    number,
    options.output("l20fs-validation"),
    options.open_page,
    options.force,
    options.config,
)
def validate(
    panel: Path,
    data: str,
    target: str | None,
    labels: Path | None,
    groups: str | None,
    k: int | None,
    output: Path,
    open_page: bool,
    force: bool,
    config: tuple[Settings, dict[str, Any]],
) -> None:
    """Evaluate PANEL on labelled samples of DATA that were not used to select it.

    PANEL is a panel.json, or the folder of a selection. For a published list of features, make a panel of it first:
    l20fs select DATA --include @list.txt -k N

    \b
    l20fs validate l20fs-results cohort.csv --target type
    """
    from l20fs.report.page import estimate_text
    from l20fs.report.validation import ValidationReport

    check_folder(output, FILES, force=force)
    rule = load_panel(panel)
    if len(rule.targets) > 1:
        raise ValueError(f"The panel predicts {len(rule.targets)} numbers; validation is for one.")
    asked = {"target": target, "labels": labels, "groups": groups, "task": rule.task, "need_labels": True}
    with noted_warnings() as warnings:
        samples, found = predict_file(rule, data, config[0], k, **asked)
        truth = spelled_as(rule, samples.y)
        result, is_known = evaluate(rule, truth, found, samples)
    frame = predictions_frame(rule, samples, found)
    frame.insert(1, "true", truth)
    numbers = None if rule.classes else (truth[is_known], found.predicted[is_known].astype(float))
    report = ValidationReport(
        result,
        title=samples.title,
        n_features=len(rule.features_for(k)),
        n_without=int((~is_known).sum()),
        n_outside=found.n_outside,
        numbers=numbers,
        promised=rule.provenance.get("score") if k in (None, rule.k) else None,
        is_training=rule.data_sha256 == samples.sha256,
        notes=[*samples.notes, *warnings],
    )
    files = {
        "validation.tsv": report.frame().to_csv(sep="\t", index=False, float_format="%.10g", lineterminator="\n"),
        "predictions.tsv": frame.to_csv(sep="\t", index=False, float_format="%.10g", lineterminator="\n"),
        "validation.html": report.page(),
    }
    names = write_results(output, files, FILES)
    score = f"{report.measure.title} {estimate_text(report.score, is_share=report.measure.is_share)}"
    show(f"{score} in {result.n_samples} samples of {samples.title}".replace("\N{NO-BREAK SPACE}", " "))
    if report.is_training:
        show("This is the table that the panel was selected from: the scores are too good.")
    show_files(output, names, "validation.html", is_to_open=open_page)


def spelled_as(panel: Panel, y: Any) -> Any:
    """Return labels with the spelling of the classes of a panel, where only case and blanks differ."""
    if panel.classes is None:
        return y
    known = {folded(str(label)): str(label) for label in panel.classes}
    if len(known) < len(panel.classes):
        return y
    return np.array([known.get(folded(str(label)), str(label)) for label in y.tolist()])


def evaluate(panel: Panel, truth: Any, found: NewSamples, samples: Samples) -> tuple[Validation, Any]:
    """Return the scores of the predictions, and which samples could be predicted."""
    from l20fs.evaluation.validation import validate_classes, validate_numbers

    is_known = np.array([value not in ("", None) and value == value for value in found.predicted.tolist()])
    if not is_known.any():
        raise ValueError(f"{samples.title}: no sample has a value of any feature of the panel. Give samples that do.")
    groups = None if samples.groups is None else samples.groups[is_known]
    if panel.classes is None:
        return validate_numbers(truth[is_known], found.predicted[is_known].astype(float), groups), is_known
    assert found.probabilities is not None
    classes = [str(label) for label in panel.classes]
    predicted = [str(label) for label in found.predicted[is_known].tolist()]
    result = validate_classes(truth[is_known].tolist(), found.probabilities[is_known], predicted, classes, groups)
    if not result.n_samples:
        raise ValueError(
            f"{samples.title}: no sample has a class that the panel knows ({listed(classes)}); it has "
            f"{listed(sorted(set(truth.tolist())))}. Name the column of the classes (--target), or rename them."
        )
    return result, is_known
