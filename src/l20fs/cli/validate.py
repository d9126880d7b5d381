"""``l20fs validate``: a panel, or a list of features from elsewhere, judged on labelled samples."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import numpy as np
import pandas as pd
from rich.table import Table as RichTable

from l20fs.cli.folder import check_folder, versions, write_folder
from l20fs.cli.load import load, load_features
from l20fs.cli.options import DataOptions, data_options
from l20fs.cli.output import (
    note,
    open_in_browser,
    plain,
    readable,
    show,
    show_json,
    show_tables,
    stated_warnings,
    tsv_writer,
)
from l20fs.cli.parameter_types import read_lines
from l20fs.cli.predict import columns_of, load_panel, panel_names, predictions_frame, tell_notes
from l20fs.cli.validate_content import (
    NO_DEVICE,
    answer,
    as_json,
    comparison,
    distance_text,
    list_sections,
    scores_frame,
    scores_table,
    sections_of,
    warnings_of,
)
from l20fs.cli.validate_list import ListReport, cross_validate, inspect_list
from l20fs.data.readers import DataError, Samples
from l20fs.data.readers.names import near_names
from l20fs.evaluation.folds import make_folds, make_stratified_folds
from l20fs.evaluation.metrics import METRICS
from l20fs.evaluation.validation import Estimate, Validation, validate_classes, validate_numbers
from l20fs.prediction.new_samples import predict_samples
from l20fs.prediction.panel import Panel
from l20fs.report.document import Table
from l20fs.report.formats import text_writer
from l20fs.report.validation import Section, validation_page
from l20fs.text import counted, listed

#: In the order in which they are put in place; run.json marks a complete run.
RESULT_FILES = ("validation.tsv", "predictions.tsv", "validation.json", "validation.html", "run.json")


@dataclass(frozen=True, kw_only=True)
class ValidateOptions(DataOptions):
    """All options of ``l20fs validate``."""

    n_features: int | None = None
    output: Path | None = None
    seed: int = 0
    as_json: bool = False
    force: bool = False
    open_page: bool = False


@dataclass
class Judgement:
    """Everything that a run found, part by part."""

    title: str
    run: dict[str, Any]
    answers: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    sentences: list[str] = field(default_factory=list)
    facts: list[tuple[str, str]] = field(default_factory=list)
    sections: list[Section] = field(default_factory=list)
    parts: dict[str, Validation] = field(default_factory=dict)
    report: ListReport | None = None
    predictions: pd.DataFrame | None = None


@click.command()
@click.argument("panel", type=click.Path(path_type=Path, exists=True))
@click.argument("data")
@click.argument("test", required=False)
@data_options
@click.option("-k", "n_features", type=click.IntRange(min=1), help="Features of the panel to use.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Folder for the result files and the page.")
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True, help="Seed of the folds.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON instead of tables.")
@click.option("--force", is_flag=True, help="Replace the results in the output folder.")
@click.option("--open", "open_page", is_flag=True, help="Open the page in the browser.")
def validate(panel: Path, data: str, test: str | None, **given: Any) -> None:
    """Judge PANEL on the labelled samples of DATA, which must be others than those it was made from.

    PANEL is a panel.json, or the folder that `l20fs select -o` wrote. It may also be a text file with one feature per line,
    a list from elsewhere: then DATA are the samples to learn the weights from, by cross-validation, and TEST is another
    cohort.

    \b
    Examples:
      l20fs validate results/panel.json cohort.csv --target type --groups hospital -o validation
      l20fs validate genes.txt tumours.tsv --target type -o validation
      l20fs validate genes.txt tumours.tsv cohort.tsv --target type --open -o validation
    """
    options = ValidateOptions(**given)
    is_list = not is_panel(panel)
    check_combination(options, is_list=is_list, test=test)
    check_folder(options.output, RESULT_FILES, force=options.force)
    found = judge_list(panel, data, test, options) if is_list else judge_panel(panel, data, options)
    finish(found, options)


def check_combination(options: ValidateOptions, *, is_list: bool, test: str | None) -> None:
    """Raise an error for contradictory arguments."""
    if not is_list and test is not None:
        raise click.UsageError(f"{test!r}: a panel is judged on one table. Give TEST with a list of features only.")
    if not is_list and options.is_log:
        raise click.UsageError("--log: a panel knows whether it takes logarithms. Leave the option out.")
    if is_list and options.n_features is not None:
        raise click.UsageError(f"-k {options.n_features} is for a panel; a list is judged as a whole. Leave the option out.")
    if test is not None and options.labels is not None:
        raise click.UsageError("--labels with a second table: give the labels in a column of both (--target COLUMN).")
    if options.open_page and options.output is None:
        raise click.UsageError("--open needs a folder. Add -o DIR.")


def is_panel(place: Path) -> bool:
    """Return whether a file is a panel, or a folder with one, and not a list of names."""
    if place.is_dir() or place.suffix.lower() == ".json":
        return True
    with open(place, "rb") as stream:
        return stream.read(100).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{")


# ------------------------------------------------------------------------------------------------------------------ panel


def judge_panel(place: Path, data: str, options: ValidateOptions) -> Judgement:
    """Judge a panel in a cohort."""
    panel = load_panel(place)
    found = Judgement(f"{readable(place.name)} on {readable(Path(data).name)}", run={})
    samples = judge_cohort(found, panel, data, options, promise_of(panel))
    found.run = describe(place, data, samples, options) | {"panel": {"sha256": panel.sha256}}
    if panel.data_sha256 is not None and panel.data_sha256 == samples.sha256:
        found.warnings.insert(0, "This table is the one that the panel was made from: the scores are far too good.")
    return found


def judge_cohort(
    found: Judgement, panel: Panel, data: str, options: ValidateOptions, promised: tuple[str, Estimate] | None
) -> Samples:
    """Add the judgement of a panel in a cohort; return the cohort."""
    if len(panel.targets) > 1:
        raise DataError(f"The panel predicts {len(panel.targets)} numbers; validation is for one. Select for one target.")
    k = options.n_features
    asked: dict[str, Any] = {name: getattr(options, name) for name in ("target", "labels", "groups")}
    samples = load_features(data, panel_names(panel, k), options, task=panel.task, need_labels=True, **asked)
    new = predict_samples(panel, columns_of(samples), k)
    tell_notes(panel, samples, new, k)
    frame = predictions_frame(panel, samples, new)
    frame.insert(1, "true", samples.y)
    is_known = ~frame["predicted"].isin([""]).to_numpy() & ~frame["predicted"].isna().to_numpy()
    groups = None if samples.groups is None else samples.groups[is_known]
    numbers = None
    if new.probabilities is not None:
        result = validate_classes(
            samples.y[is_known].tolist(),
            new.probabilities[is_known],
            new.predicted[is_known].tolist(),
            panel.classes or [],
            groups,
        )
    else:
        numbers = (samples.y[is_known], new.predicted[is_known].astype(float))
        result = validate_numbers(*numbers, groups)
    if not result.n_samples:
        raise DataError(
            f"{samples.title}: no sample has a class that the panel knows ({listed(panel.classes or [])}); it has "
            f"{listed(sorted(set(samples.y.tolist())))}. Name the column of the classes (--target), or rename them."
        )
    found.parts["cohort"], found.predictions = result, frame
    found.answers += [text for text in (answer(result, samples.title), comparison(result, promised)) if text is not None]
    found.warnings += warnings_of(result)
    if not is_known.all():
        found.warnings.append(f"{counted(int((~is_known).sum()), 'sample')} with no value of any feature: not predicted.")
    if new.n_outside:
        found.warnings.append(
            f"{new.n_outside} of {len(frame)} samples lie outside the training data or lack features: see predictions.tsv."
        )
    found.facts += [("Samples", str(len(frame))), ("Features of the panel", str(len(panel.features_for(k))))]
    found.sections += sections_of(result, numbers)
    found.sentences += [
        f"The {counted(len(panel.features_for(k)), 'feature')} and all weights were fixed before: nothing was learned from "
        "these samples.",
        "The scores hold for samples like these, measured in the same way. Other patients, or another laboratory, may give "
        "others.",
        NO_DEVICE,
    ]
    if new.replaced:
        found.sentences.insert(1, f"Features that are missing here and were replaced: {listed(new.replaced)}.")
    return samples


def promise_of(panel: Panel) -> tuple[str, Estimate] | None:
    """Return the metric and the score, with its interval, that the panel stores of its own making; None without one."""
    stored = panel.provenance.get("score")
    if not isinstance(stored, dict) or stored.get("name") not in METRICS:
        return None
    ends = [stored.get(name) for name in Estimate._fields]
    if not all(isinstance(end, int | float) for end in ends):
        return None
    return str(stored["name"]), Estimate(*(float(end) for end in ends))


# ------------------------------------------------------------------------------------------------------------------- list


def judge_list(place: Path, data: str, test: str | None, options: ValidateOptions) -> Judgement:
    """Judge a list of features from elsewhere on samples to learn from, and in a second table if there is one."""
    names = read_names(place)
    samples = load(data, options)
    rows = rows_of(names, samples, place)
    found = Judgement(f"{readable(place.name)} on {samples.title}", run=describe(place, data, samples, options))
    for remark in samples.notes:
        note(remark)
    with stated_warnings() as texts:
        result = cross_validate(samples, rows, folds_of(samples, options.seed))
        found.report = inspect_list(samples, rows)
    found.warnings += [*texts, *warnings_of(result)]
    missing = [name for name in names if name not in set(samples.feature_names)]
    if missing:
        found.warnings.append(
            f"{counted(len(missing), 'name')} of the list not in {samples.title}: {listed(missing)}. The other {len(rows)} "
            f"were used.{near_names(missing, samples.feature_names)}"
        )
    found.parts["cross-validation"] = result
    found.answers += [
        f"{counted(len(rows), 'feature')} from {readable(place.name)}: "
        + answer(result, f"{samples.title} (cross-validation)"),
        distance_text(found.report),
    ]
    found.facts += [("Features", str(len(rows))), ("Samples", str(samples.X.shape[0]))]
    found.sections += [*sections_of(result), *list_sections(found.report)]
    found.sentences += [
        "Cross-validation: every sample was predicted by weights from the other folds. Nothing was selected here. If the list "
        "was found in these very samples, the scores are too good.",
        "Loss: what squares, with the ridge term, leave unexplained of the classes or numbers. The bound is a proof for this "
        "table, not for other samples.",
    ]
    if test is not None:
        name, promised = result.main
        panel = panel_from(samples, rows, options)
        found.sections.append(Section(f"In the second table, {readable(Path(test).name)}", "All below is about it."))
        cohort = judge_cohort(found, panel, test, options, None if promised is None else (name, promised))
        found.run["test"] = {"data": readable(test), "sha256": cohort.sha256}
    else:
        found.sentences.append(NO_DEVICE)
    return found


def read_names(place: Path) -> list[str]:
    """Return the names of a list, each once."""
    names = list(dict.fromkeys(line for line in read_lines(place, None, None) if line and not line.startswith("#")))
    if not names:
        raise DataError(f"{place.name}: no names. Give one feature per line.")
    return names


def rows_of(names: list[str], samples: Samples, place: Path) -> list[int]:
    """Return the columns of the names that are in the table; at least one must be."""
    known = {name: row for row, name in enumerate(samples.feature_names)}
    rows = [known[name] for name in names if name in known]
    if not rows:
        raise DataError(
            f"{place.name}: none of its {len(names)} names ({listed(names)}) is a feature of {samples.title}. Give one feature "
            f"per line, as the table names them.{near_names(names, samples.feature_names)}"
        )
    return rows


def folds_of(samples: Samples, seed: int) -> list[Any]:
    """Return the folds, with groups kept together."""
    if samples.task == "classification":
        return make_stratified_folds(samples.y, samples.groups, seed=seed)
    n_folds = min(5, len(samples.y) if samples.groups is None else len(np.unique(samples.groups)))
    return make_folds(n_folds, samples.X, samples.y, samples.groups, classify=False)


def panel_from(samples: Samples, rows: list[int], options: ValidateOptions) -> Panel:
    """Return the panel of a list, learned from all samples."""
    raise NotImplementedError


# ---------------------------------------------------------------------------------------------------------------- results


def describe(place: Path, data: str, samples: Samples, options: ValidateOptions) -> dict[str, Any]:
    """Return everything that the result depends on, without times."""
    asked = {name: getattr(options, name) for name in ("target", "groups", "is_log", "n_features", "seed")}
    labels = None if options.labels is None else readable(str(options.labels))
    return {
        "arguments": {"panel": readable(str(place)), "data": readable(data), "labels": labels, **asked},
        "input": {"sha256": samples.sha256, "n_samples": samples.X.shape[0]},
        "versions": versions(),
    }


def finish(found: Judgement, options: ValidateOptions) -> None:
    """Print the result, and write the files if there is a folder."""
    for text in found.warnings:
        note(f"warning: {text}")
    stored = found.run | {
        "answers": found.answers,
        "warnings": found.warnings,
        "parts": {name: as_json(part) for name, part in found.parts.items()},
        "list": as_json(found.report),
    }
    if options.as_json:
        show_json(stored)
    else:
        show_tables(*(terminal_table(name, scores_table(part)) for name, part in found.parts.items()))
        show("".join(f"{text}\n" for text in found.answers))
    if options.output is None:
        note("Nothing was written; add -o DIR to keep the results and a page.")
        return
    page = validation_page(
        found.sections,
        title=found.title,
        answer=found.answers[0],
        facts=found.facts,
        sentences=[*found.answers[1:], *found.sentences],
        warnings=found.warnings,
    )
    frames = [scores_frame(part, name) for name, part in found.parts.items()]
    writers = {"validation.tsv": tsv_writer(pd.concat(frames))}
    if found.predictions is not None:
        writers["predictions.tsv"] = tsv_writer(found.predictions)
    writers["validation.json"] = text_writer(json.dumps(stored, indent=2, ensure_ascii=False) + "\n")
    writers["validation.html"] = text_writer(page)
    names = write_folder(options.output, writers, found.run, RESULT_FILES, force=options.force)
    note(f"Results are in {options.output}{os.sep}: {', '.join(names)}")
    note(f"Look at {options.output / 'validation.html'}")
    if options.open_page:
        open_in_browser(options.output / "validation.html")


def terminal_table(name: str, table: Table) -> RichTable:
    """Return a table of a document for the terminal."""
    shown = RichTable(title=name)
    for label, is_number in zip(table.header, table.is_number, strict=True):
        shown.add_column(label, justify="right" if is_number else "left")
    for row in table.rows:
        shown.add_row(*(plain(cell.text) for cell in row))
    return shown
