"""The steps of ``l20fs select``: fit, cross-validate, choose the number of features, resample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from l20fs import L20Selector, StabilitySelector
from l20fs.blocks import FileBlocks, is_blocks
from l20fs.cli import NothingSelectedError
from l20fs.cli.load import make_selector, nuisances_of, refuse_for_blocks
from l20fs.cli.options import SelectOptions
from l20fs.cli.output import WarningLog, log_of_blocks, note, progress, stated_warnings, working
from l20fs.cli.select_findings import Findings
from l20fs.cli.select_sentences import data_warnings, warn_of_few_folds
from l20fs.data.readers import DataError, Samples
from l20fs.defaults import DEFAULT_N_FEATURES
from l20fs.design import Part, share_samples
from l20fs.estimators.base import BaseSelector
from l20fs.estimators.panels import largest_k, ranked_units
from l20fs.estimators.penalty import possible_sizes
from l20fs.evaluation.choice import choose, choose_each, is_at_limit, search_limits, search_sizes
from l20fs.evaluation.corrected_score import Estimate, corrected_score, fixed_score
from l20fs.evaluation.metrics import METRICS, Metric
from l20fs.evaluation.predictions import JUDGES, Nested, Predictions, nested_scores, predictions_by_k
from l20fs.evaluation.target_summary import Classes, TargetSummary, summarise
from l20fs.inputs.names import NamedColumns
from l20fs.inputs.targets import encode_targets
from l20fs.inspection import NearOptimalPanels, near_optimal_panels
from l20fs.text import counted
from l20fs.typing import Array

#: With more samples than this the vote of neighbours, which compares all with all, is left out.
MOST_COMPARED = 5000


def run_selection(samples: Samples, options: SelectOptions, provenance: dict[str, Any]) -> Findings:
    """Run all steps that the options ask for."""
    log = WarningLog(samples.notes)
    targets = summarise(samples.y)
    metric = targets.metric if options.scoring == "auto" else METRICS[options.scoring]
    n_samples, n_features = samples.X.shape
    what = counted(len(targets), "class") if isinstance(targets, Classes) else "numbers to predict"
    note(f"{n_samples} samples, {counted(n_features, 'feature')}, {what}")
    check_options(samples, options, targets)
    refuse_for_blocks(samples, options, atlas=options.atlas is not None)
    is_open = options.n_features is None and options.auto is None
    if is_open and n_features <= DEFAULT_N_FEATURES:
        note(f"All features are selected: they are no more than {DEFAULT_N_FEATURES}. Choose fewer: -k N, or --auto 1se.")
    early = [text for text in (warn_of_few_folds(samples, targets),) if text]
    tell_warnings(early)
    found = search(samples, options, targets, metric, log)
    selector, units, k, rule, predictions, limit, score, shared = found
    nested = None
    if options.nested and predictions is not None:
        nested = cross_validate_choice(selector, samples, predictions, metric, options)
    stability = None
    if options.stability:
        with log.step():
            stability = resample(selector, k, samples, options)
    atlas = None
    if options.atlas is not None:
        with working("All near-optimal panels"):
            atlas = list_panels(selector, k, samples, options.atlas)
    provenance = provenance | {"protocol": describe_protocol(predictions, samples), "scoring": metric.name}
    if isinstance(selector, L20Selector) and selector.constraints is not None and selector.constraints.limit_panels:
        provenance["constraints"] = selector.constraints.sentence()
    findings = Findings(
        samples,
        options,
        targets,
        metric,
        selector,
        units,
        k,
        rule,
        predictions=predictions,
        score=score,
        nested=nested,
        stability=stability,
        atlas=atlas,
        search_limit=limit,
        shared=shared,
        provenance=provenance,
    )
    if isinstance(samples.X, FileBlocks):  # which holds the columns of the page from here on
        samples.X.columns(np.concatenate(units[: max(findings.k, findings.k_max)]))
    warnings = data_warnings(findings)
    tell_warnings(warnings)
    return replace(findings, warnings=[*early, *warnings, *log.texts])


def tell_warnings(texts: Sequence[str]) -> None:
    """Print warnings."""
    for text in texts:
        note(f"warning: {text}")


class Search(NamedTuple):
    """A fit to all samples, its cross-validation, the number of features and its score.

    ``limit`` is the largest number that was tried, if the search ended there. ``shared`` is a file by whose passes all of
    them were computed.
    """

    selector: BaseSelector
    units: list[Array]
    k: int
    rule: str
    predictions: Predictions | None
    limit: int | None = None
    score: Estimate | None = None
    shared: Part | None = None


def search(
    samples: Samples,
    options: SelectOptions,
    targets: TargetSummary,
    metric: Metric,
    log: WarningLog,
) -> Search:
    """Fit and cross-validate; with --auto further and further while the best number of features lies at the limit."""
    for limit in limits_to_try(samples, options):
        found = fit_and_validate(samples, options, targets, max(limit, largest_k(len(targets))), log)
        if found.predictions is None:
            return found
        refuse_missing_probabilities(found.predictions, metric)
        if options.auto is None:
            return found._replace(score=score_at(found.predictions, metric, found.k, samples.groups))
        tried = found.predictions.up_to(limit)
        results = tried.results(metric=metric)
        chosen = choose(results, options.auto)
        found = found._replace(k=tried.sizes[chosen], rule=options.auto)
        if tried.sizes[-1] == len(found.units) or not is_at_limit(results, chosen):
            break
        found = found._replace(limit=tried.sizes[-1])
        note(f"The best score is at the limit of {found.limit} features.")
    return found._replace(score=corrected(tried, metric, options, samples.groups))


def refuse_missing_probabilities(predictions: Predictions, metric: Metric) -> None:
    """Raise an error if a metric needs probabilities that were too many to keep."""
    if not predictions.judges_for(metric):
        raise DataError(
            f"--scoring {metric.name} needs a probability for each of {len(predictions.targets.truth)} samples, "
            f"{len(predictions.sizes)} numbers of features and {len(predictions.targets)} classes, which are too many. Use "
            "accuracy or balanced_accuracy."
        )


def score_at(predictions: Predictions, metric: Metric, k: int, groups: Array | None) -> Estimate:
    """Return the score of the linear judge with k features, given in advance."""
    outputs = predictions.outputs(JUDGES[0], metric)
    return fixed_score(outputs, metric, predictions.sizes.index(k), folds=predictions.folds, groups=groups)


def corrected(tried: Predictions, metric: Metric, options: SelectOptions, groups: Array | None) -> Estimate:
    """Return the score of the linear judge, corrected for the choice of the number of features by that score."""
    results = tried.results(metric=metric)
    return corrected_score(
        tried.outputs(JUDGES[0], metric),
        metric,
        tried.folds,
        partial(choose_each, results, options.auto),
        groups=groups,
        seed=options.seed,
    )


def limits_to_try(samples: Samples, options: SelectOptions) -> list[int]:
    """Return the largest numbers of features that --auto tries, one after the other; 0 without it."""
    n_features = samples.X.shape[1]
    if options.auto is None:
        return [0]
    if options.max_features is not None:
        return [min(options.max_features, n_features)]
    limits = search_limits(n_features)
    return limits[:1] if isinstance(samples.X, FileBlocks) else limits  # every path reads the file many times


def fit_and_validate(
    samples: Samples,
    options: SelectOptions,
    targets: TargetSummary,
    largest: int,
    log: WarningLog,
) -> Search:
    """Fit on all samples and cross-validate all numbers of features up to ``largest``, and the requested one."""
    n_features = samples.X.shape[1]
    k, rule = wanted_k(n_features, options)
    max_features = min(n_features, max(k, largest))
    selector = make_selector(samples, options, max_features)
    # Another method gives a ranking, of which the best k are taken; only the path knows an end before that.
    selector.set_params(n_features_to_select=k if isinstance(selector, L20Selector) else max_features)
    limits_panels = isinstance(selector, L20Selector) and selector.constraints and selector.constraints.limit_panels
    if limits_panels and rule != "asked":
        names = np.array(samples.feature_names, dtype=object)
        _, possible = possible_sizes(selector, samples.X, encode_targets(samples.y, selector.task), names)
        k = min(max(k, possible.least), possible.most)
        selector.set_params(n_features_to_select=k)
    X = shared_file(selector, samples)
    with log.step(), log_of_blocks(samples.X), working("Fit to all samples"):
        units = fit(selector, samples, X)
    if k > len(units):
        k = len(units)
    sizes = sizes_to_try(selector, k, min(largest, len(units)))
    predictions = cross_validate(selector, samples, targets, sizes, options, X)
    return Search(selector, units, k, rule, predictions, shared=X)


def shared_file(selector: BaseSelector, samples: Samples) -> Part | None:
    """Return a file that is read in blocks so that the fit and the folds share their passes; None for any other X."""
    if not (selector._takes_parts and samples.preprocess is None and is_blocks(samples.X)):
        return None
    return share_samples(samples.X)


def check_options(samples: Samples, options: SelectOptions, targets: TargetSummary) -> None:
    """Refuse options that these data cannot satisfy, before any work."""
    n_features, k = samples.X.shape[1], options.n_features
    if k is not None and k > n_features:
        raise DataError(f"-k {k}: the data have {counted(n_features, 'feature')} only. Use a smaller k.")
    if options.auto is not None and targets.n_folds(samples.groups) < 2:
        reason = warn_of_few_folds(samples, targets)
        raise DataError(f"--auto {options.auto} needs cross-validation. {reason} Use -k instead.")


def wanted_k(n_features: int, options: SelectOptions) -> tuple[int, str]:
    """Return the number of features before cross-validation chooses one, and the rule that it comes from."""
    if options.n_features is not None:
        return options.n_features, "asked"
    return min(n_features, max(DEFAULT_N_FEATURES, len(options.include or []))), "default"


def fit(selector: BaseSelector, samples: Samples, shared: Part | None = None) -> list[Array]:
    """Fit on all samples, as far as in the folds, so that both rank alike, and return the ranked units."""
    X = samples.X if shared is None else shared
    nuisances = nuisances_of(samples)
    own = {} if nuisances is None else {"adjust_for": nuisances}
    selector.fit(NamedColumns(X, samples.feature_names), samples.y, **own)
    units = ranked_units(selector)
    if not units:
        raise NothingSelectedError("No feature can be selected. Exclude fewer.")
    return units


def sizes_to_try(selector: BaseSelector, k: int, largest: int) -> list[int]:
    """Return the numbers of features to evaluate: those of the page and of a search, and the requested one."""
    least = max(1, selector.path_.least_size) if isinstance(selector, L20Selector) else 1
    return sorted({max(least, size) for size in search_sizes(largest)} | {k})


def cross_validate(
    selector: BaseSelector,
    samples: Samples,
    targets: TargetSummary,
    sizes: Sequence[int],
    options: SelectOptions,
    shared: Part | None = None,
) -> Predictions | None:
    """Predict all samples with the selection inside each fold; None if there are too few for folds."""
    if targets.n_folds(samples.groups) < 2:
        return None
    folds = targets.folds(samples.groups, seed=options.seed)
    judges = JUDGES if len(samples.y) <= MOST_COMPARED else JUDGES[:1]
    with stated_warnings(), progress("Cross-validation", len(folds)) as advance:
        return predictions_by_k(
            selector,
            samples.X_before if shared is None else shared,
            samples.y,
            sizes,
            folds,
            judges=judges,
            ridge=options.ridge,
            nuisances=nuisances_of(samples),
            preprocess=samples.preprocess,
            n_jobs=number_of_jobs(samples, options),
            on_fold=advance,
        )


def cross_validate_choice(
    selector: BaseSelector,
    samples: Samples,
    outer: Predictions,
    metric: Metric,
    options: SelectOptions,
) -> Nested:
    """Repeat the choice of the number of features inside each fold."""
    assert options.auto is not None
    with stated_warnings(), progress("Nested cross-validation", len(outer.folds)) as advance:
        return nested_scores(
            selector,
            samples.X_before,
            samples.y,
            outer.up_to(options.max_features or outer.sizes[-1]),
            options.auto,
            metric,
            groups=samples.groups,
            seed=options.seed,
            ridge=options.ridge,
            nuisances=nuisances_of(samples),
            preprocess=samples.preprocess,
            n_jobs=number_of_jobs(samples, options),
            on_fold=advance,
        )


def resample(selector: BaseSelector, k: int, samples: Samples, options: SelectOptions) -> StabilitySelector:
    """Repeat the selection of k features on halves of the samples, as all of them were prepared: nothing is scored."""
    assert options.stability is not None
    with working("Stability"):
        stability = StabilitySelector(
            clone(selector).set_params(n_features_to_select=k),
            n_resamples=options.stability,
            random_state=options.seed,
            n_jobs=options.n_jobs,
        )
        own = {"groups": samples.groups, "adjust_for": nuisances_of(samples)}
        stability.fit(NamedColumns(samples.X, samples.feature_names), samples.y, **own)
    return stability


def list_panels(selector: BaseSelector, k: int, samples: Samples, eps: float | str) -> NearOptimalPanels:
    """List all panels of k features whose loss is within a share of the best."""
    assert isinstance(selector, L20Selector)
    named = NamedColumns(samples.X, samples.feature_names)
    return near_optimal_panels(selector, named, samples.y, k, tolerance=eps, adjust_for=nuisances_of(samples))


def number_of_jobs(samples: Samples, options: SelectOptions) -> int:
    """Return the number of parallel fits; 1 for a file in blocks."""
    return 1 if isinstance(samples.X, FileBlocks) else options.n_jobs


def describe_protocol(predictions: Predictions | None, samples: Samples) -> str | None:
    """Return the name of the protocol."""
    if predictions is None:
        return None
    stratified = "stratified " if isinstance(predictions.targets, Classes) else ""
    together = "" if samples.groups is None else " by group"
    return f"{len(predictions.folds)}-fold {stratified}cross-validation{together}, selection inside each fold"
