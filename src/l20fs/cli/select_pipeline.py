"""The steps of ``l20fs select``: fit, cross-validate, choose the number of features, resample."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from l20fs import L20Selector, L20SelectorCV, PanelAtlas, StabilitySelector
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
from l20fs.evaluation.choice import FIRST_LIMIT, choose, is_at_limit, least_size, search_sizes
from l20fs.evaluation.metrics import METRICS, Metric
from l20fs.evaluation.predictions import Predictions, predictions_by_k
from l20fs.evaluation.quoted_score import Estimate
from l20fs.evaluation.target_summary import Classes, TargetSummary, summarise
from l20fs.inputs.names import NamedColumns
from l20fs.text import counted
from l20fs.typing import Array

#: How warnings begin that the page states in its own words.
STATED = r"Class(es)? '|The search for the number"


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
    early = [text for text in (warn_of_few_folds(samples, targets),) if text]
    tell_warnings(early)
    found = search(samples, options, targets, metric, log)
    selector, template, units, k, rule, predictions, limit, score, shared, skill = found
    stability = None
    if options.stability:
        with log.step():
            stability = resample(template, k, samples, options)
    atlas = None
    if options.atlas is not None:
        with working("All near-optimal panels"):
            atlas = list_panels(selector, k, samples, options.atlas)
    provenance = provenance | {"protocol": describe_protocol(predictions, samples), "scoring": metric.name}
    if isinstance(selector, L20Selector) and selector.constraints is not None:
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
        skill=skill,
        stability=stability,
        atlas=atlas,
        search_limit=limit,
        shared=shared,
        provenance=provenance,
    )
    if isinstance(samples.X, FileBlocks):  # which holds the columns of the page from here on
        samples.X.columns(np.concatenate(units[: max(findings.k, findings.k_max)]))
    found_warnings = data_warnings(findings)
    tell_warnings(found_warnings)
    return replace(findings, warnings=[*early, *found_warnings, *log.texts])


def tell_warnings(texts: Sequence[str]) -> None:
    """Print warnings."""
    for text in texts:
        note(f"warning: {text}")


class Search(NamedTuple):
    """A fit to all samples, its cross-validation, the number of features and its score.

    ``template`` is the selector without a fit. ``limit`` is the largest number that was tried, if the search ended there.
    ``shared`` is a file by whose passes all of them were computed. ``skill`` is None where no number was searched for.
    """

    selector: BaseSelector
    template: BaseSelector
    units: list[Array]
    k: int
    rule: str
    predictions: Predictions | None
    limit: int | None = None
    score: Estimate | None = None
    shared: Part | None = None
    skill: float | None = None


def search(samples: Samples, options: SelectOptions, targets: TargetSummary, metric: Metric, log: WarningLog) -> Search:
    """Fit, cross-validate, and choose the number of features unless it is given."""
    template = make_selector(samples, options, min(samples.X.shape[1], largest_k(len(targets))))
    shared = shared_file(template, samples)
    if targets.n_folds(samples.groups) < 2:
        return without_folds(template, samples, options, shared, log)
    if not isinstance(template, L20Selector):
        return by_method(template, samples, options, targets, metric, log)
    wanted: Any = options.n_features
    if options.alpha is not None and isinstance(wanted, str):
        wanted = DEFAULT_N_FEATURES
    own = L20SelectorCV(
        wanted,
        selector=template,
        max_features=options.max_features,
        task="regression" if samples.task == "regression" else "classification",
        scoring=None if options.scoring == "auto" else options.scoring,
        preprocess=samples.preprocess,
        random_state=options.seed,
        n_jobs=None if samples.preprocess is None else options.n_jobs,  # side by side they take less time
    )
    X = samples.X_before if shared is None else shared
    groups = {} if samples.groups is None else {"groups": samples.groups}
    with log.step(), log_of_blocks(samples.X), working("Fit and cross-validation"):
        warnings.filterwarnings("ignore", message=STATED)
        own.fit(NamedColumns(X, samples.feature_names), samples.y, adjust_for=nuisances_of(samples), **groups)
    if samples.preprocess is not None:  # which fills gaps, and gives no names to the columns that it leaves as they are
        own.model_.feature_names_in_ = np.array(samples.feature_names, dtype=object)
    units = ranked(own.model_)
    predictions = Predictions.of_search(own, targets)
    k = min(predictions.sizes[own.best_index_ % len(predictions.sizes)], len(units))
    is_search = isinstance(wanted, str)
    at_limit = (
        is_search
        and is_at_limit(own.cv_results_, own.best_index_, least_size(len(units)))
        and predictions.sizes[-1] < len(units)
    )
    rule = wanted if is_search else "asked" if options.n_features == wanted and k == wanted else "alpha"
    return Search(
        own.model_,
        template,
        units,
        k,
        rule,
        predictions,
        limit=predictions.sizes[-1] if at_limit else None,
        score=score_at(predictions, metric, k, samples.groups),
        shared=shared,
        skill=own.skill_ if is_search else None,
    )


def by_method(
    selector: BaseSelector,
    samples: Samples,
    options: SelectOptions,
    targets: TargetSummary,
    metric: Metric,
    log: WarningLog,
) -> Search:
    """Do the same for a method that gives a ranking, of which the best k are taken."""
    n_features, wanted = samples.X.shape[1], options.n_features
    selector.set_params(n_features_to_select=n_features)
    with log.step(), working("Fit to all samples"):
        units = fit(selector, samples)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=STATED)
        folds = targets.folds(samples.groups, seed=options.seed)
    largest = max(options.max_features or FIRST_LIMIT, wanted if isinstance(wanted, int) else 1)
    sizes = sorted({*search_sizes(min(largest, len(units))), *([wanted] if isinstance(wanted, int) else [])})
    with stated_warnings(), progress("Cross-validation", len(folds)) as advance:
        predictions = predictions_by_k(
            selector,
            samples.X_before,
            samples.y,
            sizes,
            folds,
            ridge=options.ridge,
            preprocess=samples.preprocess,
            n_jobs=number_of_jobs(samples, options),
            on_fold=advance,
        )
    k, rule, skill = wanted, "asked", None
    if isinstance(wanted, str):
        results = predictions.results(metric, by_default=options.scoring == "auto")
        chosen = choose(results, wanted, least_size(len(units)))
        k, rule, skill = sizes[chosen], wanted, float(results["skill"][chosen])
    assert isinstance(k, int)
    score = score_at(predictions, metric, k, samples.groups)
    return Search(selector, selector, units, k, rule, predictions, score=score, skill=skill)


def without_folds(
    selector: BaseSelector, samples: Samples, options: SelectOptions, shared: Part | None, log: WarningLog
) -> Search:
    """Fit to all samples, where there are too few for folds."""
    k = DEFAULT_N_FEATURES if isinstance(options.n_features, str) else options.n_features
    selector.set_params(n_features_to_select=k if isinstance(selector, L20Selector) else samples.X.shape[1])
    with log.step(), log_of_blocks(samples.X), working("Fit to all samples"):
        units = fit(selector, samples, shared)
    return Search(selector, selector, units, min(k, len(units)), "asked", None, shared=shared)


def score_at(predictions: Predictions, metric: Metric, k: int, groups: Array | None) -> Estimate:
    """Return the score with k features, of all predictions together."""
    return predictions.estimates(metric, groups)[predictions.sizes.index(k)]


def shared_file(selector: BaseSelector, samples: Samples) -> Part | None:
    """Return a file that is read in blocks so that the fit and the folds share their passes; None for any other X."""
    if not (selector.takes_parts and samples.preprocess is None and is_blocks(samples.X)):
        return None
    return share_samples(samples.X)


def check_options(samples: Samples, options: SelectOptions, targets: TargetSummary) -> None:
    """Refuse options that these data cannot satisfy, before any work."""
    n_features, k = samples.X.shape[1], options.n_features
    if isinstance(k, int) and k > n_features:
        raise DataError(f"-k {k}: the data have {counted(n_features, 'feature')} only. Use a smaller k.")
    if isinstance(k, str) and options.alpha is None and targets.n_folds(samples.groups) < 2:
        reason = warn_of_few_folds(samples, targets)
        raise DataError(f"-k {k} needs cross-validation. {reason} Use -k with a number instead.")


def fit(selector: BaseSelector, samples: Samples, shared: Part | None = None) -> list[Array]:
    """Fit on all samples and return the ranked units."""
    X = samples.X if shared is None else shared
    nuisances = nuisances_of(samples)
    own = {} if nuisances is None else {"adjust_for": nuisances}
    selector.fit(NamedColumns(X, samples.feature_names), samples.y, **own)
    return ranked(selector)


def ranked(selector: BaseSelector) -> list[Array]:
    """Return the ranked units of a fitted selector, or raise an error if it selects none."""
    units = ranked_units(selector)
    if not units:
        raise NothingSelectedError(f"No feature is selected at --alpha {selector.alpha:g}. Use a smaller one.")
    return units


def resample(selector: BaseSelector, k: int, samples: Samples, options: SelectOptions) -> StabilitySelector:
    """Repeat the selection of k features on halves of the samples, as all of them were prepared: nothing is scored."""
    assert options.stability is not None
    with progress("Stability", options.stability) as advance:
        stability = StabilitySelector(
            clone(selector).set_params(n_features_to_select=k),
            n_resamples=options.stability,
            random_state=options.seed,
            n_jobs=options.n_jobs,
            callback=lambda _: advance(),
        )
        own = {"groups": samples.groups, "adjust_for": nuisances_of(samples)}
        stability.fit(NamedColumns(samples.X, samples.feature_names), samples.y, **own)
    return stability


def list_panels(selector: BaseSelector, k: int, samples: Samples, eps: float | str) -> PanelAtlas:
    """List all panels of k features whose loss is within a share of the best."""
    assert isinstance(selector, L20Selector)
    named = NamedColumns(samples.X, samples.feature_names)
    share = None if eps == "auto" else eps
    return selector.near_optimal(k, eps=share, X=named, y=samples.y, adjust_for=nuisances_of(samples))


def number_of_jobs(samples: Samples, options: SelectOptions) -> int:
    """Return the number of parallel fits; 1 for a file in blocks."""
    return 1 if isinstance(samples.X, FileBlocks) else options.n_jobs


def describe_protocol(predictions: Predictions | None, samples: Samples) -> str | None:
    """Return the name of the protocol."""
    if predictions is None:
        return None
    stratified = "stratified " if isinstance(predictions.targets, Classes) else ""
    together = "" if samples.groups is None else " by group"
    n_folds = len(predictions.repeats[0])
    times = f"{len(predictions.repeats)} times " if len(predictions.repeats) > 1 else ""
    return f"{times}{n_folds}-fold {stratified}cross-validation{together}, selection inside each fold"
