"""The work of ``l20fs select``: fit, cross-validate, choose, and look how stable the choice is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from l20fs import L20Selector, StabilitySelector
from l20fs.blocks import FileBlocks
from l20fs.cli.load import Samples, make_selector, refuse_for_blocks, unit_names
from l20fs.cli.options import DEFAULTS
from l20fs.cli.output import log_of_blocks, note, progress, stated_warnings
from l20fs.cli.results import CELLS, PASSES
from l20fs.data.readers import DataError
from l20fs.estimators.base import BaseSelector
from l20fs.evaluation.choice import choose
from l20fs.evaluation.folds import N_FOLDS, make_stratified_folds, number_of_folds
from l20fs.evaluation.predictions import JUDGES, Nested, Predictions, nested_accuracy, predictions_by_k
from l20fs.report import sentences
from l20fs.report.build import Findings, largest_k, ranked_units

DEFAULT_K = DEFAULTS["n_features_to_select"]
#: With more samples than this the vote of neighbours, which compares all with all, is left out.
MOST_COMPARED = 5000


class NothingSelectedError(Exception):
    """The chosen lambda leaves no feature."""


def find(samples: Samples, options: dict[str, Any], provenance: dict[str, Any], folder: Path | None) -> Findings:
    """Do all that the options ask for; ``folder`` is for what a long run keeps on its way."""
    warned: list[str] = list(samples.notes)
    n_samples, n_features = samples.X.shape
    classes = np.unique(samples.y)
    note(f"{n_samples} samples, {sentences.counted(n_features, 'feature')}, {sentences.counted(len(classes), 'class')}")
    check_options(samples, options)
    refuse_for_blocks(samples, options)
    selector, k, rule = fit(samples, options, largest_k(len(classes)), warned, folder and folder / PASSES)
    units = ranked_units(selector)
    if k > len(units):
        k, rule = len(units), "alpha" if options["alpha"] is not None else rule
    sizes = sizes_to_try(selector, k, min(largest_k(len(classes)), len(units)))
    predictions = cross_validate(selector, samples, sizes, options)
    nested = None
    if options["auto"] is not None and predictions is not None:
        rule, k = options["auto"], sizes[choose(predictions.results(), options["auto"])]
        nested = cross_validate_choice(selector, samples, predictions, options) if options["nested"] else None
    stability = resample(selector, k, samples, options, folder and folder / CELLS, warned) if options["stability"] else None
    return Findings(
        title=samples.title,
        X=samples.X,
        y=samples.y,
        names=samples.feature_names,
        selector=selector,
        method=options["method"],
        k=k,
        k_rule=rule,
        predictions=predictions,
        nested=nested,
        stability=stability,
        groups=samples.groups,
        group_name=options["groups"] or "",
        unit_names=unit_names(samples, options["feature_groups"]),
        is_log=options["is_log"],
        notes=list(dict.fromkeys(warned)),
        provenance=provenance | {"protocol": protocol(predictions, samples)},
    )


def check_options(samples: Samples, options: dict[str, Any]) -> None:
    """Refuse what these data cannot give, before any work."""
    n_features, k = samples.X.shape[1], options["n_features"]
    if k is not None and k > n_features:
        raise DataError(f"-k {k}: the data have {sentences.counted(n_features, 'feature')} only. Use a smaller k.")
    n_folds = number_of_folds(samples.y, samples.groups)
    if options["auto"] is not None and n_folds < 2:
        raise DataError(f"--auto {options['auto']} needs cross-validation. {why_fewer_folds(samples)} Use -k instead.")


def fit(
    samples: Samples, options: dict[str, Any], page_size: int, warned: list[str], passes: Path | None
) -> tuple[BaseSelector, int, str]:
    """Fit the selector on all samples, as far as in the folds, so that both rank alike; also say how many are wanted."""
    n_features = samples.X.shape[1]
    k, rule = options["n_features"], "asked"
    if k is None:
        k, rule = min(n_features, max(DEFAULT_K, len(options["include"] or []))), "default"
    max_features = min(n_features, max(k, page_size))
    selector = make_selector(samples, options, max_features, passes)
    # Another method gives a ranking, of which the best k are taken; only the path knows an end before that.
    selector.set_params(n_features_to_select=k if isinstance(selector, L20Selector) else max_features)
    with stated_warnings() as said, log_of_blocks(samples.X):
        selector._fit(samples.X, samples.y, names=np.array(samples.feature_names, dtype=object))
        if not ranked_units(selector):
            raise NothingSelectedError(f"No feature is selected at --alpha {options['alpha']:g}. Use a smaller one.")
    warned.extend(said)
    return selector, k, rule


def sizes_to_try(selector: BaseSelector, k: int, page_size: int) -> list[int]:
    """Return the numbers of features at which accuracy is measured: all that the page shows, and the one asked for."""
    least = max(1, selector.path_.n_included) if isinstance(selector, L20Selector) else 1
    return sorted({*range(least, page_size + 1), k})


def why_fewer_folds(samples: Samples) -> str:
    """Say why there are fewer folds than usual, or none; nothing if there are as many as usual."""
    classes, counts = np.unique(samples.y, return_counts=True)
    n_groups = None if samples.groups is None else len(np.unique(samples.groups))
    n_folds = number_of_folds(samples.y, samples.groups)
    return sentences.few_folds(n_folds, N_FOLDS, classes, counts.tolist(), n_groups) or ""


def cross_validate(
    selector: BaseSelector, samples: Samples, sizes: Sequence[int], options: dict[str, Any]
) -> Predictions | None:
    """Predict all samples with the selection inside each fold; None if a class has one sample only."""
    if number_of_folds(samples.y, samples.groups) < 2:
        return None
    folds = make_stratified_folds(samples.y, samples.groups, seed=options["seed"])
    judges = JUDGES if len(samples.y) <= MOST_COMPARED else JUDGES[:1]
    with stated_warnings(), progress("Cross-validation", len(folds)) as advance:
        return predictions_by_k(
            selector,
            samples.X,
            samples.y,
            sizes,
            folds,
            judges=judges,
            ridge=options["ridge"],
            n_jobs=number_of_jobs(samples, options),
            on_fold=advance,
        )


def number_of_jobs(samples: Samples, options: dict[str, Any]) -> int:
    """Return how many fits to make at the same time; a file that is read in blocks is read by this process alone."""
    return 1 if isinstance(samples.X, FileBlocks) else int(options["n_jobs"])


def cross_validate_choice(selector: BaseSelector, samples: Samples, outer: Predictions, options: dict[str, Any]) -> Nested:
    """Repeat the choice of the number of features inside each fold."""
    with stated_warnings(), progress("Nested cross-validation", len(outer.folds)) as advance:
        return nested_accuracy(
            without_checkpoint(selector),
            samples.X,
            samples.y,
            outer,
            options["auto"],
            groups=samples.groups,
            seed=options["seed"],
            ridge=options["ridge"],
            n_jobs=number_of_jobs(samples, options),
            on_fold=advance,
        )


def resample(
    selector: BaseSelector, k: int, samples: Samples, options: dict[str, Any], cells: Path | None, warned: list[str]
) -> StabilitySelector:
    """Repeat the selection of k features on halves of the samples."""
    with progress("Stability", options["stability"]) as advance, stated_warnings() as said:
        stability = StabilitySelector(
            without_checkpoint(selector).set_params(n_features_to_select=k),
            n_resamples=options["stability"],
            random_state=options["seed"],
            n_jobs=options["n_jobs"],
            checkpoint=cells,
            callback=lambda _: advance(),
        )
        stability._fit(samples.X, samples.y, names=np.array(samples.feature_names, dtype=object), groups=samples.groups)
    warned.extend(said)
    return stability


def without_checkpoint(selector: BaseSelector) -> BaseSelector:
    """Return a selector for fits of which there are too many to keep what each reads."""
    copy = clone(selector)
    return copy.set_params(checkpoint=None) if isinstance(copy, L20Selector) else copy


def protocol(predictions: Predictions | None, samples: Samples) -> str | None:
    """Name the protocol in a few words."""
    if predictions is None:
        return None
    together = "" if samples.groups is None else " by group"
    return f"{len(predictions.folds)}-fold stratified cross-validation{together}, selection inside each fold"
