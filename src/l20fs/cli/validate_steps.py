"""The steps of ``l20fs validate``: a panel in a cohort, and a list of features on samples to learn from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import click
import numpy as np
import pandas as pd

from l20fs.cli.feature_list import ListReport, cross_validate, inspect_list, make_model
from l20fs.cli.folder import versions
from l20fs.cli.incoming import as_file, title_of
from l20fs.cli.load import load, load_features, nuisances_of
from l20fs.cli.options import DataOptions
from l20fs.cli.output import note, readable, stated_warnings
from l20fs.cli.parameter_types import read_lines
from l20fs.cli.predict import columns_of, load_panel, outside_text, panel_names, predictions_frame, tell_notes
from l20fs.cli.select_sentences import warn_of_few_folds
from l20fs.cli.validate_content import (
    NO_DEVICE,
    answer,
    comparison,
    distance_text,
    list_sections,
    sections_of,
    warnings_of,
)
from l20fs.evaluation.corrected_score import Estimate
from l20fs.evaluation.metrics import METRICS
from l20fs.evaluation.target_summary import summarise
from l20fs.evaluation.validation import Validation, validate_classes, validate_numbers
from l20fs.inputs.names import NamedColumns
from l20fs.prediction.new_samples import predict_samples
from l20fs.prediction.panel import Panel
from l20fs.prediction.records import RecordError, read_value
from l20fs.report.sentences import adjusted_for
from l20fs.report.validation import Section
from l20fs.tables import DataError, Samples
from l20fs.tables.names import near_names
from l20fs.text import MOST, counted, folded, listed


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
    #: Of the readers.
    notes: list[str] = field(default_factory=list)
    sentences: list[str] = field(default_factory=list)
    facts: list[tuple[str, str]] = field(default_factory=list)
    sections: list[Section] = field(default_factory=list)
    parts: dict[str, Validation] = field(default_factory=dict)
    report: ListReport | None = None
    predictions: pd.DataFrame | None = None


def describe(place: Path, data: str, samples: Samples, options: ValidateOptions) -> dict[str, Any]:
    """Return everything that the result depends on, without times."""
    asked = {
        name: getattr(options, name) for name in ("target", "groups", "adjust_for", "task", "is_log", "n_features", "seed")
    }
    labels = None if options.labels is None else readable(str(options.labels))
    return {
        "arguments": {"panel": readable(str(place)), "data": readable(data), "labels": labels, **asked},
        "input": {"sha256": samples.sha256, "n_samples": samples.X.shape[0], "notes": list(samples.notes)},
        "versions": versions(),
    }


# ------------------------------------------------------------------------------------------------------------------ panel


def judge_panel(place: Path, data: str, options: ValidateOptions) -> Judgement:
    """Judge a panel in a cohort."""
    panel = load_panel(place)
    if options.task not in ("auto", panel.task):
        raise click.UsageError(f"--task {options.task}: the panel is one of {panel.task}. Leave the option out.")
    found = Judgement(f"{readable(title_of(place))} on {readable(title_of(data))}", run={})
    samples = judge_cohort(found, panel, data, options, promise_of(panel, options.n_features))
    found.run = describe(place, data, samples, options) | {"panel": {"sha256": panel.sha256}}
    if panel.data_sha256 is not None and panel.data_sha256 == samples.sha256:
        found.warnings.insert(0, "This table is the one that the panel was made from: the scores are too good.")
    return found


def spelled_as(classes: Sequence[str], samples: Samples) -> Samples:
    """Return the samples with the classes of a panel in the place of labels that differ from them in case or blanks only."""
    known: dict[str, list[str]] = {}
    for name in classes:
        known.setdefault(folded(name), []).append(name)
    others = sorted(set(samples.y.tolist()).difference(classes)) if samples.task == "classification" else []
    spelled = {label: known[folded(label)][0] for label in others if len(known.get(folded(label), [])) == 1}
    if not spelled:
        return samples
    shown = ", ".join(f"{label!r} for {name!r}" for label, name in list(spelled.items())[:MOST])
    more = f" and {len(spelled) - MOST} more" if len(spelled) > MOST else ""
    text = f"{samples.title}: labels stand for the classes of the panel, but for case and blanks: {shown}{more}."
    note(text)
    y = np.array([spelled.get(label, label) for label in samples.y.tolist()])
    return replace(samples, y=y, notes=(*samples.notes, text))


def judge_cohort(
    found: Judgement, panel: Panel, data: str, options: ValidateOptions, promised: tuple[str, Estimate] | None
) -> Samples:
    """Add the judgement of a panel in a cohort; return the cohort."""
    if len(panel.targets) > 1:
        raise DataError(f"The panel predicts {len(panel.targets)} numbers; validation is for one. Select for one target.")
    k, classes = options.n_features, list(map(str, panel.classes or []))
    asked: dict[str, Any] = {name: getattr(options, name) for name in ("target", "labels", "groups")}
    samples = load_features(data, *panel_names(panel, k), options, task=panel.task, need_labels=True, **asked)
    samples = spelled_as(classes, samples)
    found.notes += samples.notes
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
            new.predicted[is_known].astype(str).tolist(),
            classes,
            groups,
        )
    else:
        numbers = (samples.y[is_known], new.predicted[is_known].astype(float))
        result = validate_numbers(*numbers, groups)
    if not is_known.any():
        raise DataError(f"{samples.title}: no sample has a value of any feature of the panel. Give samples that do.")
    if not result.n_samples:
        raise DataError(
            f"{samples.title}: no sample has a class that the panel knows ({listed(classes)}); it has "
            f"{listed(sorted(set(samples.y.tolist())))}. Name the column of the classes (--target), or rename them."
        )
    found.parts["cohort"], found.predictions = result, frame
    is_new = panel.data_sha256 is None or panel.data_sha256 != samples.sha256
    said = (answer(result, samples.title), comparison(result, promised) if is_new else None)
    found.answers += [text for text in said if text is not None]
    found.warnings += warnings_of(result)
    if not is_known.all():
        found.warnings.append(f"{counted(int((~is_known).sum()), 'sample')} with no value of any feature: not predicted.")
    if new.n_outside:
        found.warnings.append(f"{outside_text(new)}: see the column `outside` of predictions.tsv.")
    place = f" in {samples.title}" if found.sections else ""
    found.facts += [(f"Samples{place}", str(len(frame)))]
    found.facts += [] if place else [("Features", str(len(panel.features_for(k))))]
    found.sections += [each._replace(heading=each.heading + place) for each in sections_of(result, numbers)]
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


def promise_of(panel: Panel, k: int | None = None) -> tuple[str, Estimate] | None:
    """Return the metric and the score, with its interval, that the panel stores of its own making; None without one.

    It is that of the selected number of features, and says nothing about another ``k``.
    """
    stored = panel.provenance.get("score")
    name = stored.get("name") if isinstance(stored, dict) else None
    if k not in (None, panel.k) or not isinstance(stored, dict) or not isinstance(name, str) or name not in METRICS:
        return None
    try:
        promised = Estimate(*(read_value(stored.get(end), float, end) for end in Estimate._fields))
    except RecordError:
        return None
    most = 1.0 if METRICS[name].is_share else math.inf
    return (name, promised) if promised.lower <= promised.value <= promised.upper <= most else None


# ------------------------------------------------------------------------------------------------------------------- list


def judge_list(place: Path, data: str, test: str | None, options: ValidateOptions) -> Judgement:
    """Judge a list of features from elsewhere on samples to learn from, and in a second table if there is one."""
    names = read_names(place)
    samples = load(data, options)
    rows = rows_of(names, samples, place)
    found = Judgement(f"{readable(title_of(place))} on {samples.title}", run=describe(place, data, samples, options))
    targets = summarise(samples.y)
    found.notes += samples.notes
    with stated_warnings() as texts:
        result = cross_validate(samples, rows, targets.folds(samples.groups, seed=options.seed))
        found.report = inspect_list(samples, rows)
    found.warnings += [*filter(None, [warn_of_few_folds(samples, targets)]), *texts, *warnings_of(result)]
    missing = [name for name in names if name not in set(samples.feature_names)]
    if missing:
        found.warnings.append(
            f"{counted(len(missing), 'name')} of the list not in {samples.title}: {listed(missing)}. The other {len(rows)} "
            f"were used.{near_names(missing, samples.feature_names)}"
        )
    found.parts["cross-validation"] = result
    listed_as = f"{samples.title} by cross-validation, with {counted(len(rows), 'feature')} of {readable(title_of(place))}"
    found.answers += [answer(result, listed_as), distance_text(found.report)]
    found.facts += [("Features", str(len(rows))), ("Samples", str(samples.X.shape[0]))]
    found.sections += [*sections_of(result), *list_sections(found.report)]
    found.sentences += [
        *([adjusted_for(list(samples.adjust_for))] if samples.adjust_for else []),
        "Cross-validation: every sample was predicted by weights from the other folds. Nothing was selected here. If the "
        "list was found in these very samples, the scores are too good.",
        "Loss: what least squares, with the ridge term, leave unexplained of the classes or numbers. The bound is a proof "
        "for this table, not for other samples.",
    ]
    if test is not None:
        name, promised = result.main
        panel = panel_from(samples, rows, options)
        cohort = judge_cohort(found, panel, test, options, None if promised is None else (name, promised))
        found.run["test"] = {"data": readable(test), "sha256": cohort.sha256}
    else:
        found.sentences.append(NO_DEVICE)
    return found


def read_names(place: Path) -> list[str]:
    """Return the names of a list, each once."""
    names = list(dict.fromkeys(line for line in read_lines(as_file(place), None, None) if line and not line.startswith("#")))
    if not names:
        raise DataError(f"{title_of(place)}: no names. Give one feature per line.")
    return names


def rows_of(names: list[str], samples: Samples, place: Path) -> list[int]:
    """Return the columns of the names that are in the table; at least one must be."""
    known = {name: row for row, name in enumerate(samples.feature_names)}
    rows = [known[name] for name in names if name in known]
    if not rows:
        raise DataError(
            f"{title_of(place)}: none of its {len(names)} names ({listed(names)}) is a feature of {samples.title}. Give one "
            f"feature per line, as the table names them.{near_names(names, samples.feature_names)}"
        )
    return rows


def panel_from(samples: Samples, rows: list[int], options: ValidateOptions) -> Panel:
    """Return the panel of a list, learned from all samples."""
    X = NamedColumns(samples.X, samples.feature_names)
    model, nuisances = make_model(samples, rows), nuisances_of(samples)
    model.fit(X, samples.y, adjust_for=nuisances)
    about = {"transform": "log1p" if options.is_log else "none", "target_names": samples.target_name or "target"}
    panel: Panel = model.to_panel(X, samples.y, adjust_for=nuisances, **about)
    return panel
